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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from minigts.errors import BrokenOff, CommandFailed, CommandTimeout, EnvironmentLacks
from minigts.machine import proc

_PR_SET_PDEATHSIG = 1
LOOK_EVERY_S = 0.2
"""How often it is looked whether what runs in another thread has been broken off."""
FOR_OTHERS = 0o022
"""The umask of what makes a system's files, which others than this user read there."""


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
    """Run a command to its end and capture what it says; `env` is added to this process's own.

    Raises `CommandFailed` for a code other than 0 unless `check` is off, `CommandTimeout` when the time is up,
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
    except FileNotFoundError as error:
        raise EnvironmentLacks(f"the program {argv[0]!r} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CommandTimeout("", argv, timeout_s, _text(error.stdout), _text(error.stderr)) from error
    completed = Completed(
        tuple(argv), done.returncode, _text(done.stdout), _text(done.stderr), time.monotonic() - started
    )
    if check and completed.code != 0:
        raise CommandFailed("", argv, completed.code, completed.stdout, completed.stderr)
    return completed


def run_group(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    patience_s: float = 30.0,
    umask: int = -1,
    broken_off: threading.Event | None = None,
) -> Completed:
    """Run a command that starts many others, in a process group of its own; its errors join its output.

    MINIGTS_LIFELINE tells it a descriptor to which nothing is ever written. When that closes, since the time is up, or
    this process was interrupted or has ended in whatever way, or another thread has set `broken_off`, the command must
    end its group. What of it still runs after `patience_s` is killed. Raises `CommandFailed` for a code other than 0,
    `CommandTimeout` when the time is up, `BrokenOff`.
    """
    started = time.monotonic()
    lifeline = {"MINIGTS_LIFELINE": "0", **(env or {})}
    with tempfile.TemporaryFile() as output:
        process = start(argv, output=output, stdin=subprocess.PIPE, env=lifeline, umask=umask)
        try:
            code = _code(process, timeout_s, broken_off)
        finally:
            _end_group(process, patience_s)
        output.seek(0)
        answer = _text(output.read())
    if code is None:
        raise CommandTimeout("", argv, timeout_s, answer, "")
    if code != 0:
        raise CommandFailed("", argv, code, answer, "")
    return Completed(tuple(argv), code, answer, "", time.monotonic() - started)


def _code(process: subprocess.Popen[bytes], timeout_s: float, broken_off: threading.Event | None) -> int | None:
    """What it ended with; None when its time is up. Raises BrokenOff."""
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        if broken_off is not None and broken_off.is_set():
            raise BrokenOff("broken off")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(left_s if broken_off is None else min(left_s, LOOK_EVERY_S))
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

    In a session of its own it outlives the caller; with `dies_with_parent` the kernel kills it as soon as the
    thread that started it ends (Linux only; prctl(2), PR_SET_PDEATHSIG). `before_exec` is called in the new process,
    as its last act before it becomes the program; `umask` is this process's own unless it is given. The caller owns the
    returned process and must end it or record its id.
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
        # Safe, since the only caller that asks for it, the supervisor, has one thread.
        preexec_fn=prepare if own else None,  # noqa: PLW1509
    )


def _end_group(leader: subprocess.Popen[bytes], patience_s: float) -> None:
    """Close the group's lifeline and return when nothing of the group runs any more."""
    if leader.stdin is not None:
        leader.stdin.close()
    deadline = time.monotonic() + patience_s
    while _reaches_group(leader, 0 if time.monotonic() < deadline else signal.SIGKILL):
        time.sleep(0.02)


def _reaches_group(leader: subprocess.Popen[bytes], number: int) -> bool:
    leader.poll()  # as long as nobody has waited for it, a leader that has ended still counts as a member
    try:
        os.killpg(leader.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # nothing but a helper that runs as another user for a moment
    return proc.runs_in_group(leader.pid)


def die_with_parent(parent: int) -> None:
    """From now on the kernel kills this process when the thread that started it ends; at once if `parent` is gone."""
    die_with_starter()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def die_with_starter() -> None:
    """From now on the kernel kills this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _text(captured: bytes | None) -> str:
    return (captured or b"").decode(errors="replace")
