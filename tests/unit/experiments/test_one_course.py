"""In virtual time one course of events is one sample: n copies of it say what one says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigts.experiment_language.claims import Claim
from minigts.experiments.claims import evaluate
from minigts.experiments.summary import Cell, Verdict
from minigts.judge.registry import WORDS
from minigts.judge.statistics import estimate
from minigts.topology.read.load import parse

PLAN = parse("name: x\ntime: virtual\nchain: {hosts: 4, link: {rtt: 10ms, rate: 50mbit}}\n", "f.yaml")
figures = st.floats(0.01, 100, allow_nan=False)
THROUGHPUTS = [word for word in WORDS if word not in ("sum-of-segments", "as-declared", "steady")]
LATENCIES = [word for word in WORDS if word not in THROUGHPUTS]
GENERAL: Mapping[str, Mapping[str, object]] = {
    "bounded": {"throughput": "bounded", "range": "20 to 60 Mbit/s"},
    "bounded above": {"throughput": "bounded", "range": "under 50 Mbit/s"},
    "compared": {"throughput": "compared", "where": {"hops": 3}, "than": {"to": "h2"}, "range": "60 to 80 %"},
    "falls": {"throughput": "falls", "by": "hops"},
    "rises": {"throughput": "rises", "by": "hops"},
}


def cell(hops: int, values: Sequence[float], basis: str, quantity: str, kind: str = "path", source: int = 1) -> Cell:
    courses = [values[0]] if basis == "course" else values
    return Cell(
        overlay="none",
        measurement="m",
        quantity=quantity,
        source=f"h{source}",
        target=f"h{source + hops}",
        hops=hops,
        kind=kind,  # type: ignore[arg-type]
        unit="ms" if quantity == "latency" else "Mbit/s",
        estimate=estimate(courses),
        values=tuple(courses),
        every=tuple(values) if basis == "course" else (),
        basis=basis,  # type: ignore[arg-type]
        predicted=10.0 * hops if quantity == "latency" else 47.8,
        published=None,
    )


def copies(quantity: str, of_each: Sequence[float], count: int, basis: str) -> list[Cell]:
    """Over one, two and three hops so many samples that are all alike; of latency the segments, too."""
    cells = [cell(hops, [value] * count, basis, quantity) for hops, value in enumerate(of_each, start=1)]
    if quantity == "latency":
        cells += [cell(1, [of_each[0]] * count, basis, quantity, "segment", source) for source in (1, 2, 3)]
    return cells


def verdict(said: Mapping[str, object], cells: Sequence[Cell]) -> Verdict:
    (found,) = evaluate([Claim.model_validate(said)], cells, PLAN)
    return found


def told(said: Mapping[str, object], quantity: str, of_each: Sequence[float]) -> list[Verdict]:
    """Of one sample; of several repetitions in one course; of several replicates."""
    kinds = ((1, "course"), (3, "course"), (20, "course"), (5, "replicates"), (20, "replicates"))
    return [verdict(said, copies(quantity, of_each, count, basis)) for count, basis in kinds]


@settings(max_examples=25)
@pytest.mark.parametrize("word", THROUGHPUTS)
@given(of_each=st.tuples(figures, figures, figures))
def test_copies_of_a_throughput_say_what_one_says(word: str, of_each: tuple[float, ...]) -> None:
    found = told({"throughput": word}, "throughput", of_each)
    assert len({each.verdict for each in found}) == 1
    assert {each.p for each in found} == {None}


@settings(max_examples=25)
@pytest.mark.parametrize("word", LATENCIES)
@given(first=st.floats(9.9, 10.1), further=st.tuples(st.floats(19.9, 20.1), st.floats(29.9, 30.1)))
def test_copies_of_a_round_trip_say_what_one_says(word: str, first: float, further: tuple[float, float]) -> None:
    found = told({"latency": word}, "latency", (first, *further))
    assert len({each.verdict for each in found}) == 1
    assert {each.p for each in found} == {None}


@settings(max_examples=25)
@pytest.mark.parametrize("word", GENERAL)
@given(of_each=st.tuples(figures, figures, figures))
def test_copies_say_what_one_says_of_ranges_and_directions(word: str, of_each: tuple[float, ...]) -> None:
    found = told(GENERAL[word], "throughput", of_each)
    assert len({each.verdict for each in found}) == 1
    assert {each.p for each in found} == {None}


@pytest.mark.parametrize("count", [1, 2, 3, 5, 20])
def test_a_course_shows_no_chance_no_interval_and_no_effect(count: int) -> None:
    """48.0 and 47.5 were `unclear`, `falls` and `falls, p = 0.05` for one, two and three copies."""
    found = verdict({"throughput": "falls-with-hops"}, copies("throughput", (48.0, 47.5), count, "course"))
    assert found.verdict == "held"
    assert found.detail == "m: 48.0 Mbit/s over 1 hop, 47.5 over 2 hops: -1.0%; exact, one course"


def test_replicates_that_differ_are_tested() -> None:
    high, low = (48.0, 48.1, 48.2, 47.9, 48.3), (40.0, 40.1, 40.2, 39.9, 40.3)
    cells = [cell(1, high, "replicates", "throughput"), cell(2, low, "replicates", "throughput")]
    found = verdict({"throughput": "falls-with-hops"}, cells)
    assert (found.verdict, round(found.p or 0, 4)) == ("held", 0.004)
    assert "(range 39.9 to 40.3, 93.75 %)" in found.detail
    assert found.detail.endswith("; 5 replicates")


@pytest.mark.parametrize(("count", "interval"), [(5, "(range 40 to 40.4, 93.75 %)"), (6, "(95 % interval ")])
def test_an_interval_that_is_the_range_is_called_that(count: int, interval: str) -> None:
    """The range of five holds their median with a chance of 15 in 16; the interval of six is narrower than theirs."""
    several = cell(1, [40 + each / 10 for each in range(count)], "replicates", "throughput")
    assert interval in verdict({"throughput": "bounded", "range": "30 to 50 Mbit/s"}, [several]).detail


def test_copies_are_one_course_and_have_no_p() -> None:
    copies_of_one = cell(1, [48.0] * 12, "replicates", "throughput")
    found = verdict({"throughput": "bounded", "range": "30 to 50 Mbit/s"}, [copies_of_one])
    assert (found.verdict, found.p) == ("held", None)
    assert found.detail.endswith("; exact, one course: 12 replicates, all alike")


def test_copies_beside_replicates_that_differ_are_one_figure() -> None:
    """Twelve copies against five replicates had a p of 1 in 6188, as twelve samples have."""
    first, last = (
        cell(1, [48.0] * 12, "replicates", "throughput"),
        cell(2, [40.0, 41, 42, 43, 44], "replicates", "throughput"),
    )
    found = verdict({"throughput": "falls", "by": "hops"}, [first, last])
    assert (found.verdict, found.p) == ("held", 1 / 32)
    assert "sign test against one course, one-sided p = 0.031" in found.detail
    assert found.detail.endswith("; 5 replicates, all alike in 1 of 2 figures")
    said = {"throughput": "compared", "where": {"hops": 3}, "than": {"to": "h3"}, "range": "80 to 95 %"}
    than = [
        cell(3, [43.0] * 12, "replicates", "throughput"),
        cell(2, [48.0, 49, 50, 51, 52], "replicates", "throughput"),
    ]
    found = verdict(said, than)
    assert (found.verdict, found.p) == ("held", 1 / 32)
