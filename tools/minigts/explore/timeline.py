"""What happened in a course, in the order of time: faults, changes of the lab, the test's own notes.

Only what is the same on every machine is in it, so that two courses of one seed can be compared byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from minigts.lab import events
from minigts.language import documents
from minigts.language.figures import digits

Entry: TypeAlias = Mapping[str, object]
"""An entry: `at_s`, seconds after the test's begin, `event`, and what the event is about."""
FILE = "timeline.jsonl"
NOTE = "note"
"""The event of a test's own note, whose `text` it is."""
ACT, LEFT_OUT = "act", "act left out"
"""The events of what the test itself does to the lab, or leaves out: `number`, from 1 on, and in words `what`."""
FORK, BRANCH = "fork", "branch"
"""The events of a lab that is another one's fork, and of one whose seed has gone on so far, as `tail`."""
SAID = "said"
"""The event of a line of a host's log, which host_logs reads: `host`, `log` and `text`."""
BEGUN, ENDED = "test begun", "test ended"
OF_THE_MACHINE = ("time", "lab_s")
"""Members of a lab's events that are no entries': the machine's time of day, and the clock that `at_s` comes from."""


def lab_entries(rundir: Path, begin: float | datetime, end: float | datetime) -> list[Entry]:
    """The entries of a lab's events from `begin` to `end`: moments of its clock, or in real time of this machine's."""
    found: list[Entry] = []
    for event in events.read(rundir):
        if event.get("event") == FORK:
            continue  # it has the name of a lab
        if event.get("event") == BEGUN:
            found = []  # what came before at the same moment is the lab's own
        moment = event.get("lab_s") if isinstance(begin, float) else _time_of_day(event)
        if isinstance(begin, float) and isinstance(end, float) and isinstance(moment, float | int):
            at_s, last_s = moment - begin, end - begin
        elif isinstance(begin, datetime) and isinstance(end, datetime) and isinstance(moment, datetime):
            at_s, last_s = (moment - begin).total_seconds(), (end - begin).total_seconds()
        else:
            continue
        # An event has its time in whole microseconds.
        if -1e-6 <= at_s <= last_s + 1e-6:
            rest = {name: value for name, value in event.items() if name not in OF_THE_MACHINE}
            found.append({"at_s": max(0.0, round(at_s, 6)), **rest})
    return _until_the_end(sorted(found, key=_place))


def _until_the_end(entries: list[Entry]) -> list[Entry]:
    """Without what the player does after the test's end, which it hears of a little later in real time."""
    ends = [number for number, entry in enumerate(entries, 1) if entry["event"] == ENDED]
    return entries[: ends[0]] if ends else entries


def _place(entry: Entry) -> tuple[float, int]:
    """Of the same moment, what the lab and the player note keeps its order. What the test notes comes after it, since
    two programs write in no fixed order."""
    return moment_of(entry), {BEGUN: 0, NOTE: 2, ACT: 2, LEFT_OUT: 2, ENDED: 3}.get(str(entry["event"]), 1)


def _time_of_day(event: Entry) -> datetime | None:
    try:
        return datetime.fromisoformat(str(event.get("time")))
    except ValueError:
        return None


def merge_entries(played: Sequence[Entry], said: Sequence[Entry]) -> list[Entry]:
    """Both in the order of time; of the same moment, what was played comes first."""
    return sorted([*played, *said], key=moment_of)


def entries_before(entries: Sequence[Entry], moment_s: float) -> list[Entry]:
    """The entries before that moment, without the test's end."""
    return [each for each in entries if moment_of(each) < moment_s and each["event"] != ENDED]


def notes(entries: Sequence[Entry]) -> list[str]:
    """The test's own notes."""
    return [str(each.get("text")) for each in entries if each["event"] == NOTE]


def acts(entries: Sequence[Entry]) -> dict[int, str]:
    """The test's own acts, by their numbers."""
    return {int(str(each.get("number"))): str(each.get("what")) for each in entries if each["event"] == ACT}


def moment_of(entry: Entry) -> float:
    """The entry's moment, in seconds after the test's begin."""
    moment_s = entry["at_s"]
    assert isinstance(moment_s, float | int)
    return float(moment_s)


def text_of(entries: Sequence[Entry]) -> str:
    """A line of JSON for each entry."""
    return "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries)


def read(text: str) -> list[Entry]:
    return [documents.document(line) for line in text.splitlines()]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entry_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """A line for each entry, for people: `  12.345678 s  cut: ams-bra`, and of a log `  12.5 s    ams valkey: …`."""
    for entry in entries:
        if entry["event"] == SAID:
            yield f"{entry['at_s']:12.6f} s    {entry.get('host')} {entry.get('log')}: {entry.get('text')}"
            continue
        words = [str(entry["event"])]
        about = {name: value for name, value in entry.items() if name not in ("at_s", "event", "number")}
        if about:
            words.append(", ".join(_told(name, value) for name, value in about.items()))
        yield f"{entry['at_s']:12.6f} s  {': '.join(words)}"


def _told(name: str, value: object) -> str:
    if name in ("what", "host", "link", "text", "why", "how"):
        return str(value)
    return f"{name} {digits(value, 6) if isinstance(value, float) else value}"


def first_difference(before: str, after: str) -> str:
    """Where two time lines part, in words; empty if they are the same."""
    if before == after:
        return ""
    first, second = before.splitlines(), after.splitlines()
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return f"line {number}: {one} was recorded, {other} came now"
    more, longer = ("recorded", first) if len(first) > len(second) else ("now", second)
    return f"line {min(len(first), len(second)) + 1}: only {more} is {longer[min(len(first), len(second))]}"
