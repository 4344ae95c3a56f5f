"""What a confined process can do to this machine: a program that tries it all, as code in a guest's kernel would.

It is Python in place of a kernel, so it gets what Python itself reads. Without the confinement the same tries succeed.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from minigts.machine import shell
from minigts.providers.uml.run import command_line, confinement, system_calls

TRIES = r"""
import ctypes, errno, json, mmap, os, signal, socket, struct, sys
other, own, parent, listening = sys.argv[1:5]
victim, queue, datagrams = int(sys.argv[6]), int(sys.argv[7]), sys.argv[8]
libc = ctypes.CDLL(None, use_errno=True)
secret = other + "/secret"

def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def unix():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(listening)

def child():
    pid = os.fork()
    if pid == 0:
        try:
            open(secret).read()
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")

def run_theirs():
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(other + "/program", ["program"])
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")

def name_a_peer():
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", datagrams)

def limits(pid, new):
    call(302, pid, 1, ctypes.create_string_buffer(struct.pack("QQ", 1 << 40, 1 << 40)) if new else None,
         ctypes.create_string_buffer(16))

def descriptor(mode):
    made = os.open(own + f"/mode{mode:o}", os.O_CREAT | os.O_RDWR, 0o600)
    os.fchmod(made, mode)

def by_reading(act):
    held = os.open(own + "/given", os.O_RDONLY)
    try:
        act(held)
    finally:
        os.close(held)

def flags(held):
    call(16, held, 0x40086602, ctypes.create_string_buffer(struct.pack("Q", 0x80)))

def namespace():
    pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "")
    os.waitpid(pid, 0)

def leave_its_session():
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")

tries = {
    "limits of another": lambda: limits(victim, False),
    "set limits of another": lambda: limits(victim, True),
    "set limits of its own": lambda: limits(0, True),
    "affinity of another": lambda: os.sched_setaffinity(victim, os.sched_getaffinity(0)),
    "priority of another": lambda: os.setpriority(os.PRIO_PROCESS, victim, 1),
    "scheduler of another": lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0)),
    "disk's priority of another": lambda: call(251, 1, victim, 3 << 13),
    "hold another": lambda: call(434, victim, 0),
    "a datagram to who is named": name_a_peer,
    "see a queue": lambda: call(71, queue, 2, ctypes.create_string_buffer(256)),
    "send to a queue": lambda: call(69, queue, ctypes.create_string_buffer(struct.pack("q", 1) + b"x"), 1, 0o4000),
    "receive from a queue": lambda: call(70, queue, ctypes.create_string_buffer(64), 50, 0, 0o4000),
    "watch a directory": lambda: call(254, libc.syscall(294, 0), other.encode(), 0xFFF),
    "a file with the user's bit": lambda: descriptor(0o4755),
    "a mode": lambda: descriptor(0o644),
    "a mode by a descriptor for reading": lambda: by_reading(lambda held: os.fchmod(held, 0o640)),
    "a mode of a directory": lambda: os.fchmod(os.open(own, os.O_RDONLY), 0o700),
    "an owner by a descriptor for reading": lambda: by_reading(lambda held: os.fchown(held, os.getuid(), -1)),
    "times by a descriptor for reading": lambda: by_reading(lambda held: os.utime(held, (1, 1))),
    "an attribute by a descriptor for reading": lambda: by_reading(lambda held: os.setxattr(held, "user.x", b"x")),
    "flags by a descriptor for reading": lambda: by_reading(flags),
    "a lease on a descriptor for reading": lambda: by_reading(lambda held: call(72, held, 1024, 0)),
    "a lock of the file (flock)": lambda: by_reading(lambda held: call(73, held, 1 | 4)),
    "a namespace": namespace,
    "a session": leave_its_session,
    "outlive its parent": lambda: call(157, 1, 0, 0, 0, 0),
    "read": lambda: open(secret).read(),
    "read by dots": lambda: open(own + "/" + "../" * 40 + secret).read(),
    "read in a child": child,
    "list": lambda: os.listdir(other),
    "execute": run_theirs,
    "write": lambda: open(secret, "a").write("x"),
    "make": lambda: open(other + "/new", "w"),
    "make a directory": lambda: os.mkdir(other + "/directory"),
    "chmod": lambda: os.chmod(secret, 0o644),
    "fchmodat2": lambda: call(452, -100, secret.encode(), 0o644, 0),
    "chown": lambda: os.chown(secret, os.getuid(), os.getgid()),
    "utime": lambda: os.utime(secret, (1, 1)),
    "truncate": lambda: os.truncate(secret, 3),
    "setxattr": lambda: os.setxattr(secret, "user.x", b"x"),
    "link": lambda: os.link(secret, own + "/link"),
    "symlink": lambda: os.symlink(secret, own + "/symlink"),
    "rename": lambda: os.rename(secret, secret + "2"),
    "rename back": lambda: os.rename(secret + "2", secret),
    "environment": lambda: open(f"/proc/{parent}/environ").read(),
    "signal": lambda: os.kill(int(parent), 0),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "tcp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "unix": unix,
    "keys": lambda: call(250, 0, -3, 1),
    "io_uring": lambda: call(425, 1, ctypes.byref(ctypes.create_string_buffer(120))),
    "unlink": lambda: os.unlink(secret),
}
allowed = {
    "a limit of its own": lambda: limits(0, False),
    "make one's own": lambda: open(own + "/new", "w").write("x"),
    "read one's own": lambda: open(own + "/given").read(),
    "a file without a name": lambda: os.close(os.open(sys.argv[5], os.O_TMPFILE | os.O_RDWR, 0o600)),
}
outcome = {}
for name, attempt in {**tries, **allowed}.items():
    try:
        attempt()
        outcome[name] = "done"
    except OSError as error:
        outcome[name] = errno.errorcode[error.errno]
