"""The wheel, installed into an empty environment at the lock's versions and used from an empty directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live import package_facts
from live.program import PROJECT, Traces
from minigts import __version__, overlays

pytestmark = pytest.mark.nightly
BROUGHT = ("provision", "topologies", "experiments", "docs/lessons", "Vagrantfile")
NOT_BROUGHT = {"__pycache__", "target"}
"""What a developer's own Python and cargo leave among them."""
LIMIT_S = 120


def pinned() -> str:
    """The lock's versions without its hashes, for the wheel has none there."""
    lines = (PROJECT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return "\n".join(line.rstrip("\\ ") for line in lines if re.match(r"\w", line))


class Installed:
    """An environment with the wheel in it, an empty directory, and a state of its own."""

    def __init__(self, place: Path) -> None:
        self.place, self.state, self.directory = place, place / "state", place / "empty"
        self.directory.mkdir()

    def build(self) -> None:
        wheels, constraints = self.place / "wheels", self.place / "constraints.txt"
        constraints.write_text(pinned(), encoding="utf-8")
        self._in_checkout("-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels))
        self._in_checkout("-m", "venv", "--without-pip", str(self.place / "environment"))
        pip = ("-m", "pip", "--python", str(self.program("python")), "install", "--quiet", "--no-input", "--no-compile")
        only = ("--only-binary", ":all:", "--constraint", str(constraints))
        self._in_checkout(*pip, "--disable-pip-version-check", *only, *map(str, wheels.iterdir()))

    def program(self, name: str) -> Path:
        return self.place / "environment" / "bin" / name

    def run(self, *arguments: str, program: str = "minigts", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run it from the empty directory, without what tells Python or minigts of the checkout."""
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MINIGTS_PROJECT")}
        return subprocess.run(
            [self.program(program), *arguments],
            cwd=self.directory,
            env={**clean, "MINIGTS_STATE": str(self.state), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def succeeds(self, *arguments: str, program: str = "minigts", **environ: str) -> str:
        done = self.run(*arguments, program=program, **environ)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _in_checkout(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    made = Installed(tmp_path_factory.mktemp("package"))
    made.build()
    yield made
    made.run("down", "--all")


@pytest.fixture(scope="module")
def facts(installed: Installed) -> dict[str, Any]:
    """What the installed package says of itself once its scripts in Python are compiled, as pip does when it installs.

    The box's key holds keys that lie in the cache: one of their own, which `keys` shares.
    """
    package = next((installed.place / "environment").glob("lib/python*/site-packages/minigts"))
    installed.succeeds("-m", "compileall", "-q", str(package / "brought"), program="python")
    said = installed.succeeds(package_facts.__file__, program="python", MINIGTS_CACHE=str(installed.place / "cache"))
    told: dict[str, Any] = json.loads(said)
    return told


@pytest.fixture(scope="module")
def keys(installed: Installed, facts: dict[str, Any]) -> dict[str, str]:
    """The checkout's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_CACHE", str(installed.place / "cache"))
        return package_facts.cache_keys()


@pytest.fixture(scope="module")
def root(installed: Installed, facts: dict[str, Any]) -> Path:
    """Where the installed package has the project's own files."""
    assert installed.place / "environment" in Path(facts["root"]).parents
    return Path(facts["root"])


def test_it_says_its_version(installed: Installed) -> None:
    assert installed.succeeds("--version") == f"minigts {__version__}\n"


@pytest.mark.parametrize("part", BROUGHT)
def test_it_brings_the_projects_files_as_they_are(root: Path, part: str) -> None:
    assert _files(root, part) == _files(PROJECT, part) != {}


def _files(root: Path, part: str) -> dict[str, tuple[bytes, bool]]:
    """Each file's content, and whether it can be run."""
    found = (each for each in (root / part, *(root / part).rglob("*")) if each.is_file())
    named = {str(each.relative_to(root)): each for each in found if not NOT_BROUGHT & set(each.parts)}
    return {name: (each.read_bytes(), os.access(each, os.X_OK)) for name, each in named.items()}


@pytest.mark.parametrize("what", ["image", "kernel", "clock", "box", "programs of flannel"])
def test_what_a_checkout_has_built_is_not_built_again(facts: dict[str, Any], keys: dict[str, str], what: str) -> None:
    assert facts["keys"][what] == keys[what]


def test_it_has_the_same_overlays_and_builds_the_same_for_them(facts: dict[str, Any], keys: dict[str, str]) -> None:
    assert facts["overlays"] == list(overlays.known_names())
    assert facts["keys"] == keys


def test_it_plans_as_the_checkout_does_and_says_whose_file_it_took(installed: Installed) -> None:
    ours = subprocess.run(
        [sys.executable, "-P", "-m", "minigts", "plan", "--json", "topologies/chain6.yaml"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tools")},
        capture_output=True,
        text=True,
        check=True,
    )
    done = installed.run("plan", "--json", "topologies/chain6.yaml")
    assert (done.returncode, done.stdout) == (0, ours.stdout)
    assert "minigts' own" in done.stderr
    assert ours.stderr == ""


def test_a_file_of_the_directory_goes_before_minigts_own(installed: Installed) -> None:
    own = installed.directory / "pair.yaml"
    own.write_text("name: mine\npair: {}\n")
    try:
        done = installed.run("plan", "--json", "pair.yaml")
    finally:
        own.unlink()
    assert (json.loads(done.stdout)["name"], done.stderr) == ("mine", "")


def test_an_experiment_finds_its_topology(installed: Installed) -> None:
    assert "multihop: " in installed.succeeds("run", "multihop.yaml", "--dry-run")


def test_what_is_nowhere_is_one_line_that_says_where_to_look(installed: Installed) -> None:
    done = installed.run("up", "topologies/chain7.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "minigts: topologies/chain7.yaml: no such file, and minigts brings none of that name; "
        "minigts examples lists its files\n"
    )
    assert "/brought/topologies/chain6.yaml\n" in installed.succeeds("examples")


def test_a_report_without_matplotlib_is_one_error(installed: Installed) -> None:
    done = installed.run("report", str(PROJECT / "tests" / "unit" / "report_sample"))
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(r"rendering\nminigts: .*matplotlib.*\n", done.stderr)


def test_the_projects_tests_are_in_a_checkout(installed: Installed) -> None:
    done = installed.run("test")
    assert done.returncode == 3
    assert "./minigts test" in done.stderr


def test_it_brings_what_the_commands_need_that_init_advises(installed: Installed) -> None:
    advised = [line.split()[1:] for line in installed.run("init", "mine").stderr.splitlines() if line.startswith("  ")]
    dry = {"plan": [], "run": ["--dry-run"], "test": ["--collect-only"]}
    assert [words[0] for words in advised] == [*dry]
    for verb, *words in advised:
        installed.succeeds(verb, *words, *dry[verb])


def test_setting_a_provider_up_names_the_packages_it_would_install(installed: Installed, root: Path) -> None:
    with (root.parent / "providers" / "uml" / "system-packages").open("a", encoding="utf-8") as file:
        file.write("no-such-program  no-such-package\n")
    done = installed.run("setup", "uml", MINIGTS_APT="no")
    assert re.search("^minigts: these system packages .* are missing: (.* )?no-such-package$", done.stderr, re.M)


@pytest.mark.virtual
def test_a_pair_comes_up_answers_and_leaves_nothing(installed: Installed) -> None:
    traces, before = Traces.before(installed.state), {*installed.directory.iterdir()}
    assert json.loads(installed.succeeds("doctor", "--json"))[0]["verdict"].startswith("runs")
    installed.succeeds("up", "pair.yaml")
    traces.look()
    assert "1 received" in installed.succeeds("exec", "ams", "--", "ping", "-c", "1", "bra")
    installed.succeeds("down")
    assert traces.left() == []
    assert {*installed.directory.iterdir()} == before
