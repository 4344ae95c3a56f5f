"""A process that ends together with all that it has started, and, where this machine allows it, sees no others.

The process leads a process group. If a seccomp filter keeps it and its children from leaving the group (setsid(2),
setpgid(2)), a signal to the group reaches all of them at once, also one that is about to fork. A pid namespace
(pid_namespaces(7)) needs no signal: all its processes end with its first one. Root may make one; other users may within
a user namespace, in which they keep their own user id.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.language import documents
from minigts.machine import shell

CLONE = 56
"""The number of clone(2) on x86-64; os.fork() takes no flags."""
NEW_USER, NEW_PID = 0x10000000, 0x20000000
CLOSE_RANGE, ON_EXEC = 436, 4
"""The number of close_range(2), and CLOSE_RANGE_CLOEXEC."""
LAST_DESCRIPTOR = ctypes.c_uint(0xFFFFFFFF)
LOOK_EVERY_S = 0.005
NOT_STARTED = 127
FIRST_PASSED = 3
"""The number of the first descriptor that is passed on; the others follow it in order."""
ASK = (
    f"import dataclasses, json; from {__name__} import namespaces; print(json.dumps(dataclasses.asdict(namespaces())))"
)
COUNTED_WITH_ALL = 255


@dataclass(frozen=True)
class Namespaces:
    """The namespaces that this machine allows a new process."""

    flags: int = 0
    counts_apart: bool = False
    """Whether RLIMIT_NPROC counts only the processes in the user namespace, not all of the user's: since Linux 5.14."""
    lacks: str = ""
    """Why there is no pid namespace; empty where there is one."""


def namespaces() -> Namespaces:
    """The namespaces that are possible here, tried with a process that ends at once."""
    flags = NEW_PID if os.geteuid() == 0 else NEW_PID | NEW_USER
    try:
        pid = _clone(flags)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except OSError as error:
        return Namespaces(lacks=_lacking(flags, error.errno or 0))
    if code not in (0, COUNTED_WITH_ALL):
        return Namespaces(lacks=_lacking(flags, abs(code)))
    return Namespaces(flags, bool(flags & NEW_USER) and code == 0)


def look() -> Namespaces:
    """As `namespaces`, but in a separate process, for callers that may have several threads."""
    argv = [sys.executable, "-P", "-c", ASK]
    said = shell.run(argv, timeout_s=20, check=False, env={"PYTHONPATH": str(paths.import_root())}).stdout
    try:
        return Namespaces(**documents.document(said))
    except (ValueError, TypeError):
        return Namespaces(lacks="this machine does not say whether it has pid namespaces")


def _lacking(flags: int, number: int) -> str:
    kind = "user namespaces" if flags & NEW_USER else "pid namespaces"
    return f"this machine refuses {kind} ({os.strerror(number)})"


def _clone(flags: int, act: Callable[[], None] | None = None) -> int:
    """Fork a child in these namespaces; return its process id. The child calls `act`, or, without it, ends with a code
    that says whether processes are counted apart. Raises OSError.

    As with os.fork(), the caller must have only one thread.
    """
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    pid = int(libc.syscall(CLONE, ctypes.c_ulong(flags | signal.SIGCHLD), None, None, None, None))
    if pid > 0:
        return pid
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    code = NOT_STARTED
    try:
        if flags & NEW_USER:
            _stay(user, group)
        if act is not None:
            act()
        else:
            code = 0 if _is_counted_apart() else COUNTED_WITH_ALL
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)


def _stay(user: int, group: int) -> None:
    """Keep the same user and group in a new user namespace as outside (user_namespaces(7))."""
    for name, line in (("setgroups", "deny"), ("gid_map", f"{group} {group} 1"), ("uid_map", f"{user} {user} 1")):
        Path("/proc/self", name).write_text(line)


def _is_counted_apart() -> bool:
    """Whether two processes are allowed under a limit of two, although the user runs more outside."""
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    except OSError:
        return False
    return True


class Contained:
    """A process that `start` has started, with the methods of subprocess.Popen that are needed here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it and all that it had started have ended; None before."""
        if self.returncode is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._end_group()  # its id cannot be used again before it has been waited for
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code. Raises TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} has not ended in {timeout} s")
            time.sleep(LOOK_EVERY_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self.poll() is None:
            self._end_group()

    def _end_group(self) -> None:
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, signal.SIGKILL)


def start(
    argv: Sequence[str],
    *,
    output: int,
    pass_fds: Sequence[int],
    env: Mapping[str, str],
    cwd: Path,
    inside: Namespaces,
    before_exec: Callable[[], None],
) -> Contained:
    """Start a process that ends with this one, has no input, and leads a new session and group in new namespaces.

    The program has the descriptors `pass_fds` under the numbers from FIRST_PASSED on, in this order (`passed`): what
    else this process has open does not show. `env` is added to this process's environment. `before_exec` is called in
    the new process before it executes the program. The caller must have only one thread. Raises OSError.
    """
    environment = {**os.environ, **env}
    reading, writing = os.pipe()

    def become() -> None:
        failure = writing
        try:
            shell.die_with_starter()
            os.setsid()
            _arrange(output)
            os.chdir(cwd)
            failure = _above(writing, len(pass_fds))
            before_exec()
            _pass_on(pass_fds)
            os.execve(argv[0], list(argv), environment)
        except BaseException as error:
            os.write(failure, f"{type(error).__name__}: {error}".encode(errors="replace"))
            raise

    try:
        process = Contained(_clone(inside.flags, become))
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as failed:
        why = failed.read()
    if why:
        process.wait()
        raise OSError(f"{argv[0]} does not start: {why.decode(errors='replace')}")
    return process


def descriptor_numbers(pass_fds: Sequence[int]) -> list[int]:
    """The numbers of these descriptors in a program that `start` starts with them."""
    return [FIRST_PASSED + place for place in range(len(pass_fds))]


def _arrange(output: int) -> None:
    """Give the program /dev/null as input, and `output` as output and errors."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for place in (1, 2):
        os.dup2(output, place)


def _pass_on(pass_fds: Sequence[int]) -> None:
    """Give the program `pass_fds` under the numbers that `passed` names, and no others but the first three."""
    held = [_above(descriptor, len(pass_fds)) for descriptor in pass_fds]
    ctypes.CDLL(None).syscall(CLOSE_RANGE, FIRST_PASSED, LAST_DESCRIPTOR, ON_EXEC)  # nothing before Linux 5.11
    for descriptor, place in zip(held, descriptor_numbers(pass_fds), strict=True):
        os.dup2(descriptor, place)


def _above(descriptor: int, count: int) -> int:
    """The same open file under a number above those of `count` descriptors that are passed on."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PASSED + count)
