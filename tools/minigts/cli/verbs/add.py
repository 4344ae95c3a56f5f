"""`minigts add`: hosts and links more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.add_remove import again, alter
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 500, help="A host or a link more, in a lab that is up.")

Of = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WHAT=VALUE...", help="As in a topology: rtt=10ms rate=50mbit.", autocompletion=completion.settings
    ),
]

OfHost = Annotated[
    list[str] | None,
    typer.Argument(metavar="WHAT=VALUE...", help="As in a topology, of link and host: rtt=10ms memory=1GB."),
]


@verb.command("host")
def add_host(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the new host.")],
    neighbour: Annotated[
        str,
        typer.Argument(
            metavar="NEIGHBOUR", help="Host or switch that its link leads to.", autocompletion=completion.hosts
        ),
    ],
    settings: OfHost = None,
    lab: LabName = None,
) -> None:
    """Start one host more, with a link to a neighbour.

    The neighbour is started again on its own disk, for it gets a port more: what runs on it ends. All others run on,
    and all get the new routes. What is there keeps its names and addresses.

    Example:  minigts add host lon ams rtt=12ms rate=50mbit
    """
    from minigts.topology import edit

    given = _settings(settings)
    started = alter(lab, lambda plan: edit.with_host(plan, name, neighbour, given))
    console.note(f"{name} is in the lab{again(started - {name})}; try: minigts exec {name} -- ip address")


@verb.command("link")
def add_link(
    first: Annotated[str, typer.Argument(metavar="HOST", help="One end.", autocompletion=completion.hosts)],
    second: Annotated[str, typer.Argument(metavar="HOST", help="The other end.", autocompletion=completion.hosts)],
    settings: Of = None,
    lab: LabName = None,
) -> None:
    """Lay one link more between two hosts, or a host and a switch. Both are started again on their own disks.

    Routes go by it wherever that is the better way.

    Example:  minigts add link ams lon rtt=12ms rate=50mbit loss=1%
    """
    from minigts.topology import edit

    given = _settings(settings)
    started = alter(lab, lambda plan: edit.with_link(plan, first, second, given))
    console.note(f"{first} and {second} have a link more{again(started)}")


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    parts = [word.partition("=") for word in words or ()]
    if strange := next((word for word, (_, given, _) in zip(words or (), parts, strict=True) if not given), None):
        raise InputError(f"{strange!r} is not what and value: write it as in rtt=10ms")
    return {what: value for what, _, value in parts}
