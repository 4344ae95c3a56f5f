"""The only module that starts processes on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from minigts.errors import BrokenOff, CommandFailed, CommandTimeout, EnvironmentLacks
from minigts.machine import proc

_PR_SET_PDEATHSIG = 1
BEHIND = 10
"""The nice value of a session that gives way, sched(7): a tenth of the processors beside one other session."""
LOOK_EVERY_S = 0.2
"""The interval between looks at whether a run was broken off by another thread."""
INTERRUPTED_S = 10.0
"""The longest that a command which was interrupted may take to end, before it is killed."""
FOR_OTHERS = 0o022
"""The umask for making the files of a system, which users other than this one have to read."""


@dataclass(frozen=True)
class Completed:
    """A command that has ended. `seconds` is wall time."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    seconds: float


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    check: bool = True,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    umask: int = -1,
) -> Completed:
    """Run a command to its end and capture its output; `env` is added to this process's environment.

    Raises `CommandFailed` for a code other than 0 unless `check` is off, `CommandTimeout` after `timeout_s`, and
    `EnvironmentLacks` when there is no such program.
    """
    started = time.monotonic()
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            umask=umask,
            check=False,
        )
    except (FileNotFoundError, PermissionError) as error:  # the latter also where a directory of PATH cannot be read
        raise EnvironmentLacks(f"the program {argv[0]!r} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CommandTimeout("", argv, timeout_s, _text(error.stdout), _text(error.stderr)) from error
    completed = Completed(
        tuple(argv), done.returncode, _text(done.stdout), _text(done.stderr), time.monotonic() - started
    )
    if check and completed.code != 0:
        raise CommandFailed("", argv, completed.code, completed.stdout, completed.stderr)
    return completed


def run_bounded(
    argv: Sequence[str],
    *,
    timeout_s: float,
    most_bytes: int,
    stdin: bytes = b"",
    broken_off: threading.Event | None = None,
) -> Completed:
    """Run a command of any exit code, whose output may be endless, in a new process group, for a program with threads.

    Raises `CommandFailed` with the beginning of its output when it prints more than `most_bytes`, `CommandTimeout`, and
    `BrokenOff` when another thread sets `broken_off`. The group is then interrupted as by ctrl-c, and killed when it
    does not end. It does not end with this process by itself: see `die_with_parent`.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        process = start(argv, output=output, errors=errors, stdin=given)
        files, code = (output, errors), None
        try:
            while code is None and time.monotonic() - started < timeout_s and _sizes(files) <= most_bytes:
                code = _code(process, LOOK_EVERY_S, broken_off)
        finally:
            if code is None:
                _reaches_group(process, signal.SIGINT)
                _end_group(process, INTERRUPTED_S)
        is_long = _sizes(files) > most_bytes
        said, complained = (_text((file.seek(0), file.read(most_bytes))[1]) for file in files)
    if is_long:
        raise CommandFailed("", argv, process.wait(), said, complained)
    if code is None:
        raise CommandTimeout("", argv, timeout_s, said, complained)
    return Completed(tuple(argv), code, said, complained, time.monotonic() - started)


def _sizes(files: Iterable[IO[bytes]]) -> int:
    return sum(os.fstat(file.fileno()).st_size for file in files)


ANYWHERE = Path("/")
"""A directory that everybody may enter, root of a user namespace as well."""


def run_group(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    patience_s: float = 30.0,
    umask: int = -1,
    broken_off: threading.Event | None = None,
    behind: threading.Event | None = None,
    begun: Callable[[int], object] | None = None,
) -> Completed:
    """Run a command that starts many others, in a new process group; its errors join its output.

    It starts in the root directory: what it starts as root of a user namespace may not be able to enter this one.
    MINIGTS_LIFELINE names a descriptor of the command to which nothing is ever written. It closes when the time is up,
    when this process is interrupted or ends, or when another thread sets `broken_off`; the command must then end its
    group. While `behind` is set, it gets little of the processors where other programs want them, if this machine's
    kernel shares them out by sessions. Processes that still run after `patience_s` are killed. `begun` is called with
    its process id. Raises `CommandFailed` for a code other than 0, `CommandTimeout` when the time is up, and
    `BrokenOff`.
    """
    started = time.monotonic()
    lifeline = {"MINIGTS_LIFELINE": "0", **(env or {})}
    with tempfile.TemporaryFile() as output:
        process = start(argv, output=output, stdin=subprocess.PIPE, env=lifeline, umask=umask, cwd=ANYWHERE)
        try:
            if begun is not None:
                begun(process.pid)
            code = _code(process, timeout_s, broken_off, behind)
        finally:
            _end_group(process, patience_s)
        output.seek(0)
        answer = _text(output.read())
    if code is None:
        raise CommandTimeout("", argv, timeout_s, answer, "")
    if code != 0:
        raise CommandFailed("", argv, code, answer, "")
    return Completed(tuple(argv), code, answer, "", time.monotonic() - started)


def _code(
    process: subprocess.Popen[bytes],
    timeout_s: float,
    broken_off: threading.Event | None,
    behind: threading.Event | None = None,
) -> int | None:
    """The process's exit code; None when its time is up. Raises BrokenOff."""
    deadline, is_behind = time.monotonic() + timeout_s, False
    while (left_s := deadline - time.monotonic()) > 0:
        if behind is not None and behind.is_set() != is_behind:
            is_behind = not is_behind
            with contextlib.suppress(OSError):  # no such file where the kernel shares out by programs alone
                Path(f"/proc/{process.pid}/autogroup").write_text(str(BEHIND if is_behind else 0))
        if broken_off is not None and broken_off.is_set():
            raise BrokenOff("broken off")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(left_s if broken_off is None and behind is None else min(left_s, LOOK_EVERY_S))
    return None


def start(
    argv: Sequence[str],
    *,
    output: IO[bytes] | int,
    errors: IO[bytes] | int = subprocess.STDOUT,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    new_session: bool = True,
    dies_with_parent: bool = False,
    before_exec: Callable[[], None] | None = None,
    umask: int = -1,
) -> subprocess.Popen[bytes]:
    """Start a process and do not wait for it. By default it has no input, and its errors join its output.

    In a new session (the default) it outlives the caller; with `dies_with_parent` the kernel kills it as soon as the
    thread that started it ends (Linux only; prctl(2), PR_SET_PDEATHSIG). `before_exec` is called in the new process
    right before it executes the program. `umask` -1 keeps this process's own. The caller owns the returned process and
    must end it or record its id.
    """
    own = [*([die_with_starter] if dies_with_parent else []), *([before_exec] if before_exec else [])]

    def prepare() -> None:
        for act in own:
            act()

    return subprocess.Popen(
        list(argv),
        stdin=stdin,
        stdout=output,
        stderr=errors,
        pass_fds=pass_fds,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=new_session,
        umask=umask,
        # Safe, since the only caller that uses it, the supervisor, has one thread.
        preexec_fn=prepare if own else None,  # noqa: PLW1509
    )


def fork() -> int:
    """Fork this process, which may have one thread only. The child, where this returns 0, leads a process group."""
    child = os.fork()
    with contextlib.suppress(OSError):  # both set it, so that whoever is first may rely on it
        os.setpgid(child, child)
    return child


class Leader(Protocol):
    """The first process of a group of its own: subprocess.Popen, or what has these of it."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> IO[bytes] | None: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


def kill_group(leader: Leader) -> None:
    """Kill the processes of a group that `start` has started in a session of its own; return when none of them runs."""
    _end_group(leader, 0.0)
    leader.wait()


def kill_groups(leaders: Sequence[Leader]) -> None:
    """`kill_group` for each. All are killed first: programs that keep every processor busy would else slow the look
    after each of them."""
    for leader in leaders:
        if leader.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader.pid, signal.SIGKILL)
    for leader in leaders:
        kill_group(leader)


def _end_group(leader: Leader, patience_s: float) -> None:
    """Close the group's lifeline and return when none of its processes runs any more."""
    if leader.stdin is not None:
        leader.stdin.close()
    deadline = time.monotonic() + patience_s
    while _reaches_group(leader, 0 if time.monotonic() < deadline else signal.SIGKILL):
        time.sleep(0.02)


def _reaches_group(leader: Leader, number: int) -> bool:
    leader.poll()  # a leader that has ended counts as a member until it has been waited for
    try:
        os.killpg(leader.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # all that is left is a helper that runs as another user for a moment
    return proc.runs_in_group(leader.pid)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; at once if `parent` has ended already."""
    die_with_starter()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def die_with_starter() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _text(captured: bytes | None) -> str:
    return (captured or b"").decode(errors="replace")
