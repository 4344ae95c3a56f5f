"""Each word of `expect:` and `claims:` has one meaning, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from minigts.experiment_language.claims import Claim
from minigts.experiments.claims import evaluate
from minigts.experiments.summary import Cell
from minigts.fidelity.certificate import rtt_row
from minigts.fidelity.expectations import Measurements, expected_rows, judge_expectation
from minigts.judge import ranges, tolerances
from minigts.judge.registry import WORDS
from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.statistics import Estimate, estimate
from minigts.judge.verdicts import SHOWN, combine
from minigts.judge.verdicts import WORDS as VERDICTS
from minigts.report.points import latency_points
from minigts.report.read import SummaryRow
from minigts.tools import TOOLS
from minigts.topology.fields import EXPECTATIONS, LatencyWord, ThroughputWord
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

PLAN = parse(
    "name: x\nchain: {hosts: 4, link: {rtt: 10ms, rate: 50mbit}}\n"
    "expect: [{latency: sum-of-segments}, {throughput: within-ceiling}, {throughput: falls-with-hops}]\n",
    "f.yaml",
)
LOOSE = parse("name: x\ntolerances: {rtt: 5ms}\nchain: {hosts: 4, link: {rtt: 10ms, rate: 50mbit}}\n", "f.yaml")
JITTERY = parse("name: x\nchain: {hosts: 3, link: {rtt: 10ms, jitter: 1ms}}\n", "f.yaml")
CEILING_MBIT = 50 * 1448 / 1514


def over(*mbit: float, half: float = 0.2) -> list[PathSamples]:
    """TCP over one, two, three hops."""
    return [
        PathSamples(
            source="h1",
            target=f"h{hops + 1}",
            hops=hops,
            unit="Mbit/s",
            estimate=Estimate(2, value, half, value, value - half, value + half),
            predicted=CEILING_MBIT,
        )
        for hops, value in enumerate(mbit, start=1)
    ]


def round_trips(*path_ms: float) -> list[PathSamples]:
    """Three segments of 10 ms, and the paths over two and three of them."""
    segments = [(f"h{i}", f"h{i + 1}", 1, 10.0) for i in (1, 2, 3)]
    paths = [("h1", f"h{hops + 1}", hops, value) for hops, value in enumerate(path_ms, start=2)]
    return [
        PathSamples(
            source=source,
            target=target,
            hops=hops,
            kind="segment" if hops == 1 else "path",
            unit="ms",
            estimate=estimate([value]),
            predicted=10.0 * hops,
        )
        for source, target, hops, value in (*segments, *paths)
    ]


class Measured(Measurements):
    """As if these had been measured once."""

    def __init__(self, latencies: Sequence[PathSamples], throughputs: Sequence[PathSamples]) -> None:
        self.__dict__ |= {"latencies": tuple(latencies), "throughputs": tuple(throughputs)}
        self.__dict__ |= {"further_round_trips": (), "notes": {}}


def once(*mbit: float) -> list[PathSamples]:
    """As `minigts check` has it: a single measurement, and the file's tolerance for an interval."""
    rate = tolerances.rate(PLAN)
    return [
        PathSamples(
            source=each.source,
            target=each.target,
            hops=each.hops,
            unit=each.unit,
            estimate=measured_once(value, rate),
            predicted=each.predicted,
        )
        for each, value in zip(over(*mbit), mbit, strict=True)
    ]


def test_every_word_that_a_file_may_write_is_judged_by_one_function() -> None:
    assert {*WORDS} == {*get_args(LatencyWord), *get_args(ThroughputWord)}
    assert {*WORDS} == {word for words in EXPECTATIONS.values() for word in words}


@pytest.mark.parametrize(
    ("mbit", "word"),
    [
        ((0.85, 1.02), "held"),
        ((1.0, 0.849), "failed"),
        ((1.021, 1.0), "failed"),
        ((1.15, 1.15), "failed"),  # "not above it" was promised, and passed
    ],
)
def test_within_the_ceiling_is_85_to_102_per_cent_for_check_and_claims(mbit: tuple[float, ...], word: str) -> None:
    values = [share * CEILING_MBIT for share in mbit]
    assert WORDS["within-ceiling"](over(*values), PLAN).word == word
    rows = [
        row
        for row in expected_rows(PLAN, Measured(round_trips(), once(*values)))
        if row.quantity.startswith("TCP over")
    ]
    assert [row.ok for row in rows].count(False) == sum(not 0.85 <= share <= 1.02 for share in mbit)
    assert len(rows) == len(mbit)
    assert claimed("within-ceiling", values) == word


