"""Hosts that fall silent or never stop: no verb waits for them without end, none takes more than it may, and each says
which host it is. One has its agent frozen by its own root, one its kernel's process stopped, one is paused.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from typer.testing import CliRunner, Result

from live.conftest import quiet, state_directory
from live.program import PATIENCE_S, Program, kernel, until
from minigts import lab as labs
from minigts import overlays
from minigts.cli.app import app
from minigts.lab import Lab
from minigts.providers import archive
from minigts.providers.agent import client, patience
from minigts.providers.agent.client import OutputTooLong
from minigts.providers.uml.run import console
from minigts.topology.read.load import parse

PAIR = "name: silent\npair: {hosts: [ams, bra], link: {rtt: 4ms, rate: 50mbit}}\n"
FREEZE = """
mkdir -p /sys/fs/cgroup/ice
echo 1 >/sys/fs/cgroup/ice/cgroup.procs
setsid sh -c 'sleep 0.3; echo 1 >/sys/fs/cgroup/ice/cgroup.freeze' >/dev/null 2>&1 </dev/null &
"""
"""The agent is process 1, which no signal stops; its own control group does (cgroups(7))."""
PATIENT = """
import os, pathlib
from minigts.providers.agent import patience
patience.SILENT_S = patience.SILENT_LAB_S = patience.SILENT_AT_MOST_S = 1e6
look = patience.Patience.look
def seen(self):
    pathlib.Path(os.environ["LOOKED"]).touch()
    return look(self)
patience.Patience.look = seen
from minigts.cli import main
main()
"""
"""The program, but that it does not end of itself, since in virtual time 10 s of a lab pass in fewer; and that it says
when it waits for a host, and looks whether that is still there."""
ENOUGH_S = 40.0
"""Within what a verb ends that has been interrupted once, on a busy machine: left alone, each of these takes longer."""


@pytest.fixture(
    scope="module",
    params=[pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("real", marks=pytest.mark.nightly)],
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("silent")):
        made = labs.up(parse(PAIR, "silent.yaml", time=request.param), "uml", None, quiet)
        yield made
        labs.down(made)


@pytest.fixture
def program(lab: Lab) -> Program:
    return Program(lab.rundir.parents[1])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for, in both times."""
    for name, value in {"SILENT_S": 3.0, "SILENT_LAB_S": 2.0, "STOPPED_S": 1.0, "QUIET_S": 1.0}.items():
        monkeypatch.setattr(patience, name, value)


def verb(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def freeze(lab: Lab, host: str) -> None:
    lab.provider.run(host, ["sh", "-c", FREEZE], timeout_s=60)
    lab.provider.run("ams", ["sleep", "2"], timeout_s=60)


def test_one_interruption_ends_a_join_whose_hosts_do_not_reach_each_other(
    lab: Lab, program: Program, tmp_path: Path
) -> None:
    """They try for a minute, which is soon over in virtual time."""
    if lab.time == "virtual":
        pytest.skip("there it ends by itself")
    (tmp_path / "silent.yaml").write_text(PAIR)
    words = ("up", str(tmp_path / "silent.yaml"), "--time", lab.time, "--overlay", "none")
    program.succeeds(*words)
    overlays.leave(lab, quiet)
    deaf = "nft add table inet deaf; nft add chain inet deaf in '{ type filter hook input priority 0 ; }'"
    lab.provider.run("bra", ["sh", "-ec", f"{deaf}; nft add rule inet deaf in ip protocol icmp drop"], timeout_s=60)
    try:
        started = program.start(*words)
        tries = ["pgrep", "-f", "phase.sh reach"]
        assert until(lambda: lab.provider.run("ams", tries, timeout_s=60, check=False).code == 0)
        began = time.monotonic()
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=PATIENCE_S)
    finally:
        lab.provider.run("bra", ["nft", "delete", "table", "inet", "deaf"], timeout_s=60)
    assert (started.returncode, time.monotonic() - began < ENOUGH_S) == (130, True), said
    overlays.leave(lab, quiet)


@pytest.mark.nightly
def test_output_of_any_length_is_handed_on_in_little_memory(lab: Lab, program: Program) -> None:
    size = 100_000_000
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)\n"
    )
    words = [sys.executable, "-P", "-m", "minigts", "exec", "ams", "--", "sh", "-c", f"yes | head -c {size}"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(program.project / "tools"), "MINIGTS_STATE": str(program.state)},
        check=True,
    )
    code, megabytes = map(int, done.stdout.split())
    assert (code, megabytes < 100) == (0, True), f"{megabytes} MB"


