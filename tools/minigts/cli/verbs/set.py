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
from minigts.topology.plan import link_names

if TYPE_CHECKING:
    from minigts.topology.link_setting import Amount

verb = Verb(LABS, 150)


class _NamesSettings(TyperCommand):
    """A verb whose help lists the settings of a link in place of SETTINGS; the list is imported only for help."""

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
        str,
        typer.Argument(metavar="LINK", help="The link's name, such as ams-bra.", autocompletion=completion.link_names),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT=VALUE...",
            help="SETTINGS, with units as in a topology: delay=20ms loss=1%; declared: as the topology has it.",
            autocompletion=completion.settings,
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="HOST",
            help="Only the direction in which this host sends.",
            autocompletion=completion.hosts,
        ),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Set everything as the topology declares it.")] = False,
    lab: LabName = None,
) -> None:
    """Change settings of a link under traffic, while its lab is up: connections go on. Other settings stay.

    The delay is one-way. A change lasts, also over a restart of the link's hosts, until the next one; check measures
    the link against what is set, and status names it.

    Example:  minigts set ams-bra delay=20ms loss=1%

    Example:  minigts set ams-bra rate=10mbit --from ams

    Example:  minigts set ams-bra loss=2% burst=8packets
    """
    from minigts import lab as labs
    from minigts.topology.link_setting import DECLARED
    from minigts.topology.link_settings import SETTABLE

    if reset == bool(settings):
        raise InputError("set: name what is to be set, as in delay=20ms, or --reset")
    if settings and settings[0] in SETTABLE:
        value = settings[1] if len(settings) > 1 and "=" not in settings[1] else "VALUE"
        raise InputError(f"set: a setting and its value are one word: {settings[0]}={value}")
    if settings and "=" not in settings[0]:
        link_names.require_one_name(labs.open_lab(lab).plan, link, settings[0])
    update = _update([f"{what}={DECLARED}" for what in SETTABLE] if reset else settings or [])
    opened = labs.open_lab(lab)
    change = labs.update_settings(opened, link, update, sender)
    name = link_names.link_named(opened.plan, link).name
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
