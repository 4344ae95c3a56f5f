"""The verbs that take hosts and links into a lab that is up, and out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import known, screen
from minigts.cli.app import app
from minigts.cli.labs import LABS, LabName
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.topology.plan import Plan

add_app = typer.Typer(no_args_is_help=True, help="A host or a link more, in a lab that is up.")
app.add_typer(add_app, name="add", rich_help_panel=LABS)
remove_app = typer.Typer(no_args_is_help=True, help="A host or a link less, in a lab that is up.")
app.add_typer(remove_app, name="remove", rich_help_panel=LABS)

Of = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WHAT=VALUE...", help="As in a topology: rtt=10ms rate=50mbit.", autocompletion=known.settings
    ),
]
OfHost = Annotated[
    list[str] | None,
    typer.Argument(metavar="WHAT=VALUE...", help="As in a topology, of link and host: rtt=10ms memory=1GB."),
]


@add_app.command("host")
def add_host(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the new host.")],
    neighbour: Annotated[
        str,
        typer.Argument(metavar="NEIGHBOUR", help="Host or switch that its link leads to.", autocompletion=known.hosts),
    ],
    settings: OfHost = None,
    lab: LabName = None,
) -> None:
    """Start one host more, with a link to a neighbour.

    The neighbour is started again on its own disk, for it gets a port more: what runs on it ends. All others run on,
    and all get the new routes. What is there keeps its names and addresses.

    Example:  minigts add host lon ams rtt=12ms rate=50mbit
    """
    from minigts.topology import altering

    given = _settings(settings)
    started = _alter(lab, lambda plan: altering.with_host(plan, name, neighbour, given))
    screen.note(f"{name} is in the lab{_again(started - {name})}; try: minigts exec {name} -- ip address")


@add_app.command("link")
def add_link(
    first: Annotated[str, typer.Argument(metavar="HOST", help="One end.", autocompletion=known.hosts)],
    second: Annotated[str, typer.Argument(metavar="HOST", help="The other end.", autocompletion=known.hosts)],
    settings: Of = None,
    lab: LabName = None,
) -> None:
    """Lay one link more between two hosts, or a host and a switch. Both are started again on their own disks.

    Routes go by it wherever that is the better way.

    Example:  minigts add link ams lon rtt=12ms rate=50mbit loss=1%
    """
    from minigts.topology import altering

    given = _settings(settings)
    started = _alter(lab, lambda plan: altering.with_link(plan, first, second, given))
    screen.note(f"{first} and {second} have a link more{_again(started)}")


@remove_app.command("host")
def remove_host(
    name: Annotated[str, typer.Argument(metavar="HOST", help="Which one.", autocompletion=known.hosts)],
    lab: LabName = None,
) -> None:
    """End a host for good, with its links and its disk. Its neighbours are started again on their own disks.

    To have it off for a while: minigts kill. One without which others would not reach each other stays.

    Example:  minigts remove host lon
    """
    from minigts.topology import altering

    started = _alter(lab, lambda plan: altering.without_host(plan, name))
    screen.note(f"{name} is no longer in the lab{_again(started)}")


@remove_app.command("link")
def remove_link(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="As `status` names it: ams-bra.", autocompletion=known.link_names)
    ],
    lab: LabName = None,
) -> None:
    """Take a link out for good. Both its ends are started again on their own disks.

    To have it cut for a while: minigts link. One without which hosts would not reach each other stays.

    Example:  minigts remove link ams-lon
    """
    from minigts.lab import links
    from minigts.topology import altering

    started = _alter(lab, lambda plan: altering.without_link(plan, links.link_named(plan, link).name))
    screen.note(f"{link} is no longer in the lab{_again(started)}")


def _alter(lab: str | None, change: Callable[[Plan], Plan]) -> frozenset[str]:
    """Take it into the lab, or out of it; the machines that were started."""
    from minigts import lab as labs
    from minigts import overlays

    opened = labs.open_lab(lab)
    after = change(opened.plan)
    with screen.progress() as say:
        _, started = overlays.alter(opened, after, say)
    return started


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    parts = [word.partition("=") for word in words or ()]
    if strange := next((word for word, (_, given, _) in zip(words or (), parts, strict=True) if not given), None):
        raise InputError(f"{strange!r} is not what and value: write it as in rtt=10ms")
    return {what: value for what, _, value in parts}


def _again(started: frozenset[str]) -> str:
    names = ", ".join(sorted(started))
    return f"; started again: {names}" if names else ""
