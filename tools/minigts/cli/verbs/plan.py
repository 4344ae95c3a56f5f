"""`minigts plan`: what a topology file means."""

from __future__ import annotations

from pathlib import Path

import typer

from minigts.cli import console
from minigts.cli.options import AsJson, Provider, TimeOption, Topology, read_plan
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import plan as shown_plan
from minigts.providers import DEFAULT

verb = Verb(LABS, 10)


@verb.command()
def plan(
    topology: Topology,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    as_json: AsJson = False,
) -> None:
    """Draw a topology file, and show its plan: addresses, links, expected round trips. Starts nothing.

    --json prints the whole plan with its routes; the same file gives the same bytes. Where the file sets no time, the
    provider decides it: `uml` has virtual time.

    Example:  minigts plan topologies/chain6.yaml
    """
    from minigts.lessons import hidden_figures
    from minigts.providers import registry
    from minigts.session.plans import foreseen
    from minigts.topology.plan.plan import json_pieces

    planned = read_plan(topology, provider, time, any_kernel=True)
    hiding = hidden_figures.why_hidden(planned.name, topology.parent)
    if as_json:
        for piece in json_pieces(planned, with_paths=hiding is None):
            typer.echo(piece, nl=False)
    else:
        shown_plan.show_plan(planned, hiding)
        if planned.time == "real" or registry.has_virtual_time(provider):  # any plan may be looked at
            console.note_all(foreseen(planned, registry.make(provider, Path(), planned.time), planned.overlay))
    if hiding is not None:
        console.note(hiding)