print(json.dumps(outcome))
"""
ALLOWED = {"a limit of its own", "make one's own", "read one's own", "a file without a name"}
ELSEWHERE = {"setxattr", "io_uring", "keys", "fchmodat2", "a namespace", "a lease on a descriptor for reading"} | {
    f"{what} by a descriptor for reading" for what in ("an attribute", "flags")
}
"""What some machines, and some file systems, refuse anybody."""


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """What becomes of every try, with the confinement of a kernel or without."""
    other, own = tmp_path / "other", tmp_path / "own"
    for directory in (other, own):
        directory.mkdir()
    (other / "secret").write_text("secret")
    (other / "program").write_text("#!/bin/sh\n")
    (other / "program").chmod(0o755)
    (own / "given").write_text("given")

    def run(*, confined: bool) -> dict[str, str]:
        listener = listening_socket(tmp_path / "listening")
        mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        mailbox.bind(str(tmp_path / f"datagrams{confined:d}"))
        victim = subprocess.Popen(["sleep", "1000"])
        libc = ctypes.CDLL(None)
        queue = libc.msgget(0, 0o1600)
        own_words = [str(victim.pid), str(queue), str(tmp_path / f"datagrams{confined:d}")]
        memory = Path(tempfile.mkdtemp(dir="/dev/shm"))
        descriptor = os.open(memory, os.O_PATH | os.O_DIRECTORY)
        memory.rmdir()
        python = {Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("stdlib"))}
        rules = [
            *map(confinement.may_run, (*python, Path("/usr"), Path("/lib"), Path("/lib64"), Path("/etc/ld.so.cache"))),
            confinement.may_write(own),
            confinement.may_write(Path(command_line.descriptor_path(descriptor))),
        ]
        argv = [sys.executable, "-ISc", TRIES, str(other), str(own), str(os.getpid()), str(tmp_path / "listening")]
        try:
            process = shell.start(
                [*argv, command_line.descriptor_path(descriptor), *own_words],
                output=subprocess.PIPE,
                pass_fds=(descriptor,),
                before_exec=confinement.prepare(rules) if confined else None,
            )
            said, _ = process.communicate(timeout=60)
        finally:
            os.close(descriptor)
            listener.close()
            mailbox.close()
            victim.kill()
            victim.wait()
            libc.msgctl(queue, 0, None)
        assert process.returncode == 0, said.decode()
        return dict(json.loads(said))

    return run


def listening_socket(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


@pytest.mark.skipif(confinement.version() == 0, reason="this machine's kernel has no Landlock")
def test_a_confined_process_reaches_its_own_files_and_nothing_else(
    tmp_path: Path, attempt: Callable[..., dict[str, str]]
) -> None:
    secret = tmp_path / "other" / "secret"
    before = secret.stat()
    outcome = attempt(confined=True)
    done = {name for name, came in outcome.items() if came == "done"}
    assert done - ({"signal"} if confinement.version() < confinement.SCOPES_FROM else set()) == ALLOWED
    after = secret.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)
    assert secret.read_text() == "secret"
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["program", "secret"]


def test_the_same_process_unconfined_reaches_it_all(attempt: Callable[..., dict[str, str]]) -> None:
    outcome = attempt(confined=False)
    assert {name for name, came in outcome.items() if came != "done"} <= ELSEWHERE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_root_keeps_no_capability_but_to_read_another_users_cache() -> None:
    argv = [sys.executable, "-ISc", "print([line for line in open('/proc/self/status') if line.startswith('Cap')])"]
    rules = [confinement.may_run(Path("/"))]
    process = shell.start(argv, output=subprocess.PIPE, before_exec=confinement.prepare(rules))
    said = process.communicate(timeout=60)[0].decode()
    left = 1 << confinement.CAP_DAC_OVERRIDE
    assert [f"Cap{name}:\\t{left:016x}" in said for name in ("Prm", "Eff", "Bnd")] == [True] * 3
    assert f"CapInh:\\t{0:016x}" in said


def test_what_is_not_there_opens_nothing_and_stops_nothing(tmp_path: Path) -> None:
    confinement.prepare([confinement.may_read(tmp_path / "absent")])


def test_without_landlock_the_rest_holds(
    monkeypatch: pytest.MonkeyPatch, attempt: Callable[..., dict[str, str]]
) -> None:
    monkeypatch.setattr(confinement, "version", lambda: 0)
    outcome = attempt(confined=True)
    refused = {name for name, came in outcome.items() if came != "done"}
    assert {"udp", "tcp", "unix", "netlink", "chmod", "fchmodat2", "chown", "utime", "truncate"} <= refused
    assert outcome["read"] == "done"


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_older_versions_are_asked_for_what_they_know(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """The newest that this machine has takes every older one's ruleset."""
    if confinement.version() < version:
        pytest.skip(f"this machine's Landlock is version {confinement.version()}")
    seen: list[bytes] = []
    libc = ctypes.CDLL(None, use_errno=True)

    class Recorder:
        def syscall(self, number: int, *arguments: object) -> int:
            if number == confinement.CREATE_RULESET:
                seen.append(arguments[0])  # type: ignore[arg-type]
            return int(libc.syscall(number, *arguments))

    monkeypatch.setattr(confinement, "_libc", Recorder)
    ruleset = confinement._Ruleset.of([confinement.may_write(Path("/tmp"))], version)
    assert ruleset is not None
    files, network, scopes = (int.from_bytes(seen[0][start : start + 8], "little") for start in (0, 8, 16))
    assert files.bit_length() == {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    assert (network != 0, scopes != 0) == (version >= 4, version >= 6)


NUMBERS = r"""
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
said = {}
for number in map(int, sys.argv[1:]):
    result = libc.syscall(number, *[ctypes.c_long(-1)] * 6)
    said[number] = errno.errorcode.get(ctypes.get_errno(), "") if result == -1 else "done"
print(json.dumps(said))
"""
ENDING = (15, 60, 231, 335, 336)
"""rt_sigreturn, exit, exit_group, uretprobe and uprobe: called so, they end whoever does. A filter never sees the last
two (seccomp(2))."""


@pytest.mark.parametrize(
    "calls", [system_calls.KERNEL, system_calls.CLOCK, system_calls.STACK], ids=["kernel", "clock", "stack"]
)
def test_no_number_outside_the_list_is_let_through(calls: system_calls.Calls) -> None:
    """With arguments that mean nothing: what is allowed fails by itself. x32's numbers are among them."""
    numbers = [number for number in (*range(480), *range(0x40000000, 0x40000000 + 480, 7)) if number not in ENDING]
    process = shell.start(
        [sys.executable, "-ISc", NUMBERS, *map(str, numbers)],
        output=subprocess.PIPE,
        before_exec=confinement.prepare([confinement.may_run(Path("/"))], calls=calls),
    )
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said.decode()
    came = {int(number): how for number, how in json.loads(said).items()}
    assert came.keys() == set(numbers)
    reached = {number for number, how in came.items() if how not in ("EPERM", "ENOSYS")}
    assert reached <= {system_calls.NUMBERS[name] for name in calls}
    assert {system_calls.NUMBERS[name] for name in ("read", "mmap", "epoll_wait", "close_range")} <= reached
