"""What a shell completes, and that asking sets nothing up."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.completion import completion_init
from typer.testing import CliRunner

from minigts import paths
from minigts.cli import completion
from minigts.cli.app import COMPLETES, app
from minigts.overlays import catalogue
from minigts.providers import registry
from minigts.topology.read.load import load

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Records of two labs, as they stand on disk, and one that is damaged."""
    for name, topology in (("pair", "pair"), ("switches", "switched")):
        rundir = tmp_path / "labs" / name
        rundir.mkdir(parents=True)
        (rundir / "lab.json").write_text("{}")
        (rundir / "plan.json").write_text(load(PROJECT / "topologies" / f"{topology}.yaml").model_dump_json())
    (tmp_path / "labs" / "broken").mkdir()
    (tmp_path / "labs" / "broken" / "lab.json").write_text("{}")
    (tmp_path / "labs" / "broken" / "plan.json").write_text("[")
    return tmp_path


def ask(state: Path, *words: str) -> list[str]:
    """What may stand in place of the last word, as the program says that a shell asks."""
    environment = {
        "MINIGTS_STATE": str(state),
        COMPLETES: "complete_bash",
        "COMP_WORDS": "\n".join(("minigts", *words)),
        "COMP_CWORD": str(len(words)),
    }
    completion_init()  # type: ignore[attr-defined]  # as `main` does
    with contextlib.chdir(state):
        done = CliRunner().invoke(app, [], prog_name="minigts", env=environment)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("restar",), ["restart"]),
        (("kernel", ""), ["build", "list", "path", "remove"]),
        (("up", "--over"), ["--overlay"]),
        (("down", ""), ["broken", "pair", "switches"]),
        (("exec", "--lab", "p"), ["pair"]),
        (("shell", "--lab", "pair", ""), ["ams", "bra"]),
        (("shell", "--lab", "switches", "s"), ["s1", "s2"]),
        (("exec", "am"), ["ams", "ams1", "ams2", "ams3"]),
        (("exec", "--all", ""), []),
        (("exec", "ams", "l"), []),
        (("explain", "--lab", "pair", ""), ["ams-bra", "ams", "bra"]),
        (("link", "bra1", ""), ["s2"]),
        (("link", "ams", "bra", ""), ["up", "down"]),
        (("cp", "--lab", "pair", ""), ["ams:", "bra:", "labs/"]),
        (("cp", "labs/pair/p"), ["labs/pair/plan.json"]),
        (("up", "x.yaml", "--overlay", "swarm"), ["swarm", "swarm-encrypted"]),
        (("up", "--provider", "m"), ["mininet"]),
        (("plan", ""), []),
    ],
)
def test_the_shell_is_told_what_may_come_next(state: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert ask(state, *words) == offered


def test_it_imports_nothing_heavy() -> None:
    heavy = ("numpy", "ruamel", "pydantic", "jinja2")
    code = (
        "import sys; from minigts.cli import completion, verbs; [*map(verbs.verb, verbs.names())];"
        "completion.labs(); completion.overlays(); completion.providers();"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tools")}
    argv = [sys.executable, "-P", "-c", code]
    assert subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_overlays_and_providers_are_those_that_there_are() -> None:
    folders = (paths.project_root() / "provision" / "overlays").iterdir()
    declared = (each.name for folder in folders if folder.is_dir() for each in catalogue.read_folder(folder))
    assert completion.overlays() == sorted(declared)
    assert completion.providers() == sorted(registry.names())


def test_the_launcher_sets_nothing_up_for_it(tmp_path: Path) -> None:
    environment = {**os.environ, "MINIGTS_CACHE": str(tmp_path / "cache"), COMPLETES: "complete_bash"}
    words = {"COMP_WORDS": "minigts\nup\nx", "COMP_CWORD": "2"}
    done = subprocess.run([PROJECT / "minigts"], env=environment | words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "cache").exists()


def test_bash_completes_by_what_the_verb_prints(state: Path, tmp_path: Path) -> None:
    script = CliRunner().invoke(app, ["completion", "bash"]).stdout
    program = tmp_path / "minigts"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m minigts "$@"\n')
    program.chmod(0o755)
    ask_bash = 'COMP_WORDS=("$0" shell --lab pair b) COMP_CWORD=4; _minigts_completion "$0"; echo "${COMPREPLY[*]}"'
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tools"), "MINIGTS_STATE": str(state)}
    argv = ["bash", "--norc", "-c", f"{script}\n{ask_bash}", program]
    assert subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout == "bra\n"


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "_minigts_completion() {"), ("fish", "complete --command minigts")]
)
def test_other_shells_have_theirs(shell: str, begins: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert done.stdout.strip().startswith(begins)
    assert COMPLETES in done.stdout


def test_a_plan_that_is_no_plan_names_nothing(state: Path) -> None:
    (state / "labs" / "pair" / "plan.json").write_text(json.dumps(["no", "plan"]))
    assert ask(state, "shell", "--lab", "pair", "") == []
