"""One seed: its lab is brought up, the test runs beside it while faults are played, and what came of it is gathered.

In virtual time the test and the player have a turn each on the lab's clock, the test a lent one
(providers/agent/lending.py). So time passes only while both wait, and the course does not depend on how fast this
machine, or the test, thinks.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from minigts import lab as labs
from minigts import paths
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.explore import holding, host_files, host_logs, program, stalls, timeline
from minigts.explore import outcome as outcomes
from minigts.explore.faults import Fault
from minigts.explore.holding import Holder
from minigts.explore.host_logs import Period
from minigts.explore.outcome import Outcome
from minigts.explore.player import Halt, Player
from minigts.explore.variables import TAIL
from minigts.explore.work import Exploration, SeedOfWork
from minigts.foreign import content
from minigts.lab import Lab, events, pcapng
from minigts.lab.pcapng import CapturedFrame
from minigts.machine import beneath
from minigts.machine.parallel import turn_of_this_thread
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.agent import ended, lending
from minigts.providers.base import Forks, HasCourse, Tapped
from minigts.providers.uml.clock.process import EPOCH_NS
from minigts.results import courses
from minigts.results.courses import LONGEST_DOING, MOST_PHASES, LabCourse, Phase
from minigts.results.folder import is_name, write
from minigts.session import bring_up
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
SETTINGS_APART = 1_000_000
"""How far the seeds of tails' labs are apart. A link that has been set so often draws other random numbers."""
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


def take(
    seed: SeedOfWork, name: str, say: Progress, stalled: Progress | None = None, *, again: bool = False
) -> SeedResult:
    """Take a seed in a new lab of that name, which is taken down; `stalled` (default: `say`) is told where a seed is
    that hardly gets on. `again` is as for `lab_of`. Raises what a lab raises; InputError for a test that cannot be
    started."""
    begun = time.monotonic()
    with lab_of(seed, name, say, again=again) as lab:
        found = run_seed(lab, seed, say, stalled=stalled)
    real_s = round(time.monotonic() - begun, 3)
    return replace(found, outcome=found.outcome.model_copy(update={"real_s": real_s}))


@contextmanager
def lab_of(
    seed: SeedOfWork, name: str, say: Progress, kept: Callable[[], bool] = lambda: False, *, again: bool = False
) -> Iterator[Lab]:
    """A seed's lab, with its overlay and without a certificate; at the end it is taken down, unless `kept` says so. A
    seed that is taken `again` and again has a fork of one lab, which goes on as that one would."""
    asked = seed.exploration
    if asked.forks:
        lab = labs.fork(_origin_of(asked, asked.plan_of_origin, origin_name(name), say), name, seed.number)
    elif again and isinstance(registry.make(asked.provider, Path(), asked.plan.time), Forks):
        lab = labs.fork(_origin_of(asked, asked.plan_of(seed.number), origin_name(name), say), name)
    else:
        lab = _new_lab(asked, asked.plan_of(seed.number), name, say)
    try:
        yield lab
    finally:
        if not kept():
            labs.down(lab)


def _new_lab(asked: Exploration, plan: Plan, name: str, say: Progress) -> Lab:
    with tempfile.TemporaryDirectory(prefix="minigts-files-") as directory:
        whole = host_files.plan_with_files(plan, asked.host_files, Path(directory).resolve() / "files")
        request = bring_up.Request(whole, asked.provider, name, asked.overlay)
        return bring_up.bring_up(bring_up.ready(request), say, certified=False).lab


_origins: dict[str, tuple[Exploration, Plan, Lab]] = {}
"""The labs that seeds of this process fork, by their names."""


def _origin_of(asked: Exploration, plan: Plan, name: str, say: Progress) -> Lab:
    """The lab that seeds fork, which is brought up for the first of them."""
    if name in _origins:
        *before, lab = _origins[name]
        if before == [asked, plan] and lab.read_state() == "up":
            return lab
        labs.down(_origins.pop(name)[-1])
    lab = _new_lab(asked, plan, name, say)
    _origins[name] = (asked, plan, lab)
    return lab


def origin_name(name: str) -> str:
    """The name of the lab that the seed's lab of that name is a fork of: `job-6f02ab-000417-…`, with no seed's number.
    A worker's labs are taken down with it by their names."""
    prefix, campaign, _, *where = name.split("-")
    return "-".join([prefix, campaign, "origin", *where])


def end_origins() -> None:
    """Take down the labs that seeds of this process fork."""
    while _origins:
        labs.down(_origins.popitem()[1][-1])


