"""A lab is what its plan says: hosts with kernels of their own, addresses, routes, links."""

from __future__ import annotations

import json
from typing import Any

import pytest

from live.conftest import quiet
from live.exact import EXACT_MS
from live.program import TOPOLOGIES
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import kept_certificate, measure, mending
from minigts.foreign import user_text
from minigts.lab import DECLARED, Lab, Settings, calibration, shown_links
from minigts.topology import sysctls

pytestmark = pytest.mark.virtual
LIMIT_S = 120.0


def everywhere(lab: Lab, *argv: str) -> dict[str, str]:
    return lab.work_on_hosts(
        lambda host: user_text(lab.provider.run(host.name, argv, timeout_s=LIMIT_S).stdout).strip()
    )


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
        wanted = {(route.to.removesuffix("/32"), route.via) for route in lab.plan.routes_of(host.name)}
        assert via == wanted


KERNEL = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.eth1.rp_filter": "0",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096\t131072\t33554432",
    "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
    "net.core.rmem_max": "4194304",
    "net.core.wmem_max": "4194304",
    "net.core.rmem_default": "212992",
    "net.core.wmem_default": "212992",
    "net.core.netdev_max_backlog": "1000",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv6.conf.eth1.disable_ipv6": "1",
}
"""As the figures take them to be (docs/decisions/what-hosts-have.md): whoever changes one changes what is measured."""


def test_every_kernel_has_the_settings_of_a_labs(lab: Lab) -> None:
    said = everywhere(lab, "sysctl", *KERNEL)
    wanted = [f"{name} = {value}" for name, value in KERNEL.items()]
    assert {host: text.splitlines() for host, text in said.items()} == {host.name: wanted for host in lab.plan.hosts}


@pytest.mark.parametrize("feature", ["generic-receive-offload"])
def test_no_port_glues_packets_together(lab: Lab, feature: str) -> None:
    for host in lab.plan.hosts:
        for port in host.ports:
            said = user_text(lab.provider.run(host.name, ["ethtool", "-k", port.name], timeout_s=LIMIT_S).stdout)
            assert f"{feature}: off" in said


def test_in_mode_neighbours_a_host_reaches_its_neighbours_and_nobody_else(make_lab: Any) -> None:
    text = "name: next\nrouting: neighbours\nchain: {hosts: 3, link: {rtt: 2ms, rate: 50mbit}}\n"
    lab = make_lab(text)
    first, second, third = lab.plan.hosts

    def answers(address: str) -> bool:
        argv = ["ping", "-c", "2", "-i", "0.2", "-W", "1", address]
        return bool(lab.provider.run(first.name, argv, timeout_s=LIMIT_S, check=False).code == 0)

    assert answers(first.ports[0].peer_address)
    assert answers(second.name)
    assert not answers(third.name)
    routes = lab.plan.routes_of(first.name)
    assert answers(second.address) == any(route.to.startswith(second.address) for route in routes)
    assert not answers(third.address)
    assert not answers(third.ports[0].address)


def test_two_labs_of_one_topology_do_not_touch_each_other(make_lab: Any) -> None:
    one, two = (make_lab(TOPOLOGIES / "pair.yaml", name) for name in ("one", "two"))
    assert (one.name, two.name) == ("one", "two")
    for each in (one, two):
        each.provider.run("ams", ["hostname", f"ams-{each.name}"], timeout_s=LIMIT_S)
        measured = calibration.probe(each.provider, "ams", each.plan.host("bra").address, count=20)
        assert len(measured.rtts_ms) == 20
    assert [user_text(lab.provider.run("ams", ["hostname"], timeout_s=LIMIT_S).stdout) for lab in (one, two)] == [
        "ams-one\n",
        "ams-two\n",
    ]
    one.provider.run("ams", ["ip", "link", "set", "eth1", "down"], timeout_s=LIMIT_S)
    still = calibration.probe(two.provider, "ams", two.plan.host("bra").address, count=20)
    assert len(still.rtts_ms) == 20


