"""What of a suite's tests differs between several times. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from minigts.suites.outcome import CaseOutcome
from minigts.suites.suite import Verdict

FIRST_TO_CHOOSE: Sequence[Verdict] = ("error", "failed", "skipped", "passed")
"""Of several verdicts on a case, the first of these is shown for all."""


class OutputDifference(NamedTuple):
    """The first line in which two outputs differ. A text is empty where that output has ended."""

    number: int
    one: str
    other: str


class CaseSummary(NamedTuple):
    """A case with what came of it each time, in the order of times."""

    outcomes: tuple[CaseOutcome, ...]

    @property
    def first(self) -> CaseOutcome:
        return self.outcomes[0]

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(each.verdict for each in self.outcomes)

    @property
    def chosen(self) -> CaseOutcome:
        """The outcome that is shown for all."""
        return min(self.outcomes, key=lambda each: FIRST_TO_CHOOSE.index(each.verdict))

    @property
    def changes_verdict(self) -> bool:
        return len(self.verdicts) > 1

    @property
    def changes_output(self) -> bool:
        return len({each.output_sha256 for each in self.outcomes}) > 1

    @property
    def changes_course(self) -> bool:
        return len({each.fingerprint for each in self.outcomes}) > 1


def summaries(outcomes: Iterable[CaseOutcome]) -> list[CaseSummary]:
    """Every case, in the order of tests; cases in the order in which they ran."""
    found: dict[tuple[str, str], list[CaseOutcome]] = {}
    for each in outcomes:
        found.setdefault((each.test, each.case), []).append(each)
    by_name = sorted(found.items(), key=lambda item: item[0][0])
    return [CaseSummary(tuple(sorted(each, key=lambda outcome: outcome.time))) for _, each in by_name]


def is_amiss(case: CaseSummary, *, same_output: bool) -> bool:
    """Whether the case failed, or its verdict was not the same each time; with `same_output`, its output neither."""
    return case.chosen.is_bad or case.changes_verdict or (same_output and case.changes_output)


def first_difference(one: str, other: str) -> OutputDifference | None:
    """The first line in which two outputs differ; None if they are equal."""
    pairs = zip_longest(one.splitlines(), other.splitlines())
    for number, (mine, yours) in enumerate(pairs, 1):
        if mine != yours:
            return OutputDifference(number, mine or "", yours or "")
    return None