@pytest.mark.parametrize(
    ("mbit", "word"),
    [
        ((47.0, 40.0), "held"),
        ((47.0, 47.1), "failed"),  # level TCP passed `check`, and failed as a claim
        ((47.0, 46.9), "failed"),
        ((40.0, 47.0), "failed"),
        ((47.0, 46.0), "undecided"),
    ],
)
def test_a_level_throughput_does_not_fall_with_hops_for_check_nor_claims(mbit: tuple[float, ...], word: str) -> None:
    """One measurement is known to 2 %, so it falls clearly from some 4 % on; 2 % are undecided."""
    assert judge_expectation(PLAN, "throughput", "falls-with-hops", Measured((), once(*mbit))).word == word
    (row,) = [
        row
        for row in expected_rows(PLAN, Measured(round_trips(), once(*mbit)))
        if row.quantity == "TCP, falls-with-hops"
    ]
    assert row.ok is {"held": True, "failed": False, "undecided": None}[word]
    assert row.sentence().endswith(f": {word}")
    assert claimed("falls-with-hops", mbit, half=0.02 * mbit[0]) == word


def claimed(word: str, mbit: Sequence[float], half: float = 0.2) -> str:
    """The verdict on the same figures as an experiment's claim."""
    cells = [
        Cell(
            **{**vars(each), "overlay": "none", "measurement": "tcp", "quantity": "throughput", "published": None},
        )
        for each in over(*mbit, half=half)
    ]
    (verdict,) = evaluate([Claim.model_validate({"throughput": word})], cells, PLAN)
    return verdict.verdict


@pytest.mark.parametrize(
    ("mbit", "words"),
    [
        # falls-with-hops, step-after-first-hop, falls-slightly, level
        ((887.0, 380.0, 253.0), ("held", "held", "failed", "failed")),
        ((90.0, 60.0, 10.0), ("held", "failed", "failed", "failed")),
        ((47.0, 46.0, 44.0), ("held", "failed", "held", "held")),
        ((47.0, 47.0, 46.9), ("failed", "failed", "failed", "held")),
        ((47.0, 40.0, 47.0), ("failed", "held", "failed", "held")),
        ((40.0, 44.0, 48.0), ("failed", "failed", "failed", "failed")),
    ],
    ids=["step", "worse and worse", "slight", "level", "dip", "rise"],
)
def test_the_shapes_over_the_hops_are_told_apart(mbit: tuple[float, ...], words: tuple[str, ...]) -> None:
    shapes = ("falls-with-hops", "step-after-first-hop", "falls-slightly", "level")
    assert tuple(WORDS[shape](over(*mbit), PLAN).word for shape in shapes) == words


@pytest.mark.parametrize("word", ["step-after-first-hop", "falls-slightly", "level"])
def test_wide_intervals_leave_a_shape_undecided(word: str) -> None:
    assert WORDS[word](over(50.0, 44.0, 43.0, half=8.0), PLAN).word == "undecided"


@pytest.mark.parametrize("word", get_args(ThroughputWord)[1:])
def test_one_hop_count_has_no_shape(word: str) -> None:
    assert WORDS[word](over(47.0), PLAN).word == "undecided"


def test_a_step_needs_three_hop_counts() -> None:
    assert WORDS["step-after-first-hop"](over(90.0, 40.0), PLAN).word == "undecided"


@pytest.mark.parametrize(("path_ms", "agrees"), [(30.49, True), (30.51, False), (29.49, False)])
def test_a_sum_of_segments_is_judged_alike_by_check_claims_and_report(path_ms: float, agrees: bool) -> None:
    """30 ms: 0.2 ms + 1 % allow 0.5 ms."""
    cells = round_trips(20.0, path_ms)
    word = "held" if agrees else "failed"
    assert WORDS["sum-of-segments"](cells, PLAN).word == word
    rows = [
        row for row in expected_rows(PLAN, Measured(cells, over(47.0, 40.0))) if row.quantity == "RTT, sum of segments"
    ]
    assert [(row.subject, row.ok, row.tolerance) for row in rows] == [("h1-h3", True, 0.4), ("h1-h4", agrees, 0.5)]
    points = latency_points([summary_row(cell) for cell in cells], "latency", PLAN)
    assert [point.within for point in points if point.hops > 1] == [True, agrees]


def summary_row(cell: PathSamples) -> SummaryRow:
    return SummaryRow(
        overlay="none",
        measurement="latency",
        tool=TOOLS["netperf-rr"],
        source=cell.source,
        target=cell.target,
        hops=cell.hops,
        kind=cell.kind,
        n=1,
        mean=cell.estimate.mean,
        stdev=None,
        median=cell.estimate.median,
        low=None,
        high=None,
        unit="ms",
        predicted=cell.predicted,
        published=None,
    )


