"""Links whose two directions differ: each way takes, carries and loses what the file says of it, in every time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from live.conftest import MakeLab, quiet, state_directory, take_down
from live.exact import EXACT_MS
from live.program import TOPOLOGIES
from minigts import lab as labs
from minigts.dataplane import wire
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import explanation, measure
from minigts.fidelity.certificate import Certificate
from minigts.foreign import user_text
from minigts.lab import Lab, calibration, shown_links
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

TWO_WAYS = """
name: two-ways
chain:
  hosts: [a, b, c]
  segments:
    - {delay: {to: 10ms, from: 30ms}, rate: {to: 50mbit, from: 5mbit}}
    - {delay: 2ms, rate: 20mbit, loss: {to: 0%, from: 10%}}
"""
DATAGRAMS, DATAGRAM_FRAME_BYTES = 20, 50
"""Ethernet 14, IPv4 20, UDP 8, and the moment at which it was sent."""
RECEIVE = """
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7000))
s.settimeout(10)
for _ in range(%d):
    moment = s.recv(8)
    print(time.time_ns() - struct.unpack("q", moment)[0])
"""
SEND = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
time.sleep(2)
for _ in range(%d):
    time.sleep(0.1)
    s.sendto(struct.pack("q", time.time_ns()), (sys.argv[1], 7000))
"""
LIMIT_S = 60.0
BOTH_WAYS = [("a", "b"), ("b", "a")]
BY_TWO_CLOCKS_MS = EXACT_MS * 1.5
"""Two guests' clocks are read, each by a program that is in its first loop."""


@pytest.fixture(scope="module")
def two_ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """TWO_WAYS in virtual time."""
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(parse(TWO_WAYS, "test.yaml", time="virtual"), "uml", None, quiet)
    for source, target in BOTH_WAYS:  # they know each other's MAC addresses from now on
        calibration.probe(made.provider, source, made.plan.host(target).address, count=1)
    yield made
    take_down(made)


@pytest.fixture(scope="module")
def certificate(two_ways: Lab) -> Certificate:
    return measure.certify(two_ways, quiet)


def one_way_ms(lab: Lab, source: str, target: str) -> list[float]:
    """How long each datagram took from program to program, by the clock that both hosts share."""
    address = lab.plan.host(target).address
    calibration.probe(lab.provider, source, address, count=1)
    receive = ["python3", "-c", RECEIVE % DATAGRAMS]
    send = ["python3", "-c", SEND % DATAGRAMS, address]
    with lab.provider.together() as pool:
        received, _ = pool.all(
            [
                partial(lab.provider.run, target, receive, timeout_s=LIMIT_S),
                partial(lab.provider.run, source, send, timeout_s=LIMIT_S),
            ]
        )
    return [int(line) / 1e6 for line in user_text(received.stdout).split()]


def crossing_ms(plan: Plan, source: str, target: str, frame_bytes: int) -> float:
    port = next(port for port in plan.host(source).ports if port.peer_host == target)
    return wire.wire_for(port.outgoing).crossing_ns(frame_bytes) / 1e6


@pytest.mark.virtual
@pytest.mark.parametrize(("source", "target"), BOTH_WAYS)
def test_a_round_trip_is_both_delays_and_the_frames_own_time(two_ways: Lab, source: str, target: str) -> None:
    path = two_ways.plan.path(source, target)
    expected_ms = echo_ms(two_ways.plan, path)
    assert expected_ms == pytest.approx(40 + 98 * 8 / 50e3 + 98 * 8 / 5e3)
    address = two_ways.plan.host(target).address
    seen = calibration.probe(two_ways.provider, source, address, count=40)
    assert seen.rtts_ms == pytest.approx([expected_ms] * 40, abs=EXACT_MS, rel=0)


@pytest.mark.virtual
@pytest.mark.parametrize(("source", "target", "delay_ms"), [("a", "b", 10), ("b", "a", 30)])
def test_each_way_takes_its_own_delay(two_ways: Lab, source: str, target: str, delay_ms: float) -> None:
    expected_ms = crossing_ms(two_ways.plan, source, target, DATAGRAM_FRAME_BYTES)
    assert delay_ms < expected_ms < delay_ms + 0.1
    assert one_way_ms(two_ways, source, target) == pytest.approx([expected_ms] * DATAGRAMS, abs=BY_TWO_CLOCKS_MS, rel=0)