def test_nothing_is_set_on_a_port_and_everything_on_its_wire(lab: Lab) -> None:
    shown, wires = everywhere(lab, "tc", "-j", "qdisc", "show"), shown_links.read_wires(lab)
    assert wires is not None
    assert [
        difference
        for host in lab.plan.hosts
        for difference in shown_links.differences(
            lab.plan, host.ports, lab.read_record(), shown[host.name], wires[host.name]
        )
    ] == []
    assert lab.read_record().emulator_overhead_ms == 0


def test_the_certificate_is_exact(lab: Lab) -> None:
    made = measure.certify(lab, quiet)
    assert made.ok, made.summary()
    assert {row.subject for row in made.rows if row.quantity == "settings"} == {host.name for host in lab.plan.hosts}
    rows = {(row.subject, row.quantity): row for row in made.rows}
    for link in lab.plan.links:
        rtt, loss = (rows[link.name, quantity] for quantity in ("RTT", "loss"))
        expected_ms = echo_ms(lab.plan, lab.plan.path(*link.ends))
        assert rtt.measured == pytest.approx(expected_ms, abs=EXACT_MS, rel=0)
        assert loss.measured == 0
    assert rows["ams-lon", "RTT"].measured == pytest.approx(
        echo_ms(lab.plan, lab.plan.path("ams", "lon")), abs=EXACT_MS, rel=0
    )
    assert kept_certificate.valid_certificate(lab) == made


def test_a_cut_link_stays_cut_until_it_is_made_whole(make_lab: Any) -> None:
    """Over a restart, a measurement, a calibration and an experiment's settings; each would once have healed it."""
    lab = make_lab("name: cut\nchain: {hosts: 3, link: {rtt: 2ms, rate: 50mbit}}\n")
    first, second, _ = (host.name for host in lab.plan.hosts)
    address = lab.plan.far_address(lab.plan.links[0])

    def answers() -> bool:
        argv = ["ping", "-c", "2", "-i", "0.2", "-W", "1", address]
        return bool(lab.provider.run(first, argv, timeout_s=LIMIT_S, check=False).code == 0)

    assert answers()
    labs.set_links_up(lab, first, second, up=False)
    assert not answers()
    labs.restart(lab, second)
    assert not answers()
    certificate = measure.certify(lab, quiet)
    assert certificate.cut == (lab.plan.links[0].name,)
    assert [row.note for row in certificate.rows if row.quantity == "settings" and not row.ok] == []
    assert not answers()
    labs.calibrate(lab)
    labs.set_for_experiment(lab, Settings(unlimited=True, gro="on"))
    labs.set_for_experiment(lab, DECLARED)
    assert not answers()
    labs.set_links_up(lab, first, second, up=True)
    assert answers()


TUNED = """
name: tuned
hosts:
  ams: {sysctls: {net.core.netdev_max_backlog: 5000, net.core.rmem_default: 4194304, net.core.rmem_max: 16777216,
    net.core.wmem_default: 300000, net.core.wmem_max: 16777216, net.ipv4.tcp_congestion_control: bbr,
    net.ipv4.tcp_rmem: 4096 131072 16777216, net.ipv4.tcp_wmem: 4096 65536 16777216}}
  bra:
links: [{ends: [ams, bra], rtt: 2ms}]
"""


def test_a_kernel_has_the_files_settings_and_is_put_back_to_them(make_lab: Any) -> None:
    """Every setting that a file may say; the other host, which says none, has Linux's own, whatever its memory."""
    lab = make_lab(TUNED)
    assert {each.name for each in lab.plan.host("ams").sysctls} == {*sysctls.BASELINE}
    said = {name: everywhere(lab, "sysctl", "-n", name) for name in sysctls.BASELINE}
    for host in lab.plan.hosts:
        planned = sysctls.set_to(host.sysctls)
        assert {name: " ".join(of[host.name].split()) for name, of in said.items()} == planned
    assert all(row.ok for row in measure.settings(lab, quiet))
    lab.provider.run("bra", ["sysctl", "-qw", "net.core.rmem_default=5000"], timeout_s=LIMIT_S)
    found = mending.mend(lab, ["bra"])
    assert found == {"bra": ["net.core.rmem_default is 5000, should be 212992"]}
    assert all(row.ok for row in measure.settings(lab, quiet))
