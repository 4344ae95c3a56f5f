"""A storm of bridges beside a flow of TCP over other hosts: the storm is named and bounded, the flow goes on; and many
flows over a fast link are no storm.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.program import Program
from minigts.tools import iperf3_tcp

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
BRIDGES = "ip link add br0 type bridge, ip link set br0 up, ip link set eth1 master br0, ip link set eth2 master br0"
BESIDE = f"""
name: beside
hosts:
  a: {{run: [{BRIDGES}]}}
  b: {{run: [{BRIDGES}]}}
  c: {{run: [{BRIDGES}, ip link set eth3 master br0]}}
  d:
  e:
  f:
links:
  - {{ends: [a, b]}}
  - {{ends: [b, c]}}
  - {{ends: [a, c]}}
  - {{ends: [c, d]}}
  - {{ends: [e, f], rtt: 4ms, rate: 20mbit}}
  - {{ends: [d, e], rtt: 4ms, rate: 20mbit}}
"""
HEAVY = """
name: heavy
hosts: {a: , b: , c: , d: }
links: [{ends: [a, b], rtt: 1ms, rate: 1gbit}, {ends: [b, c], rtt: 1ms, rate: 1gbit}, {ends: [c, d], rtt: 1ms}]
"""


def up(program: Program, tmp_path: Path, topology: str) -> str:
    file = tmp_path / "lab.yaml"
    file.write_text(topology)
    done = program.run("up", str(file), "--certify", "quick")
    assert done.returncode == 0, done.stderr
    return done.stderr


def storm(program: Program) -> list[str]:
    (lab,) = json.loads(program.succeeds("status", "--json"))
    return list(lab.get("storm") or ())


def tcp_mbit(program: Program, source: str, target: str, *options: str) -> float:
    program.succeeds("exec", target, "--", "iperf3", "-s", "-D")
    address = program.succeeds("exec", target, "--", "sh", "-c", "ip -4 -o addr show eth1 | awk '{print $4}'")
    asked = ("iperf3", "-J", "-c", address.strip().partition("/")[0], *options)
    return iperf3_tcp.parse(program.succeeds("exec", source, "--", *asked)).received_mbit


def test_a_storm_beside_a_flow_is_named_and_bounded_and_the_flow_goes_on(program: Program, tmp_path: Path) -> None:
    said = up(program, tmp_path, BESIDE)
    assert "a storm on " in said
    begun = storm(program)
    assert {*begun} >= {"a-b", "b-c", "a-c"}
    assert not {"e-f", "d-e"} & {*begun}
    program.succeeds("exec", "d", "--", "sh", "-c", "ping -c 40 -i 0.1 -W 1 10.254.254.254 >/tmp/pings 2>&1 & true")
    assert tcp_mbit(program, "e", "f", "-t", "4") > 17
    assert not {"e-f", "d-e"} & {*storm(program)}
    assert program.run("exec", "b", "--", "bridge", "link").returncode == 0


def test_many_flows_over_fast_links_are_no_storm(program: Program, tmp_path: Path) -> None:
    assert "a storm on" not in up(program, tmp_path, HEAVY)
    assert tcp_mbit(program, "a", "c", "-t", "1", "-P", "32") > 600
    assert storm(program) == []
