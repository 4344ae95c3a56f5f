"""The certificate's judgements, without a lab."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from minigts.errors import InputError
from minigts.fidelity import measure, round_trips
from minigts.fidelity.certificate import Certificate, loss_row, rate_row, rtt_row
from minigts.fidelity.round_trips import covering
from minigts.judge.loss import exact_interval, judge_loss
from minigts.lab import Lab
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

CHAIN = parse("name: x\nchain: {hosts: 4, link: {rtt: 10ms, rate: 50mbit}}\n", "f.yaml")
STRICT = parse("name: x\ntolerances: {rtt: 0.1ms, rate: 1%}\npair: {link: {rtt: 10ms, rate: 50mbit}}\n", "f.yaml")
JITTERY = parse("name: x\ntolerances: {rtt: 0ms}\npair: {link: {rtt: 10ms, jitter: 1ms}}\n", "f.yaml")


@pytest.mark.parametrize(
    ("plan", "rtts_ms", "ok", "tolerance"),
    [
        (CHAIN, [10.29] * 9, True, 0.3),
        (CHAIN, [10.31] * 9, False, 0.3),
        (CHAIN, [9.6] * 9, False, 0.3),
        (CHAIN, [10.1] * 99 + [30.0], True, 0.3),
        (CHAIN, [], False, 0.3),
        (STRICT, [10.2] * 9, False, 0.1),
        (JITTERY, [10.4] * 9, True, 0.5),
    ],
)
def test_a_median_round_trip_is_held_against_the_file_s_tolerance(
    plan: Plan, rtts_ms: list[float], ok: bool, tolerance: float
) -> None:
    path = plan.path("h1", "h2")
    row = rtt_row(plan, "h1-h2", path, rtts_ms)
    assert (row.ok, row.tolerance) == (ok, tolerance)


def test_a_tail_is_shown_and_not_judged() -> None:
    row = rtt_row(CHAIN, "h1-h2", CHAIN.path("h1", "h2"), [10.0] * 98 + [30.0, 31.0])
    assert (row.ok, row.p99) == (True, 30.0)
    assert "99 % within 30 ms" in row.sentence()


@pytest.mark.parametrize(
    ("lost", "sent", "declared", "ok"),
    [
        (0, 200, 0.0, True),
        (1, 200, 0.0, True),  # less than one loss in a thousand is allowed, and one in 200 may be chance
        (4, 200, 0.0, False),
        (0, 200, 0.1, None),  # a link without any loss would look the same
        (0, 1500, 0.2, None),
        (0, 1500, 1.99, False),
        (30, 1500, 1.99, True),
        (60, 1500, 1.99, False),
        (10, 1500, 1.99, False),
        (200, 200, 100.0, True),
    ],
)
def test_a_loss_is_judged_as_surely_as_the_probes_allow(lost: int, sent: int, declared: float, ok: bool | None) -> None:
    assert judge_loss(lost, sent, declared, 0.1)[0] is ok


def test_a_loss_that_cannot_be_judged_says_so_and_does_not_count_against_the_lab() -> None:
    plan = parse("name: x\npair: {link: {rtt: 10ms, loss: 0.05%}}\n", "f.yaml")
    row = loss_row(plan, "h1-h2", plan.path("h1", "h2"), 0, 200)
    assert row.ok is None
    assert "200 probes" in row.note
    assert "too few to judge such a loss" in row.note
    at = datetime(2026, 11, 29, tzinfo=UTC)
    made = Certificate(lab="x", provider="uml", emulator_overhead_ms=0.1, rows=(row,), measured_at=at)
    assert made.ok
    assert made.verdict == "0 of 1 judged, all within tolerance"


@pytest.mark.parametrize(
    ("hits", "of", "doubt", "interval"),
    [
        (0, 10, 0.05, (0.0, 0.3085)),
        (1, 10, 0.05, (0.0025, 0.4450)),
        (5, 10, 0.05, (0.1871, 0.8129)),
        (9, 10, 0.05, (0.5550, 0.9975)),
        (10, 10, 0.05, (0.6915, 1.0)),
        (30, 1500, 0.01, (0.01189, 0.03129)),
    ],
)
def test_exact_intervals(hits: int, of: int, doubt: float, interval: tuple[float, float]) -> None:
    """As scipy.stats.beta gives them."""
    assert exact_interval(hits, of, doubt) == pytest.approx(interval, abs=0.0002)


@pytest.mark.parametrize(("measured", "ok"), [(47.8, True), (47.0, True), (46.8, False), (48.9, False), (None, False)])
def test_a_rate_is_held_against_the_ceiling(measured: float | None, ok: bool) -> None:
    row = rate_row(CHAIN, "h1-h2", 50 * 1448 / 1514, measured, "", judged=True)
    assert row.ok is ok


def test_paths_cover_every_link_with_as_few_as_possible() -> None:
    star = parse("name: x\nstar: {clients: 3, link: {rtt: 1ms}}\n", "f.yaml")
    apart = parse("name: x\nrouting: neighbours\nchain: {hosts: 4, link: {rtt: 1ms}}\n", "f.yaml")
    assert [(path.source, path.target) for path in covering(CHAIN.paths)] == [("h1", "h4")]
    assert {link for path in covering(star.paths) for link in path.links} == {link.name for link in star.links}
    assert len(covering(star.paths)) == 2
    assert covering(apart.paths) == []


def test_tolerances_that_are_not_given_keep_their_default() -> None:
    assert (STRICT.tolerances.rtt_ms, STRICT.tolerances.rtt_percent) == (0.1, 0.0)
    assert (STRICT.tolerances.rate_percent, STRICT.tolerances.loss_points) == (1.0, 0.1)


@pytest.mark.parametrize("written", ["1", "1ms + 2ms", "1% + 2%", "", "10 ms % 1", "0.2ms+", "[1ms]"])
def test_a_tolerance_that_is_none_is_an_error_with_an_example(written: str) -> None:
    with pytest.raises(InputError, match=r"f\.yaml:2: tolerances\.rtt: "):
        parse(f"name: x\ntolerances: {{rtt: {written or repr('')}}}\npair: {{}}\n", "f.yaml")


@pytest.mark.parametrize(("passed_s", "in_time"), [(0.0, True), (1.9, True), (2.0, False), (5.0, False)])
@pytest.mark.parametrize("time", ["real", "virtual"])
def test_it_is_measured_again_in_real_time_until_the_time_for_it_is_over(
    passed_s: float, in_time: bool, time: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(measure.time, "monotonic", lambda: now[0])
    left = measure._within(2.0)
    now[0] += passed_s
    assert left() is in_time
    lab = cast("Lab", SimpleNamespace(plan=CHAIN.model_copy(update={"time": time})))
    assert round_trips.may_differ(lab, left) is (in_time and time == "real")
