"""`minigts down`: take a lab down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lab import Lab

verb = Verb(LABS, 30)


@verb.command()
def down(
    lab: WhichLab = None,
    named: LabName = None,
    every: Annotated[bool, typer.Option("--all", help="Take down all labs of yours.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the hosts' disks for the next `up`.")] = False,
) -> None:
    """Take a lab down, also after a crash: no process, socket or file of it is left.

    With --keep the hosts' disks stay: `up` of the same topology starts from them, and a later `down` or `down --all`
    removes them. Saved labs stay in any case.

    Example:  minigts down --all

    Example:  minigts down --keep
    """
    from minigts import lab as labs
    from minigts.lab.rundir import is_locked

    if every and (lab or named):
        raise InputError("name a lab, or say --all; not both")
    doomed = labs.all_labs() if every else [labs.open_lab(which(lab, named), also_kept=True)]
    failures: list[Exception] = []
    for each in labs.running(doomed) if every and keep else doomed:
        try:
            if is_locked(each.rundir):
                console.note(f"another command is at work on lab {each.name}; waiting until it has ended")
            done = _keep(each) if keep else _down(each)
        except Exception as error:  # one lab's failure must not keep the others up
            failures.append(error)
        else:
            console.note(f"lab {each.name} is {done}")
    if failures:
        raise ExceptionGroup("not every lab could be taken down", failures)


def _keep(lab: Lab) -> str:
    from minigts import lab as labs

    with console.progress() as say:
        size = labs.keep(lab, say)
    return f"kept, with {console.megabytes(size)} of disks; minigts up starts from them, minigts down removes them"


def _down(lab: Lab) -> str:
    from minigts import lab as labs
    from minigts.lab.record import KEPT

    size = labs.disk_bytes(lab) if lab.read_state() == KEPT else None
    labs.down(lab)
    return "down" if size is None else f"down; it was kept, and {console.megabytes(size)} of disks are gone"
