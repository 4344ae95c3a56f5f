"""Commands that start others: nothing of them may outlive their caller, whatever it dies of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from isolated import run_isolated

from minigts.errors import BrokenOff, CommandFailed, CommandTimeout, EnvironmentLacks
from minigts.machine import shell

TOOLS = Path(__file__).parents[3] / "tools"
OBEDIENT = 'exec 9<&"$MINIGTS_LIFELINE" </dev/null\n{ cat <&9; kill -TERM -- "-$$"; } >/dev/null 2>&1 &\n'
"""What such a command does; build.sh is one."""


def script(directory: Path, text: str) -> list[str]:
    path = directory / "script.sh"
    path.write_text(text)
    return ["bash", str(path)]


def left(directory: Path) -> list[str]:
    """Processes that run the script or were started by it: all have the directory in their arguments."""
    found = subprocess.run(["ps", "-e", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if str(directory) in line and not line.startswith("Z")]


def wait_for_none_left(directory: Path) -> None:
    deadline = time.monotonic() + 60
    while left(directory):
        assert time.monotonic() < deadline, left(directory)
        time.sleep(0.02)


def test_output_and_errors_come_together(tmp_path: Path) -> None:
    done = shell.run_group(script(tmp_path, "echo out; echo err >&2\n"), timeout_s=10)
    assert done.stdout == "out\nerr\n"


def test_a_group_starts_where_everybody_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell.run_group(script(tmp_path, "pwd\n"), timeout_s=10).stdout == "/\n"


def test_a_failure_carries_what_was_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="gone wrong") as caught:
        shell.run_group(script(tmp_path, "echo gone wrong >&2; exit 25\n"), timeout_s=10)
    assert caught.value.code == 25


@pytest.mark.parametrize("start", [OBEDIENT, 'trap "" TERM\n'], ids=["obedient", "deaf"])
def test_when_the_time_is_up_all_of_the_group_ends(tmp_path: Path, start: str) -> None:
    argv = script(tmp_path, f"{start}bash -c 'sleep 60; true' {tmp_path} & echo said; wait\n")
    with pytest.raises(CommandTimeout, match="said"):
        shell.run_group(argv, timeout_s=0.5, patience_s=1)
    assert not left(tmp_path)


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    argv = script(tmp_path, f"bash -c 'sleep 60; true' {tmp_path} &\n")
    shell.run_group(argv, timeout_s=10, patience_s=0.2)
    assert not left(tmp_path)


def test_what_has_ended_is_not_waited_for_where_nobody_collects_it() -> None:
    """As in a container whose first process does not care for those that have lost their parent."""
    program = (
        "from minigts.machine import shell\n"
        "argv = ['bash', '-c', 'sleep 60 & echo $!']\n"
        "print(open(f'/proc/{int(shell.run_group(argv, timeout_s=10, patience_s=0.2).stdout)}/stat').read())\n"
    )
    done = run_isolated(program, limit_s=60)
    assert done.returncode == 0, done.stderr
    assert ") Z 1 " in done.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_group_ends_with_its_caller(tmp_path: Path, number: signal.Signals) -> None:
    argv = script(tmp_path, f"{OBEDIENT}bash -c 'sleep 60; true' {tmp_path} & touch {tmp_path}/started; wait\n")
    program = f"from minigts.machine import shell\nshell.run_group({argv!r}, timeout_s=60)\n"
    caller = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(TOOLS)}, stderr=subprocess.DEVNULL
    )
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    caller.send_signal(number)
    caller.wait(timeout=60)
    wait_for_none_left(tmp_path)


def test_a_program_that_may_not_be_started_counts_as_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a directory of PATH is closed to this user: execvp(3) then says EACCES of a program that is nowhere."""
    (tmp_path / "closed").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="'closed' is not installed"):
        shell.run(["closed"], timeout_s=10)


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed) as caught:
        shell.run_bounded(script(tmp_path, "yes\n"), timeout_s=60, most_bytes=10_000)
    assert caught.value.stdout == "y\n" * 5000
    wait_for_none_left(tmp_path)


def test_a_bounded_program_has_its_input_its_code_and_its_time(tmp_path: Path) -> None:
    argv = script(tmp_path, "cat; echo err >&2; exit 3\n")
    done = shell.run_bounded(argv, timeout_s=60, most_bytes=100, stdin=b"in\n")
    assert (done.code, done.stdout, done.stderr) == (3, "in\n", "err\n")
    with pytest.raises(CommandTimeout):
        shell.run_bounded(script(tmp_path, f"bash -c 'sleep 60; true' {tmp_path}\n"), timeout_s=0.5, most_bytes=100)
    wait_for_none_left(tmp_path)


def test_a_bounded_program_that_is_broken_off_hears_it_as_ctrl_c(tmp_path: Path) -> None:
    broken_off = threading.Event()
    threading.Timer(0.5, broken_off.set).start()
    argv = script(tmp_path, f"trap 'touch {tmp_path}/heard; exit' INT; while :; do sleep 0.1; done\n")
    with pytest.raises(BrokenOff):
        shell.run_bounded(argv, timeout_s=60, most_bytes=100, broken_off=broken_off)
    assert (tmp_path / "heard").exists()
    wait_for_none_left(tmp_path)
