from __future__ import annotations

import pytest
from experiment_lab import chain
from pydantic import ValidationError

from minigts.experiment_language.claims import Claim
from minigts.experiments.claims import _short, evaluate, magnitude
from minigts.experiments.summary import Cell
from minigts.judge.statistics import Estimate

PLAN = chain()


def cell(
    value: float, half: float = 1.0, overlay: str = "none", condition: str = "", mtu: int = 1500, metric: str = ""
) -> Cell:
    return Cell(
        overlay=overlay,
        measurement="udp",
        quantity="throughput",
        source="ams",
        target="bra",
        hops=1,
        kind="path",
        unit="ms" if metric == "jitter_ms" else "Mbit/s",
        estimate=Estimate(5, value, half, value, value - half, value + half),
        predicted=None,
        published=None,
        metric=metric,
        condition=condition,
        mtu=mtu,
    )


def claim(**said: object) -> Claim:
    return Claim.model_validate(said)


def verdict(said: Claim, *cells: Cell) -> str:
    return evaluate([said], cells, PLAN)[0].verdict


NEARLY = claim(throughput="compared", than={"overlay": "none"}, range="90 to 100 %")


@pytest.mark.parametrize(
    ("value", "half", "word"), [(95, 1, "held"), (80, 1, "failed"), (91, 2, "undecided"), (120, 1, "failed")]
)
def test_a_ratio_holds_when_its_whole_interval_lies_in_the_range(value: float, half: float, word: str) -> None:
    cells = [cell(100, 0.1), cell(value, half, overlay="swarm")]
    assert [(one.overlay, one.verdict) for one in evaluate([NEARLY], cells, PLAN)] == [("swarm", word)]


def test_a_narrow_range_shows_as_many_digits_as_it_is_written_with() -> None:
    exact = claim(throughput="compared", than={"overlay": "none"}, range="99.99 to 100.01 %")
    cells = [cell(100, 0.001), cell(100.004, 0.001, overlay="swarm")]
    [found] = evaluate([exact], cells, PLAN)
    assert found.verdict == "held"
    assert "swarm) 100 Mbit/s against 100 Mbit/s" in found.detail
    assert ": 100.00 % (95 % interval 100.00 to 100.01 %), where 99.99 to 100.01 % was expected" in found.detail


def test_a_comparison_without_its_other_side_is_undecided() -> None:
    found = evaluate([NEARLY], [cell(95, overlay="swarm")], PLAN)
    assert [(one.verdict, "was not measured" in one.detail) for one in found] == [("undecided", True)]


def test_of_several_comparisons_one_that_fails_decides() -> None:
    double = claim(throughput="compared", where={"offload": "on"}, than={"offload": "off"}, range="150 to 250 %")
    good = [cell(200, condition="datagram=1packet offload=on"), cell(100, condition="datagram=1packet offload=off")]
    bad = [cell(100, condition="datagram=3packets offload=on"), cell(100, condition="datagram=3packets offload=off")]
    assert verdict(double, *good) == "held"
    assert verdict(double, *good, *bad) == "failed"


@pytest.mark.parametrize(("mtu", "value", "word"), [(1450, 70, "held"), (1450, 99, "failed"), (1500, 70, "undecided")])
def test_a_drop_past_the_mtu_compares_the_two_sizes_around_it(mtu: int, value: float, word: str) -> None:
    drop = claim(throughput="drops-past-mtu", range="55 to 85 %")
    sizes = {"1300B": 95.0, "1400B": 100.0, "1440B": value}
    cells = [cell(mbit, 0.1, condition=f"datagram={size}", mtu=mtu) for size, mbit in sizes.items()]
    assert verdict(drop, *cells) == word


@pytest.mark.parametrize(("last", "word"), [(50, "held"), (99.9, "failed"), (150, "failed")])
def test_falls_looks_at_the_ends_by_size_and_not_by_spelling(last: float, word: str) -> None:
    falls = claim(throughput="falls", by="stress")
    cells = [
        cell(value, 0.1, condition=f"stress={share}") for share, value in {"100%": last, "0%": 100, "20%": 80}.items()
    ]
    assert verdict(falls, *cells) == word


def test_a_further_metric_is_spoken_of_by_its_own_quantity() -> None:
    calm = claim(jitter="bounded", range="under 30 ms")
    assert verdict(calm, cell(2, metric="jitter_ms"), cell(500)) == "held"
    assert verdict(calm, cell(29.5, metric="jitter_ms")) == "undecided"
    assert verdict(calm, cell(500)) == "undecided"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"throughput": "compared", "than": {"overlay": "none"}}, "throughput: compared needs `range:`"),
        ({"jitter": "bounded", "range": "under 30"}, "needs the unit ms"),
        ({"jitter": "bounded", "range": "under 30 s"}, "needs the unit ms"),
        ({"loss": "falls"}, "loss: falls needs `by:`"),
        ({"loss": "bounded", "jitter": "bounded", "range": "under 1 %"}, "names exactly one of"),
    ],
)
def test_a_claim_that_says_too_little_is_refused(said: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        claim(**said)


def test_magnitudes_of_what_varies() -> None:
    assert sorted(["1gbit", "10mbit", "1mbit"], key=magnitude) == ["1mbit", "10mbit", "1gbit"]
    assert [magnitude(word) for word in ("1400B", "3packets", "40%", "9")] == [1400, 3, 40, 9]


@pytest.mark.parametrize(
    ("value", "decimals", "said"),
    [
        (0.2064, 0, "0.206"),
        (47.63, 0, "47.6"),
        (999.4, 0, "999"),
        (1000, 0, "1000"),
        (2710.4, 0, "2710"),
        (123456, 0, "123456"),
        (-2710.4, 0, "-2710"),
        (-0.2064, 0, "-0.206"),
        (47.6349, 2, "47.635"),
        (0, 0, "0"),
    ],
)
def test_a_figure_is_said_in_three_digits_or_whole(value: float, decimals: int, said: str) -> None:
    assert _short(value, decimals) == said


def test_a_change_names_both_ends_and_by_how_much() -> None:
    falls = claim(throughput="falls", by="stress")
    cells = [cell(value, 0.1, condition=f"stress={share}") for share, value in {"0%": 2000, "100%": 1500}.items()]
    [found] = evaluate([falls], cells, PLAN)
    assert found.detail.startswith("udp: 2000 Mbit/s at stress 0%, 1500 Mbit/s at 100%")
    assert ": -25%" in found.detail


def test_a_sentence_has_three_digits_of_each_figure() -> None:
    falls = claim(throughput="falls", by="stress")
    cells = [cell(value, 0.1, condition=f"stress={share}") for share, value in {"0%": 47.634, "100%": 35.126}.items()]
    [found] = evaluate([falls], cells, PLAN)
    assert found.detail.startswith("udp: 47.6 Mbit/s at stress 0%, 35.1 Mbit/s at 100% (95 % interval 35 to 35.2)")
