"""`minigts restore`: bring up a saved lab."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import SavedName
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import findings as shown_findings

verb = Verb(LABS, 320)


@verb.command()
def restore(
    name: SavedName,
    lab: Annotated[
        str | None, typer.Option("--lab", metavar="NAME", help="The lab's name. Default: the name it had.")
    ] = None,
    overlay: Annotated[str | None, typer.Option("--overlay", help="The overlay. Default: the one it had.")] = None,
) -> None:
    """Bring up a saved lab: its hosts boot on copies of the disks. In virtual time its clock goes on from there.

    The saved lab does not change: it can be restored again, also under another name while this one is up.

    Example:  minigts restore before-the-upgrade --lab second
    """
    from minigts.session.bring_up import restore as restored

    with console.progress() as say:
        brought = restored(name, lab, overlay, say)
    if brought.certificate is not None:
        shown_findings.show_certificate(brought.certificate, brought.lab)
    console.note(f"lab {brought.lab.name} is up as it was saved in {name}")
