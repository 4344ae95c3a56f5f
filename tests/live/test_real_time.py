"""Real time, which other live tests of links leave: what is set in the hosts, its calibration, and what it keeps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import pairwise

import pytest

from live.conftest import MakeLab, quiet
from live.real_time import PROBES, band_ms, ends_ms
from minigts import lab as labs
from minigts import overlays
from minigts.dataplane import shaping
from minigts.fidelity import kept_certificate, measure
from minigts.fidelity.explanation import explain
from minigts.fidelity.mending import mend
from minigts.foreign import user_text
from minigts.judge.tolerances import round_trip
from minigts.lab import Lab, calibration, schedule_player
from minigts.lab.record import Amounts
from minigts.overlays import Endpoint
from minigts.topology.link_setting import Amount
from minigts.topology.schedule import Moment

pytestmark = [pytest.mark.uml, pytest.mark.nightly]
HOSTS = ("ams", "bra", "lju")
PAIRS = (("ams", "lju"),)
LIMIT_S = 120.0
LARGE = "name: large\nhosts: {a: , b: , c: }\nlinks: [{ends: [a, b], mtu: 9000}, {ends: [b, c]}]\n"
LARGEST = ("ping", "-c", "2", "-M", "do", "-s", "8972")
"""20 bytes of IP and 8 of ICMP more."""
SENT = "cd /sys/class/net/eth2/statistics && cat tx_bytes tx_packets"
Seen = dict[tuple[str, str], float]
"""By pair of hosts the lowest round trip in ms."""


def everywhere(lab: Lab, *argv: str) -> dict[str, str]:
    return lab.work_on_hosts(
        lambda host: user_text(lab.provider.run(host.name, argv, timeout_s=LIMIT_S).stdout).strip()
    )


def test_every_port_is_shaped_as_planned(real_lab: Lab) -> None:
    shown = everywhere(real_lab, "tc", "-j", "qdisc", "show")
    emulator_overhead_ms = real_lab.read_record().emulator_overhead_ms
    assert [
        difference
        for host in real_lab.plan.hosts
        for port in host.ports
        for difference in shaping.differences(port, shown[host.name], emulator_overhead_ms)
    ] == []


def test_what_the_emulator_adds_by_itself_is_little_and_known(real_lab: Lab) -> None:
    assert 0 < real_lab.read_record().emulator_overhead_ms < 1


def test_a_second_is_a_second(real_lab: Lab) -> None:
    started = real_lab.provider.now_s()
    real_lab.provider.run("ams", ["sleep", "1"], timeout_s=LIMIT_S)
    assert real_lab.provider.now_s() - started >= 1


def test_a_schedule_is_played_by_the_hosts_own_clocks(real_lab: Lab) -> None:
    moments = [Moment(at_s=0.3, link="ams-bra", update={"delay_ms": 30.0}), Moment(at_s=0.6, link="ams-bra", up=False)]
    seen: list[schedule_player.Played] = []
    schedule_player.play(real_lab, moments, seen.append)
    assert [change.moment.at_s for change in seen] == [0.3, 0.6]
    assert all(change.moment.at_s <= change.at_s < change.moment.at_s + 10 for change in seen)  # the machine is shared
    assert (real_lab.read_record().changed, real_lab.read_record().cut, real_lab.read_record().unsettled) == (
        {},
        frozenset(),
        frozenset(),
    )


def test_the_certificate_has_every_link_and_what_is_set(real_lab: Lab) -> None:
    """Every figure is there and judged by the file's tolerances; on a machine that does something else it may miss."""
    made = measure.certify(real_lab, quiet)
    rows = {(row.subject, row.quantity): row for row in made.rows}
    assert {name for name, quantity in rows if quantity == "settings"} == {host.name for host in real_lab.plan.hosts}
    assert [row.note for row in made.rows if row.quantity == "settings" and not row.ok] == []
    for link in real_lab.plan.links:
        rtt, loss, rate = (rows[link.name, quantity] for quantity in ("RTT", "loss", "TCP"))
        assert rtt.measured is not None and rtt.p99 is not None and rtt.measured <= rtt.p99
        allowed = round_trip(real_lab.plan, real_lab.plan.path(*link.ends))
        assert rtt.tolerance == pytest.approx(allowed.distance(link.rtt_ms), abs=1e-4)
        assert rtt.ok is allowed.allows(rtt.measured, link.rtt_ms)
        assert rtt.ok or made.busy, rtt.sentence()
        assert abs(rtt.measured - link.rtt_ms) < link.rtt_ms / 2
        assert loss.measured is not None and loss.measured < 5
        assert rate.measured is not None and rate.measured > 5
    assert ("ams-lju", "RTT") in rows
    assert kept_certificate.valid_certificate(real_lab) == made


