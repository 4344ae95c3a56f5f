"""Takes a seed of an exploration again: to its end, or to a moment at which its lab can be looked at."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from minigts import lab as labs
from minigts.errors import InputError, MinigtsError
from minigts.explore import attempt, course, folder, host_logs, on_worker, program, seed_labs, shrinking, timeline
from minigts.explore.attempt import SeedResult, Stop
from minigts.explore.exploration import parts_here
from minigts.explore.outcome import Outcome
from minigts.explore.player import Halt
from minigts.explore.tails import tail_name
from minigts.explore.work import Exploration, Reduced, seed_of_work, tail_of_work
from minigts.lab import Lab
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import HasCourse
from minigts.results import course_difference, courses
from minigts.results.courses import LabCourse
from minigts.results.folder import OF_A_FILE
from minigts.results.gate import Trusted
from minigts.topology.time import Time

BACK = "back"
"""What stands in the name of a fork that is as a seed's lab was before its end."""
_Part: TypeAlias = tuple[Literal["fault", "act"], int]
"""A fault or an act of a seed, by its number."""


@dataclass(frozen=True)
class Replayed:
    """A seed that was taken again."""

    taken: SeedResult
    lab: str
    """The name of its lab, which is up if that was asked for."""
    time: Time
    difference: str
    """Where its time line parts from the recorded one, in words; empty if the two are the same."""
    other_files: tuple[str, ...]
    """The test's own files that are not the same bytes as recorded."""
    course: Sequence[str]
    """Whether the lab's course was the recorded one, or where it parts from that, in lines; empty in real time, for a
    replay that stops or has other faults, and for a seed whose course was not kept."""
    said: Sequence[timeline.Entry]
    """What the hosts said, of which there is nothing for a seed that passes. When the replay is stopped, the hosts are
    not asked, and it is what was recorded."""
    earlier: str = ""
    """The name of the fork of its lab that is as it was before the end, if that was asked for."""
    origin: str = ""
    """Of a tail, the name of the lab of its seed, with which its own ends."""


def find_outcome(place: Path, exploration: Exploration, seed: int, tail: int = 0) -> Outcome:
    """What came of a seed of the exploration in a folder, or of a tail of it. Raises InputError for one that has not
    been taken."""
    if tail and (found := folder.tail_outcomes(place).get((seed, tail))) is not None:
        return found
    outcome = folder.outcomes(place).get(seed)
    if tail and outcome is not None:
        had = f"it has the tails 1 to {exploration.tails}" if exploration.tails else "explore had no --tails"
        raise InputError(f"{place}: seed {seed} has no tail {tail} that was taken: {had}")
    if outcome is None:
        first, last = exploration.first, exploration.last
        what = "has not been taken yet" if first <= seed <= last else f"is none of its seeds, {first} to {last}"
        raise InputError(f"{place}: seed {seed} {what}")
    return outcome


def other_parts(exploration: Exploration, say: Progress) -> list[str]:
    """The parts of labs, such as the image, that are not here as they were for the exploration."""
    provider = registry.make(exploration.provider, Path(), exploration.plan.time)
    here = parts_here(provider, exploration.plan, say)
    return [word for word, digest in exploration.parts.items() if here.get(word) != digest]


def replay(
    place: Path,
    allowed: Trusted[Exploration],
    seed: int,
    *,
    stop: Stop | None,
    kept: bool,
    only: Reduced | None,
    say: Progress,
    capture: Path | None = None,
    tail: int = 0,
    back_s: float | None = None,
) -> Replayed:
    """Take a seed, or a tail of it, again, with `only` a part of it. With `kept` its lab stays up at the end; with
    `capture` its frames are written to that file. With `back_s` a fork of its lab stays up, which is as it was so long
    before the test's end. Raises InputError, and what a lab raises."""
    exploration = allowed.content
    outcome = find_outcome(place, exploration, seed, tail)
    job = tail_of_work(allowed, seed, tail) if tail else seed_of_work(allowed, seed, only)
    if tail and stop is not None and stop.at_s <= (branch_s := exploration.draw_branch_s(seed) or 0.0):
        raise InputError(f"tail {outcome.name} begins at {branch_s:.6f} s: name a later moment, or replay seed {seed}")
    name, whole, earlier = on_worker.lab_name(secrets.token_hex(3), seed), False, ""
    with _origins_ended(kept), seed_labs.lab_of(job, name, say, kept=lambda: kept and whole) as lab:
        halt = None
        if back_s is not None:
            earlier = tail_name(name, BACK)
            halt = Halt(max(outcome.lab_s - back_s, 0.0), partial(_fork_kept, lab, earlier))
        taken = course.run_seed(lab, job, say, stop, capture, kept=kept, halt=halt)
        if tail:
            if not taken.tails or taken.tails[0].outcome.verdict == "error":
                raise MinigtsError(f"tail {outcome.name} could not be taken: {taken.tails[0].outcome.detail}")
            (taken,) = taken.tails
        told = _course(place, outcome, taken, lab) if only is None and stop is None else ()
        whole = True
    before = folder.recorded_files(place, seed, tail)
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
        said = timeline.entries_before(timeline.read(before.get(host_logs.FILE, "")), stop.at_s)
    shown = tail_name(name, tail) if tail else name
    return Replayed(taken, shown, exploration.plan.time, difference, other, told, said, earlier, name if tail else "")


def _fork_kept(lab: Lab, name: str) -> bool:
    labs.fork(lab, name)
    return True


