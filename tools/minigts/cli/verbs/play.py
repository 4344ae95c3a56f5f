"""`minigts play`: a topology's schedule."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError
from minigts.foreign import screen_text

verb = Verb(LABS, 170)

LONGEST_COMMAND_S = 3600.0
"""How long the command may run after the schedule's end, in seconds of the lab's time."""


@verb.command()
def play(
    host: Annotated[
        str | None,
        typer.Argument(metavar="[HOST]", help="The host on which the command runs.", autocompletion=completion.hosts),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND]...", help="A command that starts with the schedule, after --."),
    ] = None,
    lab: LabName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
) -> None:
    """Play the schedule of a lab's topology: change its links at the moments of `schedule:`, counted from now.

    At the end, and after ctrl-c, every link is as it was before. In virtual time a change comes at its exact moment,
    and time passes as fast as it can: so give the program that is to meet the changes as COMMAND.

    Example:  minigts play

    Example:  minigts play ams -- ping -c 60 -i 0.5 bra
    """
    from minigts import lab as labs
    from minigts.lab.schedule_player import Played
    from minigts.lab.schedule_player import play as played

    def tell(change: Played) -> None:
        told = {
            "at_s": change.at_s,
            **change.moment.model_dump(include={"link", "sender"}),
            "set": dict(change.amounts),
        }
        typer.echo(json.dumps(told) if as_json else f"{change.at_s:12.6f} s  {change.in_words}")

    if host is not None and not command:
        raise InputError(f"play: name the command for {host}: minigts play {host} -- ping -c 60 bra")
    opened = labs.open_lab(lab)
    if host is not None:
        opened.read_record().require_on([host])
    plan = opened.plan
    length_s = plan.schedule[-1].at_s if plan.schedule else 0.0
    console.note(f"{len(plan.schedule)} changes in {length_s:g} s")
    beside = None
    if host is not None:
        limit_s = length_s + LONGEST_COMMAND_S
        beside = partial(opened.provider.run, host, command or [], timeout_s=limit_s, check=False)
    result = played(opened, plan.schedule, tell, beside)
    if result is not None:
        said = result.stdout + result.stderr
        typer.echo(screen_text(said, len(said)), nl=False)
    console.note("the schedule is over; every link is as it was before")