def test_what_a_file_allows_holds_for_the_certificate_the_sums_and_the_report() -> None:
    cells = round_trips(20.0, 34.0)
    assert WORDS["sum-of-segments"](cells, PLAN).word == "failed"
    assert WORDS["sum-of-segments"](cells, LOOSE).word == "held"
    assert WORDS["as-declared"](cells, LOOSE).word == "held"
    assert rtt_row(LOOSE, "h1-h4", LOOSE.path("h1", "h4"), [34.0]).ok
    points = latency_points([summary_row(cell) for cell in cells], "latency", LOOSE)
    assert all(point.within is not False for point in points)


def test_a_tolerance_says_what_it_is_and_who_set_it() -> None:
    default, written = tolerances.round_trip(PLAN), tolerances.round_trip(LOOSE)
    assert (default.in_words, default.source) == ("0.2 ms + 1 %", tolerances.DEFAULT)
    assert (written.in_words, written.source) == ("5 ms", tolerances.FILE)
    over_jitter = tolerances.round_trip(JITTERY, JITTERY.path("h1", "h3"))
    assert over_jitter.in_words == "0.2 ms + 1 % + a quarter of the jitter"
    assert over_jitter.distance(20.0) == pytest.approx(0.2 + 0.2 + 0.25 * 4)
    assert tolerances.round_trip(None) == default


def test_an_expectation_that_cannot_be_judged_is_shown_as_undecided() -> None:
    """In mode neighbours the underlay has no path of several hops."""
    plan = parse(
        "name: y\nrouting: neighbours\nchain: {hosts: 3, link: {rtt: 10ms}}\nexpect: [{latency: sum-of-segments}]\n",
        "f",
    )
    (row,) = expected_rows(plan, Measured(round_trips()[:2], ()))
    assert row.ok is None
    assert "undecided" in row.sentence()


def test_every_verdict_has_its_words_for_people() -> None:
    assert SHOWN == {"held": "held", "failed": "failed", "undecided": "undecided", "vacuous": "vacuous here"}
    assert {*SHOWN} == {*VERDICTS}


def test_of_several_verdicts_one_that_failed_decides() -> None:
    assert combine(["held", "undecided", "failed"]) == "failed"
    assert combine(["held", "undecided"]) == "undecided"
    assert combine(["vacuous", "held"]) == "held"
    assert combine(["vacuous", "vacuous"]) == "vacuous"
    assert combine(["held", "held"]) == "held"


def sampled(*values_ms: float, p99: float | None = None) -> PathSamples:
    """One hop, with these samples."""
    return PathSamples(
        source="h1", target="h2", hops=1, unit="ms", estimate=estimate(values_ms), values=tuple(values_ms), p99=p99
    )


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        ([sampled(10.0, 10.1, 10.1, 10.1, 10.2)], "held"),
        ([sampled(10.0, 10.1, 10.1, 10.1, 10.5)], "failed"),  # 0.2 ms + 1 % are 0.301 ms
        ([sampled(10.0, 10.1, 10.1, 10.1, 10.2), sampled(9.0, 10.0, 10.0, 10.0, 10.0)], "failed"),
        ([sampled(10.0, 10.1, 10.1, 10.1, 10.2), sampled(10.0, 10.1)], "undecided"),
        ([sampled(10.0, 10.1, 10.1, 10.1, 10.5), sampled(10.0, 10.1)], "failed"),
        ([sampled(10.0, 10.1, 10.1, 30.0)], "undecided"),
        ([sampled(10.0, p99=10.2)], "held"),
        ([sampled(10.0, p99=12.0)], "failed"),
        ([], "undecided"),
    ],
)
def test_steady_is_a_path_of_which_no_sample_lies_outside_the_tolerance(cells: list[PathSamples], word: str) -> None:
    assert WORDS["steady"](cells, PLAN).word == word


def test_steady_names_the_path_that_varies_most_of_what_it_may() -> None:
    detail = WORDS["steady"]([sampled(10.0, 10.1, 10.1, 10.1, 10.5), sampled(*[1.0] * 5)], PLAN).detail
    assert detail == (
        "1 of 2 paths vary; the largest deviation, h1 to h2 over 1 hop, is 0.400 ms from a median of 10.10 ms "
        "(0.30 ms allowed)"
    )


SPREAD = (0.996, 0.997, 0.998, 0.999, 1.001, 1.002, 1.003, 1.004)
"""Eight samples, of which each of two tests is sure that they are above what lies a hundredth below them."""


