"""How seeds are shown: the faults that they draw, what came of them, groups of failures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import typer

from minigts.foreign import printable
from minigts.language.figures import digits, duration

if TYPE_CHECKING:
    from minigts.explore.exploration import ExplorationRequest
    from minigts.explore.outcome import Outcome
    from minigts.explore.work import Exploration

SHOWN_SEEDS = 3
"""How many seeds' faults a dry run shows."""
MOST_LISTED = 12
"""How many seeds of a group are listed."""


def show_faults(asked: ExplorationRequest) -> None:
    """Print the faults of the first seeds."""
    from minigts.explore import draws
    from minigts.explore import faults as plans

    typer.echo(f"{asked.last - asked.first + 1} seeds of {asked.test.in_words} on {asked.topology}, {asked.provider}")
    if not asked.faults:
        typer.echo("no faults: name a plan of them with --faults FILE")
        return
    read = plans.parse(asked.faults, asked.faults_file, asked.plan)
    for seed in range(asked.first, min(asked.first + SHOWN_SEEDS, asked.last + 1)):
        found = draws.draw(read, asked.plan, seed)
        typer.echo(f"seed {seed}: {plans.faults_line(found)}")
        for fault in found:
            typer.echo(f"{fault.at_s:12.6f} s  {fault.in_words}, for {digits(fault.for_s, 6)} s")


def seed_line(outcome: Outcome) -> str:
    """`seed 17 failed in 42 s of the lab's time: test_x: 3 of 40 are lost`"""
    why = f": {printable(outcome.detail.splitlines()[0])[:160]}" if outcome.detail else ""
    return f"seed {outcome.name} {outcome.verdict} after {digits(outcome.lab_s)} s of the lab's time{why}"


def show_outcomes(
    place: Path, exploration: Exploration, outcomes: Collection[Outcome], of_tails: Collection[Outcome] = ()
) -> None:
    """Print how many seeds and tails passed, groups of the others, what each costs, and how to have one again."""
    from minigts.explore.outcome import count_verdicts, group_failures

    total = exploration.last - exploration.first + 1
    groups = group_failures([*outcomes, *of_tails])
    left = f", {total - len(outcomes)} not taken yet" if len(outcomes) < total else ""
    typer.echo(f"{count_verdicts(outcomes)}{left}")
    if of_tails:
        typer.echo(count_verdicts(of_tails, "tail"))
    for (verdict, why), seeds in groups.items():
        typer.echo(f"  {len(seeds)} × {verdict}: {printable(why)}")
        typer.echo(f"      {_listed(seeds)}")
    if outcomes:
        real_s = median(each.real_s for each in outcomes)
        typer.echo(
            f"a seed took {digits(real_s)} s of this machine's time, of which the lab's own were "
            f"{duration(median(each.lab_s for each in outcomes))} (medians)"
        )
    if of_tails:
        typer.echo(f"a tail took {digits(median(each.real_s for each in of_tails))} s (median)")
    if groups:
        first = next(iter(groups.values()))[0]
        typer.echo(f"have one again: minigts replay {place} --seed {first}")


def _listed(seeds: Sequence[str]) -> str:
    """`seeds 3, 17, 41/2`"""
    more = f", and {len(seeds) - MOST_LISTED} more" if len(seeds) > MOST_LISTED else ""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds[:MOST_LISTED])}{more}"
