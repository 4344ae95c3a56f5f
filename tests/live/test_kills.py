"""Whatever is killed and whenever, `minigts down` leaves no process, no socket and no file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from live.program import (
    PATIENCE_S,
    TOPOLOGIES,
    Program,
    Traces,
    kernel,
    kernels,
    kills_at_random,
    processes_of,
    until,
)
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.providers.agent import lab_processes

pytestmark = [pytest.mark.uml, pytest.mark.nightly]
UP = ("up", str(TOPOLOGIES / "pair.yaml"), "--overlay", "none")


def states(program: Program) -> dict[str, str]:
    """Each host's state, as `minigts status` says."""
    (lab,) = json.loads(program.succeeds("status", "--json"))
    return {name: str(state) for name, state in _hosts(lab)}


def _hosts(lab: dict[str, object]) -> list[tuple[str, object]]:
    hosts = lab["hosts"]
    if isinstance(hosts, dict):
        return list(hosts.items())
    assert isinstance(hosts, list)
    return [(host["name"], host["state"]) for host in hosts]


def supervisor(program: Program) -> int:
    pid = lab_processes.supervisor(program.rundir("pair"))
    assert pid is not None
    return pid


STAGES: dict[str, Callable[[Program], bool]] = {
    "the lab is recorded": lambda program: (program.rundir("pair") / "lab.json").exists(),
    "its supervisor runs": lambda program: lab_processes.supervisor(program.rundir("pair")) is not None,
    "a kernel runs": lambda program: bool(kernels(program)),
    "both kernels run": lambda program: len(kernels(program)) == 2,
    "a host listens": lambda program: any(program.rundir("pair").glob("hosts/*/control.sock")),
}


@pytest.mark.parametrize("stage", STAGES)
def test_up_killed_as_soon_as(program: Program, traces: Traces, stage: str) -> None:
    up = program.start(*UP)
    assert until(lambda: STAGES[stage](program))
    traces.look()
    assert up.pid in traces.processes
    assert up.poll() is None
    up.kill()
    up.communicate()
    program.succeeds("down", "pair")
    assert traces.left() == []


SEED = 34
"""It draws a pair, and a moment at which most of the run is over."""


@pytest.mark.timeout(1200)
def test_a_run_killed_at_a_random_moment(tmp_path: Path) -> None:
    """One of those that `bench/run kills` does by the hundred: nothing is left, and nothing lost."""
    done, (trial,) = kills_at_random(tmp_path, "--victims", "run", "--times", "1", "--seed", str(SEED))
    assert trial["faults"] == [], done.stdout
    assert trial["draw"]["topology"] == "pair"
    assert done.returncode == 0, done.stderr


def test_up_again_after_it_was_killed(program: Program, traces: Traces) -> None:
    up = program.start(*UP)
    assert until(lambda: lab_processes.supervisor(program.rundir("pair")) is not None)
    up.kill()
    up.communicate()
    traces.look()
    program.succeeds(*UP)
    assert states(program) == {"ams": "answers", "bra": "answers"}
    traces.look()
    program.succeeds("down")
    assert traces.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: str(number.name))
def test_up_broken_off_by_its_user_takes_down_what_it_started(
    program: Program, traces: Traces, number: signal.Signals
) -> None:
    up = program.start(*UP)
    assert until(lambda: lab_processes.supervisor(program.rundir("pair")) is not None)
    traces.look()
    up.send_signal(number)
    _, said = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 128 + number
    assert "Traceback" not in said
    assert traces.left() == []


def test_up_whose_terminal_is_closed_takes_down_what_it_started(program: Program, traces: Traces) -> None:
    """Closing it sends SIGHUP, and nothing can be written to it from then on."""
    outside, inside = os.openpty()
    up = program.start(*UP, terminal=inside)
    os.close(inside)
    assert until(lambda: lab_processes.supervisor(program.rundir("pair")) is not None)
    traces.look()
    os.close(outside)
    up.send_signal(signal.SIGHUP)
    up.wait(timeout=PATIENCE_S)
    assert up.returncode == 128 + signal.SIGHUP
    assert traces.left() == []
    assert "pair" not in program.run("status").stdout


