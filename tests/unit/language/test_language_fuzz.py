"""Each language on broken files: accepted, or refused in words. `bench/run fuzz` takes 100 000 of each."""

from __future__ import annotations

import pytest

import fuzzed_languages
from fuzzing import Subject, fuzz


@pytest.mark.parametrize("subject", fuzzed_languages.subjects(), ids=lambda subject: subject.name)
def test_a_broken_file_is_accepted_or_refused_in_words(subject: Subject, request: pytest.FixtureRequest) -> None:
    mutants = max(1, request.config.getoption("--fuzz") // 10)
    outcome = fuzz(subject, 0, mutants)
    assert outcome.failed == 0, "\n".join(f"{each.number}: {each.how}" for each in outcome.failures)
    assert outcome.mutants == mutants
    assert 0 < outcome.accepted < mutants
