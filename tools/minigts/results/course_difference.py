"""Where two courses of a lab part: by their marks to an interval of the lab's time, by their recordings to the event.

Of each chain the marks of both courses are compared at the moments that both know. What the one host does differently
reaches the others later, by a link's delay at the earliest: so the earliest chain is the one to look at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from minigts.dataplane import frame_words
from minigts.errors import InputError, Problem
from minigts.foreign import printable
from minigts.language.figures import digits
from minigts.language.interface_names import port_name
from minigts.providers.course import MOST_NS, NS_PER_S, RECORD, EventChain, HostCourse, RecordedCourse
from minigts.results import courses
from minigts.results.courses import LabCourse
from minigts.results.folder import read_bytes

Way = Literal["to", "from"]
WAYS: tuple[Way, ...] = ("from", "to")
HEADER = b"minigts course 1 "
MOST_NAMED = 6
"""How many hosts are named that part in the same interval."""
LONGEST_TEXT = 160
_WORDS: Mapping[bytes, tuple[Way, int, bool]] = {
    b"sent": ("from", 7, True),
    b"overloaded": ("from", 2, True),
    b"output": ("from", 1, True),
    b"set": ("from", 1, True),
    b"got": ("to", 5, False),
    b"refused": ("to", 5, False),
    b"input": ("to", 1, True),
    b"started": ("to", 0, False),
    b"ended": ("to", 0, False),
    b"paused": ("to", 0, False),
    b"resumed": ("to", 0, False),
}
"""Of each kind of event: its chain, how many numbers it has, and whether it has content: provision/clock/src/course.rs
says what they are."""
_KINDS = {1: "command", 2: "input of a command", 3: "end of a command", 4: "size of a terminal", 12: "question"}
_ANSWERS = {5: "output of a command", 6: "error output of a command", 7: "end of a command", 8: "receipt"}
_HEAD_OF_A_FRAME = 9
Chains: TypeAlias = "dict[tuple[int, Way], list[bytes]]"


@dataclass(frozen=True)
class Interval:
    """An interval of a lab's time in which chains part, by their hosts and ways."""

    from_ns: int
    until_ns: int
    chains: tuple[tuple[str, Way], ...]


@dataclass(frozen=True)
class Parting:
    """The first event in which two courses part: what either has in its place."""

    moment_ns: int
    host: str
    events: tuple[str, str]
    later: tuple[str, ...]
    """The other hosts that part, in the order of time, each with its moment in words."""


def interval(one: RecordedCourse, other: RecordedCourse) -> Interval | None:
    """The first interval in which the courses part; None if they are the same."""
    if one.fingerprint == other.fingerprint:
        return None
    found: dict[tuple[int, int], list[tuple[str, Way]]] = {}
    ours, theirs = ({host.name: host for host in each.hosts if host.name} for each in (one, other))
    for name in dict.fromkeys((*ours, *theirs)):
        first, second = ours.get(name), theirs.get(name)
        for way in WAYS:
            chains = [None if host is None else host.from_ if way == "from" else host.to for host in (first, second)]
            if (at := _apart(*chains)) is not None:
                found.setdefault(at, []).append((name, way))
    if not found:  # the fingerprint has unused numbers of hosts, too
        return None
    first_at = min(found)
    return Interval(*first_at, tuple(found[first_at]))


def _apart(one: EventChain | None, other: EventChain | None) -> tuple[int, int] | None:
    """The first interval after which two chains are not the same."""
    if one is not None and other is not None and (one.hash, one.count) == (other.hash, other.count):
        return None
    every = math.lcm(*(chain.every_ns for chain in (one, other) if chain is not None))
    states = [_states(chain, every) for chain in (one, other)]
    now: list[object] = [None, None]
    for moment in sorted({*states[0], *states[1]}):
        now = [state.get(moment, before) for state, before in zip(states, now, strict=True)]
        if now[0] != now[1]:
            return moment - every, moment
    return None


