"""`minigts compare`: two runs, or the providers, held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console, files
from minigts.cli.options import TimeOption
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.views import findings as shown_findings
from minigts.errors import EnvironmentLacks, InputError
from minigts.topology.time import Time

verb = Verb(EXPERIMENTS, 390)


@verb.command()
def compare(
    a: Annotated[
        Path | None, typer.Argument(metavar="A", help="A results folder, or a campaign's.", show_default=False)
    ] = None,
    b: Annotated[
        Path | None, typer.Argument(metavar="B", help="The one to hold against it.", show_default=False)
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the page goes.", show_default="B/compared-with-A.html")
    ] = None,
    providers: Annotated[
        Path | None, typer.Option(metavar="TOPOLOGY", help="Measure this file on every provider that works here.")
    ] = None,
    on: Annotated[list[str] | None, typer.Option(help="With --providers: on these only; repeatable.")] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="With --providers: how often.")] = 5,
    time: TimeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --providers: every sample, as JSON.")] = False,
) -> None:
    """Say what differs between two runs, or two campaigns, by how much, and whether it matters.

    Exit 1 if a figure differs by what matters, as tested; 0 if none does. Needs no hosts.
    With --providers instead of runs: what one topology costs on each provider, and how exact it is there. In real time,
    which all of them have, unless the file or --time says virtual.

    Example:  minigts compare results/multihop-20261121-100000 results/multihop-20261122-100000

    Example:  minigts compare --providers topologies/pair.yaml
    """
    if providers is not None:
        if a or b or page:
            raise InputError("compare: give two results folders, or --providers TOPOLOGY; not both")
        _compare_providers(providers, on or [], rounds, time, as_json=as_json)
        return
    if a is None or b is None:
        raise InputError("compare: give two results folders, or --providers TOPOLOGY")
    compare_runs(a, b, page)


def compare_runs(a: Path, b: Path, page: Path | None, otherwise: int = 0) -> None:
    """Show and write the comparison. Exits 1 if a figure differs by what matters, else by the code `otherwise`."""
    from minigts.report import compare as comparing
    from minigts.report import comparison_page as shown
    from minigts.report import missing

    found = comparing.compare(a, b)
    lacking = missing()
    written = None if lacking else shown.page(found, page or b / f"compared-with-{a.resolve().name}.html")
    shown_findings.show_comparison(comparing.headline(found), shown.tables(found), shown.notes(found))
    for line in lacking:
        console.note(f"minigts: no page is written: {line}")
    if written:
        typer.echo(written)
    raise typer.Exit(1 if found.differs else otherwise)


def _compare_providers(topology: Path, on: Sequence[str], rounds: int, time: Time | None, *, as_json: bool) -> None:
    from dataclasses import asdict

    from minigts.experiments import provider_comparison
    from minigts.providers import registry
    from minigts.topology.read.load import load

    plan = load(files.found(topology, files.TOPOLOGIES), time=time)
    wanted = on or registry.names()
    for name in wanted:
        registry.make(name, Path(), plan.time)
    with console.progress() as say:
        found = provider_comparison.compare(plan, wanted, rounds, say)
    if as_json:
        console.print_json(asdict(found))
    else:
        shown_findings.show_providers(found)
    if not found.samples:
        raise EnvironmentLacks("none of these providers works here; minigts doctor says more")
