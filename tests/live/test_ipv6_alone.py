"""A lab without IPv4: what its hosts have, that the certificate holds, and that the tools measure as predicted."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import MakeLab, quiet, state_directory, take_down
from live.exact import EXACT_MS
from live.program import TOPOLOGIES, Program
from minigts import lab as labs
from minigts import overlays
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

pytestmark = pytest.mark.touched("tools/minigts/topology/routes", "tools/minigts/dataplane", "tools/minigts/fidelity")

LIMIT_S = 60.0
PROTOCOL = """name: by-protocol
ipv6: true
ipv4: false
dns: true
routing: {protocol}
defaults: {{link: {{delay: 2ms, rate: 50mbit}}}}
hosts: {{a: , b: , c: }}
links:
- {{ends: [a, b], loss: {{to: 2%, from: 0%}}}}
- {{ends: [b, c]}}
expect: [{{latency: sum-of-segments}}]
"""
EXPERIMENT = """name: alone
title: Over IPv6 alone
topology: {topology}
overlays: [none, vxlan-bare-v6]
seed: 1
repetitions: 1
measurements:
- {{name: rtt, tool: ping, paths: [{{from: client, to: mail}}]}}
- {{name: rr, tool: netperf-rr, paths: [{{from: client, to: mail}}], options: {{duration: 1s, protocol: udp}}}}
- {{name: tcp, tool: iperf3-tcp, paths: [{{from: client, to: mail}}], options: {{duration: 3s, omit: 1s}}}}
- {{name: udp, tool: iperf3-udp, paths: [{{from: client, to: mail}}], options: {{duration: 1s, rate: 10mbit}}}}
"""


def brought_up(plan: Plan, state: Path) -> Iterator[Lab]:
    with state_directory(state):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """topologies/ipv6-only.yaml in virtual time."""
    yield from brought_up(load(TOPOLOGIES / "ipv6-only.yaml", time="virtual"), tmp_path_factory.mktemp("state"))


@pytest.fixture(
    scope="module", params=["routed", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("ospf", "bgp"))]
)
def row(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three hosts in a row, whose first link loses in one direction, and name servers."""
    text = PROTOCOL.format(protocol=request.param)
    yield from brought_up(parse(text, "row.yaml", time="virtual"), tmp_path_factory.mktemp("state"))


def ipv4_addresses(lab: Lab, machine: str) -> set[str]:
    shown = json.loads(user_text(lab.provider.run(machine, ["ip", "-j", "-4", "address"], timeout_s=LIMIT_S).stdout))
    return {each["local"] for device in shown for each in device["addr_info"]}


def wrong(lab: Lab) -> list[tuple[str, str, str]]:
    made = measure.certify(lab, quiet)
    assert made.rows
    return [(row.subject, row.quantity, row.note) for row in made.rows if row.ok is False]


@pytest.mark.virtual
def test_no_machine_has_an_ipv4_address_but_its_loopback_s(lab: Lab) -> None:
    assert {name: ipv4_addresses(lab, name) for name in ("client", "router", "web", "mail", "lan")} == {
        name: {"127.0.0.1"} for name in ("client", "router", "web", "mail", "lan")
    }


@pytest.mark.virtual
def test_the_certificate_holds_for_every_link_path_and_machine(lab: Lab) -> None:
    assert wrong(lab) == []


@pytest.mark.virtual
def test_a_name_leads_to_the_ipv6_address(lab: Lab) -> None:
    said = user_text(lab.provider.run("client", ["getent", "ahosts", "mail"], timeout_s=LIMIT_S).stdout)
    assert {line.split()[0] for line in said.splitlines()} == {"fd6d:6967:7473:ffff::4"}


