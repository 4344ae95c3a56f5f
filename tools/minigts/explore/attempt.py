"""One run of a test beside a lab while faults are played, and what came of it.

In virtual time the test and the player have a turn each on the lab's clock, the test a lent one
(providers/agent/lending.py). So time passes only while both wait, and the course does not depend on how fast this
machine, or the test, thinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from minigts import paths
from minigts.errors import MinigtsError
from minigts.explore import host_logs, program, timeline
from minigts.explore import outcome as outcomes
from minigts.explore.faults import Fault
from minigts.explore.host_logs import Period
from minigts.explore.outcome import Outcome
from minigts.explore.player import Halt, Player
from minigts.explore.work import SeedOfWork
from minigts.foreign import content
from minigts.lab import Lab, events
from minigts.machine import beneath
from minigts.machine.parallel import turn_of_this_thread
from minigts.providers.agent import ended, lending
from minigts.providers.base import HasCourse
from minigts.providers.uml.clock.process import EPOCH_NS
from minigts.results import courses
from minigts.results.courses import LONGEST_DOING, MOST_PHASES, LabCourse, Phase
from minigts.results.folder import is_name
from minigts.topology.plan import reseed
from minigts.topology.plan.plan import Plan

US_PER_S, NS_PER_S = 1e6, 1e9
LOGS = "logs"
COURSE = "course.json"
"""The file with the course of a seed's lab (results/courses.py)."""
WARNINGS_S = 30.0
BY_SLOWNESS = ("it has not ended its turn for", "nobody has read its control line for")
"""What the clock says of a host that took too long by this machine's time."""
BREAK_S, MOST_BREAKS = 0.1, 3000
"""How often, in seconds, and how many times at most the player's wait is ended until it knows that the test has ended.
"""
MOST_LOG_CHARACTERS = 256 << 10
"""How much of the end of each of a host's logs is kept."""


@dataclass(frozen=True)
class Stop:
    """Where a replay stops, in seconds after the test's begin."""

    at_s: float


@dataclass(frozen=True)
class SeedResult:
    """What came of a seed. `files` are its time line, the test's output and files, and for one that did not pass the
    hosts' logs, by names with `/`."""

    outcome: Outcome
    timeline: str
    files: Mapping[str, str]
    course: LabCourse | None
    """The course of its lab up to the test's end; None in real time."""
    tails: tuple[SeedResult, ...] = ()
    """What came of the seed's tails that were wanted."""


@dataclass(frozen=True)
class Ran:
    """A test that has ended, or was stopped; `stopped_by` says why, and is empty if it was not."""

    code: int | None
    stopped_by: str
    period: Period
    entries: list[timeline.Entry]
    course: LabCourse | None
    faults: Sequence[Fault]


class Beginning(Protocol):
    """Where a test begins: anew, or as a tail in the middle of its seed."""

    @property
    def tail(self) -> int:
        """The number of the tail; 0: it is none."""
        ...

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults of the whole course."""
        ...

    def player(self, limit: tuple[float, str]) -> tuple[Player, float]:
        """What plays them, and the moment of the lab's time at which the test began."""
        ...

    def run(self, place: Path, variables: Mapping[str, str], player: Player) -> int | None:
        """Run the test to its end, with files below `place`; its exit code, or None if it was stopped."""
        ...


@dataclass(frozen=True)
class Anew:
    """A test from its beginning on; `halt` is for the player."""

    lab: Lab
    seed: SeedOfWork
    halt: Halt | None = None
    tail = 0

    @property
    def faults(self) -> Sequence[Fault]:
        return self.seed.faults

    def player(self, limit: tuple[float, str]) -> tuple[Player, float]:
        begin_s = self.lab.provider.now_s()
        self.lab.note({"event": timeline.BEGUN})
        return Player(self.lab, self.faults, begin_s, limit, halt=self.halt), begin_s

    def run(self, place: Path, variables: Mapping[str, str], player: Player) -> int | None:
        return program.run(self.seed.exploration.test, place, variables, player.stopped)


def run(lab: Lab, seed: SeedOfWork, place: Path, stop: Stop | None, beginning: Beginning) -> Ran:
    """Run the test and play the faults; return when the test has ended. The lab's time then stands still."""
    provider, asked = lab.provider, seed.exploration
    limit = (asked.longest_s, f"did not end in {asked.longest_s:g} s of the lab's time")
    if stop is not None and stop.at_s < asked.longest_s:
        limit = (stop.at_s, "it was stopped there")
    with provider.together() as pool:
        began = _in_ms(datetime.now(UTC))
        player, begin_s = beginning.player(limit)
        pool.start(player.play)
        player.begun.wait()  # a call that has not begun would be called off at the test's end
        try:
            of_tail = (beginning.tail,) if beginning.tail else ()
            with _turn_lent(lab, asked.plan_of(seed.number), place, *of_tail) as lent:
                variables = {**program.environment(place, lab.name, seed.number, seed.without), **lent}
                code = beginning.run(place, variables, player)
            end_s, ended = provider.now_s(), datetime.now(UTC)
            lab.note({"event": timeline.ENDED, "code": code})
            moments = (begin_s, end_s) if lab.time == "virtual" else (began, datetime.now(UTC))
            entries = timeline.lab_entries(lab.rundir, *moments)
            course = _course(lab, begin_s, entries)
        finally:
            player.is_over.set()
            for _ in range(MOST_BREAKS):  # each ends what the player waits for now, of which there may be more
                pool.break_off()
                if player.ended.wait(BREAK_S):
                    break
    if lab.time == "virtual":
        period = Period(round(begin_s * NS_PER_S), round(end_s * NS_PER_S), EPOCH_NS)
    else:
        period = Period(round(began.timestamp() * NS_PER_S), round(ended.timestamp() * NS_PER_S), 0)
    return Ran(code, player.why if code is None else "", period, entries, course, beginning.faults)


