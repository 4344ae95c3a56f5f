"""`minigts link`: cut links and restore them."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName, one_of
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 140)


@verb.command()
def link(
    first: Annotated[
        str, typer.Argument(metavar="HOST", help="One end; or only a link's name.", autocompletion=completion.hosts)
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="The other end.", autocompletion=completion.neighbours)
    ] = None,
    state: Annotated[
        str | None,
        typer.Argument(
            metavar="up|down",
            help="down: all frames are lost, in both directions. up: restore.",
            autocompletion=completion.states,
        ),
    ] = None,
    lab: LabName = None,
) -> None:
    """Cut a link of a lab that is up, or restore it with the settings that it had.

    The hosts' interfaces stay up and do not notice. If several links join two hosts, all are cut, or only the named
    one. A link stays cut, also over a restart of its hosts, until it is restored; status and check name it. What
    somebody has changed in its two hosts (queueing disciplines, interfaces, addresses, routes) is set again and
    printed.

    Example:  minigts link ams bra down

    Example:  minigts link ams-bra-2 down
    """
    from minigts import lab as labs
    from minigts.fidelity.mending import mend
    from minigts.lab import links

    named = state is None and second in ("up", "down")
    wanted = second if named else state
    if second is None or wanted is None:
        raise InputError("link: name two hosts, or a link, and then up or down: minigts link ams bra down")
    one_of("state", wanted, ("up", "down"))
    opened = labs.open_lab(lab)
    if named:
        one = links.link_named(opened.plan, first)
        ends, what = one.ends, f"link {one.name}"
    else:
        links.links_between(opened.plan, first, second)
        ends, what = (first, second), f"the link between {first} and {second}"
    for host, differences in mend(opened, ends).items():
        console.note(f"set again on {host}: {'; '.join(differences)}")
    if named:
        labs.set_link_up(opened, first, up=wanted == "up")
    else:
        labs.set_links_up(opened, first, second, up=wanted == "up")
    console.note(f"{what} is {wanted}")
