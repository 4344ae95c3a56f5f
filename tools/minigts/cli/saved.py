"""The verbs of saved labs."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from minigts.cli import screen, shown_findings, shown_labs
from minigts.cli.app import app
from minigts.cli.labs import LABS, AsJson, LabName
from minigts.errors import InputError

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the saved lab is called.")]


@app.command(rich_help_panel=LABS)
def save(name: Name, lab: LabName = None) -> None:
    """Save a whole lab under a name: disks, topology, what was set, its overlay, and its time. It goes on.

    All hosts stand still meanwhile. The saved lab stays until `saved --delete`, whatever becomes of this one.

    Example:  minigts save before-the-upgrade
    """
    from minigts import lab as labs
    from minigts import overlays
    from minigts.lab.saved import disk_bytes

    opened = labs.open_lab(lab, also_kept=True)
    joined = overlays.joined(opened)
    started_s = time.monotonic()
    with screen.progress() as say:
        saved = labs.save(opened, name, None if joined is None else joined.name, say)
    screen.note(
        f"lab {opened.name} is saved as {name}: {screen.megabytes(disk_bytes(saved))} of disks of {len(saved.hosts)} "
        f"hosts, in {time.monotonic() - started_s:.1f} s; try: minigts restore {name} --lab again"
    )


@app.command(rich_help_panel=LABS)
def restore(
    name: Name,
    lab: Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Its name; else the one it had.")] = None,
    overlay: Annotated[str | None, typer.Option("--overlay", help="Which overlay; else the one it had.")] = None,
) -> None:
    """Bring up a lab from a saved one: hosts boot on copies of the disks. In virtual time its clock goes on from there.

    The saved one stays as it is, and can be restored again, also beside this lab under another name.

    Example:  minigts restore before-the-upgrade --lab second
    """
    from minigts.session.bring_up import restore as restored

    with screen.progress() as say:
        brought = restored(name, lab, overlay, say)
    if brought.certificate is not None:
        shown_findings.show_certificate(brought.certificate, brought.lab)
    screen.note(f"lab {brought.lab.name} is up as it was saved in {name}")


@app.command(rich_help_panel=LABS)
def saved(
    delete: Annotated[str | None, typer.Option("--delete", metavar="NAME", help="Remove that one.")] = None,
    as_json: AsJson = False,
) -> None:
    """List saved labs with what they take; or delete one.

    Example:  minigts saved --delete before-the-upgrade
    """
    from minigts import lab as labs

    if delete is not None and as_json:
        raise InputError("--delete and --json exclude each other")
    if delete is not None:
        labs.delete(delete)
        screen.note(f"saved lab {delete} is deleted")
        return
    facts = [shown_labs.saved_facts(each) for each in labs.all_saved()]
    if as_json:
        screen.print_json(facts)
    elif not facts:
        screen.note("no lab is saved; try: minigts save NAME")
    else:
        shown_labs.show_saved(facts)