def sampled_over(*mbit: float) -> list[PathSamples]:
    """TCP over one, two, three hops, eight samples each around these."""
    cells = []
    for each, value in zip(over(*mbit), mbit, strict=True):
        values = tuple(value * share for share in SPREAD)
        cells.append(replace(each, values=values, estimate=estimate(values)))
    return cells


@pytest.mark.parametrize(
    ("shares", "word"),
    [
        ((0.90, 1.00), "held"),
        ((0.86, 1.01), "held"),
        ((0.90, 0.84), "failed"),
        ((1.03, 1.00), "failed"),
        ((0.851, 1.00), "undecided"),  # three of eight samples lie below
        ((1.019, 1.00), "undecided"),
    ],
)
def test_samples_of_a_ceiling_are_held_against_both_its_ends(shares: tuple[float, ...], word: str) -> None:
    assert WORDS["within-ceiling"](sampled_over(*(share * CEILING_MBIT for share in shares)), PLAN).word == word


@pytest.mark.parametrize(
    ("last", "is_level", "falls_slightly"),
    [
        (47.0, "held", "failed"),
        (45.0, "held", "held"),
        (43.0, "held", "held"),
        (42.3, "undecided", "undecided"),  # a tenth less, within the samples' own spread
        (41.0, "failed", "failed"),
        (50.0, "held", "failed"),
        (51.7, "undecided", "failed"),
        (53.0, "failed", "failed"),
    ],
)
def test_a_tenth_up_or_down_is_level_and_only_down_is_a_slight_fall(
    last: float, is_level: str, falls_slightly: str
) -> None:
    cells = sampled_over(47.0, last)
    assert (WORDS["level"](cells, PLAN).word, WORDS["falls-slightly"](cells, PLAN).word) == (is_level, falls_slightly)


@pytest.mark.parametrize("wide_first", [True, False])
def test_a_path_that_varies_more_and_may_vary_much_more_is_not_named(wide_first: bool) -> None:
    """0.4 of 0.3 ms that are allowed at 10 ms is more than 1 of 1.2 at 100 ms."""
    both = [sampled(100.0, 100.0, 100.0, 100.0, 101.0), sampled(10.0, 10.0, 10.0, 10.0, 10.4)]
    detail = WORDS["steady"](both if wide_first else both[::-1], PLAN).detail
    assert "is 0.400 ms from a median of 10.00 ms (0.30 ms allowed)" in detail


@pytest.mark.parametrize("wide_first", [True, False])
def test_the_furthest_of_sums_is_the_one_that_misses_most_of_what_it_may(wide_first: bool) -> None:
    """By 0.4 ms at 20 ms, where 0.4 are allowed, and not by 0.45 at 30, where 0.5 are."""
    declared = [
        PathSamples(
            source="h1",
            target=target,
            hops=hops,
            unit="ms",
            estimate=estimate([predicted + surplus]),
            predicted=predicted,
        )
        for target, hops, predicted, surplus in (("h4", 3, 30.0, 0.45), ("h3", 2, 20.0, -0.4))
    ]
    detail = WORDS["as-declared"](declared if wide_first else declared[::-1], PLAN).detail
    assert "; the largest difference, h1 to h3 over 2 hops, is -0.40 ms (0.40 ms allowed)" in detail


def virtual(more: str = "") -> Plan:
    text = f"name: x\ntime: virtual\nchain: {{hosts: 4, link: {{rtt: 10ms, rate: 50mbit}}{more}}}\n"
    return parse(text, "f.yaml")


def test_in_virtual_time_round_trips_are_held_to_what_the_clock_resolves() -> None:
    """2 µs a figure; and what nothing declares, 200 bytes at 50 Mbit/s three times there and back."""
    plan = virtual()
    path = plan.path("h1", "h4")
    assert tolerances.exchange_tolerance(plan, path, 4).distance(30.0) == pytest.approx(0.008)
    assert tolerances.exchange_tolerance(plan, path, 1, frames=True).distance(30.0) == pytest.approx(0.002 + 6 * 0.032)
    assert tolerances.exchange_tolerance(PLAN, path, 4) == tolerances.round_trip(PLAN, path)
    for surplus_ms, word in ((0.0079, "held"), (0.0081, "failed"), (-0.0081, "failed")):
        assert WORDS["sum-of-segments"](round_trips(20.0, 30.0 + surplus_ms), plan).word == word
    for surplus_ms, word in ((0.19, "held"), (0.2, "failed")):
        assert WORDS["as-declared"](round_trips(20.0, 30.0 + surplus_ms), plan).word == word


