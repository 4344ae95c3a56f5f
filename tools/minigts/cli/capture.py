"""The verb that captures what passes a lab's interfaces."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Annotated

import typer

from minigts.cli import known, screen
from minigts.cli.app import app
from minigts.cli.labs import LABS, LabName
from minigts.errors import InputError

ON_STDOUT = Path("-")


@app.command(rich_help_panel=LABS, context_settings={"allow_interspersed_args": False})
def capture(
    where: Annotated[
        str,
        typer.Argument(
            metavar="LINK|HOST",
            help="A link, as in ams-bra; or a host, on all its interfaces.",
            autocompletion=known.links,
        ),
    ],
    expression: Annotated[
        list[str] | None, typer.Argument(metavar="[FILTER]...", help="As tcpdump takes it: tcp port 80.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--at", metavar="HOST", help="Which end of the link; else its first.", autocompletion=known.hosts),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--write", "-w", metavar="FILE", help="Where the pcap goes; - is standard output.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0.001, help="End after so many of the lab's seconds.")
    ] = None,
    frames: Annotated[int | None, typer.Option("--count", min=1, help="End after so many frames.")] = None,
    lab: LabName = None,
) -> None:
    """Capture what passes a link's end or a host, until ctrl-c: a line a frame, or a pcap. Options go before the link.

    What an end sends is seen before the link's delay, what arrives after it, with the lab's time. Through a pipe the
    pcap goes as it comes: minigts capture ams-bra | wireshark -k -i -

    Example:  minigts capture -w ams-bra.pcap --for 10 ams-bra

    Example:  minigts capture --at bra ams-bra icmp
    """
    from minigts import lab as labs
    from minigts.lab import capturing

    opened = labs.open_lab(lab)
    point = capturing.point(opened, where, end)
    to_screen = file is None and sys.stdout.isatty()
    argv = capturing.command(point, expression or [], frames=frames, seconds=seconds, text=to_screen)
    said, code = bytearray(), 0
    with nullcontext(sys.stdout.buffer) if file in (None, ON_STDOUT) else _created(file) as output:

        def take(piece: bytes) -> None:
            output.write(piece)
            output.flush()

        with suppress(KeyboardInterrupt, BrokenPipeError):  # enough, says the user or who reads
            code = capturing.capture(opened, point, argv, take, said.extend)
    told = said.decode(errors="replace").strip()
    if code:
        raise InputError(f"capture: {told.splitlines()[-1] if told else f'tcpdump ended with code {code}'}")
    screen.note(told)


def _created(file: Path) -> IO[bytes]:
    try:
        return file.open("wb")
    except OSError as error:
        raise InputError(f"capture: {file} cannot be written: {error.strerror}") from error
