"""`minigts add`: add a host or a link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.add_remove import again, alter
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 500, help="Add a host or a link to a lab that is up.")

Of = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WHAT=VALUE...", help="The link's settings: rtt=10ms rate=50mbit.", autocompletion=completion.settings
    ),
]

OfHost = Annotated[
    list[str] | None,
    typer.Argument(metavar="WHAT=VALUE...", help="Settings of link and host: rtt=10ms memory=1GB."),
]


@verb.command("host")
def add_host(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new host's name.")],
    neighbour: Annotated[
        str,
        typer.Argument(
            metavar="NEIGHBOUR",
            help="The host or switch at the other end of its link.",
            autocompletion=completion.hosts,
        ),
    ],
    settings: OfHost = None,
    lab: LabName = None,
) -> None:
    """Start a new host with a link to a neighbour.

    The neighbour is started again on its own disk, because it gets another port: what runs on it ends. All other hosts
    run on, and all get the new routes. Hosts and links that exist keep their names and addresses.

    Example:  minigts add host lon ams rtt=12ms rate=50mbit
    """
    from minigts.topology import edit

    given = _settings(settings)
    started = alter(lab, lambda plan, usual: edit.add_host(plan, name, neighbour, given, usual))
    host = f"--lab {lab} {name}" if lab else name  # without --lab one lab alone is up
    console.note(f"{name} is in the lab{again(started - {name})}; try: minigts exec {host} -- ip address")


@verb.command("link")
def add_link(
    first: Annotated[str, typer.Argument(metavar="HOST", help="One end.", autocompletion=completion.hosts)],
    second: Annotated[str, typer.Argument(metavar="HOST", help="The other end.", autocompletion=completion.hosts)],
    settings: Of = None,
    lab: LabName = None,
) -> None:
    """Add a link between two hosts, or a host and a switch. Both are started again on their own disks.

    Routes use the link wherever it makes a better path.

    Example:  minigts add link ams lon rtt=12ms rate=50mbit loss=1%
    """
    from minigts.topology import edit

    given = _settings(settings)
    started = alter(lab, lambda plan, usual: edit.add_link(plan, first, second, given, usual))
    console.note(f"{first} and {second} have a new link{again(started)}")


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    parts = [word.partition("=") for word in words or ()]
    if strange := next((word for word, (_, given, _) in zip(words or (), parts, strict=True) if not given), None):
        raise InputError(f"{strange!r} is not WHAT=VALUE, as in rtt=10ms")
    return {what: value for what, _, value in parts}
