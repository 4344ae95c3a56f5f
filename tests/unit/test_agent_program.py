"""The hosts' agent as it is compiled: its own tests, which are Rust's, and the program itself on a line of ours.

Run by cargo where it is, and where what the agent uses can be had; the program needs root, for control groups.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import crates
from minigts import paths
from minigts.machine import shell
from minigts.providers.agent import protocol

CRATE = paths.project_root() / "provision" / "agent"
WORLD = ("unshare", "--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc")
GROUPS = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"


@pytest.fixture(scope="module")
def cargo(request: pytest.FixtureRequest) -> crates.Cargo:
    return crates.of(CRATE, request.config)


@pytest.fixture(scope="module")
def program(cargo: crates.Cargo) -> Path:
    cargo("build", "--offline", "--locked", timeout_s=crates.TEST_S)
    return paths.cache_root() / "cargo" / "debug" / "agent"


def test_the_agents_own_tests_pass(cargo: crates.Cargo, request: pytest.FixtureRequest) -> None:
    crates.own_tests(cargo, CRATE, request.config)


def test_both_sides_know_the_same_frames() -> None:
    source = (CRATE / "src" / "wire.rs").read_text()
    ours = {name: str(getattr(protocol, name)) for name in re.findall(r"pub const (\w+): u(?:8|size)", source)}
    assert ours == dict(re.findall(r"pub const (\w+): u(?:8|size) = (\d+);", source))
    assert f'b"{protocol.HELLO.decode()}"'.replace("\0", r"\x00") in source


class Line:
    """Frames to and from an agent on standard streams."""

    def __init__(self, agent: subprocess.Popen[bytes]) -> None:
        assert agent.stdin is not None
        assert agent.stdout is not None
        self.agent, self._requests, self._answers = agent, agent.stdin, agent.stdout
        self._decoder, self._waiting = protocol.Decoder(), list[protocol.Frame]()
        assert self._answers.read(len(protocol.HELLO)) == protocol.HELLO

    def send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        self._requests.write(protocol.Frame(channel, kind, payload).encode())
        self._requests.flush()

    def run(self, channel: int, *argv: str, **further: object) -> None:
        request = {"argv": argv, "timeout_s": None, "terminal": None, **further}
        self.send(channel, protocol.RUN, json.dumps(request).encode())

    def next(self) -> protocol.Frame:
        """The next frame that is none of the flow control's."""
        while True:
            while self._waiting:
                frame = self._waiting.pop(0)
                if frame.kind != protocol.TAKEN:
                    return frame
            data = os.read(self._answers.fileno(), 1 << 16)
            assert data, "the agent has ended"
            self._waiting += self._decoder.feed(data)

    def end_of(self, channel: int) -> tuple[dict[str, object], bytes, bytes]:
        """How the command of this channel ended, and what it said."""
        said = {protocol.STDOUT: bytearray(), protocol.STDERR: bytearray()}
        while (frame := self.next()).kind != protocol.EXIT or frame.channel != channel:
            if frame.channel == channel:
                said[frame.kind] += frame.payload
        return json.loads(frame.payload), bytes(said[protocol.STDOUT]), bytes(said[protocol.STDERR])


