"""What forges, editors and pre-commit read of the project: that it says what the project really has and does."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import checks
from minigts import __version__
from minigts.providers.uml.build import export

PROJECT = Path(__file__).parents[2]
WORKFLOWS = (".github/workflows/each-change.yml", ".gitlab-ci.yml")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> Any:
    return YAML(typ="safe").load((PROJECT / name).read_text(encoding="utf-8"))


def words(value: Any) -> list[str]:
    """Every text in a YAML file."""
    if isinstance(value, dict):
        return [each for key in value for each in words(value[key])]
    if isinstance(value, list):
        return [each for item in value for each in words(item)]
    return [str(value)]


def test_the_citation_is_of_this_version() -> None:
    """Its keys and values are those of the Citation File Format 1.2.0 (schema.json there)."""
    citation = read("CITATION.cff")
    assert set(citation) <= {
        *("abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords"),
        *("license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact"),
        *("repository-code", "title", "type", "url", "version"),
    }
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    # Of several licences the format says that one may choose; it has no word for both.
    assert (citation["version"], citation["license"]) == (__version__, PYPROJECT["license"].partition(" AND ")[0])
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PYPROJECT["authors"]]
    assert len(set(citation["keywords"])) == len(citation["keywords"])


def test_the_changelog_begins_with_what_is_unreleased_or_with_this_version() -> None:
    headings = re.findall(r"^## (.*)$", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    newest = headings[1] if headings[0] == "Unreleased" else headings[0]
    assert newest.split(",")[0] == __version__


def test_pages_name_files_of_a_release_by_this_version() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (PROJECT / "docs").glob("*.md"))
    assert set(re.findall(r"minigts-([0-9][0-9.]*[0-9])[-.]", text)) == {__version__}


def test_each_hook_before_a_commit_is_a_check_of_the_project() -> None:
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # so nothing is fetched
    called = []
    for hook in repository["hooks"]:
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)
        first, module, *argv = shlex.split(hook["entry"])
        assert (first, module, argv[:2]) == ("env", "MINIGTS_MODULE=tests.checks", ["./minigts", "test"])
        called += argv[2:]
    assert sorted(called) == sorted(checks.NAMES)


def test_the_names_of_checks_are_what_they_run() -> None:
    assert {checks.program(argv) for argv in checks.commands()} == set(checks.NAMES)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_forge_runs_what_continuous_integration_runs(name: str) -> None:
    """As a plain user: root's are only the packages and the setting for namespaces."""
    said = words(read(name))
    assert any(re.search(r"(^| )\.ci/run$", each) for each in said)
    for each in said:
        for program in re.findall(r"(?m)^\s*sudo (\S+)", each):
            assert program == "-u", each
    require_files(said)


def require_files(said: list[str]) -> None:
    found = re.findall(
        r"(?<![\w.])(\.ci/\w+|[\w./-]*/system-packages)", " ".join(said).replace("$GITHUB_ACTION_PATH/", "")
    )
    assert found
    for file in found:
        assert (PROJECT / file).is_file()


def test_the_action_has_what_it_calls_and_a_cache_that_ends_with_the_parts() -> None:
    action = read("action.yml")
    assert {"name", "description", "inputs", "outputs", "runs"} == set(action)
    require_files(words(action))
    steps = action["runs"]["steps"]
    cache = next(each for each in steps if "cache" in each.get("uses", ""))
    before, after = steps[: steps.index(cache)], steps[steps.index(cache) + 1 :]
    assert any("setup uml --key" in each["run"] for each in before)
    assert any('setup uml "${from[@]}"' in each["run"] for each in after)
    assert sorted(Path(line).name for line in cache["with"]["path"].splitlines()) == sorted(export.STORES)
    assert all(each["shell"] == "bash" for each in steps if "run" in each)
    used = [each["uses"] for each in read(WORKFLOWS[0])["jobs"]["tests"]["steps"] if "uses" in each]
    assert "./" in used


@pytest.mark.parametrize("lacking", [False, True])
def test_continuous_integration_installs_only_packages_that_are_not_there(tmp_path: Path, *, lacking: bool) -> None:
    (tmp_path / "list").write_text("# a comment\ndpkg  dpkg\n" + "nothing  no-such-package\n" * lacking)
    for name in ("apt-get", "sudo"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*"\ncase "$*" in *" install "*) exit 1 ;; esac\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    argv = [str(PROJECT / ".ci/packages"), str(tmp_path / "list")]
    done = subprocess.run(argv, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert ("not in this distribution: no-such-package" in done.stderr) is lacking
    assert bool(done.stdout) is lacking


def test_the_container_has_every_package_that_building_takes() -> None:
    container = (PROJECT / "Containerfile").read_text(encoding="utf-8")
    installed = re.search(
        r"apt-get install -y --no-install-recommends (.*?)&&", container.replace("\\\n", ""), re.DOTALL
    )
    assert installed is not None
    listed = (PROJECT / "tools/minigts/providers/uml/system-packages").read_text(encoding="utf-8").splitlines()
    assert {line.split()[1] for line in listed if line and not line.startswith("#")} <= set(installed[1].split())
    devcontainer = json.loads((PROJECT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert (PROJECT / ".devcontainer" / devcontainer["build"]["dockerfile"]).resolve() == PROJECT / "Containerfile"


def test_the_container_gets_no_file_that_git_ignores_and_may_be_large() -> None:
    left_out = set((PROJECT / ".containerignore").read_text(encoding="utf-8").split())
    assert {".git", "results", "site", "provision/*/target"} <= left_out


def test_templates_of_both_forges_ask_the_same() -> None:
    github = {file.name: file.read_text() for file in (PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.md")}
    gitlab = {file.name: file.read_text() for file in (PROJECT / ".gitlab" / "issue_templates").glob("*.md")}
    assert {name: text.split("---\n", 2)[2].lstrip() for name, text in github.items()} == gitlab
    change = PROJECT / ".gitlab" / "merge_request_templates" / "default.md"
    assert (PROJECT / ".github" / "pull_request_template.md").read_text() == change.read_text()


def test_editors_are_told_the_width_that_ruff_wants() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[DEFAULT]\n" + (PROJECT / ".editorconfig").read_text(encoding="utf-8"))
    ruff = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    assert parser["*.py"].getint("max_line_length") == ruff["line-length"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (1000, []),
        (
            990,
            ["tests/budget.toml: judge has 1000 lines, and its budget is 990: take some out, or raise it and say why"],
        ),
        (1100, ["tests/budget.toml: judge has 1000 lines, and its budget is 1100: lower it"]),
    ],
)
def test_a_room_has_the_lines_of_its_budget(
    lines: int, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, budget = tmp_path / "tools" / "judge", tmp_path / "tests" / "budget.toml"
    room.mkdir(parents=True)
    budget.parent.mkdir()
    (room / "one.py").write_text("line\n" * 1000)
    budget.write_text(f'[judge]\nlines = {lines}\nwhy = "it is large"\n')
    monkeypatch.setattr(checks, "PROJECT", tmp_path)
    monkeypatch.setattr(checks, "PACKAGE", tmp_path / "tools")
    monkeypatch.setattr(checks, "BUDGET", budget)
    assert checks.budget_problems() == said
    budget.write_text("")
    assert checks.budget_problems() == [
        "tests/budget.toml: judge has 1000 lines, and its budget is 0: take some out, or raise it and say why"
    ]


def test_each_room_says_why_it_has_its_lines() -> None:
    budget = tomllib.loads(checks.BUDGET.read_text(encoding="utf-8"))
    assert [room for room, entry in budget.items() if not entry["why"]] == []
    assert checks.budget_problems() == []
