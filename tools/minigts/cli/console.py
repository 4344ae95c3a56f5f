"""How things look on the terminal: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from minigts.errors import InputError, MinigtsError, printable
from minigts.language.figures import duration
from minigts.machine.lines import Lines
from minigts.machine.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from minigts.experiments.run import OnProgress
    from minigts.experiments.run import RunProgress as At

PLAIN_WIDTH = 200
"""Columns when the output goes to a file or a program, where nothing has to fit a window."""

Say = Progress


def out() -> Console:
    """Where results go. A reader that leaves is a BrokenPipeError, as for every other way to print."""
    from rich.console import Console

    class Out(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - it is called where one is handled

    return Out(highlight=False, width=window())


def window() -> int | None:
    """How many columns the window has, None for as many as it says itself; PLAIN_WIDTH where there is no window."""
    return None if sys.stdout.isatty() else PLAIN_WIDTH


def has_window() -> bool:
    """Whether somebody looks at what is printed: else it goes to a file or a program."""
    return window() != PLAIN_WIDTH


def note(text: str) -> None:
    """A line or several for the person who watches; what would change the terminal is shown as its escape."""
    print(printable(text), file=sys.stderr, flush=True)


def note_all(lines: Iterable[str]) -> None:
    """Each of them."""
    for line in lines:
        note(line)


@contextmanager
def progress() -> Iterator[Say]:
    """Gives a function that says what goes on now. On a terminal a step stays when it has ended, with its time."""
    if not sys.stderr.isatty():
        yield note
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    step, since = "", time.monotonic()

    def say(text: str) -> None:
        nonlocal step, since
        if step:
            console.print(f"  {step}  [dim]{time.monotonic() - since:.1f} s[/dim]", markup=True)
        step, since = escape(printable(text)), time.monotonic()
        status.update(step or "…")

    with console.status("…") as status:
        yield say
        say("")


@contextmanager
def measuring() -> Iterator[tuple[Say, OnProgress]]:
    """Gives two functions: one says a step, one shows how far a run is. A bar with the time left on a terminal."""
    if not sys.stderr.isatty():
        yield note, _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text = TextColumn("{task.description}", markup=False)
    left = TextColumn("{task.fields[left]}")
    with Progress(BarColumn(), MofNCompleteColumn(), left, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def show(at: At) -> None:
            bar.update(
                task, completed=at.done, total=at.total, description=printable(at.doing), left=duration(at.seconds_left)
            )

        yield lambda step: bar.update(task, description=printable(step)), show


def _lines() -> OnProgress:
    """A line for every twentieth of the way."""
    shown = -1

    def show(at: At) -> None:
        nonlocal shown
        if (part := 20 * at.done // max(1, at.total)) != shown:
            shown = part
            note(f"{at.done} of {at.total} samples, {duration(at.seconds_left)} left, now {at.doing}")

    return show


def explain(error: BaseException, *, debug: bool) -> int:
    """Say on stderr what went wrong; returns the exit code. With `debug`, the traceback comes first.

    `error` is a MinigtsError, an OSError, a KeyboardInterrupt or a group of such.
    """
    if debug:
        traceback.print_exception(error)
    code = _explain(error)
    for text in getattr(error, "__notes__", ()):
        note(f"minigts: {text}")
    return code


def _explain(error: BaseException) -> int:
    if isinstance(error, BaseExceptionGroup):
        return max(explain(one, debug=False) for one in error.exceptions)
    if isinstance(error, KeyboardInterrupt):
        note("minigts: interrupted")
        return 130
    if isinstance(error, InputError):
        for line in str(error).splitlines():
            note(f"minigts: {line}")
        return error.exit_code
    if isinstance(error, MinigtsError):
        note(f"minigts: {error}")
        return error.exit_code
    note(f"minigts: {_system_error(error)}")
    return 3


def is_expected(error: BaseException) -> bool:
    """Whether `explain` has words for it. What it has none for is a bug of ours, and shows its traceback."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_expected(one) for one in error.exceptions)
    return isinstance(error, MinigtsError | OSError | KeyboardInterrupt)


def _system_error(error: BaseException) -> str:
    """`results: No space left on device`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def silence() -> int:
    """Nobody reads stdout any more: write nothing else to it. Returns the exit code of a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def ms(value: float | None) -> str:
    """A time in milliseconds; nothing where there is none."""
    return "" if value is None else f"{value:.2f} ms"


def mbit(value: float | None) -> str:
    """A rate in Mbit/s; `unlimited` where there is no limit."""
    return "unlimited" if value is None else f"{round(value, 1):g} Mbit/s"


def yes(value: bool) -> str:
    """A truth as a word."""
    return "yes" if value else "no"


def megabytes(size_bytes: int) -> str:
    """`1.6 MB`, `214 MB`: millions of bytes."""
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 10_000_000 else f"{size_bytes / 1e6:.0f} MB"


def pass_on(output: bytes) -> None:
    """A host's output, as it comes."""
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


class HostLines:
    """The output of several hosts, as it comes, in whole lines with the host's name before each."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._width = max(map(len, hosts))
        self._lines = {host: Lines() for host in hosts}
        self._lock = Lock()

    def take(self, host: str, output: bytes) -> None:
        with self._lock:
            pass_on(b"".join(self._line(host, line) for line in self._lines[host].feed(output)))

    def end(self, host: str) -> None:
        """What a host has said last, if that is no whole line."""
        with self._lock:
            if rest := self._lines[host].rest():
                pass_on(self._line(host, rest))

    def _line(self, host: str, line: bytes) -> bytes:
        return f"{host:<{self._width}}  ".encode() + line + b"\n"


def amount(size_bytes: int, seconds: float) -> str:
    """`104.9 MB in 0.8 s`; without a time that nobody waits for."""
    size = f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes} bytes"
    return f"{size} in {seconds:.1f} s" if seconds >= 0.1 else size


def show_log(heading: str, file: Path) -> None:
    """A text file below a heading; what would change the terminal is shown as its escape."""
    print(f"==> {printable(heading)} <==")
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            print(printable(line.rstrip("\n")))


def print_json(document: object) -> None:
    """One JSON document; what JSON has no word for is written as text."""
    print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
