"""`minigts remove`: remove a host or a link."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.add_remove import again, alter
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.topology.plan import link_names

verb = Verb(LABS, 510, help="Remove a host or a link from a lab that is up.")


@verb.command("host")
def remove_host(
    name: Annotated[str, typer.Argument(metavar="HOST", help="The host's name.", autocompletion=completion.hosts)],
    lab: LabName = None,
) -> None:
    """Remove a host with its links and its disk. Its neighbours are started again on their own disks.

    To switch it off for a while: minigts kill. A host that others need to reach each other cannot be removed.

    Example:  minigts remove host lon
    """
    from minigts.topology import edit

    started = alter(lab, lambda plan, _: edit.remove_host(plan, name))
    console.note(f"{name} is no longer in the lab{again(started)}")


@verb.command("link")
def remove_link(
    link: Annotated[
        str,
        typer.Argument(metavar="LINK", help="The link's name, such as ams-bra.", autocompletion=completion.link_names),
    ],
    lab: LabName = None,
) -> None:
    """Remove a link. The hosts at its ends are started again on their own disks.

    To cut it for a while: minigts link. A link that hosts need to reach each other cannot be removed.

    Example:  minigts remove link ams-lon
    """
    from minigts.topology import edit

    started = alter(lab, lambda plan, _: edit.remove_link(plan, link_names.link_named(plan, link).name))
    console.note(f"{link} is no longer in the lab{again(started)}")
