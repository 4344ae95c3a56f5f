"""`minigts logs`: the logs of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName, lab_with, one_of, writable
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 210)


@verb.command()
def logs(
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]", help="A host or switch. Default: all of the lab.", autocompletion=completion.hosts
        ),
    ] = None,
    lab: LabName = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="WHICH", help="Only this log: console, dmesg, or a program's, such as dockerd."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", metavar="DIR", help="Write them to DIR/HOST/ instead of printing them.")
    ] = None,
) -> None:
    """Show a host's console, its kernel's log, and the logs of its container engine and its overlay's programs.

    A host that no longer answers has only its console. The host's agent writes to the console, too.

    Example:  minigts logs ams

    Example:  minigts logs ams --only dockerd
    """
    import tempfile

    from minigts import lab as labs

    opened = labs.open_lab(lab) if host is None else lab_with(host, lab, also_off=True)
    names = [each.name for each in opened.plan.machines] if host is None else [host]
    with tempfile.TemporaryDirectory(dir=opened.rundir, prefix="logs.") as directory:
        place = Path(directory) if into is None else into
        for name in names:
            opened.provider.diagnose(name, place / name if into is None else writable(place / name, "--into"))
        if into is not None:
            console.note(f"the logs of {', '.join(names)} are in {into}")
            return
        found = [(name, file) for name in names for file in sorted((place / name).iterdir())]
        if only is not None:
            one_of("log", only, sorted({file.stem for _, file in found}))
        for name, file in found:
            if only in (None, file.stem):
                console.show_log(f"{name}: {file.name}", file)
