"""Ports with the numbers of the file, also with gaps, from eth0 on and in another order than the links': interfaces of
that name, on the right link, in a lab that is up, changed, measured and altered.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from live.conftest import MakeLab, quiet
from minigts import lab as labs
from minigts.errors import EnvironmentLacks
from minigts.fidelity import measure
from minigts.foreign import parser_text
from minigts.lab import Lab, edit
from minigts.topology.edit import add_link, remove_link
from minigts.topology.outage import Outage

pytestmark = pytest.mark.touched(
    "tools/minigts/language/interface_names.py", "tools/minigts/topology/plan", "tools/minigts/topology/edit.py"
)
FILE = """name: numbers
hosts: {a: , b: , c: }
switches: {s: }
links:
  - {ends: [a, b], delay: 1ms, interfaces: {a: eth3, b: eth0}}
  - {ends: [b, c], delay: 2ms, interfaces: {c: eth2}}
  - {ends: [c, a], delay: 3ms, interfaces: {c: eth1}}
  - {ends: [s, a], delay: 4ms, interfaces: {s: eth5}}
  - {ends: [s, b], delay: 5ms, interfaces: {s: eth0, b: eth7}}
"""
PORTS = {
    "a": {"eth1": "c-a", "eth2": "s-a", "eth3": "a-b"},
    "b": {"eth0": "a-b", "eth1": "b-c", "eth7": "s-b"},
    "c": {"eth1": "c-a", "eth2": "b-c"},
    "s": {"eth0": "s-b", "eth5": "s-a"},
}


def has_the_ports_of_its_plan(lab: Lab) -> None:
    """Each machine's interfaces have the names and MACs of its plan, and no other one has such a name."""
    for machine in lab.plan.machines:
        shown = json.loads(
            parser_text(lab.provider.run(machine.name, ["ip", "-json", "link", "show"], timeout_s=60).stdout)
        )
        found = {each["ifname"]: each["address"] for each in shown if each["ifname"].startswith("eth")}
        assert found == {port.name: port.mac for port in machine.ports}, machine.name
    assert [row.note for row in measure.settings(lab, quiet) if row.ok is False] == []


def round_trip_ms(lab: Lab, source: str, link: str, target: str) -> float:
    """The shortest of three round trips to the neighbour over that link."""
    port = next(port for port in lab.plan.host(target).ports if port.link == link)
    argv = ["ping", "-c", "4", "-i", "0.2", "-q", port.address]
    text = parser_text(lab.provider.run(source, argv, timeout_s=60).stdout)
    return float(text.rpartition("= ")[2].split("/")[0])


def goes_by_the_right_links(lab: Lab) -> None:
    """In real time only that no round trip is a shorter link's: the emulator's own latency is subtracted from the
    delays, and a busy machine has more when it is measured."""
    found = [round_trip_ms(lab, *each) for each in (("a", "a-b", "b"), ("b", "b-c", "c"), ("c", "c-a", "a"))]
    if lab.time == "virtual":
        assert found == pytest.approx([2, 4, 6], abs=0.1)
    for each, declared_ms in zip(found, (2, 4, 6), strict=True):
        assert each > declared_ms / 2


def goes_down_alone(lab: Lab, first: str, second: str) -> None:
    """The link loses everything and its ends their carriers, and no other one."""
    name = f"{first}-{second}"
    labs.set_links_up(lab, first, second, up=False, how=Outage())
    lab.provider.run(first, ["sleep", "2"], timeout_s=60)
    for host in lab.plan.hosts:
        for port in host.ports:
            carrier = parser_text(
                lab.provider.run(host.name, ["cat", f"/sys/class/net/{port.name}/carrier"], timeout_s=60).stdout
            )
            assert carrier.strip() == ("0" if port.link == name else "1"), (host.name, port.name)
    far = next(port for port in lab.plan.host(second).ports if port.link == name)
    own = next(port for port in lab.plan.host(first).ports if port.link == name)
    argv = ["ping", "-c", "1", "-W", "1", "-I", own.name, far.address]
    assert lab.provider.run(first, argv, timeout_s=60, check=False).code != 0
    labs.set_links_up(lab, first, second, up=True)


@pytest.mark.parametrize(
    "time",
    [
        pytest.param("virtual", marks=pytest.mark.virtual),
        pytest.param("real", marks=[pytest.mark.uml, pytest.mark.alone, pytest.mark.nightly]),
    ],
)
def test_interfaces_have_the_files_numbers_and_keep_them_as_others_come_and_go(make_lab: MakeLab, time: str) -> None:
    lab = make_lab(FILE, time=time)
    assert {each.name: {port.name: port.link for port in each.ports} for each in lab.plan.machines} == PORTS
    has_the_ports_of_its_plan(lab)
    goes_by_the_right_links(lab)
    goes_down_alone(lab, "b", "c")
    for altered in (partial(remove_link, name="c-a"), lambda plan: add_link(plan, "a", "c", {"delay": "3ms"})):
        edit.alter(lab, altered(lab.plan), quiet)
        lab = lab.reopened
        has_the_ports_of_its_plan(lab)
    assert [port.name for port in lab.plan.host("c").ports] == ["eth1", "eth2"]
    assert round_trip_ms(lab, "c", "a-c", "a") > 3


@pytest.mark.mininet
def test_interfaces_have_the_files_numbers_in_namespaces(make_lab: MakeLab) -> None:
    lab = make_lab(FILE, provider="mininet")
    has_the_ports_of_its_plan(lab)
    goes_by_the_right_links(lab)


@pytest.mark.vagrant
def test_virtual_machines_have_no_port_eth0(make_lab: MakeLab) -> None:
    with pytest.raises(EnvironmentLacks, match="b, s with `interfaces: eth0`: provider vagrant does not support"):
        make_lab(FILE, provider="vagrant")
