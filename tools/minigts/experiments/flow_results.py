"""Reads the outputs of flows that ran at the same time: a result for each, and the bottleneck that they share. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from minigts.experiments.matrix import path_between
from minigts.experiments.sample_steps import FLOW, IDLE
from minigts.results.schema import RawSample, Side
from minigts.tools import flows, ping
from minigts.tools.base import ParseError, PathUnderTest
from minigts.tools.flows import FlowResult, FlowsOptions, Member
from minigts.topology.plan.elements import Direction
from minigts.topology.plan.plan import Plan


def results(options: FlowsOptions, raw: RawSample) -> tuple[FlowResult, ...]:
    """What each flow gave, in the order of `FlowsOptions.members`. Raises ParseError, which names the first flow that
    has no result."""
    idle_ms = dict(_idle_ms(raw))
    found = []
    for member, output in _outputs(options, raw):
        measured = flows.parse_flow(options, member, output.stdout, output.stderr)
        if output.code:
            raise ParseError(f"{member.in_words}: the command ended with code {output.code}")
        found.append(FlowResult(member, measured, idle_ms.get((member.source, member.target))))
    return flows.add_shares(found)


def time_series(options: FlowsOptions, raw: RawSample) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Figures over time, by `NAME column`; empty where an output has none."""
    with contextlib.suppress(ParseError):
        return flows.time_series([(member, output.stdout) for member, output in _outputs(options, raw)])
    return {}


def _outputs(options: FlowsOptions, raw: RawSample) -> list[tuple[Member, Side]]:
    """Each flow with its output. Raises ParseError where outputs are missing, as nothing was started."""
    beside = [side for side in raw.around if side.name.startswith(FLOW)]
    idle = [side for side in raw.around if side.name.startswith(IDLE)]
    members = options.members(raw.host, "")
    if len(beside) + 1 != len(members) or not idle:
        raise ParseError(raw.stderr.strip() or f"flows: {len(beside) + 1} outputs of {len(members)} flows")
    first = Side(name=idle[0].name, host=raw.host, code=raw.code, stdout=raw.stdout, stderr=raw.stderr)
    outputs = [first, *beside]
    target = next((_target(side) for member, side in zip(members, outputs, strict=True) if not member.flow.target), "")
    return list(zip(options.members(raw.host, target), outputs, strict=True))


def _target(side: Side) -> str:
    return side.name.rpartition(" ")[2]


def _idle_ms(raw: RawSample) -> Iterator[tuple[tuple[str, str], float]]:
    """The lowest round trip before the flows began, by the ends; without those of which no reply came."""
    for side in raw.around:
        if side.name.startswith(IDLE):
            with contextlib.suppress(ParseError):
                yield (side.host, _target(side)), ping.parse(side.stdout, side.stderr).min_ms


@dataclass(frozen=True)
class Bottleneck:
    """The direction of a link that has the lowest rate for each flow that sends across it. `sharing` are the numbers
    of these flows among all."""

    link: str
    rate_mbit: float
    sharing: tuple[int, ...]


def bottleneck(plan: Plan, members: Sequence[Member]) -> Bottleneck | None:
    """The bottleneck of the flows that send; None where they cross no link with a rate, and where one of them has
    several ways, of which its hosts choose one by its ports."""
    crossing: dict[tuple[str, str], list[int]] = {}
    rates: dict[tuple[str, str], float] = {}
    sending = [member for member in members if member.flow.sends]
    if any(len(path_between(plan, each.source, each.target).each_there) > 1 for each in sending):
        return None
    for number, member in enumerate(members):
        for link, begin, way in _directions(plan, member) if member.flow.sends else ():
            if way.rate_mbit is not None:
                crossing.setdefault((link, begin), []).append(number)
                rates[link, begin] = way.rate_mbit
    found = min(crossing, key=lambda each: rates[each] / len(crossing[each]), default=None)
    return None if found is None else Bottleneck(found[0], rates[found], tuple(crossing[found]))


def _directions(plan: Plan, member: Member) -> Iterator[tuple[str, str, Direction]]:
    """The links on a flow's way, each with the machine at which the flow enters it, and its figures that way."""
    links = {link.name: link for link in plan.links}
    here = member.source
    for name in path_between(plan, member.source, member.target).links:
        link = links[name]
        forth = link.ends[0] == here
        yield name, here, link.ways[0 if forth else 1]
        here = link.ends[1 if forth else 0]


def utilisation_percent(
    plan: Plan, found: Sequence[FlowResult], way_of: Callable[[Member], PathUnderTest]
) -> float | None:
    """What the flows across the bottleneck take of its rate, with their headers, in per cent; None without a rate."""
    narrow = bottleneck(plan, [each.member for each in found])
    if narrow is None:
        return None
    taken = sum(flows.wire_mbit(found[number], way_of(found[number].member)) for number in narrow.sharing)
    return 100 * taken / narrow.rate_mbit
