from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from experiment_lab import SEGMENTS_MS, chain

from minigts.experiment_language.model import Claim
from minigts.experiments.claims import Cell, evaluate
from minigts.judge.statistics import Estimate

PLAN = chain(6)
HOSTS = [host.name for host in PLAN.hosts]
SUM, DECLARED = Claim(latency="sum-of-segments"), Claim(latency="as-declared")


def latency(source: int, target: int, surplus_ms: float, kind: Literal["path", "segment"] = "path") -> Cell:
    declared = sum(SEGMENTS_MS[source:target])
    measured = declared + surplus_ms
    return Cell(
        overlay="swarm",
        measurement="latency",
        quantity="latency",
        source=HOSTS[source],
        target=HOSTS[target],
        hops=target - source,
        kind=kind,
        unit="ms",
        estimate=Estimate(3, measured, 0.05, measured, measured - 0.05, measured + 0.05),
        predicted=declared,
        published=None,
    )


def throughput(hops: int, mbit: float, half: float = 0.5, n: int = 3, measurement: str = "tcp") -> Cell:
    interval = (None, None) if n == 1 else (mbit - half, mbit + half)
    return Cell(
        overlay="none",
        measurement=measurement,
        quantity="throughput",
        source="ams",
        target=HOSTS[hops],
        hops=hops,
        kind="path",
        unit="Mbit/s",
        estimate=Estimate(n, mbit, None if n == 1 else half, mbit, *interval),
        predicted=95.6,
        published=None,
    )


def chain_of(surplus_ms: float, path_surplus_ms: float) -> list[Cell]:
    """Five paths from the first host, and the four other segments."""
    paths = [latency(0, hops, surplus_ms if hops == 1 else path_surplus_ms) for hops in range(1, 6)]
    return paths + [latency(i, i + 1, surplus_ms, "segment") for i in range(1, 5)]


def judged(claim: Claim, cells: list[Cell]) -> tuple[str, str]:
    (verdict,) = evaluate([claim], cells, PLAN)
    return verdict.verdict, verdict.detail


def test_paths_that_are_their_segments_sum_hold() -> None:
    word, detail = judged(SUM, chain_of(0.0, 0.1))
    assert word == "held"
    assert detail.startswith(
        "latency: all 4 paths agree with the sum of their segments; the largest difference, ams to"
    )


def test_a_path_that_hop_routing_delays_does_not_hold() -> None:
    word, detail = judged(SUM, chain_of(0.0, 2.5))
    assert word == "failed"
    assert "4 of 4 paths miss" in detail
    assert "is +2.50 ms" in detail


def test_a_sum_is_of_what_was_measured_not_of_what_was_declared() -> None:
    assert judged(SUM, [latency(0, 1, 2.0), latency(1, 2, 2.0), latency(0, 2, 4.0)])[0] == "held"
    assert judged(DECLARED, [latency(0, 1, 2.0), latency(1, 2, 2.0), latency(0, 2, 4.0)])[0] == "failed"


def test_a_missing_segment_leaves_the_claim_undecided() -> None:
    assert judged(SUM, [latency(0, 1, 0.0), latency(0, 2, 0.0)])[0] == "undecided"


def test_the_tolerance_is_that_of_the_topologys_file() -> None:
    """0.2 ms + 1 %, unless the file says otherwise, as in the certificate."""
    inside, outside = latency(0, 5, 0.2 + 1.6122), latency(0, 5, 0.2 + 1.6124)
    assert judged(DECLARED, [inside])[0] == "held"
    assert judged(DECLARED, [outside])[0] == "failed"


@pytest.mark.parametrize(
    ("values", "word"), [((95.0, 90.0, 82.0), "held"), ((95.0, 80.0), "failed"), ((99.0, 94.0), "failed")]
)
def test_within_the_ceiling_means_fifteen_per_cent_below_and_two_above(values: tuple[float, ...], word: str) -> None:
    claim = Claim(throughput="within-ceiling")
    assert judged(claim, [throughput(hops, mbit) for hops, mbit in enumerate(values, start=1)])[0] == word


@pytest.mark.parametrize(
    ("last", "half", "n", "word"),
    [
        (70.0, 0.5, 3, "held"),
        (94.5, 0.1, 3, "failed"),
        (99.0, 0.1, 3, "failed"),
        (90.0, 8.0, 3, "undecided"),
    ],
)
def test_a_fall_must_be_clear(last: float, half: float, n: int, word: str) -> None:
    claim = Claim(throughput="falls-with-hops")
    assert judged(claim, [throughput(1, 95.0, half, n), throughput(5, last, half, n)])[0] == word


@pytest.mark.parametrize(("last", "half", "word"), [(93, 0.5, "held"), (60, 0.5, "failed"), (85, 5, "undecided")])
def test_level_means_within_a_tenth(last: float, half: float, word: str) -> None:
    claim = Claim(throughput="level")
    assert judged(claim, [throughput(1, 95.0, half), throughput(5, last, half)])[0] == word


def test_the_numbers_and_the_steepest_step_are_in_words() -> None:
    cells = [throughput(hops, mbit) for hops, mbit in ((1, 95.0), (2, 60.0), (3, 58.0))]
    _, detail = judged(Claim(throughput="falls-with-hops"), cells)
    assert detail == (
        "tcp: 95.0 Mbit/s over 1 hop, 58.0 over 3 hops (95 % interval 57.5 to 58.5): -38.9%; "
        "the largest step, -36.8%, lies after 1 hop"
    )


def test_a_claim_speaks_of_its_own_measurement_and_overlay() -> None:
    cells = [throughput(1, 95.0), throughput(2, 50.0), throughput(1, 95.0, measurement="udp")]
    found = evaluate([Claim(throughput="falls-with-hops", of="udp")], cells, PLAN)
    assert [(entry.overlay, entry.verdict) for entry in found] == [("none", "undecided")]
    found = evaluate([Claim(throughput="falls-with-hops", of="tcp", overlay="swarm")], cells, PLAN)
    assert [(entry.overlay, entry.verdict) for entry in found] == [("swarm", "undecided")]


def test_a_claim_judges_the_column_that_it_names() -> None:
    means = [replace(cell, metric="mean") for cell in chain_of(0.0, 2.5)]
    assert judged(Claim(latency="sum-of-segments", metric="mean"), [*chain_of(0.0, 0.1), *means])[0] == "failed"
    assert judged(SUM, [*chain_of(0.0, 0.1), *means])[0] == "held"
