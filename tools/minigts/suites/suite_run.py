"""Runs a suite: every test in a lab of its own, or several in each; labs side by side; as often as was asked for."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

import minigts
from minigts.cluster import dispatch
from minigts.cluster import engine as engines
from minigts.errors import EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.experiments import provenance, run_folders
from minigts.foreign import Foreign, one_line
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT, registry
from minigts.providers.base import Prepares
from minigts.results.folder import inside, write
from minigts.session import bring_up, plans
from minigts.suites import comparison, folder, installed, on_worker, performance, table
from minigts.suites import junit as xml
from minigts.suites.outcome import LONGEST_REASON, CaseOutcome
from minigts.suites.performance import CaseReport
from minigts.suites.registry import find
from minigts.suites.suite import Case, Suite, SuiteOptions, SuiteTest, read_file
from minigts.suites.work import HOST, SuiteJob, SuiteRun, SuiteSettings
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

SPINS = (sys.executable, "-ISc", "while True: pass")


class SuiteWatcher(Protocol):
    """Receives the progress of a suite's run."""

    def step(self, line: str) -> None:
        """Take a step of the present test, or of the start of workers."""

    def take(self, outcome: CaseOutcome, done: int, total: int) -> None:
        """Take the outcome of a case, as soon as it is kept; so many cases of all are done."""


@dataclass(frozen=True)
class SuiteRequest:
    """What is asked for on the command line."""

    suite: str
    directory: Path
    only: Sequence[str] = ()
    """Patterns of the names of tests; empty: all tests."""
    program: Path | None = None
    options: SuiteOptions = field(default_factory=SuiteOptions)
    longest_s: float | None = None
    """How long a case may take by the lab's clock; None: what the suite says."""
    in_a_lab: int = 1
    times: int = 1
    loads: tuple[int, ...] = (0,)
    time: Time | None = None
    kernel: str | None = None
    packages: Sequence[str] = ()
    """Debian packages that hosts have besides those of the suite."""
    installed: Path | None = None
    """What hosts have in place of Debian's: a folder for which `make install DESTDIR=…` was run."""


def check_request(request: SuiteRequest, say: Progress) -> SuiteRun:
    """What is to be run, once all is checked that can be before a lab is started; parts of labs are built now. Raises
    InputError, EnvironmentLacks."""
    suite = find(request.suite)
    if request.options.tolerance_us is not None and not suite.has_tolerance:
        raise InputError(f"--tolerance: the suite {suite.name} has no tolerance that can be set")
    directory = request.directory.expanduser().absolute()
    if not directory.is_dir():
        raise InputError([Problem(str(request.directory), 0, f"no such directory; the suite wants {suite.about}")])
    tests = choose(suite, suite.tests(directory, request.options), request.only)
    program = _program(suite, request.program)
    compiled = request.installed and request.installed.expanduser().absolute()
    compiled_sha256 = installed.sha256(compiled) if compiled else ""
    plan = plan_of(suite, request)
    provider = registry.make(DEFAULT, Path(), plan.time)
    bring_up.ready(bring_up.Request(plan, DEFAULT, on_worker.lab_name(secrets.token_hex(3), 0)))
    if isinstance(provider, Prepares):
        provider.prepare(say)
    return SuiteRun(
        minigts=minigts.__version__,
        commit=run_folders.commit(),
        settings=SuiteSettings(
            suite=suite.name,
            directory=str(directory),
            program=str(program or ""),
            program_sha256=_sha256(program) if program else "",
            installed=str(compiled or ""),
            installed_sha256=compiled_sha256,
            options=request.options,
            longest_s=request.longest_s or suite.longest_s,
            plan=plan,
            provider=DEFAULT,
        ),
        tests=tuple(tests),
        times=request.times,
        loads=request.loads,
        in_a_lab=request.in_a_lab,
        parts={word: part.sha256 for word, part in provenance.parts(provider, say, plan).items()},
        started=datetime.now(UTC).isoformat("T", "seconds"),
    )


def plan_of(suite: Suite, request: SuiteRequest) -> Plan:
    """The plan of a lab of one host, which has what the suite needs and what is asked for. Raises InputError."""
    wanted = list(dict.fromkeys([*suite.packages, *request.packages]))
    packages = f", packages: [{', '.join(wanted)}]" if wanted else ""
    text = f"name: suite\nhosts:\n  {HOST}: {{memory: {suite.memory}{packages}}}\n"
    return plans.read(text, time=request.time, kernel=request.kernel, known_overlays=()).plan


def choose(suite: Suite, tests: Sequence[SuiteTest], only: Sequence[str]) -> list[SuiteTest]:
    """The tests, and of each the cases, whose names fit one of the patterns; a pattern with a blank is one of a test
    and its case. Raises InputError."""
    if not only:
        return list(tests)
    for pattern in only:
        if not any(_fits(test, case, pattern) for test in tests for case in test.cases):
            raise InputError(f"--only {pattern}: none of the {len(tests)} tests of {suite.name} has such a name")
    chosen = [
        test.model_copy(
            update={"cases": tuple(case for case in test.cases if any(_fits(test, case, each) for each in only))}
        )
        for test in tests
    ]
    return [test for test in chosen if test.cases]


def _fits(test: SuiteTest, case: Case, pattern: str) -> bool:
    return fnmatchcase(f"{test.name} {case.name}" if " " in pattern else test.name, pattern)