def test_a_kernel_killed_and_its_lab_replaced(program: Program, traces: Traces) -> None:
    program.succeeds(*UP)
    traces.look()
    assert len(traces.processes) > 3
    killed = kernel(program, "pair", "bra")
    subprocess.run(["kill", "-9", str(killed)], check=True)
    assert until(lambda: states(program)["bra"] != "answers")
    gone = "host bra is not running; minigts restart bra starts it again"
    assert states(program) == {"ams": "answers", "bra": gone}
    assert program.succeeds("exec", "ams", "--", "echo", "still here") == "still here\n"
    assert "bra is not running" in program.run("exec", "bra", "--", "true").stderr
    program.succeeds(*UP)
    assert states(program) == {"ams": "answers", "bra": "answers"}
    traces.look()
    program.succeeds("down")
    assert traces.left() == []
    assert "no lab" in program.run("down").stderr


def test_the_supervisor_killed(program: Program, traces: Traces) -> None:
    program.succeeds(*UP)
    traces.look()
    subprocess.run(["kill", "-9", str(supervisor(program))], check=True)
    assert until(lambda: not lab_processes.marked_pids(program.rundir("pair"))), "kernels outlive their supervisor"
    said = {state.split(":")[0] for state in states(program).values()}  # and then that the clock has gone, too
    assert said == {"host ams is not running", "host bra is not running"}
    program.succeeds("down")
    assert traces.left() == []


def test_a_client_killed_takes_its_command_with_it(program: Program) -> None:
    program.succeeds(*UP)
    client = program.start("exec", "ams", "--", "sh", "-c", "setsid sleep 5000123 & sleep 5000123; true")
    provider = Lab(program.rundir("pair")).provider

    def running() -> str:
        argv = ["pgrep", "-cx", "-f", "sleep 5000123"]
        return user_text(provider.run("ams", argv, timeout_s=PATIENCE_S, check=False).stdout).strip()

    assert until(lambda: running() == "2")
    client.kill()
    client.communicate()
    assert until(lambda: running() == "0")


@pytest.mark.parametrize("moment_s", [0.0, 0.7, 1.6])
def test_down_while_up_runs(program: Program, traces: Traces, moment_s: float) -> None:
    """It waits for its turn; then the lab is down, whatever `up` says of that."""
    up = program.start(*UP)
    assert until((program.rundir("pair") / "lab.json").exists)
    time.sleep(moment_s)
    traces.look()
    program.succeeds("down", "pair")
    _, said = up.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in said
    assert traces.left() == []


def test_two_that_bring_up_the_same_lab_end_with_one(program: Program, traces: Traces) -> None:
    both = [program.start(*UP) for _ in range(2)]
    said = [each.communicate(timeout=PATIENCE_S)[1] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    traces.look()
    assert states(program) == {"ams": "answers", "bra": "answers"}
    program.succeeds("down")
    assert traces.left() == []


VIRTUAL_UP = (*UP, "--time", "virtual")


def clock(program: Program) -> int:
    """The process id of the lab's clock."""
    named = [pid for pid in processes_of(program.state) if Path(f"/proc/{pid}/comm").read_text() == "clock\n"]
    (found,) = named
    return found


VICTIMS: dict[str, Callable[[Program], int]] = {
    "a kernel": lambda program: kernel(program, "pair", "ams"),
    "the clock": clock,
    "the supervisor": supervisor,
}


@pytest.mark.virtual
@pytest.mark.parametrize("victim", VICTIMS)
def test_in_virtual_time_a_command_ends_with_one_error_when_this_is_killed(
    program: Program, traces: Traces, victim: str
) -> None:
    program.succeeds(*VIRTUAL_UP)
    traces.look()
    running = program.start("exec", "ams", "--", "sh", "-c", "echo begun; while :; do :; done")
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    os.kill(VICTIMS[victim](program), signal.SIGKILL)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1, said
    again = program.run("exec", "ams", "--", "true")
    assert (again.returncode, "Traceback" in again.stderr) == (1, False), again.stderr
    if victim == "a kernel":
        assert program.succeeds("exec", "bra", "--", "echo", "still here") == "still here\n"
    program.succeeds("down")
    assert traces.left() == []
