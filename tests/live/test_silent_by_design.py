"""Labs whose hosts do not answer by design come up: what was measured is shown, and what was not is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.program import Program

BRIDGE = """
name: bridge-host
hosts:
  sw:
    run: [ip link add br0 type bridge, ip link set br0 up, ip link set eth1 master br0, ip link set eth2 master br0]
  h1: {run: ["ip addr add 10.9.9.1/24 dev eth1"]}
  h2: {run: ["ip addr add 10.9.9.2/24 dev eth1"]}
links: [{ends: [sw, h1]}, {ends: [sw, h2], delay: 5ms}]
"""
FIREWALL = """
name: firewall
hosts: {a: , b: {run: ["iptables -A INPUT -p icmp --icmp-type echo-request -j DROP"]}, c: }
links: [{ends: [a, b], delay: 5ms}, {ends: [b, c], delay: 5ms}]
"""
RETURNS = """
name: returns
defaults: {link: {delay: 5ms}}
hosts:
  a: {run: ["sysctl -qw net.ipv4.conf.all.rp_filter=1"]}
  b:
  c:
  d: {run: ["ip route replace 10.255.0.1 via 10.20.2.1"]}
links: [{ends: [a, b]}, {ends: [b, d]}, {ends: [c, d]}, {ends: [a, c]}]
"""
"""a asks d by b; d answers by c. The answers come to a by a port by which it would not ask, so rp_filter drops them."""
IGNORES = """
name: ignores
time: real
hosts: {a: , b: {sysctls: {net.ipv4.icmp_echo_ignore_all: 1}}}
links: [{ends: [a, b], delay: 5ms}]
"""
RING = """
name: storm
defaults:
  host:
    run: [ip link add br0 type bridge, ip link set br0 up, ip link set eth1 master br0, ip link set eth2 master br0]
hosts: {a: , b: , c: }
links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [a, c]}]
"""
VIRTUAL = pytest.mark.virtual


def up(program: Program, tmp_path: Path, topology: str, *options: str) -> tuple[int, str, str]:
    file = tmp_path / "lab.yaml"
    file.write_text(topology)
    done = program.run("up", str(file), *options)
    return done.returncode, done.stdout, done.stderr


@VIRTUAL
def test_a_host_that_is_a_bridge_is_named_and_the_lab_is_up(program: Program, tmp_path: Path) -> None:
    code, shown, said = up(program, tmp_path, BRIDGE)
    assert code == 0, said
    assert shown.count("not reached: does sw forward or filter?") == 3
    assert "warning: not reached: " in said and ": does sw forward or filter?" in said
    reached = program.run("exec", "h1", "--", "ping", "-c", "1", "-W", "1", "10.9.9.2")
    assert reached.returncode == 0, reached.stdout


@VIRTUAL
def test_a_host_that_drops_echo_requests_is_named_beside_what_was_measured(program: Program, tmp_path: Path) -> None:
    code, shown, said = up(program, tmp_path, FIREWALL)
    assert code == 0, said
    rows = {
        line.split("\t")[0]: line.split("\t")[1]
        for line in shown.splitlines()
        if line.startswith(("a-", "b-")) and "\t" in line
    }
    assert rows == {"a-b": "nothing (10) ms OUTSIDE", "b-c": "10 (10) ms", "a-c": "20 (20) ms"}
    assert "minigts: warning: not reached: b from a, b from c: does b forward or filter?" in said


@VIRTUAL
@pytest.mark.parametrize("again", [False, True])
def test_strict_ends_with_1_and_shows_what_was_measured(program: Program, tmp_path: Path, again: bool) -> None:
    if again:
        assert up(program, tmp_path, FIREWALL)[0] == 0
    code, shown, said = up(program, tmp_path, FIREWALL, "--strict")
    assert code == 1
    assert "20 (20) ms" in shown
    assert "minigts: not reached: b from a, b from c: does b forward or filter?" in said
    assert program.run("exec", "a", "--", "true").returncode == 0


@VIRTUAL
def test_answers_that_a_reverse_path_filter_drops_are_no_reason_to_wait(program: Program, tmp_path: Path) -> None:
    code, shown, said = up(program, tmp_path, RETURNS)
    assert code == 0, said
    assert "10 (10) ms" in shown
    assert "minigts: warning: not reached: " in said and "d from a" in said


@pytest.mark.uml
def test_in_real_time_a_lab_that_cannot_be_calibrated_is_up(program: Program, tmp_path: Path) -> None:
    code, shown, said = up(program, tmp_path, IGNORES)
    assert code == 0, said
    assert "nothing is subtracted from the delays: echo requests from a to b have no answers" in said
    assert "not reached: does b forward or filter?" in shown


@VIRTUAL
def test_frames_that_go_round_at_one_moment_are_named_and_bounded(program: Program, tmp_path: Path) -> None:
    code, shown, said = up(program, tmp_path, RING)
    assert code == 0, said
    assert "minigts: warning: a storm on a-b, b-c, a-c: frames went round at one moment of the lab" in said
    assert "; a storm on a-b, b-c, a-c" in shown
    (lab,) = json.loads(program.succeeds("status", "--json"))
    assert lab["storm"] == ["a-b", "b-c", "a-c"]
    assert program.run("exec", "b", "--", "bridge", "link").returncode == 0
