"""Root in a guest takes its kernel over: what can that process do to this machine, and does anything outlive `down`?

The guest is the program's own, and so is all that holds it; what it does is in taken_kernel.py. It tries every number
of a system call, and what harms with processes, files and sockets that the test has made. In three places: as who runs
the tests, as a plain user, and on a machine that gives no namespaces.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from live import hostile
from live.other_user import free_id, made_for
from live.program import Program, until
from minigts.machine import cgroups
from minigts.providers.agent import lab_processes
from minigts.providers.uml.run import bounds, confinement
from minigts.providers.uml.run.system_calls import KERNEL, NUMBERS

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.uml,
    pytest.mark.skipif(confinement.version() == 0, reason="this machine's kernel has no Landlock"),
]
PAIR = "name: pair\ntime: real\npair: {hosts: [a, b], link: {rtt: 2ms}}\n"
REFUSED = {"EPERM", "ENOSYS", "EACCES", "ESRCH"}
BOUNDED = {"a file larger than its disk": "EFBIG", "a gigabyte of its own": "ENOMEM"}
WITHOUT_NAMESPACES = r"""
import ctypes, os, struct, sys
# Load the number; clone: load its flags, and refuse a new user or pid namespace; else: allow.
steps = (0x20, 0, 0, 0), (0x15, 0, 3, 56), (0x20, 0, 0, 16), (0x45, 0, 1, 0x30000000)
steps = (*steps, (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000))
kept = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(kept))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""An interpreter on a machine that refuses them, as Docker's containers do."""


@dataclass(frozen=True)
class Ground:
    program: Program
    has_namespaces: bool = True

    @property
    def counts_processes(self) -> bool:
        """Whether a control group or a user namespace does, as the machines have that the tests run on."""
        return os.geteuid() == 0 and (self.has_namespaces or self.program.user is None)


@contextmanager
def mine(tmp_path: Path) -> Iterator[Ground]:
    environment = {"MINIGTS_CACHE": str(hostile.cache(tmp_path / "cache"))}
    yield Ground(Program(tmp_path / "state", environment=environment))


@contextmanager
def a_plain_users(tmp_path: Path) -> Iterator[Ground]:
    if os.geteuid() != 0:
        pytest.skip("who runs the tests is a plain user")
    with made_for(free_id(), ["images"]) as program:
        yield Ground(program)


@contextmanager
def without_namespaces(tmp_path: Path) -> Iterator[Ground]:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable} -IS{WITHOUT_NAMESPACES}")
    python.chmod(0o755)
    environment = {"MINIGTS_CACHE": str(hostile.cache(tmp_path / "cache"))}
    yield Ground(Program(tmp_path / "state", python, environment=environment), has_namespaces=False)


@pytest.fixture(params=[mine, a_plain_users, without_namespaces], ids=lambda made: str(made.__name__))
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """With the lab `pair` up: hosts a and b."""
    with request.param(tmp_path) as made:
        place = made.program.state.parent
        (place / "pair.yaml").write_text(PAIR)
        (place / "pair.yaml").chmod(0o644)
        try:
            made.program.succeeds("up", str(place / "pair.yaml"), "--overlay", "none")
            yield made
        finally:
            made.program.run("down", "--all")


@pytest.fixture
def victim(ground: Ground) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user's that has nothing to do with the lab."""
    user = ground.program.user
    started = subprocess.Popen(["sleep", "1000"], user=user, group=user, extra_groups=None if user is None else [])
    yield started
    started.kill()
    started.wait()


def test_a_taken_kernel_reaches_nothing_of_the_users(ground: Ground, victim: subprocess.Popen[bytes]) -> None:
    place = ground.program.state.parent
    secret, own = place / "secret", ground.program.rundir("pair") / "hosts" / "a"
    secret.write_text("the user's own words")
    if ground.program.user is not None:
        os.chown(secret, ground.program.user, ground.program.user)
    before = secret.stat()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "listening"))
        listening.listen()
        came = hostile.in_kernel(
            ground.program, "pair", "a", "tries", victim.pid, secret, place / "listening", own / "planted"
        )
    if not ground.has_namespaces and confinement.version() < confinement.SCOPES_FROM:
        pytest.skip("nothing holds signals here")
    assert {name: how for name, how in came.items() if how not in REFUSED} == BOUNDED
    assert victim.poll() is None
    after = secret.stat()
    assert (after.st_mode, after.st_size, after.st_mtime_ns) == (before.st_mode, before.st_size, before.st_mtime_ns)
    assert not (own / "planted").exists()
    numbers = hostile.in_kernel(ground.program, "pair", "a", "calls")
    assert len(numbers) > 450
    reached = {int(number) for number, how in numbers.items() if how not in ("EPERM", "ENOSYS")}
    assert reached <= {NUMBERS[name] for name in KERNEL}
    assert ground.program.succeeds("exec", "b", "--", "echo", "the others go on") == "the others go on\n"


@pytest.mark.parametrize("supervisor", ["ends in order", "is killed"])
def test_nothing_of_a_taken_kernel_outlives_down(ground: Ground, supervisor: str) -> None:
    forks = bounds.PROCESSES + 500 if ground.counts_processes else 50
    came, ours = hostile.outlive(ground.program, "pair", "a", forks)
    assert came["lost"] == ["done"] * 3
    assert len(ours) > min(forks, bounds.PROCESSES) / 2
    if ground.counts_processes:
        assert came["refused"] == ["EAGAIN"]
        assert len(ours) <= bounds.PROCESSES
    if supervisor == "is killed":
        pid = lab_processes.supervisor(ground.program.rundir("pair"))
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        if ground.has_namespaces:
            assert until(lambda: not hostile.left(ours)), "kernels outlive their supervisor"
        else:
            assert hostile.left(ours), "without namespaces it is `down` that ends them"
    groups = f"*/{cgroups.prefix(ground.program.rundir('pair'))}*"
    ground.program.succeeds("down")
    assert hostile.left(ours) == []
    assert not [*Path("/sys/fs/cgroup").glob(groups)]


def test_a_kernel_that_is_started_again_has_no_brother(ground: Ground) -> None:
    """What the earlier one left is ended before: it had the same disk, console and links."""
    _, ours = hostile.outlive(ground.program, "pair", "a", 20)
    ground.program.succeeds("restart", "a")
    assert hostile.left(ours) == []
    ground.program.succeeds("exec", "a", "--", "ping", "-c", "1", "b")
