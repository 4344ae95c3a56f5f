"""Kathará's labs and CORE's scenarios: what of them becomes a topology, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.formats import detect, network
from minigts.formats.network import Network
from minigts.topology.read.load import load, parse, require_fit

LAB = """\
LAB_DESCRIPTION="Two hosts behind a router"
LAB_VERSION=2.0
# the hosts
pc1[0]="A"
pc1[image]="kathara/base"
pc1[mem]="256m"
pc2[0]=B/00:00:00:00:0b:02 # of the second domain
r1[0]="A"
r1[1]="B"
r1[sysctl]="net.ipv4.conf.all.rp_filter=0"
r1[ipv6]="true"
"""


def kathara(text: str, *, leave_out: bool = False) -> Network:
    return detect.read(text, "lab.conf", leave_out=leave_out)


def made(place: Path, text: str = LAB, *, leave_out: bool = False, **files: str) -> Network:
    """The network of a lab.conf with these files beside it."""
    (place / "lab.conf").write_text(text)
    for name, content in files.items():
        path = place / name.replace("__", "/").replace("_startup", ".startup")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return detect.read(text, str(place / "lab.conf"), leave_out=leave_out)


def test_commands_run_in_katharas_order(tmp_path: Path) -> None:
    """DockerMachine.py of Kathara: shared.startup, the device's own, and what `exec` says."""
    text = 'a[0]="A"\nb[0]="A"\na[exec]="echo last"\na[sysctl]="net.ipv4.ip_default_ttl=9"\n'
    read = made(tmp_path, text, shared_startup="echo eth0\n", a_startup="echo own\n")
    assert {machine.name: machine.run for machine in read.machines} == {
        "a": ("sysctl -qw net.ipv4.ip_default_ttl=9", "echo eth0", "echo own", "echo last"),
        "b": ("echo eth0",),
    }
    assert any(note.startswith("shared.startup of a, b: `run:` here") for note in read.notes)


@pytest.mark.parametrize(
    ("written", "memory_mb"), [("512", 512), ("512m", 512), ("1G", 1024), ("524288k", 512), ("536870912b", 512)]
)
def test_memory_without_a_unit_is_of_megabytes(written: str, memory_mb: int) -> None:
    read = kathara(f'pc1[0]="A"\npc2[0]="A"\npc1[mem]={written}\n')
    assert [machine.memory_mb for machine in read.machines] == [memory_mb, None]


def test_memory_that_is_too_little_for_a_kernel_is_the_least_and_noted() -> None:
    read = kathara('pc1[0]="A"\npc2[0]="A"\npc1[mem]=24\n')
    require_fit(read, "lab.conf")
    assert [machine.memory_mb for machine in read.machines] == [128, None]
    assert "mem of pc1: 128 MB here, the least that a host with a kernel of its own has" in read.notes


def test_domains_of_two_are_links_and_settings_are_commands() -> None:
    read = kathara(LAB)
    require_fit(read, "lab.conf")
    assert [(link.ends, link.macs) for link in read.links] == [
        (("pc1", "r1"), ()),
        (("pc2", "r1"), (("pc2", "00:00:00:00:0b:02"),)),
    ]
    machines = {machine.name: machine for machine in read.machines}
    assert machines["pc1"].memory_mb == 256
    ipv6, sysctl = machines["r1"].run
    assert (ipv6, sysctl) == (
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=0",
        "sysctl -qw net.ipv4.conf.all.rp_filter=0",
    )
    assert read.description == "Two hosts behind a router"
    assert any(note.startswith("image of pc1:") for note in read.notes)


def test_a_domain_of_three_is_a_switch_and_one_of_one_leads_to_nobody() -> None:
    read = kathara("a[0]=X\nb[0]=X\nc[0]=X\nc[1]=Y\n")
    assert {machine.name for machine in read.machines if machine.is_switch} == {"domain-x", "domain-y"}
    assert [link.ends for link in read.links] == [
        ("a", "domain-x"),
        ("b", "domain-x"),
        ("c", "domain-x"),
        ("c", "domain-y"),
    ]


