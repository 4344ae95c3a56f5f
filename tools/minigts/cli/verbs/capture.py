"""`minigts capture`: frames on a lab's interfaces."""

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
from minigts.language.problems import quote
from minigts.machine.lines import Lines
from minigts.topology.plan import link_names

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.capture import CapturePoint
    from minigts.lab.pcapng import Merged

verb = Verb(LABS, 220)

ON_STDOUT = Path("-")

MOST = "4GB"
"""The size limit of a file without --most: hosts decide how much traffic there is."""


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
        list[str] | None, typer.Argument(metavar="[FILTER]...", help="A filter of tcpdump, such as tcp port 80.")
    ] = None,
    ends: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="HOST",
            help="The end of the link at which to capture. Default: its first. Twice: both ends, in one pcapng.",
            autocompletion=completion.hosts,
        ),
    ] = None,
    container: Annotated[
        bool,
        typer.Option(
            "--container",
            "-c",
            help="In the network of a container: HOST is its name, or a host, for the measuring container there.",
        ),
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--write", "-w", metavar="FILE", help="The pcap file; - is standard output.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0.001, help="End after this many seconds of the lab's time.")
    ] = None,
    frames: Annotated[int | None, typer.Option("--count", min=1, help="End after this many frames.")] = None,
    most: Annotated[
        str,
        typer.Option("--most", metavar="SIZE", help="The largest file, such as 10GB: at that size the capture ends."),
    ] = MOST,
    lab: LabName = None,
) -> None:
    """Capture frames at a link's end or on a host until ctrl-c: a line each, or a pcap.

    Frames that the end sends are captured before the link's delay, frames that it receives after it, with the lab's
    time. Both ends of a link together make one pcapng with two interfaces. A pipe gets each frame at once: minigts
    capture ams-bra | wireshark -k -i -

    Example:  minigts capture ams-bra -w ams-bra.pcapng --for 10 --at ams --at bra

    Example:  minigts capture ams-bra icmp --at bra

    Example:  minigts capture --container ams icmp
    """
    from minigts import lab as labs
    from minigts.lab import capture

    most_bytes = _bytes(most)
    _require_filter(expression or ())
    opened = labs.open_lab(lab)
    if expression:
        link_names.require_one_name(opened.plan, where, expression[0])
    points = _points(opened, where, ends or (), container=container)
    to_screen = file is None and sys.stdout.isatty()
    asked = partial(capture.command, expression=expression or [], frames=frames, seconds=seconds, text=to_screen)
    commands = [(point, asked(point, nanoseconds=len(points) > 1)) for point in points]
    remarks, code = _Remarks(points), 0
    with nullcontext(sys.stdout.buffer) if file in (None, ON_STDOUT) else _created(file) as output:
        sink = _sink(points, _Measured(output, most_bytes), text=to_screen)
        with suppress(KeyboardInterrupt, BrokenPipeError, _EnoughError):  # the user, the reader or --most ends it
            code = capture.capture(opened, commands, sink.take, remarks.feed, sink.passed)
        with suppress(BrokenPipeError, _EnoughError):
            sink.end()
        if sink.output.is_full:
            console.note(f"capture: it has ended at {most}, the limit of --most")
    if code:
        raise InputError(f"capture: {remarks.last_line or f'tcpdump ended with code {code}'}")
    remarks.tell_counts()


def _require_filter(expression: Sequence[str]) -> None:
    """Raises InputError for an option of tcpdump, which a shell's `--` lets through."""
    if expression and (first := expression[0].lstrip()).startswith("-"):
        raise InputError(
            f"capture: the filter begins with a hyphen, {quote(first)}: tcpdump's own options are not taken; "
            "minigts capture --help lists the options that there are"
        )


class _Remarks:
    """Tells the user when capturing has begun at all points, and at the end how many frames there were; tcpdump's own
    lines are not shown."""

    def __init__(self, points: Sequence[CapturePoint]) -> None:
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


def _points(lab: Lab, where: str, ends: Sequence[str], *, container: bool) -> Sequence[CapturePoint]:
    from minigts.lab import capture

    if not container:
        return capture.points(lab, where, ends)
    if ends:
        raise InputError("capture: a container is captured on all its interfaces; --at is for links only")
    host, prefix = container_network(lab, where)
    return [capture.CapturePoint(host, capture.ANY, prefix)]


class _EnoughError(Exception):
    """The file has reached its size limit."""


class _Measured:
    """An output that may not become larger than `most_bytes` if it is a regular file; others have no limit."""

    def __init__(self, output: IO[bytes], most_bytes: int) -> None:
        self._output = output
        self._left = most_bytes if _is_file(output) else None
        self.is_full = False

    def write(self, content: bytes) -> None:
        """Write all of `content` or nothing. Raises _EnoughError where it would exceed the limit."""
        if self._left is not None:
            self.is_full |= len(content) > self._left
            if self.is_full:
                raise _EnoughError
            self._left -= len(content)
        self._output.write(content)
        self._output.flush()


def _is_file(output: IO[bytes]) -> bool:
    with suppress(OSError):  # an output without a descriptor is no file
        return stat.S_ISREG(os.fstat(output.fileno()).st_mode)
    return False


class _AsItComes:
    """Writes the capture of one interface, unchanged."""

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
    """Writes the lines of several interfaces, each after its machine's name."""

    def __init__(self, output: _Measured, names: Sequence[str]) -> None:
        super().__init__(output)
        width = max(map(len, names))
        self._names = [name.ljust(width).encode() for name in names]
        self._lines = [Lines() for _ in names]

    def take(self, number: int, piece: bytes) -> None:
        whole = self._lines[number].feed(piece)
        self.write(b"".join(self._names[number] + b"  " + line + b"\n" for line in whole))


class _OneFile(_AsItComes):
    """Writes the frames of several interfaces into one pcapng."""

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


def _sink(points: Sequence[CapturePoint], output: _Measured, *, text: bool) -> _AsItComes:
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
    with contextlib.suppress(OSError):  # a pipe or a device keeps its mode
        paths.users_file(opened)
    return opened
