"""Claims that name a law, and how much of its range a figure uses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from experiment_lab import chain
from pydantic import ValidationError

from minigts import paths
from minigts.experiment_language.claims import Claim
from minigts.experiments import prepare
from minigts.experiments.claims import evaluate
from minigts.experiments.summary import Cell
from minigts.judge.ranges import Range
from minigts.judge.statistics import estimate

LAW = {
    "text": "The rate is the window over the round trip.",
    "law": "window over round trip",
    "tolerance": "Headers are 4 % of a frame.",
    "failure": "The wire would have another delay.",
}
BOUNDED = {"throughput": "bounded", "range": "90 to 110 Mbit/s"}


def cell(value: float, condition: str = "", measurement: str = "tcp") -> Cell:
    return Cell(
        overlay="none",
        measurement=measurement,
        quantity="throughput",
        source="ams",
        target="bra",
        hops=1,
        kind="path",
        unit="Mbit/s",
        estimate=estimate((value,)),
        values=(value,),
        published=None,
        condition=condition,
        basis="course",
    )


def used(said: dict[str, object], *cells: Cell) -> float | None:
    found, *_ = evaluate([Claim.model_validate(said)], cells, chain())
    return found.used


@pytest.mark.parametrize(
    ("low", "high", "value", "share"),
    [
        (90, 110, 100, 0),
        (90, 110, 90, 1),
        (90, 110, 105, 0.5),
        (90, 110, 120, 2),
        (-math.inf, 30, 15, 0.5),
        (-math.inf, 30, 60, 2),
        (80, math.inf, 160, 0.5),
        (80, math.inf, 40, 2),
        (-math.inf, 0, 0, 1),
        (-math.inf, 0, 1, math.inf),
        (5, 5, 5, 0),
    ],
)
def test_the_middle_of_a_range_uses_nothing_and_its_limit_all(
    low: float, high: float, value: float, share: float
) -> None:
    assert Range(low, high, "%", "").share(value) == pytest.approx(share)


def test_the_figure_that_uses_most_is_told() -> None:
    assert used(BOUNDED, cell(101, "window=16KiB"), cell(95, "window=64KiB")) == pytest.approx(0.5)
    compared = {"throughput": "compared", "of": "tcp", "than": {"of": "other"}, "range": "90 to 110 %"}
    assert used(compared, cell(98), cell(100, measurement="other")) == pytest.approx(0.2)
    share = {**compared, "throughput": "share", "range": "40 to 60 %"}
    assert used(share, cell(45), cell(55, measurement="other")) == pytest.approx(0.5)
    by_window = [cell(value, f"window={kib}KiB") for kib, value in ((16, 10), (32, 20), (64, 40))]
    assert used({"throughput": "slope", "by": "window", "range": "0.8 to 1.0"}, *by_window) == pytest.approx(1)
    follows = {"throughput": "follows", "formula": "10", "unit": "Mbit/s", "range": "90 to 110 %"}
    assert used(follows, cell(9.5)) == pytest.approx(0.5)


def test_without_a_range_or_a_distance_nothing_is_told() -> None:
    ends = [cell(95, "window=16KiB"), cell(90, "window=64KiB")]
    assert used({"throughput": "falls", "by": "window"}, *ends) is None
    assert used({"throughput": "bounded", "range": "under 0 Mbit/s"}, cell(1)) is None


@pytest.mark.parametrize("lacking", ["text", "tolerance", "failure"])
def test_a_law_says_how_its_range_was_derived_and_what_a_failure_means(lacking: str) -> None:
    said = {key: value for key, value in LAW.items() if key != lacking}
    with pytest.raises(ValidationError, match=f"`law:` needs `{lacking}:`"):
        Claim.model_validate({**BOUNDED, **said})


def test_what_explains_a_law_is_of_a_law_and_not_of_its_digest() -> None:
    with pytest.raises(ValidationError, match="`failure:` is of a claim with a `law:`"):
        Claim.model_validate({**BOUNDED, "failure": LAW["failure"]})
    assert Claim.model_validate({**BOUNDED, **LAW}).digest == Claim.model_validate(BOUNDED).digest


@pytest.mark.parametrize(("quick", "number"), [("{repetitions: 1}", 3), ("{replicates: 1, repetitions: 1}", 1)])
def test_a_quick_run_of_one_course_looks_three_times_unless_its_file_says_otherwise(
    tmp_path: Path, quick: str, number: int
) -> None:
    topology = paths.project_root() / "topologies" / "pair.yaml"
    file = tmp_path / "echoes.yaml"
    file.write_text(
        f"name: echoes\ntitle: Echoes\ntopology: {topology}\noverlays: [none]\nseed: 1\nrepetitions: 1\n"
        f"quick: {quick}\n"
        "measurements:\n  - {name: echo, tool: ping, paths: [every-pair]}\n"
    )
    [found] = prepare.prepare_all([file], paper=False, quick=True, only=(), time="virtual")
    assert len(found.samples) == number
