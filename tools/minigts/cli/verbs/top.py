"""`minigts top`: a lab at work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Interval, LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import tables

if TYPE_CHECKING:
    from rich.console import Group

    from minigts.lab import Lab
    from minigts.lab.usage import Activity, DirectionUsage, Load

verb = Verb(LABS, 230)


@verb.command()
def top(
    lab: WhichLab = None,
    named: LabName = None,
    interval_s: Interval = 1.0,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after this many readings.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each reading.")] = False,
) -> None:
    """Show a lab at work, until ctrl-c: what each link carries and drops, what hosts use. Changes nothing.

    Rates are by the lab's clock. Virtual time stands still while nobody uses the lab.

    Example:  minigts top

    Example:  minigts top --json --every 5 >log
    """
    from minigts import lab as labs

    opened = labs.open_lab(which(lab, named))
    seen = _looks(opened, interval_s, count)
    with suppress(KeyboardInterrupt):
        if as_json:
            for each in seen:
                typer.echo(_line(each))
        elif sys.stdout.isatty():
            _refreshed(opened, seen)
        else:
            for each in seen:
                _print(opened, each)


def _looks(lab: Lab, interval_s: float, count: int | None) -> Iterator[Activity]:
    from minigts.lab import usage

    before = usage.read(lab)
    done = 0
    while count is None or done < count:
        time.sleep(interval_s)
        after = usage.read(lab)
        yield usage.activity_between(lab, before, after)
        before, done = after, done + 1


def _line(activity: Activity) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(activity))


def _refreshed(lab: Lab, seen: Iterator[Activity]) -> None:
    from rich.live import Live

    with Live(console=console.out(), auto_refresh=False) as live:
        for each in seen:
            live.update(_shown(lab, each), refresh=True)


FLOWS = ("link", "from", "to", ">Mbit/s", ">of its rate", ">frames/s", ">queue", ">dropped", ">lost", ">RTT", "")

WITHOUT = ("frames/s", "of its rate", "RTT", "queue")
"""The columns that a narrow window leaves out, in this order."""

LOADS = ("host", ">processor", ">memory")


def _shown(lab: Lab, activity: Activity) -> Group:
    from rich.console import Group

    width = console.out().width
    flows = tables.table_of_width(FLOWS, map(_flow, activity.flows), width, optional=WITHOUT)
    loads = tables.table_of_width(LOADS, map(_load, activity.loads), width)
    return Group(_passed(lab, activity), flows, *([loads] if activity.loads else []))


def _print(lab: Lab, activity: Activity) -> None:
    tables.show_table(_passed(lab, activity), FLOWS, map(_flow, activity.flows), optional=WITHOUT)
    if activity.loads:
        tables.show_table("", LOADS, map(_load, activity.loads))


def _passed(lab: Lab, activity: Activity) -> str:
    return f"lab {lab.name}: {activity.seconds:.3f} s of {lab.plan.time} time"


def _load(load: Load) -> tuple[str, ...]:
    return (
        load.host,
        "free" if load.processor is None else f"{load.processor:.0%}",
        f"{load.memory_bytes / 2**20:.0f} of {load.memory_total_bytes / 2**20:.0f} MiB",
    )


def _flow(flow: DirectionUsage) -> tuple[str, ...]:
    share = f"{flow.mbit / flow.rate_mbit:.0%}" if flow.rate_mbit else ""
    queue = f"{flow.queued_bytes / 1000:.1f} kB" if flow.rate_mbit else ""
    rates = (f"{flow.mbit:.2f}", share, f"{flow.frames:.0f}", queue)
    rtt = "" if flow.rtt_ms is None else console.ms(flow.rtt_ms)
    return (flow.link, flow.source, flow.target, *rates, str(flow.dropped), str(flow.lost), rtt, _state(flow))


def _state(flow: DirectionUsage) -> str:
    words = [
        flow.outage,
        f"{flow.marked} marked (ECN)" if flow.marked else "",
        f"hosts had no room for {flow.overrun}" if flow.overrun else "",
    ]
    return ", ".join(filter(None, words))