def test_interfaces_count_from_zero_as_there(tmp_path: Path) -> None:
    read = made(
        tmp_path,
        pc1_startup="#!/bin/sh\n\nip address add 10.0.0.2/24 dev eth0\nip route add default via 10.0.0.1\n",
        r1_startup="ip a add 10.0.0.1/24 dev eth0 && ip a add 10.1.0.1/24 dev eth1\n",
    )
    run = {machine.name: machine.run for machine in read.machines}
    assert run["pc1"] == ("ip address add 10.0.0.2/24 dev eth0", "ip route add default via 10.0.0.1")
    assert run["r1"][-1] == "ip a add 10.0.0.1/24 dev eth0 && ip a add 10.1.0.1/24 dev eth1"
    assert not any("interface eth" in note for note in read.notes)
    plan = parse(network.text(read), "t.yaml")
    assert [[(port.name, port.peer_host) for port in host.ports] for host in plan.hosts] == [
        [("eth0", "r1")],
        [("eth0", "r1")],
        [("eth0", "pc1"), ("eth1", "pc2")],
    ]


def test_a_file_that_names_an_interface_means_the_same_one_here(tmp_path: Path) -> None:
    read = made(tmp_path, r1__etc__frr_conf="interface eth0\n")
    assert {machine.name: machine.files for machine in read.machines}["r1"] == (("r1/etc/frr_conf", "/etc/frr_conf"),)


def test_the_ports_order_is_that_of_the_files_interfaces() -> None:
    read = kathara("a[1]=Y\na[0]=X\nb[0]=X\nc[0]=Y\n")
    plan = parse(network.text(read), "t.yaml")
    assert [port.peer_host for port in plan.host("a").ports] == ["b", "c"]


def test_a_script_whose_lines_depend_on_each_other_is_one_command(tmp_path: Path) -> None:
    script = "for i in 0 1; do\n  ip link set eth$i up\ndone\n"
    assert made(tmp_path, pc1_startup=script).machines[0].run == ("for i in 0 1; do\nip link set eth$i up\ndone",)


