"""Links that change under traffic, in virtual time: connections go on, and round trips are what is set."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from live.exact import EXACT_MS
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.lab import Lab, calibration

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
STREAM_S = 8


@pytest.fixture(autouse=True)
def as_before(lab: Lab) -> Iterator[None]:
    """Other tests have this lab, too."""
    before = lab.record
    yield
    labs.restore_links(lab, before)


def round_trip_ms(lab: Lab) -> float:
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    for _ in range(2):  # the first may wait for ARP
        rtts_ms = calibration.probe(lab.provider, "ams", address, count=5).rtts_ms
    return min(rtts_ms)


def expected_ms(lab: Lab) -> float:
    plan = labs.plan_now(lab)
    return echo_ms(plan, plan.path("ams", "bra"))


@pytest.mark.parametrize(
    ("update", "senders"),
    [
        ({"delay_ms": 20}, [None]),
        ({"delay_ms": 20}, ["ams"]),
        ({"delay_ms": 20}, ["bra"]),
        ({"delay_ms": 20, "rate_mbit": 1}, ["ams", "bra"]),
        ({"rate_mbit": 1}, ["ams"]),
    ],
)
def test_a_round_trip_is_what_is_set(lab: Lab, update: dict[str, float], senders: list[str | None]) -> None:
    declared_ms = expected_ms(lab)
    for sender in senders:
        labs.adjust_link(lab, "ams-bra", update, sender)
    assert expected_ms(lab) > declared_ms
    assert round_trip_ms(lab) == pytest.approx(expected_ms(lab), abs=EXACT_MS)


def test_a_connection_outlives_every_change(lab: Lab) -> None:
    """Of rate, delay, queue and loss, in one direction or both, while a stream fills the link."""
    address = lab.plan.host("bra").address
    lab.provider.run("bra", ["iperf3", "-s", "-1", "-D"], timeout_s=LIMIT_S)

    def stream() -> dict[str, object]:
        argv = ["iperf3", "-c", address, "-t", str(STREAM_S), "-i", "1", "-J"]
        result: dict[str, object] = json.loads(lab.provider.run("ams", argv, timeout_s=LIMIT_S).stdout)
        return result

    def change() -> None:
        for sender, update in (
            (None, {"rate_mbit": 10.0}),
            ("ams", {"delay_ms": 30.0}),
            ("bra", {"loss_percent": 1.0}),
            (None, {"queue_bytes": 20_000.0}),
            (None, dict.fromkeys(("rate_mbit", "delay_ms", "loss_percent", "queue_bytes"))),
        ):
            lab.provider.run("bra", ["sleep", "1"], timeout_s=LIMIT_S)
            labs.adjust_link(lab, "ams-bra", update, sender)

    with lab.provider.together() as company:
        told, _ = company.all([stream, change])
    assert isinstance(told, dict)
    assert "error" not in told
    (connection,) = told["start"]["connected"]
    mbit = [each["sum"]["bits_per_second"] / 1e6 for each in told["intervals"]]
    assert connection["remote_host"] == address
    assert len(mbit) == STREAM_S
    assert mbit[2] < 20
    assert mbit[-1] > 20
    assert labs.changed_links(lab) == {}


def test_a_partition_is_healed(lab: Lab) -> None:
    assert labs.separate(lab, [["ams"], ["bra", "lju", "mil", "ham", "lon"]]) == ["ams-bra"]
    lost = lab.provider.run("ams", ["ping", "-c", "2", "-W", "1", "bra"], timeout_s=LIMIT_S, check=False)
    assert lost.code != 0
    assert labs.mend_all(lab) == ["ams-bra"]
    assert round_trip_ms(lab) == pytest.approx(expected_ms(lab), abs=EXACT_MS)