def run_seed(
    lab: Lab,
    seed: SeedOfWork,
    say: Progress,
    stop: Stop | None = None,
    capture: Path | None = None,
    stalled: Progress | None = None,
    kept: bool = False,
    halt: Halt | None = None,
) -> SeedResult:
    """As `take`, in a lab that is up; with `stop` the test is ended at that moment, and time stands still. With
    `capture` all frames on all links are written to that file. With `kept` labs of tails stay up; `halt` is for a seed
    without tails. Raises EnvironmentLacks where links cannot be tapped."""
    with tempfile.TemporaryDirectory(prefix="minigts-seed-") as directory, ExitStack() as stack:
        place = Path(directory).resolve()
        seed.exploration.test.lay(place)
        say(f"{seed.name}: {seed.exploration.test.in_words}")
        tails = None
        if seed.tails and (branch_s := seed.exploration.draw_branch_s(seed.number)) is not None:
            tails = _Tails(lab, seed, place, branch_s, Holder(place, stack), stop, say, kept)

        def tell(line: str) -> None:
            if tails is None or not tails.begun:
                (stalled or say)(line)

        with _captured(lab, capture), stalls.watch(lab, seed.name, tell):
            ran = _run(lab, seed, place, None if tails is not None else stop, tails, halt)
        if tails is not None and seed.ends_with_tails:
            stop = Stop(tails.branch_s)
        result = _result(lab, seed, ran, place, stop)
    return result if tails is None else replace(result, tails=tuple(tails.results))


def _result(lab: Lab, seed: SeedOfWork, ran: _Ran, place: Path, stop: Stop | None, tail: int = 0) -> SeedResult:
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


@dataclass(frozen=True)
class _Ran:
    """A test that has ended, or was stopped; `stopped_by` says why, and is empty if it was not."""

    code: int | None
    stopped_by: str
    period: Period
    entries: list[timeline.Entry]
    course: LabCourse | None
    faults: Sequence[Fault]


class _Tails:
    """Takes the tails of a seed, one after the other, while the seed waits at the moment at which they begin."""

    def __init__(
        self,
        lab: Lab,
        seed: SeedOfWork,
        place: Path,
        branch_s: float,
        holder: Holder,
        stop: Stop | None,
        say: Progress,
        kept: bool,
    ) -> None:
        self._lab, self._seed, self._place, self._stop = lab, seed, place, stop
        self.branch_s, self._say, self._kept = branch_s, say, kept
        self.holder = holder
        self.results: list[SeedResult] = []
        self.begun = False
        self._begin_s = 0.0
        self._player: Player | None = None

    def player(self, begin_s: float, limit: tuple[float, str]) -> Player:
        """The player of the seed's faults."""
        halt = Halt(self.branch_s, self._take_all)
        self._begin_s = begin_s
        self._player = Player(self._lab, self._seed.faults, begin_s, limit, halt=halt)
        return self._player

    def _take_all(self) -> bool:
        """Take them; whether the seed is to go on."""
        assert self._player is not None
        over, wanted = self._player.is_over, self._seed.tails
        self.begun = True
        try:
            with self.holder.hold(over.is_set):
                for tail in wanted:
                    # In a context of its own, since this thread has a turn on the seed's clock.
                    self.results.append(Context().run(self._take, tail))
        except (MinigtsError, OSError) as error:
            if over.is_set():
                raise
            self.results += [self._not_taken(tail, str(error)) for tail in wanted[len(self.results) :]]
        self.begun = False
        return not self._seed.ends_with_tails

    def _not_taken(self, tail: int, why: str) -> SeedResult:
        found = Outcome(seed=self._seed.number, tail=tail, verdict="error", why=outcomes.alike(why), detail=why)
        return SeedResult(found, "", {}, None)

    def _take(self, tail: int) -> SeedResult:
        assert self._player is not None
        begun, name = time.monotonic(), tail_name(self._lab.name, tail)
        before = _looks(self._place)
        lab = labs.fork(self._lab, name, tail * SETTINGS_APART)
        try:
            with tempfile.TemporaryDirectory(prefix="minigts-tail-") as directory:
                place = Path(directory).resolve() / "tail"
                shutil.copytree(self._place, place, ignore=_sockets, symlinks=True)
                self._say(f"seed {self._seed.number}/{tail}: from {self.branch_s:.6f} s on")
                lab.note({"event": timeline.BRANCH, "tail": tail})
                with stalls.watch(lab, f"seed {self._seed.number}/{tail}", self._say):
                    ran = _run(lab, self._seed, place, self._stop, _Tail(self, tail))
                result = _result(lab, self._seed, ran, place, self._stop, tail)
        except BaseException:
            labs.down(lab)
            raise
        if not self._kept:
            labs.down(lab)
        if _looks(self._place) != before:
            return self._not_taken(tail, "it has written to its seed's files: ask for course.folder each time")
        real_s = round(time.monotonic() - begun, 3)
        return replace(result, outcome=result.outcome.model_copy(update={"real_s": real_s}))

    def player_of(self, lab: Lab, tail: int, limit: tuple[float, str]) -> tuple[Player, float]:
        """The player of a tail, and the moment of the lab's time at which its test began."""
        assert self._player is not None
        faults = self._seed.exploration.draw_tail(self._seed.number, tail)
        return Player(lab, faults, self._begin_s, limit, after=self._player), self._begin_s

    @property
    def is_over(self) -> bool:
        assert self._player is not None
        return self._player.is_over.is_set()