@pytest.mark.virtual
@pytest.mark.parametrize(("direction", "ceiling_mbit"), [("a to b", 47.82), ("b to a", 4.782)])
def test_each_way_carries_its_own_rate(certificate: Certificate, direction: str, ceiling_mbit: float) -> None:
    (row,) = (row for row in certificate.rows if (row.quantity, row.direction) == ("TCP", direction))
    assert row.ok, row.sentence()
    assert row.measured == pytest.approx(ceiling_mbit, rel=0.02)


@pytest.mark.virtual
def test_each_way_loses_its_own_share(two_ways: Lab, certificate: Certificate) -> None:
    rows = {row.direction: row for row in certificate.rows if row.quantity == "loss" and row.subject == "b-c"}
    assert [row.ok for row in rows.values()] == [True, True], certificate.summary()
    assert rows["b to c"].measured == 0
    assert rows["c to b"].measured == pytest.approx(10, abs=2.6)  # but for one lab of a thousand: 1500 probes
    wires = shown_links.read_wires(two_ways)
    assert wires is not None
    assert (wires["b"]["eth2"].lost, wires["c"]["eth1"].lost > 100) == (0, True)


@pytest.mark.virtual
def test_the_certificate_of_such_a_lab_is_all_within_tolerance(certificate: Certificate) -> None:
    assert certificate.ok, certificate.summary()


@pytest.mark.virtual
def test_what_carries_the_links_shows_both_directions(two_ways: Lab) -> None:
    seen = explanation.explain(two_ways, two_ways.plan.links[0])
    assert seen.differences == ()
    shown = {(each.source, each.target): each.shown for each in seen.quantities if each.name == "delay"}
    assert shown == {("a", "b"): 10, ("b", "a"): 30}


@pytest.mark.virtual
def test_a_rate_is_measured_over_so_long_that_a_queue_is_a_small_part_of_it(make_lab: MakeLab) -> None:
    """26 ms of queue are as much of what arrives within a second or not."""
    lab = make_lab("name: slow\npair: {link: {rtt: 6ms, rate: 20mbit}}\n", time="virtual")
    (row,) = (row for row in measure.certify(lab, quiet).rows if row.quantity == "TCP")
    assert row.ok, row


@pytest.mark.nightly
def test_the_shipped_links_with_another_way_back_are_as_declared(make_lab: MakeLab) -> None:
    lab = make_lab(TOPOLOGIES / "acknowledgements.yaml")
    made = measure.certify(lab, quiet)
    assert [row.sentence() for row in made.rows if row.ok is False] == []
    assert {row.subject for row in made.rows if row.quantity == "RTT"} >= {link.name for link in lab.plan.links}
    thin = {row.direction: row.ok for row in made.rows if row.quantity == "TCP" and row.subject == "sender-half"}
    assert thin == {"sender to half": None, "half to sender": True}


@pytest.mark.alone
@pytest.mark.nightly
@pytest.mark.parametrize(
    "provider",
    [pytest.param("uml", marks=pytest.mark.uml), pytest.param("mininet", marks=pytest.mark.mininet)],
)
def test_in_real_time_too_each_way_takes_its_own_delay(make_lab: MakeLab, provider: str) -> None:
    """
    One way is read by two clocks: in real time each uml host has its own, some ten milliseconds from the others' and
    more on a busy machine, since it counts ticks until it is up. The directions differ by more than that, and in their
    sum it is gone.
    """
    real_ways = TWO_WAYS.replace("two-ways", "real-ways").replace("to: 10ms, from: 30ms", "to: 100ms, from: 300ms")
    lab = make_lab(real_ways, provider=provider, time="real")
    for link in lab.plan.links:
        assert explanation.explain(lab, link).differences == ()
    there_ms, back_ms = (min(one_way_ms(lab, *ends)) for ends in BOTH_WAYS)
    assert there_ms == pytest.approx(100, abs=90)
    assert back_ms == pytest.approx(300, abs=90)
    assert there_ms + back_ms == pytest.approx(400, abs=5)
