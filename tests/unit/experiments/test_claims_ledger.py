"""ledger_of_laws.txt has each law that a lab was ever held against, with the ranges that it has had.

It is a second book: an experiment's file has the same in `history:`. So a law cannot vanish from an experiment, and a
range cannot change, unless whoever does it adds to `history:` and writes it here, too. A law that fails stays in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from minigts import paths
from minigts.experiment_language.claims import Claim
from minigts.experiments.load import load

LEDGER = Path(__file__).with_name("ledger_of_laws.txt")
EXPERIMENTS = sorted((paths.project_root() / "experiments").rglob("*.yaml"))
LAW: dict[str, object] = {
    "throughput": "bounded",
    "range": "90 to 110 Mbit/s",
    "text": "The rate is the window over the round trip.",
    "law": "window over round trip",
    "tolerance": "Headers are 4 % of a frame.",
    "failure": "The wire would have another delay.",
}
FORMER = {
    "since": "2026-11-26",
    "range": "95 to 105 Mbit/s",
    "figures": "before",
    "came_out": "92 Mbit/s",
    "why": "Headers take 4 %.",
}
NOW = {"since": "2026-11-27", "range": "90 to 110 Mbit/s", "figures": "after"}


def held() -> list[tuple[str, str, str, tuple[str, ...], Claim]]:
    """Experiment, law, what is held, the ranges it has had, and the claim itself, of each claim with a law."""
    return [
        (
            file.stem,
            claim.law,
            claim.words.removesuffix(f", {claim.range.written}" if claim.range else ""),
            tuple(f"{each.since} {each.range} ({each.figures})" for each in claim.history),
            claim,
        )
        for file in EXPERIMENTS
        for claim in load(file).claims
        if claim.law
    ]


HELD = held()
WRITTEN = ["\t".join((experiment, law, what, *ranges)) for experiment, law, what, ranges, _ in HELD]


def lines() -> list[str]:
    return [line for line in LEDGER.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def test_no_law_has_vanished_and_no_range_has_changed_without_a_line() -> None:
    """What is missing on either side; a range that changed is on both."""
    lacking, unwritten = Counter(lines()) - Counter(WRITTEN), Counter(WRITTEN) - Counter(lines())
    assert list(lacking) == [], "laws of the ledger that no experiment has so any more"
    assert list(unwritten) == [], "add these lines to ledger_of_laws.txt"


@pytest.mark.parametrize("experiment", sorted({experiment for experiment, *_ in HELD}))
def test_each_law_says_what_it_tests_and_when_its_range_was_written(experiment: str) -> None:
    own = [(law, claim) for of, law, _, _, claim in HELD if of == experiment]
    assert [law for law, claim in own if claim.kind is None or not claim.history] == []
    kinds = {law: {claim.kind for of, claim in own if of == law} for law, _ in own}
    assert [law for law, several in kinds.items() if len(several) > 1] == [], "a law is of one kind"
    days = [[each.since for each in claim.history] for _, claim in own]
    assert [each for each in days if each != sorted(each)] == []


def refused(*history: dict[str, str], **more: object) -> str:
    with pytest.raises(ValidationError) as caught:
        Claim.model_validate({**LAW, "history": history, **more})
    return str(caught.value)


def test_a_range_that_changed_without_a_line_is_refused() -> None:
    assert Claim.model_validate({**LAW, "kind": "emerges", "history": [FORMER, NOW]}).history[1].figures == "after"
    said = refused(NOW, FORMER | {"came_out": "", "why": ""})
    assert "range: '90 to 110 Mbit/s' is not the last of `history:`, '95 to 105 Mbit/s'; add a line there" in said


@pytest.mark.parametrize("lacking", ["came_out", "why"])
def test_a_range_that_was_given_up_says_for_which_figure_and_why(lacking: str) -> None:
    said = refused({**FORMER, lacking: ""}, NOW)
    assert "history: '95 to 105 Mbit/s' was given up, so it needs `came_out:` and `why:`" in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"since": "27.11.2026"}, "'27.11.2026' is no date; write it as in 2026-11-27"),
        ({"figures": "perhaps"}, "'perhaps' is not when a range was written: write before, after or unknown"),
        ({"on": "2026-11-27"}, "on"),
    ],
)
def test_a_line_of_the_history_that_is_wrong_is_told(changed: dict[str, str], said: str) -> None:
    assert said in refused({**NOW, **changed})


@pytest.mark.parametrize("key", ["kind", "history"])
def test_kind_and_history_are_of_a_law(key: str) -> None:
    said: Sequence[object] | str = {"kind": "clock", "history": [NOW]}[key]
    with pytest.raises(ValidationError, match=f"`{key}:` is of a claim with a `law:`"):
        Claim.model_validate({"throughput": "bounded", "range": NOW["range"], key: said})


def test_what_explains_has_no_part_in_the_digest() -> None:
    with_history = Claim.model_validate({**LAW, "kind": "clock", "history": [FORMER, NOW]})
    assert with_history.digest == Claim.model_validate(LAW).digest
    assert "history" not in Claim.model_validate(LAW).model_dump(mode="json")