@contextmanager
def _origins_ended(kept: bool) -> Iterator[None]:
    """At the end of the context labs are taken down that seeds have forked; with `kept` not where it ends well, since
    forks end with them."""
    try:
        yield
    except BaseException:
        seed_labs.end_origins()
        raise
    if not kept:
        seed_labs.end_origins()


_OF_THE_MACHINE = {program.OUTPUT, timeline.FILE, host_logs.FILE, attempt.COURSE}
"""Files that are not compared byte for byte: pytest prints how long it took; a host's log may tell of this machine; the
time line and the course are compared by themselves."""


def _course(place: Path, outcome: Outcome, taken: SeedResult, lab: Lab) -> Sequence[str]:
    """See `Replayed.course`. A replay whose events are recorded is kept in the results folder, and is compared with the
    one before that was."""
    if taken.course is None:
        return ()
    lines: list[str] = []
    if outcome.course == taken.course.course.fingerprint:
        lines.append(f"the recorded course: {taken.course.course.events} events, {outcome.course}")
    elif outcome.course:
        text = folder.recorded_files(place, outcome.seed, outcome.tail).get(attempt.COURSE)
        if text is None:
            lines.append("another one than was recorded; of a seed that passed it is not known where they part")
        else:
            before = documents.model(text, LabCourse, OF_A_FILE)
            lines += course_difference.difference_lines(before, taken.course, (None, None), "replay twice")
    if taken.course.course.recording is not None and isinstance(lab.provider, HasCourse):
        lines += _beside_the_last(place, f"seed-{outcome.seed:06d}-", taken.course, lab.provider.recording())
    return lines


def _beside_the_last(place: Path, prefix: str, found: LabCourse, recording: Path) -> Iterator[str]:
    """Keep a replay's recording under the next number; compare it with the one before."""
    replays = [name for name in courses.names(place) if name.startswith(prefix)]
    courses.keep(place, f"{prefix}{len(replays) + 1}", found, recording)
    if replays:
        files = tuple(courses.recording_of(place, name) for name in (replays[-1], f"{prefix}{len(replays) + 1}"))
        told = course_difference.difference_lines(courses.read(place, replays[-1]), found, (files[0], files[1]))
        yield from (f"{'' if number else 'against the replay before: '}{line}" for number, line in enumerate(told))


def _difference(outcome: Outcome, recorded: str | None, taken: SeedResult, stop: Stop | None) -> str:
    """Where the time line parts from the recorded one, up to `stop`."""
    if recorded is None:
        same = stop is not None or taken.outcome.timeline_sha256 == outcome.timeline_sha256
        return "" if same else "its digest is another; a seed that passed has no recorded time line to compare with"
    if stop is None:
        return timeline.first_difference(recorded, taken.timeline)
    return timeline.first_difference(_before(recorded, stop.at_s), _before(taken.timeline, stop.at_s))


def _before(text: str, at_s: float) -> str:
    return timeline.text_of(timeline.entries_before(timeline.read(text), at_s))


def shrink(place: Path, allowed: Trusted[Exploration], seed: int, say: Progress) -> Sequence[str]:
    """Find faults of a failing seed, and acts of its test, that suffice for its failure, and how short the faults may
    be; keep that, and return it in words. Raises InputError for a seed that did not fail."""
    exploration = allowed.content
    outcome = find_outcome(place, exploration, seed)
    if outcome.verdict not in ("failed", "hung"):
        raise InputError(f"{place}: seed {seed} {outcome.verdict}: only one that failed or hung can be shrunk")
    drawn = exploration.draw_faults(seed)
    recorded = timeline.read(folder.recorded_files(place, seed).get(timeline.FILE, ""))
    acts = timeline.acts(recorded)
    campaign_id, tried = secrets.token_hex(3), 0

    def fails(only: Reduced) -> bool:
        nonlocal tried
        tried += 1
        again = course.take(
            seed_of_work(allowed, seed, only), on_worker.lab_name(campaign_id, seed), lambda _: None, say, again=True
        ).outcome
        same = (again.verdict, again.why) == (outcome.verdict, outcome.why)
        listed = ", ".join(f"{number} for {only.for_s[number]:g} s" for number in only.faults) or "none"
        of_test = f", acts {_numbers(acts.keys() - {*only.without})} of {len(acts)}" if acts else ""
        came = "it fails in the same way" if same else again.verdict
        say(f"try {tried}: faults {listed} of {len(drawn)}{of_test}: {came}")
        return same

    whole_s = {fault.number: fault.for_s for fault in drawn}

    def only(parts: Sequence[_Part], lasting: Mapping[int, float] = whole_s) -> Reduced:
        faults = tuple(number for word, number in parts if word == "fault")
        without = tuple(number for number in acts if ("act", number) not in parts)
        return Reduced(faults=faults, for_s={number: lasting[number] for number in faults}, without=without)

    every: list[_Part] = [("fault", number) for number in whole_s]
    every += [("act", number) for number in acts]
    with _origins_ended(kept=False):
        parts = shrinking.shrunk(every, lambda left: fails(only(left)))
        lasting = {number: whole_s[number] for word, number in parts if word == "fault"}
        left = only(parts, shrinking.shorten_faults(lasting, lambda shorter: fails(only(parts, shorter))))
    folder.keep_shrunk(place, seed, left)
    return [
        *(
            f"{fault.at_s:.6f} s: {fault.in_words}, for {left.for_s[fault.number]:g} s"
            for fault in drawn
            if fault.number in left.faults
        ),
        *(f"act {number}: {name}" for number, name in acts.items() if number not in left.without),
    ]


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
