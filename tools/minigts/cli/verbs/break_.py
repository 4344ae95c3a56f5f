"""`minigts break`: one fault in a lab, to be found."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import CLASSROOM, Verb
from minigts.cli.views import tables
from minigts.errors import InputError

verb = Verb(CLASSROOM, 435)


@verb.command()
def break_(
    lab: WhichLab = None,
    named: LabName = None,
    seed: Annotated[
        str | None,
        typer.Option("--seed", metavar="NAME", help="Do the fault that this name draws, and do not say which."),
    ] = None,
    of: Annotated[
        list[str] | None, typer.Option("--of", metavar="KIND", help="With --seed: only of this kind; may be repeated.")
    ] = None,
    answer: Annotated[
        tuple[str, str] | None,
        typer.Option("--answer", metavar="KIND HOST", help="Say whether it is this, on that host."),
    ] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Say what it is, and where.")] = False,
    mend: Annotated[bool, typer.Option("--mend", help="Undo it.")] = False,
    kinds: Annotated[bool, typer.Option("--list", help="List the kinds of faults.")] = False,
) -> None:
    """Break a lab, for somebody to find out what it is, and on which host, by the tools that hosts have.

    The name draws one of some forty kinds of faults and one of the places that the topology has for it: the same name
    breaks the same lab in the same way everywhere. It is made sure that the fault has an effect.

    Example:  minigts break --seed ana

    Example:  minigts break --answer no-route bra
    """
    from minigts import lab as labs
    from minigts.language.fields import unknown
    from minigts.lessons import break_kinds, breaks

    asked = [seed is not None, answer is not None, reveal, mend, kinds]
    if sum(asked) != 1 or (of and seed is None):
        raise InputError("break: write one of --seed NAME, --answer KIND HOST, --reveal, --mend and --list")
    if kinds:
        tables.show_table("kinds of faults", ("kind", "what is wrong"), ((k.name, k.says) for k in break_kinds.KINDS))
        return
    opened = labs.open_lab(which(lab, named))
    if seed is not None:
        with console.progress() as say:
            say(f"breaking lab {opened.name}")
            breaks.break_(opened, seed, [kind.name for kind in breaks.find_kinds(of or [])] if of else [])
        console.note(f"lab {opened.name} is broken: find what it is, and on which host")
        console.note("kinds of faults: minigts break --list; an answer: minigts break --answer KIND HOST")
        return
    broken = breaks.require_broken(opened)
    if answer is not None:
        breaks.find_kinds([answer[0]])
        hosts = [host.name for host in opened.plan.hosts]
        if answer[1] not in hosts:
            raise InputError(f"break --answer: {unknown('host', 'hosts', answer[1], hosts)}")
        right = (answer[0] == broken.what, answer[1] in broken.fault.hosts)
        for name, given, is_right in zip(("what", "where"), answer, right, strict=True):
            typer.echo(f"{'ok  ' if is_right else 'no  '}{name}: {given}")
        raise typer.Exit(0 if all(right) else 1)
    if reveal:
        typer.echo(f"{broken.what} on {broken.place.host}: {broken.fault.kind.says}")
        return
    breaks.mend(opened)
    console.note(f"lab {opened.name} is as it was before")
