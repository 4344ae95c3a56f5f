"""`minigts saved`: saved labs."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import AsJson
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import labs as shown_labs
from minigts.errors import InputError

verb = Verb(LABS, 330)


@verb.command()
def saved(
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="NAME", help="Delete the saved lab of that name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List saved labs with the size of their disks; or delete one.

    Example:  minigts saved --delete before-the-upgrade
    """
    from minigts import lab as labs

    if delete is not None and as_json:
        raise InputError("--delete and --json exclude each other")
    if delete is not None:
        labs.delete(delete)
        console.note(f"saved lab {delete} is deleted")
        return
    facts = [shown_labs.saved_facts(each) for each in labs.all_saved()]
    if as_json:
        console.print_json(facts)
    elif not facts:
        console.note("no lab is saved; try: minigts save NAME")
    else:
        shown_labs.show_saved(facts)