def test_where_calls_are_modelled_those_of_the_program_that_measures_are_in_every_figure() -> None:
    plan = virtual(", host: {processor: {frame: 3us, call: 16us}}")
    path = plan.path("h1", "h4")
    assert tolerances.exchange_tolerance(plan, path, 4) == tolerances.round_trip(plan, path)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (
            (0.9, 1.0),
            "all 2 paths lie within 85% to 102% of the ceiling; the furthest, h1 to h2, reaches 43.0 of 47.8 ",
        ),
        (
            (1.0, 0.7),
            "1 of 2 paths lie outside 85% to 102% of the ceiling; the furthest, h1 to h3, reaches 33.5 of 47.8 ",
        ),
        (
            (0.8, 0.7),
            "2 of 2 paths lie outside 85% to 102% of the ceiling; the furthest, h1 to h3, reaches 33.5 of 47.8 ",
        ),
        (
            (1.03, 0.86),
            "1 of 2 paths lie outside 85% to 102% of the ceiling; the furthest, h1 to h2, reaches 49.3 of 47.8 ",
        ),
        (
            (0.8, 1.3),
            "2 of 2 paths lie outside 85% to 102% of the ceiling; the furthest, h1 to h3, reaches 62.2 of 47.8 ",
        ),
    ],
)
def test_a_ceilings_words_count_the_paths_outside_and_name_the_furthest_of_them(
    shares: tuple[float, ...], said: str
) -> None:
    detail = WORDS["within-ceiling"](over(*(share * CEILING_MBIT for share in shares)), PLAN).detail
    assert detail.startswith(said)
    assert detail.endswith("%)"), "nothing is said of buffers where they limit nothing"


def test_where_the_plan_predicts_nothing_a_ceiling_is_undecided() -> None:
    unlimited = [replace(cell, predicted=None) for cell in over(40.0)]
    judged = WORDS["within-ceiling"](unlimited, PLAN)
    assert (judged.word, judged.detail) == (
        "undecided",
        "the plan predicts no ceiling: the links have no rate, or acknowledgements may be the limit",
    )


@pytest.mark.parametrize(
    ("least", "most", "word"),
    [
        (2, 3, "held"),
        (1.99, 3, "undecided"),
        (2, 3.01, "undecided"),
        (1, 2, "undecided"),
        (3, 4, "undecided"),
        (0, 1.99, "failed"),
        (3.01, 4, "failed"),
    ],
)
def test_an_interval_is_held_against_a_range_with_both_its_ends(least: float, most: float, word: str) -> None:
    middle = (least + most) / 2
    cell = PathSamples(
        source="h1",
        target="h2",
        hops=1,
        unit="ms",
        estimate=Estimate(2, middle, most - middle, middle, least, most),
    )
    assert ranges.compare_with_range(cell, ranges.Range(2, 3, "ms", "2 to 3 ms")).word == word


@pytest.mark.parametrize(
    ("written", "tolerance", "says"),
    [
        ("", tolerances.loss, ("0.1 points", tolerances.DEFAULT)),
        ("tolerances: {loss: 0.5%}\n", tolerances.loss, ("0.5 points", tolerances.FILE)),
        ("tolerances: {rate: 3%}\n", tolerances.loss, ("0.1 points", tolerances.FILE)),
        ("tolerances: {rate: 3%}\n", tolerances.rate, ("3 %", tolerances.FILE)),
        ("", tolerances.rate, ("2 %", tolerances.DEFAULT)),
    ],
)
def test_tolerances_of_loss_and_rate_are_the_files(
    written: str, tolerance: Callable[[Plan], tolerances.Tolerance], says: tuple[str, str]
) -> None:
    found = tolerance(parse(f"name: x\n{written}pair: {{link: {{rate: 50mbit}}}}\n", "f.yaml"))
    assert (found.in_words, found.source) == says


@pytest.mark.parametrize(("measured", "within"), [(10.5, True), (10.51, False), (9.5, True), (9.49, False)])
def test_a_tolerance_allows_what_lies_on_its_edge(measured: float, within: bool) -> None:
    half = tolerances.Tolerance(0.5, 0.0, "ms", tolerances.FILE)
    assert half.allows(measured, 10.0) is within


@pytest.mark.parametrize(("share", "within"), [(0.85, True), (0.8499, False), (1.02, True), (1.0201, False)])
def test_a_band_allows_what_lies_on_its_edge(share: float, within: bool) -> None:
    assert tolerances.CEILING.allows(share, 1.0) is within