def _program(suite: Suite, given: Path | None) -> Path | None:
    """The program that the user has. Raises InputError."""
    if not suite.program:
        if given is not None:
            raise InputError(f"--program: the suite {suite.name} needs no program of yours")
        return None
    found = given or shutil.which(suite.program)
    if found is None:
        raise InputError(f"{suite.name}: there is no program {suite.program} here; name it with --program PATH")
    path = Path(found).expanduser().absolute()
    if not path.is_file():
        raise InputError([Problem(str(found), 0, f"no such file; it has to be the program {suite.program}")])
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_file(path)).hexdigest()


def require_equal(earlier: SuiteRun, asked: SuiteRun) -> None:
    """Raise InputError where a run that is continued would differ from what its folder has."""
    for what, before, now in (
        ("settings", earlier.settings, asked.settings),
        ("tests", earlier.tests, asked.tests),
        ("times", earlier.times, asked.times),
        ("loads", earlier.loads, asked.loads),
        ("numbers of tests in a lab", earlier.in_a_lab, asked.in_a_lab),
        ("parts of labs", earlier.parts, asked.parts),
    ):
        if before != now:
            raise InputError(f"--resume: the folder's run has other {what}; give the same options, or begin a new run")


def run(place: Path, asked: SuiteRun, engine: str | None, watcher: SuiteWatcher) -> None:
    """Run every test that the folder lacks; `engine` None: one after the other in this process. However it ends, the
    tests that have ended are kept. Raises MinigtsError when the workers are lost, InputError for unreadable files."""
    jobs = missing(place, asked)
    total = sum(job.size for job in asked.jobs())
    kept = _Kept(place, total - sum(job.size for job in jobs), total, watcher)
    for load in dict.fromkeys(job.load for job in jobs):
        beside = [job for job in jobs if job.load == load]
        if engine is None:
            with busy_processors(load):
                _in_turn(beside, kept, watcher)
        else:
            _by_workers(beside, kept, engine, load, watcher)


def missing(place: Path, asked: SuiteRun) -> list[SuiteJob]:
    """The tests that have no result yet, or whose lab could not be run."""
    done = {(each.test, each.case, each.time) for each in folder.outcomes(place) if each.verdict != "error"}
    return [
        job for job in asked.jobs() if any((test.name, case.name, job.turn) not in done for test, case in job.cases)
    ]


@contextmanager
def busy_processors(count: int) -> Iterator[None]:
    """Within the context so many programs compute without a pause. They end with this process."""
    begun: list[shell.Leader] = []
    try:
        begun.extend(shell.start(SPINS, output=subprocess.DEVNULL, dies_with_parent=True) for _ in range(count))
        yield
    finally:
        shell.kill_groups(begun)


class _Kept:
    """Keeps what comes of tests, and tells the watcher."""

    def __init__(self, place: Path, done: int, total: int, watcher: SuiteWatcher) -> None:
        self._place, self._done, self._total, self._watcher = place, done, total, watcher

    def __call__(self, _job: SuiteJob, files: Mapping[str, str]) -> None:
        self.take(on_worker.unpack(files))

    def take(self, test: Sequence[CaseReport]) -> None:
        folder.keep(self._place, test)
        for each in test:
            self._done += 1
            self._watcher.take(each.outcome, self._done, self._total)


def _without_lab(job: SuiteJob, why: str) -> list[CaseReport]:
    """The outcome of a test whose lab could not be run."""
    reason = one_line(Foreign(why), LONGEST_REASON - 1)
    return [
        CaseReport(
            CaseOutcome(test=test.name, case=case.name, time=job.turn, load=job.load, verdict="error", reason=reason),
            "",
        )
        for test, case in job.cases
    ]


def _in_turn(jobs: Sequence[SuiteJob], kept: _Kept, watcher: SuiteWatcher) -> None:
    campaign_id = secrets.token_hex(3)
    for job in jobs:
        watcher.step(job.name)
        try:
            test = performance.perform(job, on_worker.lab_name(campaign_id, job.number), lambda _: None)
        except (EnvironmentLacks, InputError):
            raise
        except (MinigtsError, ExceptionGroup) as error:
            test = _without_lab(job, str(error))
        kept.take(test)


def _by_workers(jobs: Sequence[SuiteJob], kept: _Kept, engine: str, load: int, watcher: SuiteWatcher) -> None:
    """The load begins once the workers are there: beside it their start would take minutes."""

    def lose(job: SuiteJob, why: str) -> None:
        kept.take(_without_lab(job, why))

    with engines.open_engine(engine, watcher.step) as opened, busy_processors(load):
        dispatch.run_jobs(opened, jobs, kept, lose, watcher.step)


def write_pages(place: Path, asked: SuiteRun, junit: Path | None) -> None:
    """Write the folder's table and JUnit's XML, and with `junit` that file, too. Raises MinigtsError."""
    cases = comparison.summaries(folder.outcomes(place))

    def output(outcome: CaseOutcome) -> str:
        return folder.output(place, outcome)

    text = xml.text_of(asked.settings.suite, cases, output)
    write(inside(place, folder.TABLE), table.page(asked, cases, output))
    write(inside(place, folder.JUNIT), text)
    if junit is not None:
        write(junit, text)