MISCHIEF: tuple[dict[str, Amount], ...] = (
    {"corrupt_percent": 10, "slot_ms": 5},
    {"delay_ms": 10, "reorder_percent": 5, "duplicate_percent": 5},
    {"loss_percent": 5, "burst_packets": 4, "burst_loss_percent": 60, "burst_between_percent": 0.1},
    {"delay_ms": 10, "jitter_ms": 2, "jitter_distribution": "pareto", "jitter_correlation_percent": 25},
    {"delay_ms": 10, "jitter_ms": 2, "jitter_order": "free"},
    {"rate_mbit": 10, "rate_burst_bytes": 20 * 1514, "rate_peak_mbit": 20},
    {"rate_mbit": 10, "rate_burst_bytes": 20 * 1514, "rate_excess": "drop", "blackhole_bytes": 1400},
)


def test_what_is_set_is_gone_once_it_is_set_back(real_lab: Lab) -> None:
    """netem keeps what a change does not name. Each change is read back (`update_settings`)."""
    for update in MISCHIEF:
        labs.update_settings(real_lab, "ams-bra", update)
        labs.update_settings(real_lab, "ams-bra", dict.fromkeys(Amounts.model_fields))
    assert real_lab.read_record().changed == {}


def numbers(lab: Lab, *argv: str) -> list[int]:
    """The numbers of echo requests in the order in which their answers came."""
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    said = user_text(
        lab.provider.run("ams", ["ping", "-W", "1", *argv, address], timeout_s=LIMIT_S, check=False).stdout
    )
    return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl=", said)]


def test_order_is_kept_and_large_packets_vanish_and_a_policer_drops(real_lab: Lab) -> None:
    def only(update: dict[str, Amount]) -> None:
        labs.update_settings(real_lab, "ams-bra", {**dict.fromkeys(Amounts.model_fields), **update}, "ams")

    many = ("-c", "200", "-i", "0.002")
    only({"delay_ms": 20, "jitter_ms": 10})
    assert (kept := numbers(real_lab, *many)) == sorted(kept)
    only({"delay_ms": 20, "jitter_ms": 10, "jitter_order": "free"})
    assert (free := numbers(real_lab, *many)) != sorted(free)
    only({"blackhole_bytes": 1400})
    assert numbers(real_lab, "-c", "3", "-i", "0.1", "-M", "do", "-s", str(1400 - 28)) == [1, 2, 3]
    assert numbers(real_lab, "-c", "3", "-i", "0.1", "-M", "do", "-s", str(1401 - 28)) == []
    only({"rate_mbit": 1, "rate_burst_bytes": 20 * 1514, "rate_excess": "drop"})
    assert 20 <= len(numbers(real_lab, "-c", "60", "-l", "60", "-s", "1472")) < 60
    only({})


BY_HAND = (
    "tc filter del dev eth1 ingress pref 1 handle 800::2 u32",
    "tc filter add dev eth1 ingress pref 1 protocol all u32 match u32 0 0 action drop",
    "tc filter add dev eth1 egress protocol ip flower dst_ip 10.0.0.0/8 action drop",
)


@pytest.mark.parametrize("command", BY_HAND)
def test_filters_that_a_user_has_set_are_named_and_taken_off_again(real_lab: Lab, command: str) -> None:
    def notes() -> list[str]:
        return [row.note for row in measure.settings(real_lab, quiet) if not row.ok]

    assert notes() == []
    real_lab.provider.run("ams", command.split(), timeout_s=LIMIT_S)
    (note,) = notes()
    assert "filter" in note
    told = explain(real_lab, real_lab.plan.links[0])
    assert (told.cause, "filter" in told.answer) == ("settings", True), told.answer
    assert [*mend(real_lab, ["ams"])] == ["ams"]
    assert notes() == []