def test_a_devices_directory_is_its_files(tmp_path: Path) -> None:
    read = made(tmp_path, pc1__var__www__index_html="hello\n", pc1__etc__motd="eth9 is no interface of this one\n")
    assert read.machines[0].files == (
        ("pc1/etc/motd", "/etc/motd"),
        ("pc1/var/www/index_html", "/var/www/index_html"),
    )
    topology = tmp_path / "lab.yaml"
    topology.write_text(network.text(read))
    plan = load(topology)
    assert [file.target for file in plan.host("pc1").software.files] == ["/etc/motd", "/var/www/index_html"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pc1_startup": "systemctl start frr\n"}, "pc1.startup: systemctl start frr of pc1 cannot be honoured"),
        ({"r1__tmp__x": "x"}, "/tmp is not on its disk"),
        ({"lab.ext": "A eth0\n"}, "lab.ext of the lab cannot be honoured"),
    ],
)
def test_what_would_be_another_lab_is_an_error_or_left_out(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(tmp_path, **files)
    assert made(tmp_path, leave_out=True, **files).notes


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "pc1").mkdir()
    (tmp_path / "pc1" / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="it is no plain file"):
        made(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pc1[0]=A B", "is no collision domain"),
        ("pc1[mem]=lots", "is no value of mem"),
        ("pc1[colour]=red", "the option 'colour'"),
        ("pc1[bridged]=true", "bridged of pc1 cannot be honoured"),
        ("pc1 on A", "is no line of lab.conf"),
        ("pc1[0]=A\npc1[0]=B", "is on a domain already"),
    ],
)
def test_each_problem_has_its_line(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        kathara(f"# first\n{line}\n")
    assert error.value.problems[0].line in (2, 3)


SCENARIO = """\
<?xml version='1.0' encoding='UTF-8'?>
<scenario name="small">
  <networks><network id="3" name="sw" type="SWITCH"><position x="1.0" y="2.0"/></network></networks>
  <devices>
    <device id="1" name="n1" type="router" class="" image="">
      <services><service name="OSPFv2"/><service name="IPForward"/></services></device>
    <device id="2" name="n2" type="PC"/>
  </devices>
  <links>
    <link node1="1" node2="2">
      <iface1 id="1" name="eth1" mac="00:00:00:aa:00:05" ip4="10.0.1.7" ip4_mask="24" ip6="a:1::7" ip6_mask="64"/>
      <iface2 id="0" name="eth0" ip4="10.0.1.2" ip4_mask="24"/>
      <options delay="5000" bandwidth="2000000" loss="1.5" dup="0" jitter="200" unidirectional="0" buffer="0"/>
    </link>
    <link node1="3" node2="1"><iface2 id="0" name="eth0"/></link>
  </links>
</scenario>
"""


def core(text: str = SCENARIO, *, leave_out: bool = False) -> Network:
    return detect.read(text, "small.xml", leave_out=leave_out)


def test_a_scenario_has_its_delays_rates_addresses_and_ports() -> None:
    read = core()
    require_fit(read, "small.xml")
    plan = parse(network.text(read), "t.yaml")
    link = next(link for link in read.links if link.ends == ("n1", "n2"))
    assert (link.delay_ms, link.jitter_ms, link.rate_mbit, link.loss_percent) == (
        (5, 5),
        (0.2, 0.2),
        (2, 2),
        (1.5, 1.5),
    )
    assert [(port.name, port.peer_host) for port in plan.host("n1").ports] == [("eth0", "sw"), ("eth1", "n2")]
    assert [port.name for port in plan.host("n2").ports] == ["eth0"]
    port = plan.host("n1").ports[1]
    assert (port.address, port.prefix, port.mac) == ("10.0.1.7", 24, "00:00:00:aa:00:05")
    assert read.machines[0].run == (
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=0",
        "ip address add a:1::7/64 dev eth1",
    )
    assert any("service OSPFv2 of n1" in note for note in read.notes)
    assert read.name == "small"


def test_two_links_of_one_direction_each_are_one() -> None:
    there = '<link node1="1" node2="2"><iface1 id="0"/><iface2 id="0"/><options {}/></link>'
    one, other = ('unidirectional="1" delay="1000"', 'unidirectional="1" delay="3000" bandwidth="1000000"')
    back = there.format(other).replace('node1="1" node2="2"', 'node1="2" node2="1"')
    text = (
        '<scenario><devices><device id="1" name="a"/><device id="2" name="b"/></devices>'
        f"<links>{there.format(one)}{back}</links></scenario>"
    )
    (link,) = core(text).links
    assert (link.delay_ms, link.rate_mbit) == ((1, 3), (100_000, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type="SWITCH"', 'type="WIRELESS_LAN"', "only switches and hubs are here"),
        ('buffer="0"', 'buffer="50"', "a queue here is of bytes"),
        ('delay="5000"', 'delay="-5"', "is no delay"),
        ('ip4="10.0.1.7"', 'ip4="10.0.1"', "is no address"),
        ('node2="2"', 'node2="9"', "there is no such node"),
        ('<scenario name="small">', '<!DOCTYPE scenario [<!ENTITY a "b">]><scenario name="small">', "a DOCTYPE"),
        ("</links>", '</links><mobility_configurations><m node="1"/></mobility_configurations>', "mobility"),
    ],
)
def test_what_a_scenario_has_and_a_lab_lacks_is_an_error_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        core(SCENARIO.replace(old, new))
    assert all(problem.line > 0 for problem in error.value.problems)


def test_without_what_a_lab_lacks_a_scenario_is_read() -> None:
    wireless = SCENARIO.replace('type="SWITCH"', 'type="WIRELESS_LAN"')
    assert [link.ends for link in core(wireless, leave_out=True).links] == [("n1", "n2")]


@pytest.mark.parametrize("name", ["net.py", "net.txt"])
def test_a_mininet_script_is_named_for_what_it_is(name: str) -> None:
    with pytest.raises(InputError, match="a program in Python, as Mininet's networks are"):
        detect.read("from mininet.topo import Topo\nclass T(Topo):\n    pass\n", name)


@pytest.mark.parametrize(
    ("name", "text", "whose"),
    [("lab.conf", LAB, "Kathará's"), ("small.xml", SCENARIO, "CORE's"), ("net.py", "import mininet\n", "a program")],
)
def test_a_topology_is_wanted_and_the_file_is_named(tmp_path: Path, name: str, text: str, whose: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=whose):
        load(tmp_path / name)
