"""A lab is what its plan says: hosts with kernels of their own, addresses, routes, shaping."""

from __future__ import annotations

import json
from typing import Any

import pytest

from live.conftest import quiet
from live.program import TOPOLOGIES
from minigts import lab as labs
from minigts.dataplane import shaping
from minigts.fidelity import measure
from minigts.judge.tolerances import round_trip
from minigts.lab import DECLARED, Lab, Settings, calibration

pytestmark = pytest.mark.uml
LIMIT_S = 30.0


def everywhere(lab: Lab, *argv: str) -> dict[str, str]:
    return lab.on_every_host(lambda host: lab.provider.run(host.name, argv, timeout_s=LIMIT_S).stdout.strip())


def asked(lab: Lab, *argv: str) -> dict[str, Any]:
    return {host: json.loads(said) for host, said in everywhere(lab, *argv).items()}


def test_it_has_the_plans_six_hosts_and_each_answers(lab: Lab) -> None:
    assert list(lab.state_of_hosts()) == ["ams", "bra", "lju", "mil", "ham", "lon"]
    assert set(lab.state_of_hosts().values()) == {"answers"}


def test_every_host_has_a_kernel_of_its_own(lab: Lab) -> None:
    assert len(set(everywhere(lab, "cat", "/proc/sys/kernel/random/boot_id").values())) == 6


def test_every_host_has_its_name(lab: Lab) -> None:
    assert everywhere(lab, "hostname") == {host.name: host.name for host in lab.plan.hosts}


def test_names_resolve_to_the_hosts_own_addresses(lab: Lab) -> None:
    said = everywhere(lab, "getent", "hosts", *(host.name for host in lab.plan.hosts))
    wanted = [[host.address, host.name] for host in lab.plan.hosts]
    assert all([line.split() for line in text.splitlines()] == wanted for text in said.values())


def test_every_port_has_its_name_mac_address_and_mtu(lab: Lab) -> None:
    shown = asked(lab, "ip", "-j", "address")
    for host in lab.plan.hosts:
        links = {link["ifname"]: link for link in shown[host.name]}
        for port in host.ports:
            link = links[port.name]
            addresses = [(a["local"], a["prefixlen"]) for a in link["addr_info"] if a["family"] == "inet"]
            assert (link["address"], link["mtu"], addresses) == (
                port.mac,
                port.mtu,
                [(port.address, port.prefix)],
            )


def test_every_host_has_the_plans_routes_and_no_others(lab: Lab) -> None:
    shown = asked(lab, "ip", "-j", "route")
    for host in lab.plan.hosts:
        via = {(route["dst"], route["gateway"]) for route in shown[host.name] if "gateway" in route}
        wanted = {(route.to.removesuffix("/32"), route.via) for route in host.routes}
        assert via == wanted


def test_every_port_is_shaped_as_planned(lab: Lab) -> None:
    shown = everywhere(lab, "tc", "-j", "qdisc", "show")
    emulator_overhead_ms = lab.record.emulator_overhead_ms
    assert [
        difference
        for host in lab.plan.hosts
        for port in host.ports
        for difference in shaping.differences(port, shown[host.name], emulator_overhead_ms)
    ] == []


def test_what_the_emulator_adds_by_itself_is_little_and_known(lab: Lab) -> None:
    assert 0 < lab.record.emulator_overhead_ms < 1


@pytest.mark.parametrize("feature", ["generic-receive-offload"])
def test_no_port_glues_packets_together(lab: Lab, feature: str) -> None:
    for host in lab.plan.hosts:
        for port in host.ports:
            said = lab.provider.run(host.name, ["ethtool", "-k", port.name], timeout_s=LIMIT_S).stdout
            assert f"{feature}: off" in said


def test_in_mode_neighbours_a_host_reaches_its_neighbours_and_nobody_else(make_lab: Any) -> None:
    text = "name: next\nrouting: neighbours\nchain: {hosts: 3, link: {rtt: 2ms, rate: 50mbit}}\n"
    lab = make_lab(text)
    first, second, third = lab.plan.hosts

    def answers(address: str) -> bool:
        argv = ["ping", "-c", "2", "-i", "0.2", "-W", "1", address]
        return bool(lab.provider.run(first.name, argv, timeout_s=LIMIT_S, check=False).code == 0)

    assert answers(first.ports[0].peer_address)
    assert answers(second.address) == any(route.to.startswith(second.address) for route in first.routes)
    assert not answers(third.address)
    assert not answers(third.ports[0].address)