def result_of(lab: Lab, seed: SeedOfWork, ran: Ran, place: Path, stop: Stop | None, tail: int = 0) -> SeedResult:
    """What came of a seed, or a tail, whose files lie below `place`."""
    verdict, detail = outcomes.judge_test(seed.exploration.test, ran.code, place, ran.stopped_by)
    if verdict != "passed" and (slow := slowness_reason(lab.rundir, [each.name for each in lab.plan.machines])):
        verdict, detail = "error", slow
    text = timeline.text_of(ran.entries)
    files = {
        timeline.FILE: text,
        program.OUTPUT: outcomes.output_of(place),
        **{name: data.decode(errors="replace") for name, data in program.kept_files(place)},
    }
    if ran.course is not None:
        files[COURSE] = courses.text_of(ran.course)
    if verdict != "passed" and stop is None:
        logs = _logs(lab, place)
        files[host_logs.FILE] = _said(lab, ran, logs)
        files |= {
            f"{LOGS}/{host}/{name}": text[-MOST_LOG_CHARACTERS:]
            for host, found in logs.items()
            for name, text in found.items()
        }
    found = Outcome(
        seed=seed.number,
        tail=tail,
        verdict=verdict,
        why=outcomes.alike(detail),
        detail=detail[: outcomes.LONGEST_DETAIL],
        code=ran.code,
        faults=len(ran.faults),
        lab_s=round(ran.period.seconds, 6),
        timeline_sha256=timeline.digest(text),
        course="" if ran.course is None else ran.course.course.fingerprint,
        notes=tuple(note[: outcomes.LONGEST_WHY] for note in timeline.notes(ran.entries)[: outcomes.MOST_NOTES]),
    )
    return SeedResult(found, text, files, ran.course)


def _course(lab: Lab, begin_s: float, entries: Sequence[timeline.Entry]) -> LabCourse | None:
    """The lab's course up to now, while its time stands still; what was done are the entries of its time line."""
    if not isinstance(lab.provider, HasCourse):
        return None
    phases = (
        Phase(at_s=begin_s + timeline.moment_of(each), doing=words.strip()[:LONGEST_DOING])
        for each, words in zip(entries, timeline.entry_lines(entries), strict=True)
    )
    return LabCourse(course=lab.provider.course(), phases=tuple(phases)[:MOST_PHASES])


def _in_ms(moment: datetime) -> datetime:
    """The moment in whole milliseconds, as a lab's events have this machine's time."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@contextmanager
def _turn_lent(lab: Lab, plan: Plan, place: Path, *tail: int) -> Iterator[Mapping[str, str]]:
    """Lend this thread's turn to the test. Each of its acts is some milliseconds late, as the seed, or the tail, draws
    it: `plan` is that of the seed."""
    turn = turn_of_this_thread()
    if lab.time != "virtual" or turn is None:
        yield {}
        return
    with lending.lend(turn, place, partial(_late_us, plan, *tail)) as lent:
        yield lent


def _late_us(plan: Plan, *act: int) -> int:
    return round(reseed.late_s(plan, "explore", *act) * US_PER_S)


def slowness_reason(rundir: Path, machines: Sequence[str]) -> str:
    """Why the clock has ended a machine, if it did so because this machine was too slow, in words; else empty. The
    lab's time has no part in that, so it says nothing about the test."""
    found = (ended.end_clause(rundir, name).removeprefix(": ") for name in machines)
    return next((why for why in found if any(words in why for words in BY_SLOWNESS)), "")


def _logs(lab: Lab, place: Path) -> dict[str, dict[str, str]]:
    """Each machine's logs, by machine and file."""
    found: dict[str, dict[str, str]] = {}
    for machine in lab.plan.machines:
        into = place / LOGS / machine.name
        with suppress(MinigtsError, OSError):
            lab.provider.diagnose(machine.name, into)
            if lab.time == "virtual":
                argv = host_logs.WARNINGS_ARGV
                said = lab.provider.run(machine.name, argv, timeout_s=WARNINGS_S, check=False).stdout
                paths.write_whole(into / host_logs.WARNINGS, content(said))
        with suppress(OSError):
            texts = beneath.texts(into)  # a host chooses the names of its programs' logs
            found[machine.name] = {name: text for name, text in texts.items() if is_name(name)}
    return found


def _said(lab: Lab, ran: Ran, logs: Mapping[str, Mapping[str, str]]) -> str:
    """What the hosts said in the course, a line of JSON for each of their lines."""
    clocks = host_logs.clocks(lab.plan, events.read(lab.rundir), ran.faults, ran.entries, ran.period)
    return timeline.text_of(host_logs.entries(logs, clocks, ran.period))