def test_a_lab_that_is_faster_than_declared_is_told_and_calibrated_when_asked(real_lab: Lab) -> None:
    """As after an `up` on a busier machine: too much has been taken off every delay."""
    too_much_ms = real_lab.read_record().emulator_overhead_ms + 3
    real_lab.write(real_lab.read_record().model_copy(update={"emulator_overhead_ms": too_much_ms}))
    labs.reshape(real_lab, real_lab.read_record())

    made = measure.certify(real_lab, quiet)

    assert made.too_fast
    assert made.emulator_overhead_ms == real_lab.read_record().emulator_overhead_ms == too_much_ms
    assert labs.calibrate(real_lab) == real_lab.read_record().emulator_overhead_ms < too_much_ms - 0.5
    again = measure.certify(real_lab, quiet)
    assert [row.note for row in again.rows if row.quantity == "settings" and not row.ok] == []


@pytest.fixture(scope="module", params=["none", "swarm"])
def endpoints(real_lab: Lab, request: pytest.FixtureRequest) -> Mapping[str, Endpoint]:
    return overlays.join(real_lab, request.param, quiet)


@pytest.fixture(scope="module")
def seen(endpoints: Mapping[str, Endpoint]) -> Seen:
    """What has been measured over these endpoints: a segment is on the way of several pairs."""
    return {}


def lowest_rtt_ms(lab: Lab, endpoints: Mapping[str, Endpoint], source: str, target: str) -> float:
    """Of an overlay's endpoints; the probe is the host's own program, in the container's network."""
    address, inside = endpoints[target].address, endpoints[source].network
    measured = calibration.probe(lab.provider, source, address, count=PROBES, prefix=inside)
    assert len(measured.rtts_ms) >= PROBES - 2, f"{source} to {target} loses packets: {measured}"
    return min(measured.rtts_ms)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_a_paths_latency_is_the_sum_of_its_segments(
    real_lab: Lab, endpoints: Mapping[str, Endpoint], seen: Seen, source: str, target: str
) -> None:
    plan = real_lab.plan
    segments = tuple(pairwise(HOSTS[HOSTS.index(source) : HOSTS.index(target) + 1]))
    declared_ms = plan.path(source, target).rtt_ms
    assert math.isclose(declared_ms, sum(plan.path(*segment).rtt_ms for segment in segments))
    for pair in ((source, target), *segments):
        if pair not in seen:
            seen[pair] = lowest_rtt_ms(real_lab, endpoints, *pair)
    path_ms, sum_ms = seen[source, target], sum(seen[segment] for segment in segments)
    least_ms, most_ms = band_ms(real_lab, plan.path(source, target))
    assert least_ms <= path_ms <= most_ms
    apart_ms = round_trip(plan, plan.path(source, target)).distance(declared_ms) + ends_ms(real_lab) * (
        len(segments) - 1
    )
    assert abs(path_ms - sum_ms) <= apart_ms, seen


@pytest.mark.parametrize("provider", ["uml", pytest.param("mininet", marks=pytest.mark.mininet)])
def test_links_carry_frames_as_large_as_their_mtu(make_lab: MakeLab, provider: str) -> None:
    """One link of the usual MTU and one of 9000 on the way: what fits neither is told to the sender."""
    lab = make_lab(LARGE, provider=provider, time="real")
    near, far = (lab.provider.run("a", (*LARGEST, host), check=False, timeout_s=LIMIT_S) for host in ("b", "c"))
    assert near.code == 0, near.stdout
    assert "(mtu = 1500)" in far.stdout


def test_a_sender_may_leave_segments_and_checksums_to_whoever_takes_them_off_the_link(make_lab: MakeLab) -> None:
    """Switched on at one end alone. The other finds out by the first packet that is longer than its MTU."""
    lab = make_lab(LARGE, time="real")
    for feature in ("tx", "tso"):
        lab.provider.run("b", ("ethtool", "-K", "eth2", feature, "on"), timeout_s=LIMIT_S)
    lab.provider.run("c", ("iperf3", "--server", "--daemon", "--one-off"), timeout_s=LIMIT_S)
    said = user_text(
        lab.provider.run("b", ("iperf3", "--client", "c", "--bytes", "20M", "--json"), timeout_s=LIMIT_S).stdout
    )
    assert json.loads(said)["end"]["sum_received"]["bytes"] >= 20_000_000
    sent = user_text(lab.provider.run("b", ("sh", "-c", SENT), timeout_s=LIMIT_S).stdout).split()
    assert int(sent[0]) / int(sent[1]) > 4 * 1500
