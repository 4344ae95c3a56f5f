"""Turn a topology's schedule into moments: check its links, and read its traces from files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from minigts.errors import InputError
from minigts.language.problems import Finding, did_you_mean, list_names, quote
from minigts.language.quantities import RATE_MBIT
from minigts.language.source import Language
from minigts.topology import disciplines, link_rules, opportunities
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import amount
from minigts.topology.plan.build import link_names
from minigts.topology.read.declared import Draft
from minigts.topology.schedule import LATEST_S, Moment, Step, Trace, moments_by_step
from minigts.topology.time import Time
from minigts.topology.user_files import FileRefused, UserFiles

LEAST_MBIT = RATE_MBIT.parse(RATE_MBIT.least)
"""The least rate of a link, which holds in an interval without any packet where no clock plays a trace."""
_LARGEST_BYTES = 8_000_000
_TRACE = Language("trace", "`seconds,rate`", _LARGEST_BYTES, "")


def read_schedule(
    steps: Sequence[Step], drafted: Draft, beside: UserFiles | None, time: Time
) -> tuple[tuple[Moment, ...], list[Finding]]:
    """The moments in a lab of that time, and the findings. Without `beside` traces are not read, and their steps are
    left out."""
    ends = dict(zip(link_names(drafted.links), (link.ends for link in drafted.links), strict=True))
    carried = _carried(drafted) if time == "virtual" else frozenset()
    findings: list[Finding] = []
    traces: dict[tuple[str, str], Trace] = {}
    for number, step in enumerate(steps):
        where = ("schedule", number)
        if step.link not in ends:
            hint = did_you_mean(step.link, [*ends])
            findings.append(((*where, "link"), f"no link {quote(step.link)}; links are {list_names([*ends])}{hint}"))
        for key, named in (("from", step.sender), ("end", step.end)) if step.link in ends else ():
            if wrong := link_rules.strange_end(named, step.link, ends[step.link]):
                findings.append(((*where, key), wrong))
        if step.trace is not None and beside is not None:
            try:
                traces[step.trace, step.link] = _trace(beside, step.trace, played=step.link in carried)
            except (FileRefused, InputError) as error:
                findings.append(((*where, "trace"), f"{step.trace} {error}"))
    if findings:
        return (), findings
    known = {
        number: step for number, step in enumerate(steps) if step.trace is None or (step.trace, step.link) in traces
    }
    try:
        found = [([*known][place], moment) for place, moment in moments_by_step([*known.values()], traces)]
    except ValueError as error:
        return (), [(("schedule",), str(error))]
    refused = link_rules.schedule_problems(_ruled(drafted), found, time)
    return tuple(moment for _, moment in found), [(("schedule", number), problem) for number, problem in refused]


def _ruled(drafted: Draft) -> Iterator[link_rules.RuledLink]:
    named = zip(link_names(drafted.links), drafted.links, strict=True)
    return (link_rules.RuledLink(name, link.ends, (link.ways.to, link.ways.back), link.mtu) for name, link in named)


def _carried(drafted: Draft) -> frozenset[str]:
    """The links whose wires have the queue, so that nothing but the wire has to know of a trace."""
    named = zip(link_names(drafted.links), drafted.links, strict=True)
    return frozenset(name for name, link in named if not any(map(disciplines.is_in_host, link.ways)))


def _trace(beside: UserFiles, source: str, *, played: bool) -> Trace:
    """A trace; `played` says that a clock plays opportunities by itself. Raises FileRefused, InputError."""
    content = beside.text(source, _TRACE)
    if PurePosixPath(source).suffix.lower() == ".csv":
        return _table(content)
    try:
        runs = opportunities.read(content)
    except ValueError as error:
        raise FileRefused(str(error)) from None
    points, length_s = opportunities.intervals(runs)
    if played:
        return Trace((), length_s, runs)
    rates: list[tuple[float, dict[str, Amount | None]]] = [
        (at_s, {"rate_mbit": max(LEAST_MBIT, float(f"{mbit:g}"))}) for at_s, mbit in points
    ]
    return Trace(rates, length_s)


def _table(content: str) -> Trace:
    """`seconds,rate`, then `0,10mbit`, `0.5,2mbit`, … The last point lasts as long as the one before."""
    lines = csv.reader(io.StringIO(content))
    header = [word.strip() for word in next(lines, [])]
    if len(header) != 2 or header[0] != "seconds" or header[1] not in ("rate", "delay"):
        raise FileRefused("has no heading: its first line must be `seconds,rate` or `seconds,delay`")
    found: list[tuple[float, dict[str, Amount | None]]] = []
    for row in lines:
        try:
            at, written = (word.strip() for word in row)
            at_s = float(at)
            update = dict([amount(header[1], written)])
        except ValueError as error:
            raise FileRefused(f"line {lines.line_num}: {error}; write it as in 0.5,{_EXAMPLES[header[1]]}") from None
        if not (found[-1][0] < at_s if found else at_s >= 0) or at_s > LATEST_S:
            raise FileRefused(f"line {lines.line_num}: {at} s: times must ascend, to a day at the most")
        found.append((at_s, update))
    if not found:
        raise FileRefused("has no points")
    return Trace(found, found[-1][0] + (found[-1][0] - found[-2][0] if len(found) > 1 else 1.0))


_EXAMPLES = {"rate": "10mbit", "delay": "40ms"}
