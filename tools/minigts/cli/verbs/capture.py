"""`minigts capture`: what passes a lab's interfaces."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from minigts import paths
from minigts.cli import completion, console
from minigts.cli.containers import container_network
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError
from minigts.language.problems import shown
from minigts.machine.lines import Lines

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.capture import Point
    from minigts.lab.pcapng import Merged

verb = Verb(LABS, 220)

ON_STDOUT = Path("-")

MOST = "4GB"
"""Of a file by itself: what passes a host's interfaces is up to the host."""


@verb.command()
def capture(
    where: Annotated[
        str,
        typer.Argument(
            metavar="LINK|HOST",
            help="A link, as in ams-bra; or a host, on all its interfaces.",
            autocompletion=completion.links,
        ),
    ],
    expression: Annotated[
        list[str] | None, typer.Argument(metavar="[FILTER]...", help="As tcpdump takes it: tcp port 80.")
    ] = None,
    ends: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="HOST",
            help="Which end of the link; else its first. Twice: both, in one pcapng.",
            autocompletion=completion.hosts,
        ),
    ] = None,
    container: Annotated[
        bool,
        typer.Option(
            "--container",
            "-c",
            help="In the network of a container: for HOST write its name, or a host for the measuring one there.",
        ),
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--write", "-w", metavar="FILE", help="Where the pcap goes; - is standard output.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0.001, help="End after so many of the lab's seconds.")
    ] = None,
    frames: Annotated[int | None, typer.Option("--count", min=1, help="End after so many frames.")] = None,
    most: Annotated[
        str, typer.Option("--most", metavar="SIZE", help="End when a file has become that large: 10GB.")
    ] = MOST,
    lab: LabName = None,
) -> None:
    """Capture what passes a link's end or a host, until ctrl-c: a line a frame, or a pcap.

    What an end sends is seen before the link's delay, what arrives after it, with the lab's time. Both ends of a link
    together are one pcapng with two interfaces. Through a pipe it goes as it comes: minigts capture ams-bra | wireshark
    -k -i -

    Example:  minigts capture ams-bra -w ams-bra.pcapng --for 10 --at ams --at bra

    Example:  minigts capture ams-bra icmp --at bra

    Example:  minigts capture --container ams icmp
    """
    from minigts import lab as labs
    from minigts.lab import capture

    most_bytes = _bytes(most)
    _require_filter(expression or ())
    opened = labs.open_lab(lab)
    points = _points(opened, where, ends or (), container=container)
    to_screen = file is None and sys.stdout.isatty()
    asked = partial(capture.command, expression=expression or [], frames=frames, seconds=seconds, text=to_screen)
    commands = [(point, asked(point, nanoseconds=len(points) > 1)) for point in points]
    remarks, code = _Remarks(points), 0
    with nullcontext(sys.stdout.buffer) if file in (None, ON_STDOUT) else _created(file) as output:
        sink = _sink(points, _Measured(output, most_bytes), text=to_screen)
        with suppress(KeyboardInterrupt, BrokenPipeError, _EnoughError):  # enough, says the user, who reads, or --most
            code = capture.capture(opened, commands, sink.take, remarks.feed, sink.passed)
        with suppress(BrokenPipeError, _EnoughError):
            sink.end()
        if sink.output.is_full:
            console.note(f"capture: it has ended at {most}, which --most allows")
    if code:
        raise InputError(f"capture: {remarks.last_line or f'tcpdump ended with code {code}'}")
    remarks.tell_counts()


def _require_filter(expression: Sequence[str]) -> None:
    """Raises InputError for an option of tcpdump, which a shell's `--` lets through."""
    if expression and (first := expression[0].lstrip()).startswith("-"):
        raise InputError(
            f"capture: the filter begins with a hyphen, {shown(first)}: tcpdump's own options are not taken; "
            "minigts capture --help lists the options that there are"
        )


