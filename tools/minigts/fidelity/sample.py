"""How much a certificate measures: every link, or a sample of them; and how long that takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from minigts.topology.plan.elements import Link
    from minigts.topology.plan.plan import Plan

Extent: TypeAlias = Literal["full", "quick"]
"""`quick` reads every setting back, as `full` does, and measures a sample of the links and one path."""
SAMPLE = 5
"""The links that a quick certificate measures."""
PATHS = 1
"""The paths of several links that it measures, the longest first."""
SOURCES = 50
"""It chooses among the paths from so many hosts, the first of the file: a thousand hosts have half a million paths."""

LINK_S = 0.6
"""What a link's round trips take: 120 echo requests, 4 ms apart, and the command."""
FRAME_S = 2e-5
"""What a frame takes of the processor in virtual time: 10 us at both of a link's kernels (docs/decisions/wires.md)."""
FRAME_BITS = 1514 * 8
TCP_S = 2.0
"""For how long TCP fills a link up to 1 Gbit/s, slow start included; more than one link at a time up to 400 Mbit/s."""
FAST_MBIT = 1000.0
"""The rate above which a train of frames measures a link in virtual time; up to it TCP does."""
MOST_AT_ONCE_MBIT = 400.0
"""The most that links measured at once carry together, so that the processor is not the limit."""
LOSSY_S = 3.0
"""1500 echo requests over a link with a loss, 2 ms apart."""


def choose_links(links: Sequence[Link]) -> tuple[Link, ...]:
    """A sample of the links, in their order: among them the slowest and the fastest, and others evenly between."""
    if len(links) <= SAMPLE:
        return tuple(links)
    ordered = sorted(links, key=lambda link: (link.rate_mbit or math.inf, link.rtt_ms, link.index))
    places = {round(number * (len(ordered) - 1) / (SAMPLE - 1)) for number in range(SAMPLE)}
    names = {ordered[place].name for place in places}
    return tuple(link for link in links if link.name in names)


def foreseen_s(plan: Plan, extent: Extent) -> float:
    """About how many seconds of this machine a certificate of the plan takes, where nothing else runs."""
    links = plan.links if extent == "full" else choose_links(plan.links)
    rates_mbit = [link.rate_mbit for link in links if link.rate_mbit is not None and not link.lossy]
    carried_mbit = sum(rate for rate in rates_mbit if plan.time == "real" or rate <= FAST_MBIT)
    if plan.time == "virtual":
        rates_s = TCP_S * carried_mbit * 1e6 / FRAME_BITS * FRAME_S
    else:
        rates_s = TCP_S * math.ceil(carried_mbit / MOST_AT_ONCE_MBIT)
    lossy_s = LOSSY_S * sum(link.lossy for link in links)
    return LINK_S * len(links) + rates_s + lossy_s
