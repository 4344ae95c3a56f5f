"""Hosts that spread flows over several ways (ECMP), and ways back that are others: routes, shares and round trips."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from live.exact import EXACT_MS
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab, routes
from minigts.lab.calibration import probe
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
DIAMOND = """name: diamond
routing: {routing}
ecmp: {ecmp}
ipv6: true
hosts: {{a: , b: , c: , d: , e: }}
defaults: {{link: {{delay: 2ms, rate: 50mbit, cost: 10}}}}
links:
  - {{ends: [a, b]}}
  - {{ends: [a, c]}}
  - {{ends: [b, d]}}
  - {{ends: [c, d]}}
  - {{ends: [d, e], delay: 1ms, cost: {{to: 10, from: 100}}}}
  - {{ends: [d, e], delay: 20ms, cost: {{to: 100, from: 10}}}}
"""
"""From a to d there are two ways; to e the way there takes d-e, and the way back d-e-2."""
FLOWS, DATAGRAMS, PAYLOAD_BYTES = 64, 5, 1000
SEND = f"""
import socket, sys, time
for _ in range({FLOWS}):
    s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range({DATAGRAMS}):
        s.sendto(bytes({PAYLOAD_BYTES}), (sys.argv[1], 7))
time.sleep(1)
"""


@pytest.fixture(
    scope="module",
    params=[
        ("routed", "layer4"),
        pytest.param(("bgp", "layer3"), marks=pytest.mark.nightly),
        pytest.param(("ospf", "layer4"), marks=pytest.mark.nightly),
    ],
)
def diamond(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    routing, ecmp = request.param
    plan = parse(DIAMOND.format(routing=routing, ecmp=ecmp), "diamond.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


def sent_bytes(lab: Lab) -> list[int]:
    """By port of host a."""
    argv = ["cat", *(f"/sys/class/net/{port}/statistics/tx_bytes" for port in ("eth1", "eth2"))]
    return [int(line) for line in user_text(lab.provider.run("a", argv, timeout_s=LIMIT_S).stdout).split()]


def test_routes_are_the_plans_and_the_certificate_reads_them_back(diamond: Lab) -> None:
    assert all(routes.differences(diamond, host, diamond.read_record()) == [] for host in diamond.plan.hosts)
    certificate = measure.certify(diamond, quiet)
    assert [(row.subject, row.quantity, row.note) for row in certificate.rows if row.ok is False] == []
    assert {f"{path.source}-{path.target}" for path in diamond.plan.paths if path.hops > 2} & {
        row.subject for row in certificate.rows if row.quantity == "RTT"
    }


@pytest.mark.parametrize("family", [4, 6])
def test_flows_take_both_ways_by_their_ports_and_one_by_their_addresses(diamond: Lab, family: int) -> None:
    beside = diamond.plan.ipv6_of("d")
    assert beside is not None
    before = sent_bytes(diamond)
    address = diamond.plan.host("d").address if family == 4 else beside.address
    diamond.provider.run("a", ["python3", "-c", SEND, address], timeout_s=LIMIT_S)
    sent = [after - was for after, was in zip(sent_bytes(diamond), before, strict=True)]
    # All are sent at once, so some find the port's queue full.
    assert sum(sent) > FLOWS * DATAGRAMS * PAYLOAD_BYTES / 2
    least = min(sent) / sum(sent)
    # Of 64 flows 20 to 44 take each way but once in a thousand; in virtual time it is the same number each time.
    assert least > 0.3 if diamond.plan.ecmp == "layer4" else least < 0.02, sent


def test_a_way_back_that_is_another_has_the_round_trip_of_the_plan(diamond: Lab) -> None:
    path = diamond.plan.path("a", "e")
    assert (path.rtt_ms, path.rtt_most_ms, len(path.each_there), len(path.each_back)) == (29.0, None, 2, 2)
    measured_ms = min(probe(diamond.provider, "a", diamond.plan.address_over(path), count=3).rtts_ms)
    assert measured_ms == pytest.approx(echo_ms(diamond.plan, path), abs=EXACT_MS)


def test_a_way_that_somebody_takes_away_is_found(diamond: Lab) -> None:
    address = diamond.plan.host("d").address
    (wanted,) = (route for route in diamond.plan.routes_of("a") if route.to == f"{address}/32")
    table = ["table", "20"] if diamond.plan.has_routers else []
    one = ["ip", "route", "replace", *table, address, "via", wanted.via, "src", wanted.source]
    if diamond.plan.has_routers:
        one += ["proto", "bird", "metric", "32"]
    diamond.provider.run("a", one, timeout_s=LIMIT_S)
    (row,) = (row for row in measure.settings(diamond, quiet) if row.subject == "a")
    assert row.ok is False
    assert "should go by" in row.note