def _states(chain: EventChain | None, every_ns: int) -> dict[int, tuple[str, int]]:
    """The hash and number of events at each moment that is a multiple of `every_ns` and had events before it."""
    marks = () if chain is None else chain.timed_marks()
    return {-(-mark.until_ns // every_ns) * every_ns: (mark.hash, mark.events) for mark in marks}


def parting(one: LabCourse, other: LabCourse, recordings: tuple[Path, Path]) -> Parting | None:
    """The first event in which two recorded courses part; None where it is in none of the recordings. Raises InputError
    for a file that is no recording."""
    read = [_Recording.read(path, each.course) for path, each in zip(recordings, (one, other), strict=True)]
    from_ns = max(each.from_ns for each in read)
    until_ns = min(*(each.until_ns for each in read), one.course.now_ns + 1, other.course.now_ns + 1)
    hosts = one.course.hosts
    found = sorted(
        (
            event
            for key in dict.fromkeys((*read[0].chains, *read[1].chains))
            if (event := _first(*(each.of(key, from_ns, until_ns) for each in read))) is not None
        ),
        key=lambda pair: (_moment(pair), _place(pair)),
    )
    if not found:
        return None
    first = found[0]
    host = _host(first)
    later: dict[str, str] = {}
    for pair in found[1:]:
        name = _name(hosts, _host(pair))
        if name != _name(hosts, host):
            later.setdefault(name, f"{name} at {seconds(_moment(pair))}")
    at = _differs_at(first)
    words = [event_line(line, hosts, at) if line else "nothing more" for line in first]
    return Parting(_moment(first), _name(hosts, host), (words[0], words[1]), tuple(later.values())[:MOST_NAMED])


Pair: TypeAlias = "tuple[bytes | None, bytes | None]"


def _first(one: Sequence[bytes], other: Sequence[bytes]) -> Pair | None:
    """The first two lines that are not the same."""
    for first, second in zip(one, other, strict=False):
        if first != second:
            return first, second
    if len(one) == len(other):
        return None
    at = min(len(one), len(other))
    return (one[at], None) if len(one) > at else (None, other[at])


def _differs_at(pair: Pair) -> int:
    """How many bytes of the content of both are the same."""
    one, other = (b"" if line is None else _content(line) for line in pair)
    return sum(1 for _ in itertools.takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def _content(line: bytes) -> bytes:
    words = line.split(b" ")
    return bytes.fromhex(words[-1].decode("ascii", "replace")) if _WORDS[words[2]][2] else b""


def _moment(pair: Pair) -> int:
    return min(_time(line) for line in pair if line is not None)


def _host(pair: Pair) -> int:
    """The host of the earlier line."""
    line = min((line for line in pair if line is not None), key=_time)
    return int(line.split(b" ", 2)[1])


def _place(pair: Pair) -> tuple[bool, int]:
    """Of the same moment, what a host sends is a cause, and what comes to one is a cause only where it is no frame."""
    kinds = {line.split(b" ", 3)[2] for line in pair if line is not None}
    return bool(kinds & {b"got", b"refused"}), _host(pair)


def _time(line: bytes) -> int:
    return int(line[: line.index(b" ")])


@dataclass(frozen=True)
class _Recording:
    """A recording's lines by chain, in the order of each, and the moments from and before which nothing is missing."""

    chains: Chains
    from_ns: int
    until_ns: int

    @classmethod
    def read(cls, path: Path, course: RecordedCourse) -> _Recording:
        lines = read_bytes(path).split(b"\n")
        head, number = lines[0].split(b" "), 1
        try:
            if not lines[0].startswith(HEADER):
                raise ValueError(lines[0][:40])
            from_ns, until_ns = int(head[3]), int(head[4])
            chains: Chains = {}
            for number, line in enumerate(lines[1:-1], start=2):  # noqa: B007 - the error names it
                words = line.split(b" ")
                way, count, content = _WORDS[words[2]]
                if len(words) != 3 + count + 2 * content or not all(word.isdigit() for word in words[:2]):
                    raise ValueError(line[:40])
                chains.setdefault((int(words[1]), way), []).append(line)
        except (ValueError, IndexError, KeyError) as error:
            raise InputError([Problem(str(path), number, "is no line of a recording of a lab's course")]) from error
        recorded = course.recording
        whole_ns = MOST_NS if recorded is None or recorded.whole_before_ns is None else recorded.whole_before_ns
        return cls(chains, from_ns, min(until_ns, whole_ns))

    def of(self, key: tuple[int, Way], from_ns: int, until_ns: int) -> list[bytes]:
        return [line for line in self.chains.get(key, ()) if from_ns <= _time(line) < until_ns]


def event_line(line: bytes, hosts: Sequence[HostCourse], at: int = 0) -> str:
    """A recorded event in words: `h1 eth1 sent TCP 10.0.0.1:5001 > … (1514 bytes), which arrives at 3.1 s`. Of a long
    text it has what is around the byte `at`."""
    words = line.split(b" ")
    host, kind = _name(hosts, int(words[1])), words[2]
    numbers = [int(word) for word in words[3 : 3 + _WORDS[kind][1]]]
    content = _content(line)
    if kind in (b"input", b"output"):
        said = _said(content, _KINDS if kind == b"input" else _ANSWERS, at)
        what = f"was sent by minigts: {said}" if kind == b"input" else f"sent to minigts: {said}"
    elif numbers:
        what = f"{_port(hosts, int(words[1]), numbers[0])} {_of_a_port(kind, numbers, content, hosts)}"
    else:
        what = kind.decode()
    return f"at {seconds(int(words[0]))} {host} {what}"


def _of_a_port(kind: bytes, numbers: Sequence[int], content: bytes, hosts: Sequence[HostCourse]) -> str:
    if kind == b"set":
        return f"was set: {_text(content)}"
    if kind in (b"got", b"refused"):
        sender = f"{_name(hosts, numbers[2])} {_port(hosts, *numbers[2:4])}"
        verb = "got" if kind == b"got" else "had no room for"
        return f"{verb} frame {numbers[4]} of {sender} ({numbers[1]} bytes)"
    frame = f"sent {frame_words.frame_line(content)} ({numbers[1]} bytes)"
    return f"{frame}, {_fate(numbers) if kind == b'sent' else 'for which its modelled processor had no time'}"


def _fate(numbers: Sequence[int]) -> str:
    _, _, _, first, second, dropped, drawn = numbers
    if dropped:
        return "which found the queue full"
    arrives = [seconds(moment) for moment in (first, second) if moment]
    fate = f"which arrives at {' and '.join(arrives)}" if arrives else "which is lost"
    return f"{fate}; random numbers {drawn:016x}"


def _said(content: bytes, kinds: Mapping[int, str], at: int) -> str:
    """A piece of a control line: its first frame's kind (providers/agent/protocol.py), and its text."""
    kind = kinds.get(content[4]) if len(content) >= _HEAD_OF_A_FRAME else None
    if kind is None:
        return _text(content, at)
    return f"{kind}: {_text(content[_HEAD_OF_A_FRAME:], at - _HEAD_OF_A_FRAME)}"


def _text(content: bytes, at: int = 0) -> str:
    first = at - LONGEST_TEXT // 2 if at > LONGEST_TEXT * 3 // 4 else 0
    text = printable(content[first : first + LONGEST_TEXT].decode(errors="replace")).replace("\n", " ")
    return f"…{text}" if first else text


def _name(hosts: Sequence[HostCourse], number: int) -> str:
    return hosts[number].name if number < len(hosts) and hosts[number].name else f"host {number}"


def _port(hosts: Sequence[HostCourse], number: int, port: int) -> str:
    return hosts[number].port(port) if number < len(hosts) else port_name(port + 1)


def seconds(moment_ns: int) -> str:
    """`3.000123456 s`"""
    whole, part = divmod(moment_ns, NS_PER_S)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".") + " s"


def run_differences(a: Path, b: Path) -> tuple[str, ...]:
    """What the courses of two runs, or sweeps, have in common, or where the first lab's parts, in lines. Empty where
    neither has any. Raises InputError for broken files."""
    ours, theirs = courses.labs(a), courses.labs(b)
    if not ours and not theirs:
        return ()
    both = [name for name in ours if name in theirs]
    if not both:
        why = "they have no lab in common" if ours and theirs else "only one of the two has kept any"
        return (f"not compared: {why}",)
    same: list[str] = []
    parted: list[str] = []
    for name in both:
        one, other = (courses.read(*each[name]) for each in (ours, theirs))
        (same if one.course.fingerprint == other.course.fingerprint else parted).append(name)
    first = (parted or same)[0]
    one, other = (courses.read(*each[first]) for each in (ours, theirs))
    kept = (courses.recording_of(*ours[first]), courses.recording_of(*theirs[first]))
    lines = list(difference_lines(one, other, kept))
    if len(both) > 1:
        lines[0] = f"{first}: {lines[0]}"
        lines.append(f"  of {len(both)} labs {len(same)} have the same course in both")
    return tuple(lines)


def difference_lines(
    one: LabCourse, other: LabCourse, recordings: tuple[Path | None, Path | None], again: str = "run both"
) -> Iterator[str]:
    """What two courses have in common, or where they part, in lines. `again` is what is to be done with RECORD."""
    apart = interval(one.course, other.course)
    if apart is None:
        if one.course.fingerprint == other.course.fingerprint:
            what = f"{one.course.events} events in {_span(one.course)} of the lab"
            yield f"the same, {what}: {one.course.fingerprint}"
        else:
            yield "the labs have other numbers of hosts, and else the same course"
        return
    during = dict.fromkeys(each.doing(apart.from_ns) for each in (one, other))
    first, second = recordings
    exact = parting(one, other, (first, second)) if first is not None and second is not None else None
    if exact is not None and exact.moment_ns < apart.until_ns:
        during = dict.fromkeys(each.doing(exact.moment_ns) for each in (one, other))
        yield f"they part at {seconds(exact.moment_ns)} of the lab, on {exact.host}; then: {' | '.join(during)}"
        yield f"  A: {exact.events[0]}"
        yield f"  B: {exact.events[1]}"
        if exact.later:
            yield f"  later: {', '.join(exact.later)}"
        return
    where = ", ".join(f"{way} {name}" for name, way in apart.chains[:MOST_NAMED])
    more = len(apart.chains) - MOST_NAMED
    within = f"between {seconds(apart.from_ns)} and {seconds(apart.until_ns)}"
    yield f"they part {within} of the lab, in what came {where}{f' and {more} more' if more > 0 else ''}"
    yield f"  then: {' | '.join(during)}"
    moments = "..".join(seconds(moment).replace(" ", "") for moment in (apart.from_ns, apart.until_ns))
    yield f"  for the first event, {again} with {RECORD}={moments}"


def _span(course: RecordedCourse) -> str:
    return f"{digits(course.now_ns / NS_PER_S, 6)} s"
