"""The verbs that change a lab's links while it is up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from minigts.cli import known, screen
from minigts.cli.app import app
from minigts.cli.labs import LABS, LabName, one_of
from minigts.errors import InputError, Problem

if TYPE_CHECKING:
    from minigts.topology.setting import Amount

LONGEST_COMMAND_S = 3600.0
"""By the lab's clock, after a schedule's end."""


@app.command(rich_help_panel=LABS)
def link(
    first: Annotated[
        str, typer.Argument(metavar="HOST", help="One end; or a link's name, alone.", autocompletion=known.hosts)
    ],
    second: Annotated[str, typer.Argument(metavar="[HOST]", help="The other end.", autocompletion=known.neighbours)],
    state: Annotated[
        str | None,
        typer.Argument(metavar="up|down", help="down: what is sent is lost, both ways.", autocompletion=known.states),
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
    wanted = one_of("state", second if named else state or "", ("up", "down"))
    opened = labs.open_lab(lab)
    if named:
        one = links.link_named(opened.plan, first)
        ends, what = one.ends, f"link {one.name}"
    else:
        links.links_between(opened.plan, first, second)
        ends, what = (first, second), f"the link between {first} and {second}"
    for host, differences in mend(opened, ends).items():
        screen.note(f"set again on {host}: {'; '.join(differences)}")
    if named:
        labs.set_link_named(opened, first, up=wanted == "up")
    else:
        labs.set_link(opened, first, second, up=wanted == "up")
    screen.note(f"{what} is {wanted}")


class _NamesSettings(TyperCommand):
    """A verb whose help names what of a link can be set, where it says SETTINGS: that list is imported when help is
    asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from minigts.topology.link_settings import SETTABLE

        *most, last = SETTABLE
        for each in self.params:
            if isinstance(each, TyperArgument) and each.help is not None:
                each.help = each.help.replace("SETTINGS", f"{', '.join(most)} or {last}")
        super().format_help(ctx, formatter)


@app.command("set", cls=_NamesSettings, rich_help_panel=LABS)
def set_(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="As `status` names it: ams-bra.", autocompletion=known.link_names)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT=VALUE...",
            help="SETTINGS, in the topology language's units: delay=20ms loss=1%; declared: as in the topology.",
            autocompletion=known.settings,
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST", help="Only what this end sends.", autocompletion=known.hosts),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="All as the topology declares it.")] = False,
    lab: LabName = None,
) -> None:
    """Change a link of a lab that is up, under traffic: connections go on. What is not named stays as it is.

    Delay is one way. It stays so, also over a restart of its hosts, until it is set otherwise; check measures it
    against what is set, and status names it.

    Example:  minigts set ams-bra delay=20ms loss=1%

    Example:  minigts set ams-bra rate=10mbit --from ams

    Example:  minigts set ams-bra loss=2% burst=8packets
    """
    from minigts import lab as labs
    from minigts.lab import links
    from minigts.topology.link_settings import SETTABLE
    from minigts.topology.setting import DECLARED

    if reset == bool(settings):
        raise InputError("set: name what is to be set, as in delay=20ms, or --reset")
    update = _update([f"{what}={DECLARED}" for what in SETTABLE] if reset else settings or [])
    opened = labs.open_lab(lab)
    change = labs.adjust_link(opened, link, update, sender)
    name = links.link_named(opened.plan, link).name
    screen.note(f"{name} is set: {change.in_words}" if change.in_words else f"{name} is as declared")


@app.command(rich_help_panel=LABS)
def partition(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST,HOST...", help="Two groups or more.", autocompletion=known.hosts),
    ] = None,
    heal: Annotated[bool, typer.Option("--heal", help="Make every link whole that is cut.")] = False,
    lab: LabName = None,
) -> None:
    """Cut every link between groups of machines, so that none of one reaches any of another; or heal the lab.

    Example:  minigts partition ams,bra lju,mil,ham,lon
    """
    from minigts import lab as labs

    split = [[name for name in group.split(",") if name] for group in groups or []]
    if heal == bool(split) or (split and (len(split) < 2 or not all(split))):
        raise InputError("partition: name two groups or more, as in ams,bra lju,mil; or --heal")
    opened = labs.open_lab(lab)
    names = labs.mend_all(opened) if heal else labs.separate(opened, split)
    done = "whole again" if heal else "cut"
    screen.note(f"{done}: {', '.join(names)}" if names else f"no link is {'cut' if heal else 'between these groups'}")


@app.command(rich_help_panel=LABS)
def play(
    host: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="Where a command is started.", autocompletion=known.hosts)
    ] = None,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="What begins with the schedule, behind --.")
    ] = None,
    lab: LabName = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each change.")] = False,
) -> None:
    """Play the schedule of a lab's topology: change its links at the moments that `schedule:` says, counted from now.

    At the end, and after ctrl-c, every link is as it was before. In virtual time a change comes at its very moment, and
    time passes as fast as it can: so what is to feel the changes is started with them.

    Example:  minigts play

    Example:  minigts play ams -- ping -c 60 -i 0.5 bra
    """
    from minigts import lab as labs
    from minigts.lab.playing import Played
    from minigts.lab.playing import play as played

    def tell(change: Played) -> None:
        told = {
            "at_s": change.at_s,
            **change.moment.model_dump(include={"link", "sender"}),
            "set": dict(change.amounts),
        }
        typer.echo(json.dumps(told) if as_json else f"{change.at_s:12.6f} s  {change.in_words}")

    if host is not None and not command:
        raise InputError(f"play: say what {host} is to do: minigts play {host} -- ping -c 60 bra")
    opened = labs.open_lab(lab)
    if host is not None:
        opened.read_record().require_on([host])
    plan = opened.plan
    length_s = plan.schedule[-1].at_s if plan.schedule else 0.0
    screen.note(f"{len(plan.schedule)} changes in {length_s:g} s")
    beside = None
    if host is not None:
        limit_s = length_s + LONGEST_COMMAND_S
        beside = partial(opened.provider.run, host, command or [], timeout_s=limit_s, check=False)
    result = played(opened, plan.schedule, tell, beside)
    if result is not None:
        typer.echo(result.stdout + result.stderr, nl=False)
    screen.note("the schedule is over; every link is as it was before")


def _update(settings: Sequence[str]) -> Mapping[str, Amount | None]:
    """The fields of a link's change that these words name, as in `delay=20ms`. Raises InputError with all problems."""
    from minigts.topology.link_settings import SETTABLE, amount

    update: dict[str, Amount | None] = {}
    problems: list[Problem] = []
    for word in settings:
        what, given, value = word.partition("=")
        if what not in SETTABLE or not given:
            problems.append(
                Problem("set", 0, f"{word!r} is not one of {', '.join(SETTABLE)} with its value: delay=20ms")
            )
            continue
        try:
            field, update_ = amount(what, value)
            update[field] = update_
        except ValueError as error:
            problems.append(Problem("set", 0, f"{what}: {error}"))
    if problems:
        raise InputError(problems)
    return update