class _Remarks:
    """Tells the user when capturing has begun at all points, and at the end how many frames there were; tcpdump's own
    lines are not shown."""

    def __init__(self, points: Sequence[Point]) -> None:
        from minigts.lab.capture import Remarks

        self._of = [(point, Remarks()) for point in points]
        self._is_told = False

    def feed(self, number: int, piece: bytes) -> None:
        self._of[number][1].feed(piece)
        if not self._is_told and all(each.has_begun for _, each in self._of):
            self._is_told = True
            console.note(f"capturing at {' and '.join(point.name for point, _ in self._of)}; ctrl-c ends it")

    @property
    def last_line(self) -> str:
        return next(filter(None, (each.last_line for _, each in self._of if not each.counts())), "")

    def tell_counts(self) -> None:
        for point, each in self._of:
            if counts := each.counts():
                captured, dropped = counts
                lost = f"; {dropped} more were lost, since its kernel had no room for them" if dropped else ""
                console.note(f"{captured} {'frame' if captured == 1 else 'frames'} at {point.name}{lost}")


def _points(lab: Lab, where: str, ends: Sequence[str], *, container: bool) -> Sequence[Point]:
    from minigts.lab import capture

    if not container:
        return capture.points(lab, where, ends)
    if ends:
        raise InputError("capture: a container is captured on all its interfaces; --at is of a link")
    host, prefix = container_network(lab, where)
    return [capture.Point(host, capture.ANY, prefix)]


class _EnoughError(Exception):
    """The file has become as large as it may."""


class _Measured:
    """A file that may not become larger than that; what is no file has no bound."""

    def __init__(self, output: IO[bytes], most_bytes: int) -> None:
        self._output = output
        self._left = most_bytes if _is_file(output) else None
        self.is_full = False

    def write(self, content: bytes) -> None:
        """All of it, or nothing."""
        if self._left is not None:
            self.is_full |= len(content) > self._left
            if self.is_full:
                raise _EnoughError
            self._left -= len(content)
        self._output.write(content)
        self._output.flush()


def _is_file(output: IO[bytes]) -> bool:
    with suppress(OSError):  # what has no descriptor is none
        return stat.S_ISREG(os.fstat(output.fileno()).st_mode)
    return False


class _AsItComes:
    """One interface's capture, handed on."""

    def __init__(self, output: _Measured) -> None:
        self.output = output

    def take(self, number: int, piece: bytes) -> None:
        self.write(piece)

    def passed(self) -> None:
        pass

    def end(self) -> None:
        pass

    def write(self, content: bytes) -> None:
        self.output.write(content)


class _Lines(_AsItComes):
    """Several interfaces' lines, each behind its machine's name."""

    def __init__(self, output: _Measured, names: Sequence[str]) -> None:
        super().__init__(output)
        width = max(map(len, names))
        self._names = [name.ljust(width).encode() for name in names]
        self._lines = [Lines() for _ in names]

    def take(self, number: int, piece: bytes) -> None:
        whole = self._lines[number].feed(piece)
        self.write(b"".join(self._names[number] + b"  " + line + b"\n" for line in whole))


class _OneFile(_AsItComes):
    """Several interfaces' frames, in one pcapng."""

    def __init__(self, output: _Measured, merged: Merged) -> None:
        super().__init__(output)
        self._merged = merged

    def take(self, number: int, piece: bytes) -> None:
        self._merged.feed(number, piece)
        if self._merged.is_full:
            self.write(self._merged.release(everything=True))

    def passed(self) -> None:
        if ready := self._merged.release():
            self.write(ready)

    def end(self) -> None:
        self.write(self._merged.release(everything=True))


def _sink(points: Sequence[Point], output: _Measured, *, text: bool) -> _AsItComes:
    from minigts.lab.pcapng import Merged

    if len(points) == 1:
        return _AsItComes(output)
    if text:
        return _Lines(output, [point.machine for point in points])
    return _OneFile(output, Merged([point.name for point in points]))


def _bytes(most: str) -> int:
    from minigts.language.quantities import FILE_MB

    try:
        return FILE_MB.parse_whole(most) << 20
    except ValueError as error:
        raise InputError(f"--most: {error}") from error


def _created(file: Path) -> IO[bytes]:
    try:
        opened = file.open("wb")
    except OSError as error:
        raise InputError(f"capture: {file} cannot be written: {error.strerror}") from error
    with contextlib.suppress(OSError):  # a pipe or a device stays as it is
        paths.users_file(opened)
    return opened
