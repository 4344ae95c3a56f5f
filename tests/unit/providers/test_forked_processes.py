"""Processes of a fork that are no children of its supervisor, the lines to their agents, and what its clock may do."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minigts.machine import shell
from minigts.providers.agent import protocol
from minigts.providers.agent.agent_line import AgentHost
from minigts.providers.uml.run import command_line, confinement, forked, system_calls

FORKS = """
import os, sys, threading
try:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    print("forks", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
except OSError as error:
    print("refused", error.errno)
"""


def started_elsewhere() -> int:
    """A process whose parent is not this one."""
    script = "import os, subprocess; print(subprocess.Popen(['sleep', '100'], stdout=-3, stderr=-3).pid)"
    return int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def test_another_ones_process_is_seen_to_run_and_to_end() -> None:
    process = forked.Adopted(started_elsewhere())
    assert process.poll() is None
    process.kill()
    assert process.wait() == process.poll() == -9
    process.kill()  # nothing happens


def test_a_process_that_is_not_there_is_an_error() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(OSError):
        forked.Adopted(process.pid)


def test_directories_of_forks_lie_in_their_origins_and_go_with_them(tmp_path: Path) -> None:
    first = tmp_path / "first" / "shared" / "ams"
    (first / command_line.RETURNED).mkdir(parents=True)
    (first / command_line.LENT_MODULES / "7.2").mkdir(parents=True)
    for number in (1, 2):
        made = forked._share(first, tmp_path / f"fork{number}" / "shared" / "ams")
        assert made == first / command_line.RETURNED / f"fork.{number}"
        assert (made / command_line.LENT_MODULES / "7.2").is_dir() and (made / command_line.RETURNED).is_dir()
    (tmp_path / "fork1" / "shared" / "elsewhere").symlink_to(tmp_path / "first")
    forked.forget_shared(tmp_path / "fork1")
    assert [each.name for each in (first / command_line.RETURNED).iterdir()] == ["fork.2"]
    forked.forget_shared(tmp_path / "first")
    assert (first / command_line.RETURNED / "fork.2").is_dir()


def test_an_agent_that_has_greeted_before_is_heard_at_once_and_gets_new_channels(tmp_path: Path) -> None:
    async def act() -> bytes:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(["sleep", "100"])
        host = AgentHost("ams", process, ours, last_channel=41)
        serving = asyncio.create_task(host.serve("control.sock"))
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.write(protocol.Frame(7, protocol.STDOUT, b"for nobody").encode())
        while not (tmp_path / "control.sock").exists():
            await asyncio.sleep(0.01)
        _, client = await asyncio.open_unix_connection("control.sock")
        client.write(protocol.Frame(1, protocol.RUN, b"{}").encode())
        frame = await asyncio.wait_for(reader.readexactly(protocol.HEADER.size + 2), 20)
        writer.close()
        client.close()
        await serving
        process.kill()
        process.wait()
        return frame

    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert asyncio.run(act()) == protocol.Frame(42, protocol.RUN, b"{}").encode()
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    ("calls", "said"),
    [(system_calls.CLOCK, "forks 0"), (system_calls.FILTER, "refused"), (system_calls.KERNEL, "forks 0")],
)
def test_the_clock_may_fork_and_the_filter_of_a_way_out_may_not(calls: system_calls.Calls, said: str) -> None:
    more = {**calls, **dict.fromkeys(("execve", "openat", "wait4", "socketpair"), ((),))}
    process = shell.start(
        [sys.executable, "-S", "-c", FORKS],
        output=subprocess.PIPE,
        before_exec=confinement.prepare([confinement.may_read(Path("/")), confinement.may_run(Path("/"))], calls=more),
    )
    text, _ = process.communicate(timeout=60)
    assert text.decode().startswith(said)


def test_kernels_are_recorded_with_whoever_started_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = subprocess.Popen(["sleep", "100"])
    other = started_elsewhere()
    monkeypatch.setattr(command_line.lab_processes, "supervisor", lambda _: os.getpid())
    command_line.record(tmp_path, {"ams": mine.pid, "bra": other})
    assert command_line.running(tmp_path) == {"ams": mine.pid, "bra": other}
    os.kill(other, 9)
    deadline = time.monotonic() + 20
    while "bra" in command_line.running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    mine.kill()
    mine.wait()
    assert command_line.running(tmp_path) == {}
