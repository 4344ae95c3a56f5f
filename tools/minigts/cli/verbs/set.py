"""`minigts set`: a link's settings, changed under traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from minigts.cli import completion, console
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError, Problem

if TYPE_CHECKING:
    from minigts.topology.setting import Amount

verb = Verb(LABS, 150)


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


@verb.command(cls=_NamesSettings)
def set_(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="As `status` names it: ams-bra.", autocompletion=completion.link_names)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT=VALUE...",
            help="SETTINGS, in the topology language's units: delay=20ms loss=1%; declared: as in the topology.",
            autocompletion=completion.settings,
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST", help="Only what this end sends.", autocompletion=completion.hosts),
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
    change = labs.update_settings(opened, link, update, sender)
    name = links.link_named(opened.plan, link).name
    console.note(f"{name} is set: {change.in_words}" if change.in_words else f"{name} is as declared")


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
