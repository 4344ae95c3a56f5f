"""Takes a seed of an exploration again: to its end, or to a moment at which its lab can be looked at."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import InputError
from minigts.explore import course, folder, host_logs, on_worker, program, shrinking, timeline
from minigts.explore.course import Stop, Taken
from minigts.explore.exploration import parts_here
from minigts.explore.outcome import Outcome
from minigts.explore.work import Exploration, seed_of_work
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.results.gate import Trusted
from minigts.topology.time import Time


@dataclass(frozen=True)
class Replayed:
    """A seed that was taken again."""

    taken: Taken
    lab: str
    """The name of its lab, which is up if that was asked for."""
    time: Time
    difference: str
    """Where its time line parts from the recorded one, in words; empty if the two are the same."""
    other_files: tuple[str, ...]
    """The test's own files that are not the same bytes as recorded."""
    said: Sequence[timeline.Entry]
    """What the hosts said, of which there is nothing for a seed that passes. When the replay is stopped, the hosts are
    not asked, and it is what was recorded."""


def found(place: Path, exploration: Exploration, seed: int) -> Outcome:
    """What came of a seed of the exploration in a folder. Raises InputError for a seed that has not been taken."""
    outcome = folder.outcomes(place).get(seed)
    if outcome is None:
        first, last = exploration.first, exploration.last
        what = "has not been taken yet" if first <= seed <= last else f"is none of its seeds, {first} to {last}"
        raise InputError(f"{place}: seed {seed} {what}")
    return outcome


def other_parts(exploration: Exploration, say: Progress) -> list[str]:
    """The parts of labs, such as the image, that are not here as they were for the exploration."""
    provider = registry.make(exploration.provider, Path(), exploration.plan.time)
    here = parts_here(provider, say)
    return [word for word, digest in exploration.parts.items() if here.get(word) != digest]


def replay(
    place: Path,
    allowed: Trusted[Exploration],
    seed: int,
    *,
    stop: Stop | None,
    kept: bool,
    only: Mapping[int, float | None] | None,
    say: Progress,
    capture: Path | None = None,
) -> Replayed:
    """Take a seed again, with `only` these faults, by their numbers, each as long as it says in seconds, or as it was
    drawn. With `kept` its lab stays up at the end; with `capture` its frames are written to that
    file. Raises InputError, and what a lab raises."""
    exploration = allowed.content
    outcome, job = found(place, exploration, seed), seed_of_work(allowed, seed, only)
    name, whole = on_worker.lab_name(secrets.token_hex(3), seed), False
    with course.lab_of(job, name, say, kept=lambda: kept and whole) as lab:
        taken = course.taken(lab, job, say, stop, capture)
        whole = True
    before = folder.recorded(place, seed)
    difference = ""
    other: tuple[str, ...] = ()
    if only is None:
        difference = _difference(outcome, before.get(timeline.FILE), taken, stop)
    if only is None and stop is None:
        own = before.keys() - _OF_THE_MACHINE
        other = tuple(name for name in sorted(own) if before[name] != taken.files.get(name))
    if stop is None:
        said = timeline.read(taken.files.get(host_logs.FILE, ""))
    else:
        said = timeline.before(timeline.read(before.get(host_logs.FILE, "")), stop.at_s)
    return Replayed(taken, name, exploration.plan.time, difference, other, said)


_OF_THE_MACHINE = {program.OUTPUT, timeline.FILE, host_logs.FILE}
"""Files that are not compared byte for byte: pytest prints how long it took; a host's log may tell of this machine; the
time line is compared by itself."""


def _difference(outcome: Outcome, recorded: str | None, taken: Taken, stop: Stop | None) -> str:
    """Where the time line parts from the recorded one, up to `stop`."""
    if recorded is None:
        same = stop is not None or taken.outcome.timeline_sha256 == outcome.timeline_sha256
        return "" if same else "its digest is another; a seed that passed has no recorded time line to compare with"
    if stop is None:
        return timeline.first_difference(recorded, taken.timeline)
    return timeline.first_difference(_before(recorded, stop.at_s), _before(taken.timeline, stop.at_s))


def _before(text: str, at_s: float) -> str:
    return timeline.text_of(timeline.before(timeline.read(text), at_s))


def shrink(place: Path, allowed: Trusted[Exploration], seed: int, say: Progress) -> Sequence[str]:
    """Find faults of a failing seed that suffice for its failure, and how short they may be; keep that, and return it
    in words. Raises InputError for a seed that did not fail."""
    exploration = allowed.content
    outcome = found(place, exploration, seed)
    if outcome.verdict not in ("failed", "hung"):
        raise InputError(f"{place}: seed {seed} {outcome.verdict}: only one that failed or hung can be shrunk")
    drawn = exploration.drawn(seed)
    campaign_id, tried = secrets.token_hex(3), 0

    def fails(lasting: Mapping[int, float]) -> bool:
        nonlocal tried
        tried += 1
        again = course.take(
            seed_of_work(allowed, seed, lasting), on_worker.lab_name(campaign_id, seed), lambda _: None
        ).outcome
        same = (again.verdict, again.why) == (outcome.verdict, outcome.why)
        listed = ", ".join(f"{number} for {for_s:g} s" for number, for_s in lasting.items()) or "none"
        say(f"try {tried}: faults {listed} of {len(drawn)}: {'it fails in the same way' if same else again.verdict}")
        return same

    whole_s = {fault.number: fault.for_s for fault in drawn}
    only = shrinking.shrunk([*whole_s], lambda numbers: fails({number: whole_s[number] for number in numbers}))
    lasting = shrinking.shortened({number: whole_s[number] for number in only}, fails)
    folder.keep_shrunk(place, seed, lasting)
    return [
        f"{fault.at_s:.6f} s: {fault.in_words}, for {lasting[fault.number]:g} s"
        for fault in drawn
        if fault.number in lasting
    ]