@pytest.mark.virtual
@pytest.mark.parametrize("target", ["router", "web", "mail"])
def test_a_probe_s_round_trip_is_that_of_ipv6_s_frames_to_microseconds(lab: Lab, target: str) -> None:
    path = lab.plan.path("client", target)
    seen = probe(lab.provider, "client", lab.plan.address_over(path), count=5)
    assert (seen.sent, len(seen.rtts_ms)) == (5, 5)
    assert min(seen.rtts_ms) == pytest.approx(echo_ms(lab.plan, path, family="ipv6"), abs=EXACT_MS, rel=0)


@pytest.mark.virtual
def test_plain_hosts_are_the_same_overlay_by_either_name(lab: Lab) -> None:
    found = []
    for name in ("none", "none-v6"):
        ends = overlays.join(lab, name, quiet)
        try:
            proven = overlays.verify(lab, quiet)
        finally:
            overlays.leave(lab, quiet)
        assert {words["ENCAPSULATION"] for words in proven.values()} == {"ipv6"}
        found.append({host: end.address for host, end in ends.items()})
    assert found[0] == found[1] == {host.name: lab.plan.address_of(host) for host in lab.plan.hosts}


@pytest.mark.virtual
def test_an_address_that_is_gone_is_said_and_set_again(lab: Lab) -> None:
    beside = lab.plan.ipv6_of("web")
    assert beside is not None
    address = beside.ports[0].address
    lab.provider.run("web", ["ip", "address", "del", f"{address}/64", "dev", "eth1"], timeout_s=LIMIT_S)
    try:
        notes = [note for subject, quantity, note in wrong(lab) if (subject, quantity) == ("web", "settings")]
        assert f"eth1: IPv6 address is none, should be {address}" in notes[0]
    finally:
        again = ["ip", "address", "add", f"{address}/64", "dev", "eth1", "nodad"]
        lab.provider.run("web", again, timeout_s=LIMIT_S)


@pytest.mark.virtual
def test_routes_by_hand_or_by_protocol_losses_and_name_servers_are_as_declared(row: Lab) -> None:
    assert wrong(row) == []
    assert ipv4_addresses(row, "b") == {"127.0.0.1"}


@pytest.mark.parametrize(
    "provider", [pytest.param("uml", marks=pytest.mark.uml), pytest.param("mininet", marks=pytest.mark.mininet)]
)
@pytest.mark.nightly
def test_in_real_time_it_is_the_same_lab(make_lab: MakeLab, provider: str) -> None:
    """The echo's time is this machine's business; here that all is set, and that it arrives."""
    text = (TOPOLOGIES / "ipv6-only.yaml").read_text()
    lab = make_lab(text, provider=provider, time="real")
    assert [(row.subject, row.note) for row in measure.settings(lab, quiet) if row.ok is False] == []
    path = lab.plan.path("client", "mail")
    seen = probe(lab.provider, "client", lab.plan.address_over(path), count=5)
    assert len(seen.rtts_ms) == 5
    assert min(seen.rtts_ms) > 19


@pytest.mark.virtual
@pytest.mark.nightly
def test_every_tool_measures_what_the_plan_predicts(tmp_path: Path) -> None:
    file = tmp_path / "alone.yaml"
    file.write_text(EXPERIMENT.format(topology=TOPOLOGIES / "ipv6-only.yaml"))
    program = Program(tmp_path / "state")
    program.succeeds("run", str(file), "--results", str(tmp_path / "results"))
    (table,) = (tmp_path / "results").glob("*/samples.csv")
    with table.open() as lines:
        samples = {(row["overlay"], row["measurement"]): row for row in csv.DictReader(lines)}
    assert len(samples) == 8
    for (overlay, measurement), sample in samples.items():
        assert sample["error"] == "", (overlay, measurement)
    assert float(samples["none", "tcp"]["value"]) == pytest.approx(20 * 1428 / 1514, rel=0.02)
    assert float(samples["none", "udp"]["value"]) == pytest.approx(10, rel=0.02)
    rr = samples["none", "rr"]
    assert float(rr["value"]) == pytest.approx(float(rr["predicted"]), rel=0.02)
