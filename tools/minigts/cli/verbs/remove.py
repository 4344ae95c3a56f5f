"""`minigts remove`: hosts and links less."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.add_remove import again, alter
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 510, help="A host or a link less, in a lab that is up.")


@verb.command("host")
def remove_host(
    name: Annotated[str, typer.Argument(metavar="HOST", help="Which one.", autocompletion=completion.hosts)],
    lab: LabName = None,
) -> None:
    """End a host for good, with its links and its disk. Its neighbours are started again on their own disks.

    To have it off for a while: minigts kill. One without which others would not reach each other stays.

    Example:  minigts remove host lon
    """
    from minigts.topology import edit

    started = alter(lab, lambda plan: edit.without_host(plan, name))
    console.note(f"{name} is no longer in the lab{again(started)}")


@verb.command("link")
def remove_link(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="As `status` names it: ams-bra.", autocompletion=completion.link_names)
    ],
    lab: LabName = None,
) -> None:
    """Take a link out for good. Both its ends are started again on their own disks.

    To have it cut for a while: minigts link. One without which hosts would not reach each other stays.

    Example:  minigts remove link ams-lon
    """
    from minigts.lab import links
    from minigts.topology import edit

    started = alter(lab, lambda plan: edit.without_link(plan, links.link_named(plan, link).name))
    console.note(f"{link} is no longer in the lab{again(started)}")
