"""`minigts link`: take links down and bring them up."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName, one_of
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError
from minigts.topology.plan import link_names

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
            help="down: nothing gets through, either way, and both ends lose their carrier. up: as before.",
            autocompletion=completion.states,
        ),
    ] = None,
    silent: Annotated[
        bool, typer.Option("--silent", help="The ends keep their carrier, and nobody is told: frames are just lost.")
    ] = False,
    end: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Only this end loses its carrier.", autocompletion=completion.hosts),
    ] = None,
    lab: LabName = None,
) -> None:
    """Take a link of a lab down, or bring it up with the settings that it had.

    As with a cable that is pulled, both ends lose their carrier: `ip link` in the hosts shows NO-CARRIER, and routing
    daemons, bridges and Docker are told. With --end one end is told, as where one of two fibres breaks. With --silent
    none is, as where a light path breaks in its middle: only timers find that out.

    If several links join two hosts, all go down, or only the named one. A link stays down, also over a restart of its
    hosts, until it is brought up; status and check name it. What somebody has changed in its two hosts (queueing
    disciplines, interfaces, addresses, routes) is set again and printed.

    Example:  minigts link ams bra down

    Example:  minigts link ams-bra-2 down --silent
    """
    from minigts import lab as labs
    from minigts.fidelity.mending import mend
    from minigts.topology.outage import Outage

    named = state is None and second in ("up", "down")
    wanted = second if named else state
    if second is None or wanted is None:
        raise InputError("link: name two hosts, or a link, and then up or down: minigts link ams bra down")
    one_of("state", wanted, ("up", "down"))
    if wanted == "up" and (silent or end is not None):
        raise InputError("--silent and --end say how a link goes down: leave them out with up")
    if silent and end is not None:
        raise InputError("--silent leaves both ends their carrier, --end takes it from one: give one of them")
    how = Outage(silent=silent, end=end)
    opened = labs.open_lab(lab)
    if named:
        one = link_names.link_named(opened.plan, first)
        ends, what = one.ends, f"link {one.name}"
    else:
        link_names.links_between(opened.plan, first, second)
        ends, what = (first, second), f"the link between {first} and {second}"
    for host, differences in mend(opened, ends).items():
        console.note(f"set again on {host}: {'; '.join(differences)}")
    if named:
        labs.set_link_up(opened, first, up=wanted == "up", how=how)
    else:
        labs.set_links_up(opened, first, second, up=wanted == "up", how=how)
    console.note(f"{what} is {'up' if wanted == 'up' else how.in_words}")
