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
from minigts.machine.lines import Lines

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.capture import Point
    from minigts.lab.pcapng import Merged

verb = Verb(LABS, 220)

ON_STDOUT = Path("-")

MOST = "4GB"
"""The size limit of a file without --most: hosts decide how much traffic there is."""

MOST_SAID_BYTES = 1 << 16
"""How many bytes of tcpdump's messages are kept: the last ones tell how it ended."""


@verb.command(context_settings={"allow_interspersed_args": False})
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
    """Capture frames at a link's end or on a host until ctrl-c: a line each, or a pcap. Options go before the link.

    Frames that the end sends are captured before the link's delay, frames that it receives after it, with the lab's
    time. Both ends of a link together make one pcapng with two interfaces. A pipe gets each frame at once: minigts
    capture ams-bra | wireshark -k -i -

    Example:  minigts capture -w ams-bra.pcapng --for 10 --at ams --at bra ams-bra

    Example:  minigts capture --at bra ams-bra icmp

    Example:  minigts capture --container ams icmp
    """
    from minigts import lab as labs
    from minigts.lab import capture

    most_bytes = _bytes(most)
    opened = labs.open_lab(lab)
    points = _points(opened, where, ends or (), container=container)
    to_screen = file is None and sys.stdout.isatty()
    asked = partial(capture.command, expression=expression or [], frames=frames, seconds=seconds, text=to_screen)
    commands = [(point, asked(point, nanoseconds=len(points) > 1)) for point in points]
    said, code = bytearray(), 0

    def say(piece: bytes) -> None:
        said.extend(piece)
        del said[:-MOST_SAID_BYTES]

    with nullcontext(sys.stdout.buffer) if file in (None, ON_STDOUT) else _created(file) as output:
        sink = _sink(points, _Measured(output, most_bytes), text=to_screen)
        with suppress(KeyboardInterrupt, BrokenPipeError, _EnoughError):  # the user, the reader or --most ends it
            code = capture.capture(opened, commands, sink.take, say, sink.passed)
        with suppress(BrokenPipeError, _EnoughError):
            sink.end()
        if sink.output.is_full:
            console.note(f"capture: it has ended at {most}, the limit of --most")
    told = said.decode(errors="replace").strip()
    if code:
        raise InputError(f"capture: {told.splitlines()[-1] if told else f'tcpdump ended with code {code}'}")
    console.note(told)


def _points(lab: Lab, where: str, ends: Sequence[str], *, container: bool) -> Sequence[Point]:
    from minigts.lab import capture

    if not container:
        return capture.points(lab, where, ends)
    if ends:
        raise InputError("capture: a container is captured on all its interfaces; --at is for links only")
    host, prefix = container_network(lab, where)
    return [capture.Point(host, capture.ANY, prefix)]


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
    with contextlib.suppress(OSError):  # a pipe or a device keeps its mode
        paths.users_file(opened)
    return opened
