"""Queues in packets and in time: what a file and `set` make of them, and what a wire and tc are told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from minigts.dataplane import shaping, wire
from minigts.errors import InputError
from minigts.lab import changes, current
from minigts.lab.record import Record, Settings
from minigts.topology.link_settings import Shaping, amount
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

FRAME_BYTES = 1514
FIELDS = ("queue_bytes", "queue_packets", "queue_ms")


def planned(queue: str, *, more: str = "rate: 10mbit, ", before: str = "") -> Plan:
    link = f"{{ends: [ams, bra], {more}delay: 5ms, queue: {queue}}}"
    return parse(f"name: q\n{before}hosts: {{ams: , bra: }}\nlinks: [{link}]\n", "q.yaml")


def sizes(way: Shaping) -> tuple[int | float | None, ...]:
    return tuple(getattr(way, field) for field in FIELDS)


def sent(plan: Plan, number: int = 0) -> Shaping:
    return plan.directions(plan.links[0])[number]


def set_to(plan: Plan, *words: str) -> Record:
    """The record after these have been set one after the other, as in `queue=50ms`."""
    record = Record(provider="uml", time="real", created=datetime(2026, 1, 1, tzinfo=UTC))
    for word in words:
        update = dict([amount(*word.split("="))])
        record = changes.record_at(plan, record, Moment(at_s=0, link="ams-bra", update=update))
    return record


def now(plan: Plan, *words: str) -> Shaping:
    port = plan.host("ams").ports[0]
    return current.port_now(plan, port, set_to(plan, *words)).outgoing


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("100packets", (100 * FRAME_BYTES, 100, None)),
        ("1packet", (FRAME_BYTES, 1, None)),
        ("50ms", (62_500, None, 50.0)),
        ("{size: 20packets}", (20 * FRAME_BYTES, 20, None)),
        ("{size: 50ms, discipline: codel}", (62_500, None, 50.0)),
        ("100kB", (100_000, None, None)),
    ],
)
def test_a_plan_has_the_size_as_declared_and_in_bytes(queue: str, expected: tuple[float | None, ...]) -> None:
    assert sizes(sent(planned(queue))) == sizes(sent(planned(queue), 1)) == expected


def test_each_direction_has_its_own_unit() -> None:
    for queue in ("{to: 20packets, from: 100kB}", "{to: {size: 20packets}, from: 100kB}"):
        plan = planned(queue)
        assert sizes(sent(plan)) == (20 * FRAME_BYTES, 20, None)
        assert sizes(sent(plan, 1)) == (100_000, None, None)


@pytest.mark.parametrize(("default", "own"), [("100kB", "50ms"), ("20packets", "100kB"), ("50ms", "20packets")])
def test_the_size_of_a_nearer_place_takes_the_place_of_one_in_another_unit(default: str, own: str) -> None:
    before = f"defaults: {{link: {{queue: {default}}}}}\n"
    assert sizes(sent(planned(own, before=before))) == sizes(sent(planned(own)))


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        ("100", "'100' lacks its unit: write a queue as in 100kB, 100packets or 50ms"),
        (
            "100frames",
            "has an unknown unit 'frames': a queue is written in B, kB, KiB, MB, MiB, packet, packets, us, ms",
        ),
        ("0packets", "'0packets' is out of range: a number of packets is from 1packet to 100000packets"),
        ("1.5packets", "is no whole number"),
        ("1ms", "a queue of 1250 bytes holds no full frame of 1514 bytes"),
    ],
)
def test_a_size_that_cannot_be_is_an_error(queue: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        planned(queue)
    assert message in str(refused.value)
    assert "q.yaml:3" in str(refused.value)


@pytest.mark.parametrize("queue", ["100packets", "50ms"])
def test_nothing_waits_without_a_rate_or_before_a_policer(queue: str) -> None:
    with pytest.raises(InputError, match="a queue without a rate"):
        planned(queue, more="")
    with pytest.raises(InputError, match="nothing waits there"):
        planned(queue, more="rate: {mean: 10mbit, burst: 100kB, excess: drop}, ")


def test_a_wire_counts_frames_and_not_bytes() -> None:
    counted, sized = (wire.wire_for(sent(planned(queue))) for queue in ("100packets", "50ms"))
    assert (counted.queue_frames, counted.queue_bytes) == (100, None)
    assert (sized.queue_frames, sized.queue_bytes) == (None, 62_500)
    assert "queue_frames" in counted.numbers
    assert "queue_frames" not in sized.numbers


@pytest.mark.parametrize(
    ("queue", "told"),
    [
        ("{size: 20packets, discipline: codel}", "codel limit 20"),
        ("{size: 20packets, discipline: pfifo}", "pfifo limit 20"),
        ("{size: 20packets, discipline: bfifo}", "bfifo limit 30280"),
        ("{size: 20packets, discipline: cake}", "cake memlimit 60560"),
        ("{size: 50ms, discipline: fq_codel}", "fq_codel limit 42"),
    ],
)
def test_a_discipline_gets_it_in_what_it_counts(queue: str, told: str) -> None:
    port = planned(queue).host("ams").ports[0]
    for script in (shaping.script([port]), shaping.script([wire.unshaped_port(port)], carried=True)):
        assert f": {told}\n" in script
    kept_in_host = wire.wire_for(port.outgoing)
    assert (kept_in_host.queue_frames, kept_in_host.queue_bytes) == (None, port.outgoing.queue_bytes)


def test_a_fifo_that_counts_packets_is_a_pfifo_in_real_time_and_on_the_wire_in_virtual_time() -> None:
    port = planned("20packets").host("ams").ports[0]
    script = shaping.script([port])
    assert " parent 1:1 handle 8" in script
    assert ": pfifo limit 20\n" in script
    assert wire.unshaped_port(port).outgoing == Shaping()


def test_a_changed_rate_changes_what_waits_for_a_time_and_not_how_many_packets() -> None:
    assert sizes(now(planned("50ms"), "rate=2mbit")) == (12_500, None, 50.0)
    assert sizes(now(planned("20packets"), "rate=2mbit")) == (20 * FRAME_BYTES, 20, None)
    assert sizes(now(planned("100kB"), "rate=2mbit")) == (100_000, None, None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["queue=20packets"], (20 * FRAME_BYTES, 20, None)),
        (["queue=20packets", "queue=50ms"], (62_500, None, 50.0)),
        (["queue=50ms", "rate=20mbit"], (125_000, None, 50.0)),
        (["queue=20packets", "queue=80kB"], (80_000, None, None)),
        (["queue=20packets", "queue=declared"], (100_000, None, None)),
    ],
)
def test_what_is_set_takes_the_place_of_the_size_before(words: list[str], expected: tuple[float | None, ...]) -> None:
    assert sizes(now(planned("100kB"), *words)) == expected


def test_what_is_set_of_a_queue_in_packets_takes_their_place() -> None:
    assert sizes(now(planned("20packets"), "queue=80kB")) == (80_000, None, None)
    assert sizes(now(planned("20packets"), "queue=80kB", "queue=declared")) == (20 * FRAME_BYTES, 20, None)
    assert set_to(planned("20packets"), "queue=50ms").changed["ams-bra"].in_words == "queue 50 ms"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"queue_packets": 7}, (7 * FRAME_BYTES, 7, None)),
        ({"queue_ms": 20.0}, (25_000, None, 20.0)),
        ({"queue_bytes": 30_000}, (30_000, None, None)),
        ({"unlimited": True}, (None, None, None)),
    ],
)
def test_an_experiment_sets_all_queues(settings: Mapping[str, float], expected: tuple[float | None, ...]) -> None:
    plan = planned("100packets")
    record = set_to(plan).model_copy(update={"settings": Settings.model_validate(settings)})
    assert sizes(current.port_now(plan, plan.host("ams").ports[0], record).outgoing) == expected
