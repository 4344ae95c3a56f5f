"""Output on the terminal: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from threading import Lock
from typing import IO, TYPE_CHECKING

from minigts.errors import InputError, MinigtsError
from minigts.foreign import printable
from minigts.language.figures import duration
from minigts.machine.lines import Lines
from minigts.machine.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from minigts.experiments.run import OnProgress
    from minigts.experiments.run import RunProgress as At

PLAIN_WIDTH = 200
"""The width in columns of output to a file or a pipe, where no window limits it."""

Say = Progress


def out() -> Console:
    """A console that prints results to stdout. Raises BrokenPipeError, as `print` does, when the reader has gone."""
    from rich.console import Console

    class Out(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - rich calls it while the error is handled

    return Out(highlight=False, width=window())


def window() -> int | None:
    """The width of the output in columns: None if rich is to ask the terminal; PLAIN_WIDTH if stdout is no terminal."""
    return None if sys.stdout.isatty() else PLAIN_WIDTH


def has_window() -> bool:
    """Whether stdout is a terminal, and neither a file nor a pipe."""
    return window() != PLAIN_WIDTH


def note(text: str) -> None:
    """Print lines on stderr; control characters are printed as escapes."""
    print(printable(text), file=sys.stderr, flush=True)


def note_all(lines: Iterable[str]) -> None:
    """Print these lines on stderr."""
    for line in lines:
        note(line)


@contextmanager
def progress() -> Iterator[Say]:
    """Yield a function that shows the current step on stderr. On a terminal finished steps stay, with their times."""
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
    """Yield two functions: one shows the current step, the other how far a run is. On a terminal that is a bar with the
    time left."""
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
    """A function that prints a line after each twentieth of a run."""
    shown = -1

    def show(at: At) -> None:
        nonlocal shown
        if (part := 20 * at.done // max(1, at.total)) != shown:
            shown = part
            note(f"{at.done} of {at.total} samples, {duration(at.seconds_left)} left, now {at.doing}")

    return show


def explain(error: BaseException, *, debug: bool) -> int:
    """Print on stderr what went wrong; return the exit code. With `debug`, the traceback comes first.

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
    """Whether `explain` can explain the error. Any other error is a bug, and its traceback is shown."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_expected(one) for one in error.exceptions)
    return isinstance(error, MinigtsError | OSError | KeyboardInterrupt)


def _system_error(error: BaseException) -> str:
    """A message such as `results: No space left on device`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def silence() -> int:
    """Discard what is still written to stdout, because its reader has gone. Returns the exit code of a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def ms(value: float | None) -> str:
    """A time such as `8.75 ms`; an empty text for None."""
    return "" if value is None else f"{value:.2f} ms"


def mbit(value: float | None) -> str:
    """A rate such as `50 Mbit/s`; `unlimited` for None."""
    return "unlimited" if value is None else f"{round(value, 1):g} Mbit/s"


def yes(value: bool) -> str:
    """`yes` or `no`."""
    return "yes" if value else "no"


def megabytes(size_bytes: int) -> str:
    """`1.6 MB`, `214 MB`: millions of bytes."""
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 10_000_000 else f"{size_bytes / 1e6:.0f} MB"


def pass_on(output: bytes) -> None:
    """Write a host's output to stdout at once."""
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


class HostLines:
    """Prints the output of several hosts as it arrives, in whole lines that begin with the host's name."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._width = max(map(len, hosts))
        self._lines = {host: Lines() for host in hosts}
        self._lock = Lock()

    def take(self, host: str, output: bytes) -> None:
        with self._lock:
            pass_on(b"".join(self._line(host, line) for line in self._lines[host].feed(output)))

    def end(self, host: str) -> None:
        """Print the rest of a host's output that has no line feed at its end."""
        with self._lock:
            if rest := self._lines[host].rest():
                pass_on(self._line(host, rest))

    def _line(self, host: str, line: bytes) -> bytes:
        return f"{host:<{self._width}}  ".encode() + line + b"\n"


def amount(size_bytes: int, seconds: float) -> str:
    """`104.9 MB in 0.8 s`; without the time if it is below 0.1 s."""
    size = f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes} bytes"
    return f"{size} in {seconds:.1f} s" if seconds >= 0.1 else size


def show_log(heading: str, file: IO[bytes]) -> None:
    """Print a text file below a heading; control characters are printed as escapes."""
    show_text(heading, TextIOWrapper(file, encoding="utf-8", errors="replace"))


def show_text(heading: str, lines: Iterable[str]) -> None:
    """As `show_log`, for the lines of a text."""
    print(f"==> {printable(heading)} <==")
    for line in lines:
        print(printable(line.rstrip("\r\n")))


def print_json(document: object) -> None:
    """Print one JSON document; values that JSON lacks are written as text."""
    print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