def test_two_labs_of_one_topology_do_not_touch_each_other(make_lab: Any) -> None:
    one, two = (make_lab(TOPOLOGIES / "pair.yaml", name) for name in ("one", "two"))
    assert (one.name, two.name) == ("one", "two")
    for each in (one, two):
        each.provider.run("ams", ["hostname", f"ams-{each.name}"], timeout_s=LIMIT_S)
        measured = calibration.probe(each.provider, "ams", each.plan.host("bra").address, count=20)
        assert len(measured.rtts_ms) == 20
    assert [lab.provider.run("ams", ["hostname"], timeout_s=LIMIT_S).stdout for lab in (one, two)] == [
        "ams-one\n",
        "ams-two\n",
    ]
    one.provider.run("ams", ["ip", "link", "set", "eth1", "down"], timeout_s=LIMIT_S)
    still = calibration.probe(two.provider, "ams", two.plan.host("bra").address, count=20)
    assert len(still.rtts_ms) == 20


def test_the_certificate_has_every_link_and_what_is_set(lab: Lab) -> None:
    """Every figure is there and judged by the file's tolerances; on a machine that does something else it may miss."""
    made = measure.certify(lab, quiet)
    rows = {(row.subject, row.quantity): row for row in made.rows}
    assert {name for name, quantity in rows if quantity == "settings"} == {host.name for host in lab.plan.hosts}
    assert [row.note for row in made.rows if row.quantity == "settings" and not row.ok] == []
    for link in lab.plan.links:
        rtt, loss, rate = (rows[link.name, quantity] for quantity in ("RTT", "loss", "TCP"))
        assert rtt.measured is not None and rtt.p99 is not None and rtt.measured <= rtt.p99
        allowed = round_trip(lab.plan, lab.plan.path(*link.ends))
        assert rtt.tolerance == pytest.approx(allowed.of(link.rtt_ms), abs=1e-4)
        assert rtt.ok is allowed.allows(rtt.measured, link.rtt_ms)
        assert rtt.ok or made.busy, rtt.in_words()
        assert abs(rtt.measured - link.rtt_ms) < link.rtt_ms / 2
        assert loss.measured is not None and loss.measured < 5
        assert rate.measured is not None and rate.measured > 5
    assert ("ams-lon", "RTT") in rows
    assert measure.of(lab) == made


def test_a_lab_that_is_faster_than_declared_is_told_and_calibrated_when_asked(lab: Lab) -> None:
    """As after an `up` on a busier machine: too much has been taken off every delay."""
    too_much_ms = lab.record.emulator_overhead_ms + 3
    lab.write(lab.record.model_copy(update={"emulator_overhead_ms": too_much_ms}))
    labs.reshape(lab)

    made = measure.certify(lab, quiet)

    assert made.too_fast
    assert made.emulator_overhead_ms == lab.record.emulator_overhead_ms == too_much_ms
    assert labs.calibrate(lab) == lab.record.emulator_overhead_ms < too_much_ms - 0.5
    again = measure.certify(lab, quiet)
    assert [row.note for row in again.rows if row.quantity == "settings" and not row.ok] == []


def test_a_cut_link_stays_cut_until_it_is_made_whole(make_lab: Any) -> None:
    """Over a restart, a measurement, a calibration and an experiment's settings; each would once have healed it."""
    lab = make_lab("name: cut\nchain: {hosts: 3, link: {rtt: 2ms, rate: 50mbit}}\n")
    first, second, _ = (host.name for host in lab.plan.hosts)
    address = lab.plan.far_address(lab.plan.links[0])

    def answers() -> bool:
        argv = ["ping", "-c", "2", "-i", "0.2", "-W", "1", address]
        return bool(lab.provider.run(first, argv, timeout_s=LIMIT_S, check=False).code == 0)

    assert answers()
    labs.set_link(lab, first, second, up=False)
    assert not answers()
    labs.restart(lab, second)
    assert not answers()
    certificate = measure.certify(lab, quiet)
    assert certificate.cut == (lab.plan.links[0].name,)
    assert [row.note for row in certificate.rows if row.quantity == "settings" and not row.ok] == []
    assert not answers()
    labs.calibrate(lab)
    labs.set_links(lab, Settings(unlimited=True, gro="on"))
    labs.set_links(lab, DECLARED)
    assert not answers()
    labs.set_link(lab, first, second, up=True)
    assert answers()