@dataclass(frozen=True)
class _Tail:
    """One tail of a seed."""

    tails: _Tails
    number: int


def tail_name(seed_lab: str, tail: int | str) -> str:
    """The name of the lab of a tail of a seed: `job-6f02ab-000417.2-…`."""
    prefix, campaign, seed, *where = seed_lab.split("-")
    return "-".join([prefix, campaign, f"{seed}.{tail}", *where])


def _sockets(_directory: str, names: list[str]) -> list[str]:
    return [name for name in names if name in (lending.NAME, holding.NAME)]


def _looks(place: Path) -> list[tuple[str, int, int]]:
    """The files of a test, with their sizes and times."""
    found = ((path, path.lstat()) for path in sorted(place.rglob("*")))
    return [(str(path), state.st_size, state.st_mtime_ns) for path, state in found if not path.is_dir()]


def _run(
    lab: Lab,
    seed: SeedOfWork,
    place: Path,
    stop: Stop | None,
    tails: _Tails | _Tail | None = None,
    halt: Halt | None = None,
) -> _Ran:
    """Run the test and play the faults; return when the test has ended. The lab's time then stands still. Of a tail,
    the test goes on."""
    provider, asked = lab.provider, seed.exploration
    tail = tails.number if isinstance(tails, _Tail) else 0
    faults = asked.draw_tail(seed.number, tail) if tail else seed.faults
    limit = (asked.longest_s, f"did not end in {asked.longest_s:g} s of the lab's time")
    if stop is not None and stop.at_s < asked.longest_s:
        limit = (stop.at_s, "it was stopped there")
    with provider.together() as pool:
        begin_s, began = provider.now_s(), _in_ms(datetime.now(UTC))
        if isinstance(tails, _Tail):
            player, begin_s = tails.tails.player_of(lab, tail, limit)
        else:
            lab.note({"event": timeline.BEGUN})
            player = Player(lab, faults, begin_s, limit, halt=halt) if tails is None else tails.player(begin_s, limit)
        pool.start(player.play)
        player.begun.wait()  # a call that has not begun would be called off at the test's end
        try:
            with _turn_lent(lab, asked.plan_of(seed.number), place, *([tail] if tail else [])) as lent:
                variables = {**program.environment(place, lab.name, seed.number, seed.without), **lent}
                code = _code(lab, asked, place, variables, player, tails)
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
    return _Ran(code, player.why if code is None else "", period, entries, course, faults)


def _code(
    lab: Lab,
    asked: Exploration,
    place: Path,
    variables: Mapping[str, str],
    player: Player,
    tails: _Tails | _Tail | None,
) -> int | None:
    """Run the test, or have it go on as a tail; its exit code, or None if it was stopped."""
    if isinstance(tails, _Tail):
        own, whole = {**variables, TAIL: str(tails.number)}, tails.tails
        return whole.holder.run(lab.rundir, place, own, lambda: player.stopped.is_set() or whole.is_over)
    if tails is None:
        return program.run(asked.test, place, variables, player.stopped)
    own = {**variables, **tails.holder.variables}
    return program.run(asked.test, place, own, player.stopped, lambda: tails.holder.held_s)


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


@contextmanager
def _captured(lab: Lab, file: Path | None) -> Iterator[None]:
    """Within the context every frame is noted; at its end all are written to the file, as pcapng."""
    if file is None:
        yield
        return
    if not isinstance(lab.provider, Tapped):
        raise EnvironmentLacks(f"provider {lab.provider.name} in {lab.time} time has no links that can be tapped")
    with closing(lab.provider.tap()) as tap:
        yield
        names = [(machine.name, port.name) for machine in lab.plan.machines for port in machine.ports]
        numbers = {name: number for number, name in enumerate(names)}
        frames = (
            CapturedFrame(each.time_ns, numbers[each.machine, each.interface], len(each.content), each.content)
            for each in tap.end()
        )
        write(file, pcapng.whole([" ".join(name) for name in names], frames))


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


def _said(lab: Lab, ran: _Ran, logs: Mapping[str, Mapping[str, str]]) -> str:
    """What the hosts said in the course, a line of JSON for each of their lines."""
    clocks = host_logs.clocks(lab.plan, events.read(lab.rundir), ran.faults, ran.entries, ran.period)
    return timeline.text_of(host_logs.entries(logs, clocks, ran.period))
