"""A rate's peak: what goes with it, and what a link that is set then has. And which queue stays when a rate is set."""

from __future__ import annotations

import pytest

from minigts.dataplane.wire import wire_for
from minigts.errors import InputError
from minigts.lab import current
from minigts.lab.record import Change, Record, Settings
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse


def planned(link: str) -> Plan:
    return parse(f"name: x\nhosts: {{a: , b: }}\nlinks:\n- {{ends: [a, b], {link}}}\n", "f.yaml")


def set_to(plan: Plan, settings: Settings | None = None, **update: object) -> Shaping:
    changed = {plan.links[0].name: Change.model_validate(update)} if update else {}
    record = Record(provider="uml", time="real", created="2026-01-01T00:00:00Z", changed=changed)  # type: ignore[arg-type]
    if settings is not None:
        record = record.model_copy(update={"settings": settings})
    return current.port_now(plan, plan.hosts[0].ports[0], record).outgoing


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            "rate: {mean: 100mbit, peak: 200mbit}",
            "a peak without a burst: give one, as in rate: {mean: 100mbit, burst:",
        ),
        ("rate: {mean: 100mbit, burst: 1MB, peak: 100mbit}", "a peak of 100 Mbit/s is not above the rate, 100 Mbit/s"),
        ("rate: {burst: 1MB, peak: 100mbit}", "rate.burst without a rate: give a rate too"),
        ("rate: {peak: 100mbit}", "rate.peak without a rate: give a rate too"),
        ("rate: {mean: 10mbit, burst: 1MB, peak: 20mbit, excess: drop}", "a peak with `excess: drop`: a policer lets"),
        ("rate: {mean: 10mbit, burst: 1MB, peak: fast}", "'fast' is not a rate"),
    ],
)
def test_a_peak_that_makes_no_sense_is_refused(link: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        planned(link)
    assert said in str(refused.value)


def test_a_peak_is_the_directions_own() -> None:
    plan = planned("rate: {to: {mean: 100mbit, burst: 1MB, peak: 200mbit}, from: 50mbit}")
    there, back = plan.directions(plan.links[0])
    assert (there.peak_bps, back.peak_bps) == (200_000_000, None)
    assert plan.links[0].tcp_ceiling_mbit == pytest.approx(100 * 1448 / 1514)
    assert there.why_not_filled == "TCP gets more until the credit is used up"


def test_a_frame_crosses_at_the_peak_while_there_is_credit() -> None:
    way = Shaping(rate_mbit=8, queue_bytes=64_000, rate_burst_bytes=3000, rate_peak_mbit=80, delay_ms=1)
    assert wire_for(way).crossing_ns(1000) == 100_000 + 1_000_000
    assert wire_for(way).crossing_ns(9000) == 6_000_000 + 1_000_000


def test_links_without_a_rate_have_no_peak() -> None:
    plan = planned("rate: {mean: 100mbit, burst: 1MB, peak: 200mbit}")
    now = set_to(plan, Settings(unlimited=True))
    assert (now.rate_mbit, now.peak_bps) == (None, None)


@pytest.mark.parametrize(
    ("link", "update", "queue_bytes"),
    [
        ("rate: 10mbit, queue: 2MB", {"rate_mbit": 20.0}, 2_000_000),
        ("rate: 10mbit, queue: {size: 2MB, discipline: fq}", {"rate_mbit": 20.0}, 2_000_000),
        ("rate: 10mbit, queue: 2MB", {"delay_ms": 50.0}, 2_000_000),
        ("rate: 10mbit, queue: 2MB", {"rate_mbit": 20.0, "queue_bytes": 70_000}, 70_000),
        ("rate: 10mbit, rtt: 80ms", {"rate_mbit": 20.0}, 250_000),
        ("rate: 10mbit", {"rate_mbit": 20.0}, 64_000),
        ("delay: 40ms", {"rate_mbit": 20.0}, 250_000),
    ],
)
def test_a_queue_that_the_topology_gives_stays_when_a_rate_is_set(
    link: str, update: dict[str, object], queue_bytes: int
) -> None:
    assert set_to(planned(link), **update).queue_bytes == queue_bytes
