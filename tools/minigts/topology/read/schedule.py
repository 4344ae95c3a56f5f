"""Turn a topology's schedule into moments: check its links, and read its traces from files."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from minigts.errors import InputError
from minigts.language.problems import Finding, did_you_mean, listed, shown
from minigts.language.quantities import RATE_MBIT
from minigts.language.source import Language
from minigts.topology.link_settings import amount
from minigts.topology.plan.build import link_names
from minigts.topology.read.draft import Draft
from minigts.topology.schedule import LATEST_S, Moment, Points, Step, moments
from minigts.topology.user_files import FileRefused, UserFiles

OPPORTUNITY_BYTES = 1500
"""The packet that each line of a mahimahi trace lets pass in its millisecond (mm-link(1))."""
BIN_MS = 100
"""The interval over which these packets are counted to give a rate."""
LEAST_MBIT = RATE_MBIT.parse(RATE_MBIT.least)
"""The least rate of a link, which holds in an interval without any packet."""
_LARGEST_BYTES = 8_000_000
_TRACE = Language("trace", "`seconds,rate`", _LARGEST_BYTES, "")


def timed(steps: Sequence[Step], drafted: Draft, beside: UserFiles | None) -> tuple[tuple[Moment, ...], list[Finding]]:
    """The moments, and the findings. Without `beside` traces are not read, and their steps are left out."""
    ends = dict(zip(link_names(drafted.links), (link.ends for link in drafted.links), strict=True))
    findings: list[Finding] = []
    traces: dict[str, tuple[str, Points]] = {}
    for number, step in enumerate(steps):
        where = ("schedule", number)
        if step.link not in ends:
            hint = did_you_mean(step.link, [*ends])
            findings.append(((*where, "link"), f"no link {shown(step.link)}; links are {listed([*ends])}{hint}"))
        elif step.sender is not None and step.sender not in ends[step.link]:
            either = " and ".join(ends[step.link])
            findings.append(((*where, "from"), f"{shown(step.sender)} is no end of {step.link}: {either} are"))
        if step.trace is not None and beside is not None and step.trace not in traces:
            try:
                traces[step.trace] = _trace(beside, step.trace)
            except (FileRefused, InputError) as error:
                findings.append(((*where, "trace"), f"{step.trace} {error}"))
    if findings:
        return (), findings
    try:
        known = [step for step in steps if step.trace is None or step.trace in traces]
        return moments(known, traces), []
    except ValueError as error:
        return (), [(("schedule",), str(error))]


def _trace(beside: UserFiles, source: str) -> tuple[str, Points]:
    """What a trace sets, and its points. Raises FileRefused, InputError."""
    content = beside.text(source, _TRACE)
    found = _table(content) if PurePosixPath(source).suffix.lower() == ".csv" else ("rate", _opportunities(content))
    if not found[1]:
        raise FileRefused("has no points")
    return found


def _table(content: str) -> tuple[str, Points]:
    """`seconds,rate`, then `0,10mbit`, `0.5,2mbit`, …"""
    lines = csv.reader(io.StringIO(content))
    header = [word.strip() for word in next(lines, [])]
    if len(header) != 2 or header[0] != "seconds" or header[1] not in ("rate", "delay"):
        raise FileRefused("has no heading: its first line must be `seconds,rate` or `seconds,delay`")
    found: list[tuple[float, str]] = []
    for row in lines:
        try:
            at, written = (word.strip() for word in row)
            at_s = float(at)
            amount(header[1], written)
        except ValueError as error:
            raise FileRefused(f"line {lines.line_num}: {error}; write it as in 0.5,{_EXAMPLES[header[1]]}") from None
        if not (found[-1][0] < at_s if found else at_s >= 0) or at_s > LATEST_S:
            raise FileRefused(f"line {lines.line_num}: {at} s: times must ascend, to a day at the most")
        found.append((at_s, written))
    return header[1], found


_EXAMPLES = {"rate": "10mbit", "delay": "40ms"}


def _opportunities(content: str) -> Points:
    """The points of a mahimahi trace: each line is a millisecond, and the lines in an interval give its rate."""
    counts: Counter[int] = Counter()
    last_ms = 0
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip().isascii() or not line.strip().isdigit() or len(line.strip()) > 9:
            raise FileRefused(f"line {number}: {shown(line[:40])} is no millisecond, as mahimahi's traces have")
        at_ms = int(line)
        if at_ms < last_ms or at_ms > 1000 * LATEST_S:
            raise FileRefused(f"line {number}: {at_ms} ms is before the line above, or after a day")
        last_ms = at_ms
        counts[at_ms // BIN_MS] += 1
    bins = range(max(1, -(-last_ms // BIN_MS))) if counts else range(0)
    rates = (max(LEAST_MBIT, counts[number] * OPPORTUNITY_BYTES * 8 / (BIN_MS * 1000)) for number in bins)
    return [(number * BIN_MS / 1000, f"{mbit:g}mbit") for number, mbit in zip(bins, rates, strict=True)]
