"""`minigts logs`: the logs of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.containers import is_pod
from minigts.cli.options import LabName, lab_with, one_of, writable
from minigts.cli.verbs import LABS, Verb

if TYPE_CHECKING:
    from minigts.lab import Lab

verb = Verb(LABS, 210)


@verb.command()
def logs(
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]", help="A host, switch or pod. Default: all of the lab.", autocompletion=completion.hosts
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

    A host that no longer answers has only its console. The host's agent writes to the console, too. Of a pod, named
    as for `exec`, it shows what its containers have written.

    Example:  minigts logs ams

    Example:  minigts logs ams --only dockerd
    """
    import tempfile

    from minigts import lab as labs
    from minigts.machine import beneath

    if host is not None and is_pod(host):
        _logs_of_pod(labs.open_lab(lab), host, only, into)
        return
    opened = labs.open_lab(lab) if host is None else lab_with(host, lab, also_off=True)
    names = [each.name for each in opened.plan.machines] if host is None else [host]
    with tempfile.TemporaryDirectory(dir=opened.rundir, prefix="logs.") as directory:
        place = Path(directory) if into is None else into
        for name in names:
            opened.provider.diagnose(name, place / name if into is None else writable(place / name, "--into"))
        if into is not None:
            console.note(f"the logs of {', '.join(names)} are in {into}")
            return
        found = [(each, file) for each in names for file in beneath.listing(place / each).files]
        if only is not None:
            one_of("log", only, sorted({Path(file).stem for _, file in found}))
        for name, file in found:
            if only in (None, Path(file).stem):
                with beneath.plain_file(place / name, file) as log:
                    console.show_log(f"{name}: {file}", log)


def _logs_of_pod(lab: Lab, word: str, only: str | None, into: Path | None) -> None:
    from minigts.foreign import Foreign, content, file_name, screen_text
    from minigts.overlays import pods

    pod, container = pods.find(lab, word)
    if only is not None:
        container = one_of("container", only, [one.name for one in pod.containers])
    for name, text in pods.logs(lab, pod, container).items():
        if into is None:
            console.show_text(f"{pod.full_name}: {name}", screen_text(text, len(text)).splitlines())
        else:
            named = file_name(Foreign(f"{pod.namespace}.{pod.name}"))
            place = writable(into / named, "--into")
            (place / f"{file_name(Foreign(name))}.log").write_text(content(text), encoding="utf-8")
    if into is not None:
        console.note(f"the logs of {pod.full_name} are in {into}")
