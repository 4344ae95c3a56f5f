"""`minigts link`: links, cut and made whole."""

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
        str, typer.Argument(metavar="HOST", help="One end; or a link's name, alone.", autocompletion=completion.hosts)
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="The other end.", autocompletion=completion.neighbours)
    ] = None,
    state: Annotated[
        str | None,
        typer.Argument(
            metavar="up|down", help="down: what is sent is lost, both ways.", autocompletion=completion.states
        ),
    ] = None,
    lab: LabName = None,
) -> None:
    """Cut a link of a lab that is up, or make it whole again, as it was set before. The hosts' interfaces stay up and
    do not notice. Of several links between two hosts it is all of them, or the one that is named.

    It stays cut, also over a restart of its hosts, until it is made whole; status and check name it. What somebody has
    changed by hand in its two hosts (queueing disciplines, interfaces, addresses, routes) is set again, and said.

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