def test_kept_it_is_refused_beyond_a_bound(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_KEPT_BYTES", 1 << 20)
    with pytest.raises(OutputTooLong, match="wrote more than 1 MB"):
        lab.provider.run("ams", ["yes"], timeout_s=60)
    assert lab.provider.run("ams", ["sh", "-c", "sleep 1; pgrep -x yes"], timeout_s=60, check=False).code == 1


def test_a_console_grows_to_a_bound_and_ends_with_what_was_said_last(lab: Lab) -> None:
    lab.provider.run("ams", ["sh", "-c", "yes $(seq 100) | head -c 10000000 >/dev/console"], timeout_s=60)
    lab.provider.run("ams", ["sh", "-c", "echo the last word >/dev/console"], timeout_s=60)
    kept = lab.rundir / "consoles" / "ams" / "console.log"
    assert until(lambda: kept.read_bytes().rstrip().endswith(b"the last word"))
    assert 1 << 20 < kept.stat().st_size <= console.MOST_BYTES
    shown = verb("logs", "ams", "--only", "console")
    assert (shown.exit_code, "the last word" in shown.stdout) == (0, True)


@pytest.mark.nightly
def test_an_archive_that_grows_or_never_ends_leaves_nothing_here(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 20 << 20)
    tar = "/usr/local/bin/tar"
    lab.provider.run(
        "ams", ["sh", "-c", f"printf '#!/bin/sh\\nexec cat /dev/zero\\n' >{tar}; chmod +x {tar}"], timeout_s=60
    )
    try:
        refused = verb("cp", "ams:/etc/hosts", str(tmp_path / "hosts"))
    finally:
        lab.provider.run("ams", ["rm", tar], timeout_s=60)
    assert (refused.exit_code, "host ams sends more than" in refused.stderr) == (1, True), refused.stderr
    assert list(tmp_path.iterdir()) == []
    assert not list((lab.rundir / "shared" / "ams" / "returned").iterdir())


def test_a_paused_host_is_not_asked(lab: Lab, tmp_path: Path) -> None:
    labs.pause(lab, "bra")
    began = time.monotonic()
    for words in (["cp", "bra:/etc/hosts", str(tmp_path / "x")], ["capture", "--for", "1", "bra"]):
        refused = verb(*words)
        assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (1, "minigts: bra is paused: minigts resume bra")
    assert "bra is paused: minigts resume bra" in verb("logs", "bra").stdout
    explained = json.loads(verb("explain", "ams-bra", "--json").stdout)
    assert explained["answer"] == "bra does not answer: bra is paused: minigts resume bra"
    assert time.monotonic() - began < PATIENCE_S


def test_it_can_be_started_again_all_the_same(lab: Lab) -> None:
    done = verb("restart", "bra")
    assert (done.exit_code, lab.read_record().paused) == (0, frozenset()), done.stderr
    assert set(lab.state_of_hosts().values()) == {"answers"}


@pytest.mark.usefixtures("impatient")
@pytest.mark.nightly
def test_a_kernel_whose_process_is_stopped_is_named_and_started_again(lab: Lab, program: Program) -> None:
    os.kill(kernel(program, "silent", "bra"), signal.SIGSTOP)
    said = verb("exec", "bra", "true")
    assert (said.exit_code, "its kernel's process has been stopped" in said.stderr) == (1, True), said.stderr
    assert "minigts restart bra starts it again" in said.stderr
    done = verb("restart", "bra")
    assert (done.exit_code, set(lab.state_of_hosts().values())) == (0, {"answers"}), done.stderr


def test_its_agent_can_be_frozen(lab: Lab) -> None:
    freeze(lab, "bra")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "words",
    [
        ["exec", "bra", "true"],
        ["cp", "bra:/etc/hosts", "HERE"],
        ["cp", "/etc/hosts", "bra:/root/"],
        ["capture", "--for", "1", "-w", "HERE", "bra"],
        ["check", "--quick"],
    ],
    ids=" ".join,
)
def test_a_silent_host_is_an_error_that_names_it(lab: Lab, tmp_path: Path, words: list[str]) -> None:
    done = verb(*(str(tmp_path / "here") if word == "HERE" else word for word in words))
    said = done.stderr.splitlines()[-1]
    assert (done.exit_code, "host bra does not answer" in said) == (1, True), done.stderr
    assert "minigts restart bra starts it again" in said


@pytest.mark.usefixtures("impatient")
def test_what_tells_of_a_lab_tells_of_the_others(lab: Lab) -> None:
    (shown,) = json.loads(verb("status", "--json").stdout)
    assert shown["hosts"]["ams"] == "answers"
    assert "host bra does not answer" in shown["hosts"]["bra"]
    logs = verb("logs", "bra")
    assert (logs.exit_code, "host bra does not answer" in logs.stdout) == (0, True)
    explained = json.loads(verb("explain", "ams-bra", "--json").stdout)
    assert (explained["cause"], list(explained["unread"])) == ("no-answer", ["bra"])


@pytest.mark.parametrize(
    "words",
    [["status"], ["cp", "/etc/hosts", "bra:/root/"], ["exec", "--all", "--", "sleep", "1000"], ["restart", "bra"]],
    ids=" ".join,
)
def test_one_interruption_ends_a_verb(lab: Lab, program: Program, tmp_path: Path, words: list[str]) -> None:
    looked = tmp_path / "looked"
    started = replace(program, environment={"LOOKED": str(looked)}).start(*words, main=("-c", PATIENT))
    assert until(looked.exists)
    assert started.poll() is None
    began = time.monotonic()
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=PATIENCE_S)
    assert (started.returncode, time.monotonic() - began < ENOUGH_S) == (130, True), said
    assert "Traceback" not in said


@pytest.mark.usefixtures("impatient")
def test_and_it_is_started_again(lab: Lab, tmp_path: Path) -> None:
    done = verb("restart", "bra")
    assert done.exit_code == 0, done.stderr
    assert set(lab.state_of_hosts().values()) == {"answers"}
    lab.provider.get("bra", PurePosixPath("/etc/hostname"), tmp_path / "name")


def test_down_needs_no_answer(lab: Lab, program: Program) -> None:
    os.kill(kernel(program, "silent", "ams"), signal.SIGSTOP)
    began = time.monotonic()
    program.succeeds("down", "silent")
    assert time.monotonic() - began < PATIENCE_S
    assert not lab.rundir.exists()