@pytest.fixture
def line(program: Path) -> Iterator[Line]:
    """An agent as a host has it that is no User-Mode Linux kernel, in a world with control groups of its own."""
    if os.geteuid() != 0:
        pytest.skip("control groups take root")
    world = shell.run([*WORLD, "sh", "-c", GROUPS], timeout_s=60, check=False)
    if world.code != 0:
        pytest.skip(f"control groups of version 2 cannot be mounted here: {world.stderr.strip()}")
    agent = subprocess.Popen(
        [*WORLD, "sh", "-c", f'{GROUPS} && exec "$0" line', str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    try:
        yield Line(agent)
    finally:
        agent.kill()
        agent.wait()


def test_a_command_has_its_input_and_says_how_it_ended(line: Line) -> None:
    line.run(1, "sh", "-c", "cat; echo no >&2; exit 3")
    line.send(1, protocol.INPUT, b"all of " * 10_000)
    line.send(1, protocol.INPUT, b"it")
    line.send(1, protocol.INPUT)
    assert line.end_of(1) == ({"code": 3, "timeout": False}, b"all of " * 10_000 + b"it", b"no\n")


def test_commands_run_side_by_side(line: Line) -> None:
    line.run(1, "sh", "-c", "read word; echo $word")
    line.run(2, "echo", "second")
    assert line.end_of(2)[1] == b"second\n"
    line.send(1, protocol.INPUT, b"first\n")
    assert line.end_of(1)[1] == b"first\n"


@pytest.mark.parametrize("argv", [["no-such-program"], ["/"], ["nul\0"], []])
def test_what_cannot_be_started_ends_at_once(line: Line, argv: list[str]) -> None:
    line.run(1, *argv)
    ended, _, why = line.end_of(1)
    assert ended == {"code": 127, "timeout": False}
    assert why.endswith(b"\n")
    line.run(2, "true")
    assert line.end_of(2)[0]["code"] == 0


def test_what_is_no_request_ends_nothing(line: Line) -> None:
    line.send(1, protocol.RUN, b"{")
    assert line.end_of(1)[0]["code"] == 127
    line.send(9, protocol.KILL)
    line.run(2, "true")
    assert line.end_of(2)[0]["code"] == 0


def test_a_word_is_any_bytes(line: Line) -> None:
    line.run(1, "printf", "%s", os.fsdecode(b"a\xff\xc3\xa4"))
    assert line.end_of(1)[1] == b"a\xff\xc3\xa4"


def gone(process: bytes) -> list[str]:
    """What ends when a process has ended, and been collected."""
    return ["sh", "-c", 'while [ -e "/proc/$0" ]; do sleep 0.01; done', process.decode().strip()]


def test_whoever_overruns_is_ended_with_all_it_started(line: Line) -> None:
    line.run(1, "sh", "-c", "setsid sleep 60 & echo $!; wait", timeout_s=0.3)
    ended, said, _ = line.end_of(1)
    assert ended == {"code": 128 + signal.SIGKILL, "timeout": True}
    line.run(2, *gone(said), timeout_s=10)
    assert line.end_of(2)[0] == {"code": 0, "timeout": False}


def test_whoever_is_killed_is_ended_with_all_it_started(line: Line) -> None:
    line.run(1, "sh", "-c", "setsid sleep 60 & echo $!; wait")
    started = line.next().payload
    line.send(1, protocol.KILL)
    assert line.end_of(1)[0] == {"code": 128 + signal.SIGKILL, "timeout": False}
    line.run(2, *gone(started), timeout_s=10)
    assert line.end_of(2)[0] == {"code": 0, "timeout": False}


def test_a_daemon_that_holds_the_output_and_floods_it_holds_nothing_up(line: Line) -> None:
    line.run(1, "sh", "-c", "setsid yes & echo begun; sleep 0.1")
    ended, said, _ = line.end_of(1)
    assert ended["code"] == 0
    assert b"begun" in said
    line.run(2, "true")
    assert line.end_of(2)[0]["code"] == 0


def test_a_terminal_has_its_size_and_a_new_one(line: Line) -> None:
    line.run(1, "sh", "-c", "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done", terminal=[24, 80])
    assert line.next().payload == b"24 80\r\n"
    line.send(1, protocol.RESIZE, b"[30, 100]")
    assert line.end_of(1)[1] == b"30 100\r\n"


def test_nothing_of_the_agent_is_a_commands(line: Line) -> None:
    line.run(1, "sh", "-c", "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status; env | sort; pwd")
    said = line.end_of(1)[1].decode()
    assert said.split("SigBlk")[0].split() == ["0", "1", "2", "3"]  # the last is the directory that ls reads
    assert re.findall(r"Sig\w+:\t(\w+)", said) == ["0" * 16, "0" * 16]
    assert re.findall("^(HOME|LANG|PATH|TERM)=", said, re.MULTILINE) == ["HOME", "LANG", "PATH", "TERM"]
    assert said.endswith("/root\n")


def test_what_others_left_is_collected(line: Line) -> None:
    line.run(1, "sh", "-c", "(sleep 0.1 &) ; exit 0")
    assert line.end_of(1)[0]["code"] == 0
    line.run(2, "sh", "-c", "sleep 0.3; grep -l '^State:.*Z' /proc/[0-9]*/status")
    assert line.end_of(2)[1] == b""


def test_commands_end_with_the_line(line: Line) -> None:
    line.run(1, "sh", "-c", "echo begun; sleep 60")
    assert line.next().payload == b"begun\n"
    assert line.agent.stdin is not None
    line.agent.stdin.close()
    assert line.agent.wait(timeout=60) == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_probe_is_answered_by_this_machine(program: Path, tmp_path: Path, address: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("a raw socket takes root")
    if address == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    probe = tmp_path / "probe"
    probe.symlink_to(program)
    shown = json.loads(shell.run([str(probe), address, "5", "0.01"], timeout_s=20).stdout)
    assert shown["sent"] == len(shown["rtts_us"]) == 5
    assert all(0 < rtt < 1e6 for rtt in shown["rtts_us"])
