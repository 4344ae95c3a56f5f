"""What came of a seed, and by what failures are alike. Pure but for reading the test's files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.explore import program
from minigts.explore.program import Program
from minigts.explore.variables import FAILURES
from minigts.foreign import UNPRINTABLE
from minigts.language import documents

Verdict = Literal["passed", "failed", "vacuous", "hung", "error"]
LONGEST_WHY, LONGEST_DETAIL = 200, 4000
MOST_NOTES = 20
"""How many of a test's notes an outcome has, each of at most LONGEST_WHY characters."""
LARGEST_OUTPUT_BYTES = 1 << 20
"""How much of the end of a test's output is kept."""
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|[0-9]+(?:\.[0-9]+)?")
CANNOT_TELL = 125
"""The exit code of a command that cannot tell, as `git bisect run` has it."""
PYTEST_FAILED = 1
"""pytest's exit code when tests failed; higher ones mean that tests could not be run."""


class Outcome(BaseModel):
    """What came of one seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int
    tail: Annotated[int, Field(ge=0, exclude_if=lambda tail: not tail)] = 0
    """The number of the tail of the seed; 0: it is the seed itself."""
    verdict: Verdict
    """`vacuous`: what the test needs has not come about. `hung`: the test did not end in its time. `error`: the lab or
    the test could not be run, or this machine was too slow for a host."""
    why: str = ""
    """What failed, without its numbers: seeds with the same are one group. Empty for one that passed."""
    detail: str = ""
    """The same with its numbers."""
    code: int | None = None
    """The test's exit code; None if it was ended."""
    faults: int = 0
    """How many faults the seed had."""
    lab_s: float = 0.0
    """How long the test took, by the lab's clock."""
    real_s: float = 0.0
    """How long the seed took by this machine's clock, its lab's start and end included; 0 for a replay."""
    timeline_sha256: str = ""
    """The digest of its time line, which in virtual time is the same each time."""
    course: str = ""
    """In virtual time the fingerprint of its lab's course up to the test's end."""
    notes: tuple[str, ...] = ()
    """The test's own notes; of one that passed nothing else is kept."""

    @property
    def name(self) -> str:
        """`5`, or of a tail `5/2`."""
        return f"{self.seed}/{self.tail}" if self.tail else str(self.seed)

    @property
    def is_bad(self) -> bool:
        return self.verdict != "passed"


def alike(text: str) -> str:
    """The text in one line with # for each number: what failures of the same kind share."""
    return _NUMBERS.sub("#", " ".join(UNPRINTABLE.sub(" ", text).split()))[:LONGEST_WHY]


def judge_test(test: Program, code: int | None, place: Path, stopped_by: str) -> tuple[Verdict, str]:
    """The verdict on a test that has ended with `code`, or that was stopped, and what failed in words."""
    if code is None:
        return ("hung", stopped_by) if stopped_by else ("error", "the test was given up: it took too long here")
    if code == 0:
        return "passed", ""
    last = _last_line(place)
    if not test.is_pytest:
        return ("vacuous" if code == CANNOT_TELL else "failed"), f"ended with code {code}: {last}"
    if code == PYTEST_FAILED and (failures := list(_failures(place))):
        failed = [why for why, vacuous in failures if not vacuous]
        return ("failed", "; ".join(failed)) if failed else ("vacuous", "; ".join(why for why, _ in failures))
    return ("failed" if code == PYTEST_FAILED else "error"), f"pytest ended with code {code}: {last}"


def _failures(place: Path) -> Iterable[tuple[str, bool]]:
    """`test_writes.py::test_nothing_is_lost: AssertionError: 3 of 40 are lost`, for each test that failed, and whether
    that was for what it needs."""
    with suppress(OSError):
        text = paths.read_whole(place / FAILURES, LARGEST_OUTPUT_BYTES).decode(errors="replace")
        for line in text.splitlines():
            with suppress(ValueError, TypeError, KeyError):
                told = documents.document(line)
                yield f"{told['test']}: {told['why']}", told.get("vacuous") is True


def _last_line(place: Path) -> str:
    return next((line.strip() for line in reversed(output_of(place).splitlines()) if line.strip()), "it said nothing")


def output_of(place: Path) -> str:
    """The end of what the test has printed."""
    try:
        with (place / program.OUTPUT).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LARGEST_OUTPUT_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def count_verdicts(outcomes: Iterable[Outcome], what: str = "seed") -> str:
    """`8 seeds: 2 passed, 5 failed, 1 vacuous`"""
    found = [each.verdict for each in outcomes]
    counts = [f"{found.count(verdict)} {verdict}" for verdict in get_args(Verdict)[1:] if verdict in found]
    passed = f"{found.count('passed')} passed"
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}: {', '.join([passed, *counts])}"


def group_failures(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[str]]:
    """The names of the seeds and tails that did not pass, by verdict and what failed; the largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in sorted(outcomes, key=lambda outcome: (outcome.seed, outcome.tail)):
        if each.is_bad:
            groups.setdefault((each.verdict, each.why), []).append(each.name)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))
