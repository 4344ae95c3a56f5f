"""Commands that race for one lab: each does its work, or says in a sentence why not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from typer.testing import CliRunner

from fake_lab import fake_lab
from minigts import lab as labs
from minigts.cli.app import app
from minigts.lab.rundir import exclusive
from minigts.topology.read.load import parse

PROGRAM = Path(__file__).parents[1] / "racing_lab.py"
LIMIT_S = 400.0


def race(state: Path, verbs: Sequence[str], times: int) -> dict[str, int]:
    """How often each came to its end, by verb and number."""
    environment = {
        **os.environ,
        "MINIGTS_STATE": str(state),
        "PYTHONPATH": os.pathsep.join((str(PROGRAM.parents[2] / "tools"), str(PROGRAM.parent))),
    }
    started = {
        f"{verb} {number}": subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), verb, str(times), str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, verb in enumerate(verbs)
    }
    try:
        said = {name: process.communicate(timeout=LIMIT_S) for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    assert {name: stderr for name, (_, stderr) in said.items() if stderr} == {}
    return {name: int(stdout) for name, (stdout, _) in said.items()}


def test_the_lock_lets_one_in_at_a_time_and_none_of_many_stumbles(tmp_path: Path) -> None:
    """The lab of the lock is never there, so that its file comes and goes with every entry."""
    assert set(race(tmp_path, ["enter"] * 5, 40).values()) == {40}
    assert list((tmp_path / "labs").iterdir()) == []


def test_up_down_exec_link_and_status_of_one_lab_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = ["up", "up", "down", "down", "exec", "link", "status"]
    done = race(tmp_path, verbs, 20)
    assert done["up 0"] + done["up 1"] > 0
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    for lab in labs.all_labs():
        labs.down(lab)
    assert [path.name for path in (tmp_path / "labs").iterdir()] == []


def test_down_says_that_it_waits_for_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse("name: pair\nhosts: {a: , b: }\nlinks: [{ends: [a, b]}]\n", "pair.yaml")
    lab, going = fake_lab(plan, tmp_path, monkeypatch), Event()

    def other() -> None:
        with exclusive(lab.rundir):
            going.set()
            sleep(0.5)

    with ThreadPoolExecutor() as pool:
        pool.submit(other)
        going.wait()
        done = CliRunner().invoke(app, ["down", "--all"])
    said = ["another command is at work on lab pair; waiting until it has ended", "lab pair is down"]
    assert (done.exit_code, done.stderr.splitlines()) == (0, said)
    assert not lab.rundir.exists()
