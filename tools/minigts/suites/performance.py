"""Runs one test in a lab of one host: lays the suite's files there, runs each case, and gathers what came of it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from minigts import lab as labs
from minigts.errors import CommandTimeout, InputError, MinigtsError, Problem
from minigts.foreign import Foreign, content, one_line, whole_number
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.providers.base import HasCourse
from minigts.session import bring_up
from minigts.suites import registry
from minigts.suites.outcome import LONGEST_REASON, CaseOutcome
from minigts.suites.suite import PLACE, Case, read_file
from minigts.suites.work import HOST, SuiteJob

NS_PER_S = 10**9
MOST_OUTPUT_BYTES = 4 << 20
"""How much of the end of a case's output is kept."""
RUNNER = "run-a-case"
RUN_A_CASE = f"""#!/bin/sh
# Runs a command in a directory; prints its exit code, and the times of day in ns before and after it, in a line, and
# then what it has printed.
PATH={PLACE}/bin:$PATH
cd "{PLACE}/$1" || exit 1
shift
before=$(date +%s%N)
"$@" >/run/suite-output 2>&1 </dev/null
code=$?
echo "$code $before $(date +%s%N)"
tail -c {MOST_OUTPUT_BYTES} /run/suite-output
"""


@dataclass(frozen=True)
class CaseReport:
    """A case that has ended, and what it has printed."""

    outcome: CaseOutcome
    output: str


def perform(work: SuiteJob, name: str, say: Progress) -> list[CaseReport]:
    """Run a test in a new lab of that name, which is taken down. Raises what a lab raises; InputError for files that
    cannot be read."""
    with tempfile.TemporaryDirectory(prefix="minigts-suite-") as directory:
        files = Path(directory).resolve() / "files"
        _lay(work, files)
        with _lab(work, name, say) as lab:
            lab.provider.put(HOST, files, PurePosixPath(PLACE))
            return [_case(lab, work, case) for case in work.test.cases]


@contextmanager
def _lab(work: SuiteJob, name: str, say: Progress) -> Iterator[Lab]:
    request = bring_up.Request(work.settings.plan, work.settings.provider, name)
    lab = bring_up.bring_up(bring_up.ready(request), say, certified=False).lab
    try:
        yield lab
    finally:
        labs.down(lab)


def _lay(work: SuiteJob, files: Path) -> None:
    """Copy what the test needs into the folder `files`."""
    (files / "bin").mkdir(parents=True)
    for name, source in registry.find(work.settings.suite).files(work.place, work.test).items():
        target = files / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target)
    if work.settings.program:
        program = Path(work.settings.program)
        _copy(program, files / "bin" / registry.find(work.settings.suite).program)
    runner = files / "bin" / RUNNER
    runner.write_text(RUN_A_CASE, encoding="ascii")
    runner.chmod(0o755)


def _copy(source: Path, target: Path) -> None:
    content = read_file(source)
    try:
        target.write_bytes(content)
        shutil.copymode(source, target)
    except OSError as error:
        raise InputError([Problem(str(source), 0, f"cannot be copied: {error.strerror or error}")]) from error


def _case(lab: Lab, work: SuiteJob, case: Case) -> CaseReport:
    begun = time.monotonic()
    argv = ["sh", f"{PLACE}/bin/{RUNNER}", work.test.directory, *case.argv]
    longest_s = work.settings.longest_s
    found = CaseOutcome(
        test=work.test.name, case=case.name, time=work.turn, load=work.load, verdict="failed", lab_s=longest_s
    )
    try:
        said = lab.provider.run(HOST, argv, timeout_s=longest_s, check=True).stdout
        ended = _read(work, said, found)
    except CommandTimeout:
        ended = CaseReport(found.model_copy(update={"reason": f"did not end in {longest_s:g} s of the lab's time"}), "")
    except MinigtsError as error:
        why = one_line(Foreign(str(error)), LONGEST_REASON - 1)
        ended = CaseReport(found.model_copy(update={"verdict": "error", "reason": why, "lab_s": 0.0}), "")
    return CaseReport(
        ended.outcome.model_copy(
            update={"real_s": round(time.monotonic() - begun, 3), "fingerprint": _fingerprint(lab)}
        ),
        ended.output,
    )


def _read(work: SuiteJob, said: Foreign, found: CaseOutcome) -> CaseReport:
    """What the runner has said. Raises MinigtsError for what it cannot have said: a test may do anything there."""
    first, _, rest = said.partition("\n")
    try:
        code, before, after = (whole_number(word) for word in _words(first, 3))
    except ValueError as error:
        raise MinigtsError(f"the host's runner was disturbed: {error}") from error
    output = content(rest)
    verdict, reason = registry.find(work.settings.suite).verdict(code, output)
    return CaseReport(
        found.model_copy(
            update={
                "verdict": verdict,
                "reason": one_line(Foreign(reason), LONGEST_REASON - 1),
                "code": code,
                "lab_s": (after - before) / NS_PER_S,
                "lines": output.count("\n"),
                "output_sha256": hashlib.sha256(output.encode()).hexdigest(),
            }
        ),
        output,
    )


def _words(line: Foreign, count: int) -> Sequence[Foreign]:
    found = line.split()
    if len(found) != count:
        raise ValueError(f"{line!r} has no {count} numbers")
    return found


def _fingerprint(lab: Lab) -> str:
    try:
        return lab.provider.course().fingerprint if isinstance(lab.provider, HasCourse) else ""
    except MinigtsError:
        return ""
