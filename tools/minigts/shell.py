"""The only module that starts processes on this machine."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from minigts.errors import CommandFailed, CommandTimeout, EnvironmentLacks

_PR_SET_PDEATHSIG = 1


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
) -> subprocess.Popen[bytes]:
    """Start a process and do not wait for it. By default it has no input, and its errors join its output.

    In a session of its own it outlives the caller; with `dies_with_parent` the kernel kills it as soon as the
    thread that started it ends (Linux only; prctl(2), PR_SET_PDEATHSIG). The caller owns the returned process and
    must end it or record its id.
    """
    return subprocess.Popen(
        list(argv),
        stdin=stdin,
        stdout=output,
        stderr=errors,
        pass_fds=pass_fds,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=new_session,
        # Safe, since the only caller that asks for it, the supervisor, has one thread.
        preexec_fn=_die_with_parent if dies_with_parent else None,  # noqa: PLW1509
    )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _text(captured: bytes | None) -> str:
    return (captured or b"").decode(errors="replace")
