"""Links that change under traffic, in virtual time: connections go on, and round trips are what is set."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from live.exact import EXACT_MS
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.foreign import user_text
from minigts.lab import Lab, calibration, schedule_player
from minigts.lab.record import Amounts
from minigts.topology.schedule import Moment

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
STREAM_S = 9
ECHOES = 1000
SHARES = ("reorder_percent", "duplicate_percent", "corrupt_percent")


@pytest.fixture(autouse=True)
def as_before(lab: Lab) -> Iterator[None]:
    """Other tests have this lab, too."""
    before = lab.read_record()
    yield
    labs.restore_links(lab, before)


def round_trip_ms(lab: Lab) -> float:
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    for _ in range(2):  # the first may wait for ARP
        rtts_ms = calibration.probe(lab.provider, "ams", address, count=5).rtts_ms
    return min(rtts_ms)


def expected_ms(lab: Lab) -> float:
    plan = labs.plan_now(lab.plan, lab.read_record())
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
        labs.update_settings(lab, "ams-bra", update, sender)
    assert expected_ms(lab) > declared_ms
    assert round_trip_ms(lab) == pytest.approx(expected_ms(lab), abs=EXACT_MS)


def echoes(lab: Lab) -> list[float | None]:
    """The round trip of each request in ms, None where none came back; what came twice is left out."""
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    argv = ["ping", "-c", str(ECHOES), "-i", "0.01", "-W", "1", address]
    said = user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S, check=False).stdout)
    found = re.findall(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms$", said, re.MULTILINE)
    came = {int(number): float(rtt_ms) for number, rtt_ms in found}
    return [came.get(number) for number in range(1, ECHOES + 1)]


def arrived(lab: Lab) -> list[int]:
    """The numbers of requests, a millisecond apart, in the order in which their answers came."""
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    argv = ["ping", "-c", str(ECHOES), "-i", "0.001", "-W", "1", address]
    said = user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S, check=False).stdout)
    return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl=", said)]


def test_jitter_keeps_the_order_unless_it_is_free(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"delay_ms": 20, "jitter_ms": 5})
    in_order = arrived(lab)
    assert in_order == sorted(in_order)
    assert len(in_order) == ECHOES
    labs.update_settings(lab, "ams-bra", {"jitter_order": "free"})
    overtaken = arrived(lab)
    assert sum(after < before for before, after in pairwise(overtaken)) > ECHOES / 10


def test_a_delay_varies_by_its_distribution(lab: Lab) -> None:
    apart = {"delay_ms": 20, "jitter_ms": 2}
    labs.update_settings(lab, "ams-bra", {**apart, "jitter_distribution": "normal"}, "ams")
    normal = [rtt_ms for rtt_ms in echoes(lab) if rtt_ms is not None]
    usual_ms = statistics.median(normal)
    assert statistics.stdev(normal) == pytest.approx(2, rel=0.1)
    assert sum(rtt_ms > usual_ms + 2 for rtt_ms in normal) / ECHOES == pytest.approx(0.159, abs=0.04)
    labs.update_settings(lab, "ams-bra", {"jitter_distribution": "pareto"}, "ams")
    pareto = [rtt_ms for rtt_ms in echoes(lab) if rtt_ms is not None]
    assert usual_ms - statistics.median(pareto) == pytest.approx(0.6, abs=0.2)
    assert usual_ms - min(pareto) == pytest.approx(1.24, abs=0.3)  # nothing is faster than Pareto's least value
    assert max(pareto) - usual_ms > 8
    labs.update_settings(lab, "ams-bra", {"jitter_distribution": "normal", "jitter_correlation_percent": 90}, "ams")
    near = [rtt_ms for rtt_ms in echoes(lab) if rtt_ms is not None]
    mean_ms, variance = statistics.fmean(near), statistics.pvariance(near)
    products = [(one - mean_ms) * (other - mean_ms) for one, other in pairwise(near)]
    assert statistics.fmean(products) / variance == pytest.approx(0.9, abs=0.06)


def at_once(lab: Lab, count: int, payload_bytes: int = 1472) -> dict[int, float]:
    """The round trips in ms of echo requests that are sent at the same moment, by number, as far as they came."""
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    for argv in (["-c", "2"], ["-c", str(count), "-l", str(count), "-M", "do", "-s", str(payload_bytes)]):
        said = user_text(
            lab.provider.run("ams", ["ping", "-W", "1", *argv, address], timeout_s=LIMIT_S, check=False).stdout
        )
    assert "too long" not in said
    assert "Frag needed" not in said
    return {int(number): float(ms) for number, ms in re.findall(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms", said)}


FRAME_BYTES, FRAME_MS = 1514, 1514 * 8 / 10_000
"""Of a full frame at 10 Mbit/s."""
THROTTLE = {"rate_mbit": 10, "rate_burst_bytes": 20 * FRAME_BYTES}


def test_a_credit_leaves_at_once_and_then_the_rate_holds(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", THROTTLE, "ams")
    labs.update_settings(lab, "ams-bra", {"rate_burst_bytes": 10**6}, "bra")
    rtts_ms = at_once(lab, 40)
    after = [rtts_ms[number] - rtts_ms[1] for number in range(1, 41)]
    expected = [max(0, number - 20) * FRAME_MS for number in range(1, 41)]
    assert max(abs(one - other) for one, other in zip(after, expected, strict=True)) < 0.2  # as ping rounds it


def test_a_credit_leaves_at_its_peak(lab: Lab) -> None:
    """At 40 Mbit/s 26 frames use up 20 of credit, and what 10 Mbit/s give meanwhile."""
    labs.update_settings(lab, "ams-bra", {**THROTTLE, "rate_peak_mbit": 40}, "ams")
    labs.update_settings(lab, "ams-bra", {"rate_burst_bytes": 10**6}, "bra")
    rtts_ms = at_once(lab, 40)
    after = [rtts_ms[number] - rtts_ms[1] for number in range(1, 41)]
    left = [max(number * FRAME_MS / 4, (number - 20) * FRAME_MS) for number in range(1, 41)]
    assert max(abs(one - other + left[0]) for one, other in zip(after, left, strict=True)) < 0.2


def test_a_policer_drops_what_exceeds_its_credit(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {**THROTTLE, "rate_excess": "drop"}, "ams")
    assert sorted(at_once(lab, 40)) == [*range(1, 21)]


def test_both_states_of_bursty_losses_lose_their_shares(lab: Lab) -> None:
    """A third of all packets is in bursts, which lose a half; of the others a twentieth is lost. That is a loss of
    20 %: behind a packet that was lost 42 %, and behind one that came 14 %."""
    bursts = {"burst_packets": 50, "burst_loss_percent": 50, "burst_between_percent": 5}
    labs.update_settings(lab, "ams-bra", {"loss_percent": 20, **bursts}, "ams")
    lost = [rtt_ms is None for _ in range(2) for rtt_ms in echoes(lab)]
    behind = {which: [now for before, now in pairwise(lost) if before is which] for which in (True, False)}
    assert sum(lost) / len(lost) == pytest.approx(0.2, abs=0.08)
    assert sum(behind[True]) / len(behind[True]) == pytest.approx(0.42, abs=0.12)
    assert sum(behind[False]) / len(behind[False]) == pytest.approx(0.14, abs=0.07)


def test_packets_fall_into_a_black_hole_by_their_size_and_nobody_is_told(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"blackhole_bytes": 1400}, "ams")
    assert at_once(lab, 3, payload_bytes=1400 - 28).keys() == {1, 2, 3}
    assert at_once(lab, 3, payload_bytes=1401 - 28) == {}
    assert at_once(lab, 3, payload_bytes=1472) == {}


def snmp(lab: Lab, host: str, what: str) -> int:
    lines = user_text(
        lab.provider.run(host, ["grep", "^Icmp:", "/proc/net/snmp"], timeout_s=LIMIT_S).stdout
    ).splitlines()
    names, values = (line.split() for line in lines)
    return int(values[names.index(what)])


def test_losses_come_in_bursts_of_the_length_that_is_set(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"loss_percent": 20, "burst_packets": 8}, "ams")
    lost = [rtt_ms is None for rtt_ms in echoes(lab)]
    bursts = sum(now and not before for before, now in pairwise([False, *lost]))
    assert sum(lost) / ECHOES == pytest.approx(0.2, abs=0.08)
    assert sum(lost) / bursts == pytest.approx(8, rel=0.4)


def test_what_overtakes_takes_no_delay(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"delay_ms": 20, "reorder_percent": 20}, "ams")
    rtts_ms = [rtt_ms for rtt_ms in echoes(lab) if rtt_ms is not None]
    usual_ms = statistics.median(rtts_ms)  # the first one may also wait for the neighbour's address
    ahead = [rtt_ms for rtt_ms in rtts_ms if rtt_ms < usual_ms - 10]
    assert len(rtts_ms) == ECHOES
    assert len(ahead) / ECHOES == pytest.approx(0.2, abs=0.04)
    assert usual_ms - max(ahead) == pytest.approx(20, abs=0.1)  # as ping rounds it


def test_some_requests_arrive_twice(lab: Lab) -> None:
    before = snmp(lab, "bra", "InEchos")
    labs.update_settings(lab, "ams-bra", {"duplicate_percent": 10}, "ams")
    assert None not in echoes(lab)
    assert snmp(lab, "bra", "InEchos") - before == pytest.approx(1.1 * ECHOES, abs=0.03 * ECHOES)


def test_what_is_corrupted_is_thrown_away(lab: Lab) -> None:
    labs.update_settings(lab, "ams-bra", {"corrupt_percent": 10}, "ams")
    before = snmp(lab, "bra", "InCsumErrors")
    lost = echoes(lab).count(None)
    assert lost / ECHOES == pytest.approx(0.1, abs=0.03)
    # Of 84 bytes behind the Ethernet header, ICMP's checksum covers 64, and IP's the others.
    assert snmp(lab, "bra", "InCsumErrors") - before == pytest.approx(lost * 64 / 84, rel=0.2)


def test_a_slot_lets_go_all_that_waits_for_it(lab: Lab) -> None:
    echoes(lab)  # the first ones wait for ARP and read ping's program
    labs.update_settings(lab, "ams-bra", {"slot_ms": 50}, "ams")
    rtts_ms = [rtt_ms for rtt_ms in echoes(lab) if rtt_ms is not None]
    assert len(rtts_ms) == ECHOES
    # Six requests a slot, ten milliseconds apart but for a few hundred microseconds: ping yields until each is due.
    assert max(rtts_ms) - min(rtts_ms) == pytest.approx(50, abs=1.5)
    assert sorted({round(rtt_ms - min(rtts_ms), -1) for rtt_ms in rtts_ms}) == [0, 10, 20, 30, 40, 50]


def test_a_connection_outlives_every_change(lab: Lab) -> None:
    """Of rate, delay, queue and loss, in one direction or both, while a stream fills the link."""
    address = lab.plan.host("bra").address
    lab.provider.run("bra", ["iperf3", "-s", "-1", "-D"], timeout_s=LIMIT_S)

    def stream() -> dict[str, Any]:
        argv = ["iperf3", "-c", address, "-t", str(STREAM_S), "-i", "1", "-J"]
        result: dict[str, Any] = json.loads(user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S).stdout))
        return result

    def change() -> None:
        for sender, update in (
            (None, {"rate_mbit": 10.0}),
            ("ams", {"delay_ms": 30.0}),
            ("bra", {"loss_percent": 1.0}),
            (None, {"queue_bytes": 20_000.0}),
            (None, {"loss_percent": 1.0, "burst_packets": 3.0, "slot_ms": 2.0, **dict.fromkeys(SHARES, 1.0)}),
            (None, dict.fromkeys(Amounts.model_fields)),
        ):
            lab.provider.run("bra", ["sleep", "1"], timeout_s=LIMIT_S)
            labs.update_settings(lab, "ams-bra", update, sender)

    with lab.provider.together() as pool:
        told, _ = pool.all([stream, change])
    assert isinstance(told, dict)
    assert "error" not in told
    (connection,) = told["start"]["connected"]
    mbit = [each["sum"]["bits_per_second"] / 1e6 for each in told["intervals"]]
    assert connection["remote_host"] == address
    assert len(mbit) == STREAM_S
    assert mbit[2] < 20
    assert mbit[-1] > 20
    assert labs.changed_links(lab.plan, lab.read_record()) == {}


def test_a_schedule_is_played_at_its_very_moments(lab: Lab) -> None:
    """The delay of a one way step at one second reaches what is sent from that moment on."""
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    moments = [Moment(at_s=1.0, link="ams-bra", update={"delay_ms": 40.0}), Moment(at_s=2.0, link="ams-bra", up=False)]
    moments += [Moment(at_s=2.5, link="ams-bra", up=True)]
    seen: list[schedule_player.Played] = []

    def echoes_every_50_ms() -> str:
        return user_text(
            lab.provider.run(
                "ams", ["ping", "-i", "0.05", "-c", "70", "-W", "1", address], timeout_s=60, check=False
            ).stdout
        )

    said = schedule_player.play(lab, moments, seen.append, echoes_every_50_ms)
    assert [change.at_s for change in seen] == [1.0, 2.0, 2.5]
    rtts_ms = {int(n): float(ms) for n, ms in re.findall(r"icmp_seq=(\d+) .*time=([\d.]+) ms", said or "")}
    first_slow = min(number for number, rtt_ms in rtts_ms.items() if rtt_ms > 60)
    assert first_slow == pytest.approx(1.0 / 0.05, abs=1)
    assert max(rtts_ms.values()) == pytest.approx(80.1, abs=0.2)
    assert 8 <= 70 - len(rtts_ms) <= 13  # half a second of requests, and those whose reply was under way
    assert labs.changed_links(lab.plan, lab.read_record()) == {}


def test_a_partition_is_healed(lab: Lab) -> None:
    assert labs.partition(lab, [["ams"], ["bra", "lju", "mil", "ham", "lon"]]) == ["ams-bra"]
    lost = lab.provider.run("ams", ["ping", "-c", "2", "-W", "1", "bra"], timeout_s=LIMIT_S, check=False)
    assert lost.code != 0
    assert labs.heal(lab) == ["ams-bra"]
    assert round_trip_ms(lab) == pytest.approx(expected_ms(lab), abs=EXACT_MS)
