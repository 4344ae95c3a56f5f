"""`minigts compare`: compare two runs, or the providers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console, files
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.views import findings as shown_findings
from minigts.errors import EnvironmentLacks, InputError
from minigts.topology.time import Time

verb = Verb(EXPERIMENTS, 390)


@verb.command()
def compare(
    a: Annotated[
        Path | None, typer.Argument(metavar="A", help="The folder of a run or a campaign.", show_default=False)
    ] = None,
    b: Annotated[
        Path | None, typer.Argument(metavar="B", help="The folder to compare with it.", show_default=False)
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page to write.", show_default="B/compared-with-A.html")
    ] = None,
    providers: Annotated[
        Path | None, typer.Option(metavar="TOPOLOGY", help="Measure this topology on every provider that works here.")
    ] = None,
    on: Annotated[list[str] | None, typer.Option(help="With --providers: only this provider; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="With --providers: the number of rounds.")] = 5,
    time: Annotated[
        Time | None, typer.Option(help="With --providers: real or virtual time. Default: the file's, or real.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --providers: print every sample as JSON.")] = False,
) -> None:
    """Compare two runs or two campaigns: what differs, by how much, and whether it matters. Needs no hosts.

    Exit 1 if a test finds that a figure differs by an amount that matters; 0 if none does.

    Of runs in virtual time it also says whether their labs have had the same course of events, and if not, between
    which moments the two part, and on which host. Where both were run with MINIGTS_RECORD=all, or =3s..4s for these
    moments of the labs, it names the first event.

    With --providers it measures one topology on each provider instead: what the topology costs there, and how exact it
    is. The time is real, which all providers have, unless the file or --time says virtual.

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
    """Print and write the comparison. Exits with 1 if a figure differs by an amount that matters, otherwise with
    `otherwise`."""
    from minigts.report import compare as comparing
    from minigts.report import comparison_page as shown
    from minigts.report import missing

    found = comparing.compare(a, b)
    lacking = missing()
    written = None if lacking else shown.page(found, page or b / f"compared-with-{a.resolve().name}.html")
    lines = [*comparing.headline(found), *comparing.courses(found)]
    shown_findings.show_comparison(lines, shown.tables(found), shown.notes(found))
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

    plan = load(files.find_file(topology, files.TOPOLOGIES), time=time)
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
        raise EnvironmentLacks("none of these providers works here; minigts doctor says why")
