"""`minigts explain`: why a link is as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion
from minigts.cli.options import AsJson, LabName, one_of
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import findings as shown_findings
from minigts.cli.views import plan as shown_plan
from minigts.errors import InputError
from minigts.topology.plan import link_names

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.topology.plan.elements import Link, Path

verb = Verb(LABS, 110)


@verb.command()
def explain(
    link: Annotated[
        str,
        typer.Argument(
            metavar="LINK",
            help="A link's name, such as ams-bra, or one of its hosts, or any host.",
            autocompletion=completion.links,
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]", help="Its other host, or any other host.", autocompletion=completion.neighbours
        ),
    ] = None,
    lab: LabName = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure it now, by echo requests.")] = False,
    as_json: AsJson = False,
) -> None:
    """Explain why a link is as it is: declared, set, shown by its two hosts, measured; and the likely answer.

    It changes nothing. The measured figures are those of the lab's certificate; --measure measures this one link now.
    For two hosts that no link joins it shows the ways between them, there and back.

    Example:  minigts explain ams-bra
    """
    from minigts import lab as labs
    from minigts.fidelity import explanation
    from minigts.lessons import hidden_figures

    opened = labs.open_lab(lab)
    hiding = hidden_figures.why_hidden(opened.plan.name) or hidden_figures.why_fault_hidden(opened)
    if hiding is not None:
        raise InputError(hiding)
    if other is not None and (path := _path_between(opened, link, other)) is not None:
        if measure:
            raise InputError(f"--measure is for one link, and none joins {link} and {other}")
        if as_json:
            typer.echo(path.model_dump_json(indent=2))
        else:
            shown_plan.show_path(opened.plan, path)
        return
    explained = explanation.explain(opened, _link_of(opened, link, other), measuring=measure)
    if as_json:
        typer.echo(explained.model_dump_json(indent=2))
    else:
        shown_findings.show_explanation(explained)


def _path_between(lab: Lab, first: str, second: str) -> Path | None:
    """The path between two hosts; None where a link joins them, or hosts have no routes."""
    hosts = {host.name for host in lab.plan.hosts}
    if not lab.plan.is_routed or first == second or not {first, second} <= hosts:
        return None
    if any({*link.ends} == {first, second} for link in lab.plan.links) or not lab.plan.reaches(first, second):
        return None
    return lab.plan.path(first, second)


def _link_of(lab: Lab, first: str, second: str | None) -> Link:
    """The link by its name, or the only one between two hosts. Raises InputError."""

    if second is None:
        return link_names.link_named(lab.plan, first)
    known = [each.name for each in lab.plan.machines]
    one, *others = link_names.links_between(lab.plan, one_of("host", first, known), one_of("host", second, known))
    if others:
        names = ", ".join(each.name for each in (one, *others))
        raise InputError(f"several links join {first} and {second}: name one of {names}")
    return one
