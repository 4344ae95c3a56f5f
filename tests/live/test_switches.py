"""Switches: hosts reach each other through them with the declared round trip; one learns, one does as it is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from live.exact import EXACT_MS
from live.program import TOPOLOGIES
from live.real_time import PROBES, band_ms
from minigts.dataplane.round_trip import echo_ms
from minigts.foreign import user_text
from minigts.lab import Lab, calibration
from minigts.providers import registry

ALONE = pytest.mark.alone
LIMIT_S = 120.0
SWITCH_MS = 0.08
"""What Open vSwitch takes longer than a link for a round trip, on two or three links (evidence/trust-measured.md)."""

everywhere = pytest.mark.parametrize(
    "provider",
    [
        pytest.param(
            name,
            marks=[pytest.mark.virtual] if registry.has_virtual_time(name) else [getattr(pytest.mark, name), ALONE],
        )
        for name in registry.names()
    ],
)


def takes_what_is_declared(lab: Lab, source: str, target: str) -> None:
    """In virtual time the median to the clock's own resolution, else the lowest round trip."""
    path, address = lab.plan.path(source, target), lab.plan.host(target).address
    calibration.probe(lab.provider, source, address, count=1)  # flows come with a first packet
    measured = calibration.probe(lab.provider, source, address, count=PROBES)
    assert len(measured.rtts_ms) >= PROBES - 2, f"{source} to {target} loses packets"
    if lab.plan.time == "virtual":
        assert measured.median_ms == pytest.approx(echo_ms(lab.plan, path), abs=EXACT_MS, rel=0)
    else:
        least_ms, most_ms = band_ms(lab, path, SWITCH_MS)
        assert least_ms <= min(measured.rtts_ms) <= most_ms


def said(lab: Lab, switch: str, *argv: str) -> str:
    return user_text(lab.provider.run(switch, argv, timeout_s=LIMIT_S).stdout)


@everywhere
@pytest.mark.timeout(600)
def test_hosts_reach_each_other_through_switches(make_lab: Any, provider: str) -> None:
    lab = make_lab(TOPOLOGIES / "switched.yaml", provider=provider)
    for source, target, links in (("ams1", "ams3", 2), ("ams1", "bra2", 3), ("bra1", "bra2", 2)):
        path = lab.plan.path(source, target)
        assert (path.hops, path.reachable) == (links, True)
        takes_what_is_declared(lab, source, target)
    learns(lab)
    does_as_it_is_told(lab)


@everywhere
@pytest.mark.timeout(600)
def test_no_frame_goes_from_one_vlan_to_another_but_by_the_router(make_lab: Any, provider: str) -> None:
    lab = make_lab(TOPOLOGIES / "vlans.yaml", provider=provider)
    for source, target in (("staff1", "staff2"), ("staff2", "guest2")):
        takes_what_is_declared(lab, source, target)
    # The same link twice, up and down: by the two interfaces over the router's one port.
    assert lab.plan.path("staff1", "guest1").links.count("router-s1") == 2
    guest = lab.plan.host("guest1").ports[0]
    add = f"ip route flush {guest.subnet}; ip address add {guest.address.rpartition('.')[0]}.99/24 dev eth1"
    ask = f"ping -c 1 -W 2 -I eth1 {guest.address} >/dev/null"
    outcome = lab.provider.run("staff1", ["sh", "-c", f"{add}; {ask}; echo $?"], timeout_s=LIMIT_S)
    assert outcome.stdout.strip() == "1", "an address of the other VLAN's is enough to get there"
    tagged = said(lab, "s1", "ovs-appctl", "fdb/show", "br0")
    vlans = {mac: vlan for _, vlan, mac, _ in (line.split() for line in tagged.splitlines()[1:])}
    assert vlans[lab.plan.host("staff2").ports[0].mac] == "10"
    assert vlans[lab.plan.host("guest2").ports[0].mac] == "20"


def learns(lab: Lab) -> None:
    """The switch without a controller knows behind which port each host is that has sent something."""
    table = said(lab, "s1", "ovs-appctl", "fdb/show", "br0")
    rows = (line.split() for line in table.splitlines()[1:])
    behind = {mac: port for port, _, mac, _ in rows}
    ports = {port.peer_host: port.name for port in lab.plan.machine("s1").ports}
    numbers = {
        name: said(lab, "s1", "ovs-vsctl", "get", "interface", port, "ofport").strip() for name, port in ports.items()
    }
    for host, towards in (("ams1", "ams1"), ("ams3", "ams3"), ("bra2", "s2")):
        assert behind[lab.plan.host(host).ports[0].mac] == numbers[towards]
    is_set_as_a_switch(lab, "s1")


def is_set_as_a_switch(lab: Lab, name: str) -> None:
    """Read back: it forwards frames by itself and no packets, and leaves its ports the queues that links put there."""
    assert said(lab, name, "ovs-vsctl", "get-fail-mode", "br0").strip() == "standalone"
    assert said(lab, name, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "0"
    kept = said(lab, name, "ovs-vsctl", "--bare", "--columns=_uuid", "find", "qos", "type=linux-noop").split()
    queues = [
        said(lab, name, "ovs-vsctl", "get", "port", port.name, "qos").strip() for port in lab.plan.machine(name).ports
    ]
    assert len(kept) == 1
    assert set(queues) == set(kept)


def does_as_it_is_told(lab: Lab) -> None:
    """The other one has flows for those who have talked, which its controller has installed; no rule of its own."""
    assert said(lab, "s2", "ovs-vsctl", "get-fail-mode", "br0").strip() == "secure"
    bra1, bra2 = (lab.plan.host(name).ports[0].mac for name in ("bra1", "bra2"))
    takes_what_is_declared(lab, "bra1", "bra2")
    flows = said(lab, "s2", "ovs-ofctl", "dump-flows", "br0")
    assert re.search(rf"idle_timeout=\d+.*dl_src={bra1},dl_dst={bra2}.*actions=output", flows), flows
    assert "actions=NORMAL" not in flows
    assert not re.search(r"idle_timeout", said(lab, "s1", "ovs-ofctl", "dump-flows", "br0"))


@pytest.mark.mininet
def test_a_controller_on_a_host_takes_over_when_it_listens(make_lab: Any) -> None:
    """Before, the switch learns by itself; in-band, over the segment itself."""
    links = "".join(f"  - {{ends: [{host}, s1], rtt: 2ms}}\n" for host in "abc")
    hosts = 'hosts: {a: , b: , c: }\nswitches: {s1: {controller: "c:6633"}}\n'
    lab = make_lab(f"name: told\n{hosts}links:\n{links}", provider="mininet")
    takes_what_is_declared(lab, "a", "b")
    assert "NORMAL" in said(lab, "s1", "ovs-ofctl", "dump-flows", "br0")
    lab.provider.run("c", ["ovs-testcontroller", "--detach", "--unixctl=none", "ptcp:6633"], timeout_s=LIMIT_S)
    wait = ["bash", "-c", "until ovs-vsctl get controller br0 is_connected | grep -q true; do sleep 0.2; done"]
    lab.provider.run("s1", wait, timeout_s=60)
    takes_what_is_declared(lab, "a", "b")
    flows = said(lab, "s1", "ovs-ofctl", "dump-flows", "br0")
    assert "CONTROLLER" in flows
    assert "NORMAL" not in flows
