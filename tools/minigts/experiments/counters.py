"""Parses the output of /proc, cgroups, stress-ng and ethtool into numbers with units. Pure; raises ParseError."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from minigts.machine.proc import USER_HZ
from minigts.tools.base import ParseError, complaint, number

_STRESS = re.compile(
    r"^stress-ng: (?:metrc|info): *\[\d+\] (\w[\w-]*) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) ", re.MULTILINE
)
_FEATURE = re.compile(r"^[ \t]{0,20}([\w-]+): (on|off)( \[fixed\])?(?: \[.*\])?$", re.MULTILINE)
_DEVICE = re.compile(r"^device (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class ProcessorUse:
    """Per cent of one processor over the time watched: medians over the intervals.

    `host_percent` is all that was not idle, `host_s` its sum in seconds over the whole time watched.
    `groups_percent` has each control group that used any.
    """

    host_percent: float
    host_s: float
    groups_percent: Mapping[str, float]
    intervals: int


@dataclass(frozen=True)
class Stressed:
    """The run of one stressor."""

    stressor: str
    operations: int
    seconds: float
    user_s: float
    system_s: float


@dataclass(frozen=True)
class Offload:
    """One offload of a network device; a fixed one cannot be switched."""

    on: bool
    fixed: bool


def processor_use(text: str) -> ProcessorUse:
    """Lines of the watcher in `sample_steps.py`, a block for each moment:

        @ 1234.56
        stat cpu 647 0 38 470 37 0 0 0 0 0
        measured
        cgroup docker/045a usage_usec 123456

    or, for processes of the outer machine, `process 12.34` (seconds) in place of `stat` and `cgroup`. Where some
    moments are marked as `measured`, per cents are those of the time between two such moments. Raises ParseError.
    """
    watched = _intervals(text)
    pairs = watched
    if any(moment.measured for pair in watched for moment in pair):
        pairs = [(a, b) for a, b in watched if a.measured and b.measured]
    if not pairs:
        raise ParseError("counters: fewer than two moments")
    hosts = [_percent(a, b) for a, b in pairs]
    groups: dict[str, list[float]] = {}
    for a, b in pairs:
        for name in a.groups_s.keys() & b.groups_s.keys():
            groups.setdefault(name, []).append(100 * (b.groups_s[name] - a.groups_s[name]) / (b.at_s - a.at_s))
    used = {name: statistics.median(values) for name, values in groups.items()}
    return ProcessorUse(
        host_percent=max(0.0, statistics.median(hosts)),
        host_s=max(0.0, watched[-1][1].busy_s - watched[0][0].busy_s),
        groups_percent={name: value for name, value in sorted(used.items()) if value > 0},
        intervals=len(pairs),
    )


def processor_over_time(text: str) -> tuple[tuple[float, float], ...]:
    """The same lines as pairs of seconds and per cent, one for each interval, at its middle. The first moment that is
    marked as `measured` is 0; without one there are none.
    """
    pairs = _intervals(text)
    began = next((moment.at_s for pair in pairs for moment in pair if moment.measured), None)
    if began is None:
        return ()
    return tuple((round((a.at_s + b.at_s) / 2 - began, 4), max(0.0, _percent(a, b))) for a, b in pairs)


@dataclass(frozen=True)
class _Moment:
    """The processor time used until a moment, in seconds, by all and by each control group."""

    at_s: float
    busy_s: float
    groups_s: Mapping[str, float]
    measured: bool


def _percent(a: _Moment, b: _Moment) -> float:
    return 100 * (b.busy_s - a.busy_s) / (b.at_s - a.at_s)


def _intervals(text: str) -> list[tuple[_Moment, _Moment]]:
    moments = [_moment(block) for block in text.split("@ ")[1:]]
    # The last block may have been cut off when the watcher was ended.
    whole = [moment for moment in moments if moment is not None]
    return [(a, b) for a, b in itertools.pairwise(whole) if b.at_s > a.at_s]


def _moment(block: str) -> _Moment | None:
    lines = block.splitlines()
    at_s, busy_s, groups_s = number(lines[0] if lines else "", "time"), None, {}
    for line in lines[1:]:
        words = line.split()
        if words[:2] == ["stat", "cpu"] and len(words) >= 10:
            ticks = [number(word, "stat") for word in words[2:10]]
            busy_s = (sum(ticks) - ticks[3] - ticks[4]) / USER_HZ
        elif words[:1] == ["process"] and len(words) == 2:
            busy_s = number(words[1], "process")
        elif words[:1] == ["cgroup"] and len(words) == 4 and words[2] == "usage_usec":
            groups_s[words[1]] = number(words[3], "usage_usec") / 1e6
    return None if busy_s is None else _Moment(at_s, busy_s, groups_s, "measured" in lines)


def stress_ng(stdout: str, stderr: str = "") -> Stressed:
    """`stress-ng --metrics-brief`, 0.15 to 0.19, on either stream:

        stress-ng: metrc: [1182] cpu                1098      1.02      0.94      0.01      1071.62        1155.79

    Raises ParseError.
    """
    found = _STRESS.search(stdout) or _STRESS.search(stderr)
    if not found:
        raise ParseError(f"stress-ng: {complaint(stderr) or complaint(stdout) or 'printed nothing'}")
    real, user, system = (number(text, "secs") for text in found.groups()[2:])
    return Stressed(found[1], int(number(found[2][:15], "bogo ops")), real, user, system)


def ethtool_features(stdout: str, stderr: str = "") -> Mapping[str, Offload]:
    """`ethtool -k`: lines `tcp-segmentation-offload: off [fixed]`, indented ones too. Raises ParseError."""
    found = {name: Offload(state == "on", bool(fixed)) for name, state, fixed in _FEATURE.findall(stdout)}
    if not found:
        raise ParseError(f"ethtool: {complaint(stderr) or complaint(stdout) or 'printed nothing'}")
    return found


def device(stdout: str) -> str:
    """The interface that the output names in its line `device eth0`; empty without such a line."""
    found = _DEVICE.search(stdout)
    return found[1] if found else ""
