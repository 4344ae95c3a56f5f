"""What other tools' files say and nobody loses quietly: it is honoured, or an error with its line, or a note."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import foreign_files
import foreign_writers
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.formats import detect, keys, network
from minigts.formats.containerlab_commands import IPV6_ON
from minigts.formats.network import Network
from minigts.topology.read.load import parse, require_fit
from minigts.topology.to_network import network_of

PROJECT = Path(__file__).parents[3]
runner = CliRunner()

NETLAB = """\
name: lab
defaults.device: linux
nodes: [h1, h2, h3]
links:
"""
CLAB = """\
name: lab
topology:
  nodes: {a: {kind: linux}, b: {kind: linux}, c: {kind: linux}}
  links:
"""


def netlab(*links: str, file: str = NETLAB, leave_out: bool = False) -> Network:
    return detect.read(file + "".join(f"  - {link}\n" for link in links), "t.yml", leave_out=leave_out)


def clab(*links: str, file: str = CLAB, leave_out: bool = False) -> Network:
    return detect.read(file + "".join(f"    - {link}\n" for link in links), "t.clab.yml", leave_out=leave_out)


def ports_of(read: Network, host: str) -> list[str]:
    """Whom its eth1, eth2, … lead to."""
    plan = parse(network.text(read), "t.yaml")
    return [port.peer_host for port in plan.host(host).ports]


def addresses(read: Network) -> dict[str, list[str]]:
    plan = parse(network.text(read), "t.yaml")
    return {host.name: [f"{port.address}/{port.prefix}" for port in host.ports] for host in plan.hosts}


@pytest.mark.parametrize(
    "written",
    [
        "{interfaces: [h1, h2], tc.delay: 200}",
        "{interfaces: [h1, h2], tc: {delay: 200}}",
        "{h1: , h2: , tc.delay: 200ms}",
        "{h1: , h2: , tc: {delay: 0.2s}}",
        "{h1: {tc.delay: 200}, h2: {tc: {delay: 200}}}",
        "{interfaces: [{node: h1, tc.delay: 200}, {node: h2, tc.delay: 200ms}]}",
        "{group: slow, tc.delay: 200, members: [h1-h2]}",
        "{group: slow, tc: {delay: 200}, members: [[h1, h2]]}",
        "{group: other, tc.delay: 5, members: [{h1: , h2: , tc.delay: 200}]}",
    ],
)
def test_a_delay_of_netlabs_is_the_same_wherever_it_stands_and_however_it_is_written(written: str) -> None:
    assert netlab(written).links[0].delay_ms == (200, 200)


def test_an_interface_of_netlabs_has_what_leaves_by_it() -> None:
    link = netlab("{h1: {tc.delay: 200, tc.rate: 2000}, h2: {tc.loss: 10}, tc.jitter: 1}").links[0]
    assert (link.delay_ms, link.loss_percent, link.jitter_ms) == ((200, 0), (0, 10), (1, 1))
    assert link.rate_mbit == (2, 100_000)


def test_every_word_of_netlabs_tc_is_taken_in_its_unit() -> None:
    tc = "tc: {delay: 2ms, jitter: 0.0013s, loss: 0.3, rate: 2000, corrupt: 1, duplicate: 2, reorder: 5}"
    read = netlab(f"{{h1: , h2: , bandwidth: 100000, {tc}, prefix: {{ipv4: 192.0.2.0/24}}}}", "h2-h3")
    require_fit(read, "t.yml")
    link = read.links[0]
    assert (link.delay_ms, link.jitter_ms, link.loss_percent) == ((2, 2), (1.3, 1.3), (0.3, 0.3))
    assert (link.corrupt_percent, link.duplicate_percent, link.reorder_percent) == ((1, 1), (2, 2), (5, 5))
    assert (link.rate_mbit, link.subnet) == ((2, 2), "192.0.2.0/24")
    assert netlab("{h1: , h2: , bandwidth: 100000}").links[0].rate_mbit == (100, 100)


def test_on_a_link_of_several_nodes_each_delays_what_it_sends_itself() -> None:
    read = netlab("{h1: , h2: , h3: {tc.delay: 7}, mtu: 1400, tc.delay: 5}")
    assert [(link.ends, link.delay_ms, link.mtu) for link in read.links] == [
        (("h1", "lan1"), (5, 0), 1400),
        (("h2", "lan1"), (5, 0), 1400),
        (("h3", "lan1"), (7, 0), 1400),
    ]


@pytest.mark.parametrize(
    ("file", "mtus"),
    [
        ("defaults.interfaces.mtu: 8192\nnodes: [h1, h2]\n", [8192]),
        ("nodes: {h1: {mtu: 1400}, h2: {mtu: 1400}}\n", [1400]),
        ("defaults: {devices.linux.mtu: 1300}\nnodes: [h1, h2]\n", [1300]),
        ("groups: {g: {members: ['h*'], mtu: 1200}}\nnodes: [h1, h2]\n", [1200]),
        ("nodes: [h1, h2]\n", [None]),
    ],
)
def test_the_mtu_of_a_node_is_that_of_its_links(file: str, mtus: list[int | None]) -> None:
    read = netlab("h1-h2", file=f"name: x\ndefaults.device: linux\n{file}links:\n")
    assert [link.mtu for link in read.links] == mtus


GROUPS = """\
name: g
groups:
{groups}
nodes: {nodes}
links:
  - h1-h2
"""


@pytest.mark.parametrize(
    ("groups", "nodes", "memory"),
    [
        ("  g: {members: [h1, h2], device: linux, memory: 256}", "[h1, h2]", [256, 256]),
        ("  g: {members: ['h?'], device: linux}\n  k: {members: [h2], memory: 512}", "[h1, h2]", [None, 512]),
        ("  all.device: linux\n  g.memory: 512", "{h1: {group: g}, h2: {group: [g], memory: 256}}", [512, 256]),
        (
            "  z: {members: [h1], memory: 256}\n  a: {members: [z, h2], device: linux, memory: 512}",
            "[h1, h2]",
            [256, 512],
        ),
        ("  _auto_create: true\n  g: {members: [h1, h2], device: linux}", "{}", [None, None]),
        ("  g: {members: [h1, h2], device: linux, node_data.memory: 256}", "[h1, h2]", [256, 256]),
    ],
)
def test_a_node_has_what_its_groups_say(groups: str, nodes: str, memory: list[int | None]) -> None:
    read = detect.read(GROUPS.format(groups=groups, nodes=nodes), "t.yml")
    assert [machine.memory_mb for machine in read.machines] == memory


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{h1: {ipv4: 192.0.2.1/24}, h2: {ipv4: 192.0.2.2/24}}", {"h1": ["192.0.2.1/24"], "h2": ["192.0.2.2/24"]}),
        ("{h1: {ipv4: 192.0.2.2/24}, h2: {ipv4: 192.0.2.1/24}}", {"h1": ["192.0.2.2/24"], "h2": ["192.0.2.1/24"]}),
        ("{h1: , h2: {ipv4: 2}, prefix: 192.0.2.8/29}", {"h1": ["192.0.2.9/29"], "h2": ["192.0.2.10/29"]}),
        ("{h1: , h2: , prefix.ipv4: 192.0.2.0/30}", {"h1": ["192.0.2.1/30"], "h2": ["192.0.2.2/30"]}),
        ("{h1: {ipv4: 192.0.2.7/24}, h2: {ipv4: 192.0.2.9/24}}", {"h1": ["192.0.2.7/24"], "h2": ["192.0.2.9/24"]}),
        ("{h1: {ipv4: 192.0.2.2/24}, h2: {ipv4: 192.0.2.9/24}}", {"h1": ["192.0.2.2/24"], "h2": ["192.0.2.9/24"]}),
    ],
)
def test_addresses_that_our_language_can_give_are_given(written: str, expected: dict[str, list[str]]) -> None:
    read = netlab(written, file=NETLAB.replace(", h3", ""))
    assert addresses(read) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("{h2: , h3: , prefix: 192.0.2.0/24}", {"h2": 2, "h3": 3}),
        ("{h1: , h2: , h3: {ipv4: 192.0.2.200/24}, prefix: 192.0.2.0/24}", {"h1": 1, "h2": 2, "h3": 200}),
        ("{h3: {ipv4: 9}, h1: , h2: {ipv4: 8}, prefix: 192.0.2.0/24}", {"h1": 1, "h2": 8, "h3": 9}),
    ],
)
def test_addresses_that_no_order_gives_are_written_with_their_links(link: str, expected: dict[str, int]) -> None:
    read = netlab(link, "h1-h2-h3")
    given = {host: [each for each in own if each.startswith("192.0.2.")] for host, own in addresses(read).items()}
    assert {host: own for host, own in given.items() if own} == {
        host: [f"192.0.2.{number}/24"] for host, number in expected.items()
    }
    assert read.lost == ()


def test_the_delay_of_a_link_that_is_turned_for_its_addresses_stays_with_its_end() -> None:
    link = netlab("{h1: {ipv4: 192.0.2.2/24, tc.delay: 5}, h2: {ipv4: 192.0.2.1/24}}").links[0]
    assert (link.ends, link.delay_ms) == (("h2", "h1"), (0, 5))


def test_a_mac_address_of_containerlab_is_that_of_the_port() -> None:
    read = clab("{endpoints: [{node: a, interface: eth1, mac: '02:00:00:00:00:0A'}, {node: b, interface: eth1}]}")
    plan = parse(network.text(read), "t.yaml")
    assert [port.mac for host in plan.hosts for port in host.ports] == ["02:00:00:00:00:0a", "02:6d:67:00:00:02"]
    nobody = clab("{type: dummy, endpoint: {node: a, interface: eth1, mac: '02:00:00:00:00:0b'}}")
    assert parse(network.text(nobody), "t.yaml").host("a").ports[0].mac == "02:00:00:00:00:0b"
    with pytest.raises(InputError, match=r"endpoints\[0\]\.mac: '01:00:00:00:00:0a' is not a MAC address of"):
        clab("{endpoints: [{node: a, mac: '01:00:00:00:00:0a'}, {node: b, interface: eth1}]}")


def test_a_lan_has_its_addresses_in_the_order_of_its_nodes() -> None:
    read = netlab("{h3: {ipv4: 192.0.2.1/24}, h1: {ipv4: 192.0.2.2/24}, h2: {ipv4: 192.0.2.3/24}}")
    assert addresses(read) == {"h1": ["192.0.2.2/24"], "h2": ["192.0.2.3/24"], "h3": ["192.0.2.1/24"]}


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("{h3: , h1: , prefix: 192.0.2.0/24}", {"h3": 2, "h1": 1}),
        ("{h2: , h1: , type: p2p, prefix: 192.0.2.0/24}", {"h2": 2, "h1": 1}),
        ("{h3: , h2: , prefix: 192.0.2.0/30}", {"h3": 1, "h2": 2}),
        ("{h3: , h1: , prefix: {ipv4: 192.0.2.0/24, allocation: sequential}}", {"h3": 1, "h1": 2}),
        ("{h3: , h1: , prefix: {ipv4: 192.0.2.0/24, allocation: id_based}}", {"h3": 2, "h1": 1}),
        ("{h1: , type: stub, prefix: 192.0.2.0/24}", {"h1": 1}),
    ],
)
def test_a_links_hosts_have_the_addresses_that_netlab_gives_them(link: str, expected: dict[str, int]) -> None:
    """As netlab 26.10 does (`netlab create -o yaml`): h1, h2 and h3 have the ids 1, 7 and 2."""
    read = netlab(link, "h1-h2-h3", file=NETLAB.replace("h2,", "{name: h2, id: 7},"))
    given = {host: [each for each in own if each.startswith("192.0.2.")] for host, own in addresses(read).items()}
    prefix = 30 if "/30" in link else 24
    wanted = {host: [f"192.0.2.{number}/{prefix}"] for host, number in expected.items()}
    assert {host: own for host, own in given.items() if own} == wanted


@pytest.mark.parametrize(("number", "why"), [("x", "is no number"), ("0", "is no number"), ("2", "another node")])
def test_a_node_of_netlabs_has_a_number_of_its_own(number: str, why: str) -> None:
    with pytest.raises(InputError, match=rf"t\.yml:3: nodes\[[01]\]\.id: .*{why}"):
        netlab(file=NETLAB.replace("[h1, h2,", f"[{{name: h1, id: {number}}}, {{name: h2, id: 2}},"))


@pytest.mark.parametrize(
    ("nodes", "written", "ends"),
    [
        ("h1, h2, h3", "h1-h2-h3", ["h1", "h2", "h3"]),
        ("h1, h2, h3", "h1 - h2 - h3", ["h1", "h2", "h3"]),
        ("h-1, h-2, h", "h-1-h-2-h", ["h-1", "h-2", "h"]),
        ("c, a-b, b", "a-b-b", ["a-b", "b"]),
    ],
)
def test_a_link_in_one_word_has_as_many_nodes_as_it_names(nodes: str, written: str, ends: list[str]) -> None:
    read = netlab(written, file=NETLAB.replace("h1, h2, h3", nodes))
    found = [link.ends[0] for link in read.links] if len(ends) > 2 else [*read.links[0].ends]
    assert found == ends


def test_a_link_in_one_word_names_the_node_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"t\.yml:5: links\[0\]: no node 'h9'"):
        netlab("h1-h9-h3")


@pytest.mark.parametrize("written", ["{h1: , type: stub}", "{h1: }", "[h1]", "h1"])
def test_a_link_of_one_node_leads_to_a_switch_with_nobody_on_it(written: str) -> None:
    read = netlab(written, "h1-h2", "h2-h3")
    assert ports_of(read, "h1") == ["lan1", "h2"]
    assert "the stub link of h1: it leads to a switch, lan1, with nobody else on it" in read.notes
    require_fit(read, "t.yml")


def test_what_only_ansible_reads_is_a_note() -> None:
    file = NETLAB.replace("h1,", "{name: h1, ansible_user: x},").replace("links", "groups: {g: {netlab_x: y}}\nlinks")
    notes = netlab("h1-h2-h3", file=file).notes
    assert "ansible_user of h1: left out: only Ansible reads it" in notes
    assert "netlab_x of g: left out: only Ansible reads it" in notes


def test_a_link_of_no_node_says_how_one_is_written() -> None:
    with pytest.raises(InputError, match=r"t\.yml:5: .*no node in this link: write h1-h2"):
        netlab("{type: lan}")


def test_messages_name_a_links_nodes_and_not_its_line() -> None:
    with pytest.raises(InputError):
        netlab("{h1: , h2: , shutdown: true}")
    read = netlab("{h1: , h2: , shutdown: true, role: x}", "h2-h3", leave_out=True)
    assert {"shutdown of h1-h2", "role of h1-h2"} <= {note.partition(":")[0] for note in read.notes}
    read = clab('{endpoints: ["a:eth1", "b:eth1"], labels: {x: y}}')
    assert "labels of a-b" in {note.partition(":")[0] for note in read.notes}


def test_a_node_without_a_device_is_told_where_netlab_has_it_from() -> None:
    with pytest.raises(InputError, match=r"t\.yml:2: .*no device is named: .*Write `defaults\.device: linux`"):
        netlab(file="name: x\nnodes: [h1]\nlinks:\n")


def test_what_containerlab_reads_of_a_netlab_node_is_judged_as_in_its_own_file() -> None:
    read = netlab(
        "h1-h2-h3", file=NETLAB.replace("h1,", "{name: h1, clab.image: x, clab.kind: linux},"), leave_out=True
    )
    notes = {note.partition(":")[0] for note in read.notes}
    assert {"image of h1", "kind of h1"} <= notes
    netlab("h1-h2-h3", file=NETLAB.replace("h1,", "{name: h1, clab.image: x},"))


def test_links_are_put_into_the_order_that_gives_each_host_its_ports() -> None:
    read = clab('{endpoints: ["a:eth2", "b:eth1"]}', '{endpoints: ["a:eth1", "c:eth1"]}')
    assert ports_of(read, "a") == ["c", "b"]
    read = netlab("{h1: {ifindex: 2}, h2: }", "{h1: {ifname: eth1}, h3: }")
    assert ports_of(read, "h1") == ["h3", "h2"]


def interfaces_of(read: network.Network) -> dict[str, dict[str, str]]:
    """By link, the names of its ends' ports in the plan."""
    plan = parse(network.text(read), "t.yaml")
    ports = {(port.link, machine.name): port.name for machine in plan.machines for port in machine.ports}
    return {link.name: {end: ports[link.name, end] for end in link.ends} for link in plan.links}


def test_ports_that_no_order_of_links_can_give_are_written_with_their_links() -> None:
    read = clab('{endpoints: ["a:eth1", "b:eth2"]}', '{endpoints: ["a:eth2", "b:eth1"]}')
    assert interfaces_of(read) == {"a-b": {"a": "eth1", "b": "eth2"}, "a-b-2": {"a": "eth2", "b": "eth1"}}
    assert [link.interfaces for link in read.links] == [(("b", "eth2"),), (("b", "eth1"),)]
    assert read.notes == clab('{endpoints: ["a:eth1", "b:eth1"]}').notes


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        # A gap: neither number is the first.
        (('["a:eth2", "b:eth1"]', '["a:eth3", "c:eth1"]'), {"a-b": "eth2", "a-c": "eth3"}),
        # From 0, as where there is no management network.
        (('["a:eth0", "b:eth1"]', '["a:eth1", "c:eth1"]'), {"a-b": "eth0", "a-c": "eth1"}),
        # Beside a name of its own, which gets the lowest number that is free.
        (('["a:eth5", "b:eth1"]', '["a:uplink", "c:eth1"]'), {"a-b": "eth5", "a-c": "eth1"}),
        (('["a:uplink", "b:eth1"]', '["a:eth2", "c:eth1"]'), {"a-b": "eth1", "a-c": "eth2"}),
    ],
)
def test_each_interface_keeps_its_number(links: tuple[str, str], expected: dict[str, str]) -> None:
    read = clab(*(f"{{endpoints: {each}}}" for each in links))
    assert {name: ends["a"] for name, ends in interfaces_of(read).items()} == expected
    assert not any("interface eth" in note for note in read.notes)


def test_numbers_in_a_circle_stay() -> None:
    read = clab(*(f'{{endpoints: ["{one}:eth1", "{other}:eth2"]}}' for one, other in ("ab", "bc", "ca")))
    assert {name: [*ends.values()] for name, ends in interfaces_of(read).items()} == {
        "a-b": ["eth1", "eth2"],
        "b-c": ["eth1", "eth2"],
        "c-a": ["eth1", "eth2"],
    }


def test_interfaces_of_other_names_are_in_their_numbers_order() -> None:
    read = clab('{endpoints: ["a:net10", "b:data"]}', '{endpoints: ["a:net9", "c:eth1"]}')
    assert ports_of(read, "a") == ["c", "b"]
    assert "interface net9 of a: it is eth1 here" in " ".join(read.notes)
    assert "interface data of b: it is eth1 here" in " ".join(read.notes)


def run_of(command: str, *links: str, leave_out: bool = False) -> list[str]:
    """What host a runs."""
    file = CLAB.replace("a: {kind: linux}", f"a: {{kind: linux, exec: ['{command}']}}")
    return [*own_run(clab(*links, file=file, leave_out=leave_out).machines[0])]


def own_run(machine: network.NetworkMachine) -> tuple[str, ...]:
    """A host's commands after that which switches IPv6 on, as it is on in containerlab; a bridge has none."""
    first, *others = machine.run or (IPV6_ON,)
    assert first == IPV6_ON
    return tuple(others)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ip addr add 192.0.2.1/24 dev net0", "ip addr add 192.0.2.1/24 dev eth1"),
        ("ip link add link net1 name net1.10 type vlan id 10", "ip link add link eth2 name eth2.10 type vlan id 10"),
        ("sysctl -w net.ipv4.conf.net0.forwarding=1", "sysctl -w net.ipv4.conf.eth1.forwarding=1"),
        ("echo net00 xnet0 net0x", "echo net00 xnet0 net0x"),
    ],
)
def test_a_command_names_the_interfaces_as_they_are_called_here(command: str, expected: str) -> None:
    assert run_of(command, '{endpoints: ["a:net0", "b:eth1"]}', '{endpoints: ["a:net1", "c:eth1"]}') == [expected]


def test_interfaces_that_keep_their_numbers_keep_them_in_commands() -> None:
    """b's links are in their order, so a's are not."""
    links = '{endpoints: ["b:eth1", "a:eth2"]}', '{endpoints: ["b:eth2", "a:eth1"]}'
    assert run_of("tc qdisc show dev eth1 && echo eth2", *links) == ["tc qdisc show dev eth1 '&&' echo eth2"]


def test_a_setting_of_later_interfaces_is_set_on_those_that_there_are() -> None:
    file = CLAB.replace("a: {kind: linux}", 'a: {kind: linux, sysctls: {net.ipv4.conf.default.rp_filter: "2"}}')
    read = clab('{endpoints: ["a:eth2", "b:eth1"]}', '{endpoints: ["a:eth4", "c:eth1"]}', file=file)
    assert own_run(read.machines[0]) == tuple(
        f"sysctl -w net.ipv4.conf.{name}.rp_filter=2" for name in ("default", "eth2", "eth4")
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ip addr show dev lo", "interface lo is eth1 here"),
        ("ip route del default dev eth0", "eth0 leads to the management network"),
    ],
)
def test_a_command_that_would_do_something_else_here_is_an_error(command: str, why: str) -> None:
    link = f'{{endpoints: ["a:{"lo" if "lo" in command.split() else "uplink"}", "b:eth1"]}}'
    with pytest.raises(InputError, match=rf"t\.clab\.yml:3: .*exec {command[:20]}.* cannot be honoured: {why}"):
        run_of(command, link)
    assert run_of(command, link, leave_out=True) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ip addr add 192.0.2.1/24 dev uplink", "ip addr add 192.0.2.1/24 dev uplink"),
        ("sysctl -w net.ipv4.conf.uplink.forwarding=1", "sysctl -w net.ipv4.conf.eth1.forwarding=1"),
        ("cat /sys/class/net/uplink/address", "cat /sys/class/net/eth1/address"),
        ("iptables -A FORWARD -i uplink -j DROP", "iptables -A FORWARD -i eth1 -j DROP"),
        ("nft add rule ip t c oifname uplink drop", "nft add rule ip t c oifname eth1 drop"),
        ("tcpdump -i uplink -w uplink.pcap", "tcpdump -i uplink -w uplink.pcap"),
    ],
)
def test_a_name_without_a_digit_is_replaced_where_linux_does_not_know_it(command: str, expected: str) -> None:
    assert run_of(command, '{endpoints: ["a:uplink", "b:eth1"]}') == [expected]


def test_the_files_names_are_those_of_ports_beside_ours() -> None:
    read = clab('{endpoints: ["a:uplink", "b:eth7"]}', '{endpoints: ["a:lo", "c:Ethernet1.2"]}')
    plan = parse(network.text(read), "t.yaml")
    assert [[port.altname for port in host.ports] for host in plan.hosts] == [["uplink", None], [None], ["Ethernet1.2"]]
    assert "interface uplink of a: it is eth1 here, and `interfaces:` keeps the name beside it" in read.notes
    assert [port.name for port in plan.host("b").ports] == ["eth7"]


def test_an_interface_that_is_called_eth0_is_no_management_interface() -> None:
    links = ('{endpoints: ["a:eth0", "b:eth1"]}',)
    assert run_of("ip addr show dev eth0", *links) == ["ip addr show dev eth0"]
    plan = parse(network.text(clab(*links)), "t.yaml")
    assert [port.name for port in plan.host("a").ports] == ["eth0"]


@pytest.mark.parametrize("third", ["linux", "bridge"])
@pytest.mark.parametrize("written", ['["a:eth1", "c:p1"]', "[{node: b, interface: eth1}, {node: a, interface: eth1}]"])
def test_an_interface_is_the_end_of_one_link(third: str, written: str) -> None:
    file = CLAB.replace("c: {kind: linux}", f"c: {{kind: {third}}}")
    first = '{endpoints: ["a:eth1", "c:p1"]}'
    for leave_out in (False, True):
        with pytest.raises(InputError) as caught:
            clab(first, f"{{endpoints: {written}}}", file=file, leave_out=leave_out)
        said = "interface 'eth1' of a is an end of a-c already: an interface is the end of one link"
        assert said in str(caught.value)
        assert {problem.line for problem in caught.value.problems} == {6}
        assert ("'p1' of c" in str(caught.value)) == ("c:p1" in written)


def test_an_interface_of_netlabs_is_the_end_of_one_link() -> None:
    with pytest.raises(InputError, match=r"t\.yml:6: .*interface 'eth2' of h1 is an end of h1-h2 already"):
        netlab("{h1: {ifindex: 2}, h2: }", "{h1: {ifname: eth2}, h3: }")


@pytest.mark.parametrize(
    "written",
    [
        "{type: dummy, endpoint: {node: a, interface: eth2}, mtu: 1400}",
        '{type: dummy, endpoint: "a:eth2", mtu: 1400}',
        '{endpoints: ["a:eth2", "dummy"], mtu: 1400}',
        '{endpoints: ["dummy:any", "a:eth2"], mtu: 1400}',
    ],
)
def test_an_interface_that_carries_to_nobody_leads_to_a_switch_with_nobody_on_it(written: str) -> None:
    read = clab(written, '{endpoints: ["a:eth1", "b:eth1"]}', '{endpoints: ["b:eth2", "c:eth1"]}')
    assert [machine.name for machine in read.machines if machine.is_switch] == ["nobody1"]
    assert ports_of(read, "a") == ["b", "nobody1"]
    assert [link.mtu for link in read.links if "nobody1" in link.ends] == [1400]
    assert "the dummy link of a: it leads to a switch here, nobody1, with nobody else on it" in read.notes


def test_a_stitched_link_is_one_between_two_nodes() -> None:
    written = "{type: veth-stitch, endpoints: [{node: a, interface: eth1}, {node: b, interface: eth1}]}"
    assert [link.ends for link in clab(written, '{endpoints: ["b:eth2", "c:eth1"]}').links] == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('{endpoints: ["a:eth1", "host:eth7"]}', "it leads to an interface of the machine"),
        ('{endpoints: ["a:eth1", "mgmt-net:x"]}', "it leads to the management network"),
        ("{type: mgmt-net, endpoint: {node: a}}", "it leads to the management network"),
        ("{type: macvlan, endpoint: {node: a}}", "it leads out by an interface of the machine"),
        ("{type: vxlan-stitch, endpoint: {node: a}}", "it leads to another machine, in a tunnel"),
    ],
)
def test_a_link_that_leads_out_of_the_lab_says_where_to(written: str, why: str) -> None:
    with pytest.raises(InputError, match=rf"t\.clab\.yml:5: .* cannot be honoured: {why}"):
        clab(written)


def test_a_link_of_no_known_type_names_those_that_are() -> None:
    with pytest.raises(InputError, match=r"t\.clab\.yml:5: .*type 'wire': .*types are veth, .*dummy"):
        clab('{type: wire, endpoints: ["a:eth1", "b:eth1"]}')


@pytest.mark.parametrize("read", [lambda: clab('{endpoints: ["a:eth1", "b:eth1"]}'), lambda: netlab("h1-h2")])
def test_a_lab_that_falls_apart_has_no_routes_and_says_so(read: Callable[[], Network]) -> None:
    found = read()
    require_fit(found, "t.yml")
    assert found.routing == "neighbours"
    assert any("no link joins" in note and "no routes" in note for note in found.notes), found.notes
    plan = parse(network.text(found), "t.yaml")
    assert (len(plan.hosts), len(plan.links)) == (3, 1)


def test_a_share_of_a_processor_stays_one_and_asks_for_real_time() -> None:
    read = clab(
        '{endpoints: ["a:eth1", "b:eth1"]}', file=CLAB.replace("b: {kind: linux}", "b: {kind: linux, cpu: 0.5}")
    )
    plan = parse(network.text(read), "t.yaml")
    assert (plan.host("b").cpus, plan.time) == (0.5, "real")
    assert any(note.startswith("cpu of b: `time: real`") for note in read.notes)


def test_what_is_said_of_the_management_network_is_a_note() -> None:
    file = "mgmt: {network: x, ipv4-subnet: 192.0.2.0/24}\n" + CLAB.replace("a: {", "a: {mgmt-ipv4: 192.0.2.7, ", 1)
    notes = " ".join(clab('{endpoints: ["a:eth1", "b:eth1"]}', file=file).notes)
    assert "mgmt of the file: left out: there is no management network" in notes
    assert "mgmt-ipv4 of a: left out" in notes
    assert not clab(file=CLAB.replace("a: {kind: linux}", "a: {kind: linux, network-mode: none}")).machines[0].run[1:]


def test_settings_of_the_kernels_network_are_commands_before_all_others() -> None:
    file = CLAB.replace(
        "a: {kind: linux}",
        "a: {kind: linux, exec: [ls], sysctls: {net.ipv4.ip_forward: 0, net.ipv4.conf.default.rp_filter: 2}}",
    ).replace("  nodes", "  defaults: {sysctls: {net.ipv4.ip_forward: 1, net.ipv4.tcp_ecn: 1}}\n  nodes")
    read = clab('{endpoints: ["a:eth1", "b:eth1"]}', '{endpoints: ["a:eth2", "c:eth1"]}', file=file)
    assert own_run(read.machines[0]) == (
        "sysctl -w net.ipv4.ip_forward=0",
        "sysctl -w net.ipv4.tcp_ecn=1",
        "sysctl -w net.ipv4.conf.default.rp_filter=2",
        "sysctl -w net.ipv4.conf.eth1.rp_filter=2",
        "sysctl -w net.ipv4.conf.eth2.rp_filter=2",
        "ls",
    )
    assert own_run(read.machines[1]) == ("sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv4.tcp_ecn=1")


@pytest.mark.parametrize("written", ["{'a b': 1}", "{net.ipv4.ip_forward: [1]}", "{net.ipv4.ip_forward: $X}"])
def test_what_is_no_setting_of_the_kernels_is_an_error(written: str) -> None:
    with pytest.raises(InputError, match=r"t\.clab\.yml:3: .*is no setting, as in net\.ipv4\.ip_forward: 1"):
        clab(file=CLAB.replace("a: {kind: linux}", f"a: {{kind: linux, sysctls: {written}}}"))


def test_a_bridge_runs_nothing_in_containerlab_either() -> None:
    file = CLAB.replace("c: {kind: linux}", "c: {kind: bridge}").replace("  nodes", "  defaults: {exec: [ls]}\n  nodes")
    read = clab('{endpoints: ["a:eth1", "c:a"]}', '{endpoints: ["b:eth1", "c:b"]}', file=file)
    assert [own_run(machine) for machine in read.machines] == [("ls",), ("ls",), ()]
    assert any(note.startswith("exec of c: left out") for note in read.notes)


@pytest.mark.parametrize("key", ["kinds", "defaults"])
def test_settings_beside_the_topology_are_errors_that_say_where_they_stand(key: str) -> None:
    with pytest.raises(InputError, match=rf"t\.clab\.yml:1: {key}: .*it stands under `topology:`"):
        clab(file=f"{key}: {{cpu: 2}}\n{CLAB}")


def test_a_switchs_ports_may_be_called_as_they_like() -> None:
    file = CLAB.replace("c: {kind: linux}", "c: {kind: ovs-bridge}")
    assert len(clab('{endpoints: ["a:eth1", "c:a_port"]}', '{endpoints: ["b:eth1", "c:other"]}', file=file).links) == 2


LAYERED = """\
name: kinds
topology:
  defaults: {{kind: linux, cpu: 1, memory: 256Mib, env: {{A: d}}{defaults}}}
  kinds: {{linux: {{cpu: 2, memory: 512Mib, exec: [ls]{kinds}}}}}
  groups: {{big: {{cpu: 4, env: {{A: g}}{groups}}}}}
  nodes:
    a: {{{a}}}
    b: {{group: big, exec: ["ip route"]}}
  links:
    - {{endpoints: ["a:eth1", "b:eth1"]}}
"""


def test_containerlabs_settings_are_a_nodes_own_then_its_groups_its_kinds_and_the_defaults() -> None:
    text = LAYERED.format(defaults="", kinds="", groups="", a="cpu: 0.5")
    a, b = detect.read(text, "t.yml").machines
    assert (a.cpus, a.memory_mb, a.environment, own_run(a)) == (0.5, 512, (("A", "d"),), ("ls",))
    assert (b.cpus, b.memory_mb, b.environment, own_run(b)) == (4, 512, (("A", "g"),), ("ls", "ip route"))


def test_a_nodes_kind_may_come_from_its_group_and_its_group_from_its_kind() -> None:
    text = LAYERED.replace("kind: linux, ", "").format(defaults="", kinds="", groups=", kind: linux", a="group: big")
    assert [machine.cpus for machine in detect.read(text, "t.yml").machines] == [4, 4]
    text = LAYERED.format(defaults="", kinds=", group: big", groups="", a="")
    assert detect.read(text, "t.yml").machines[0].cpus == 4


def test_exec_sets_the_addresses_that_it_says() -> None:
    """`exec` runs no shell: what one would fill in is a plain word."""
    nodes = 'a: {kind: linux, exec: ["ip addr add 192.0.2.1/24 dev eth1", "echo a*b && ls __clabNodeName__"]}'
    read = clab('{endpoints: ["a:eth1", "b:eth1"]}', file=CLAB.replace("a: {kind: linux}", nodes))
    assert own_run(read.machines[0]) == ("ip addr add 192.0.2.1/24 dev eth1", "echo 'a*b' '&&' ls a")
    assert "run" in network.text(read)
    with pytest.raises(InputError, match=r"t\.clab\.yml:3: .*exec echo \$NO_SUCH cannot be honoured"):
        clab(file=CLAB.replace("a: {kind: linux}", 'a: {kind: linux, exec: ["echo $NO_SUCH"]}'))


@pytest.mark.parametrize(
    ("mtu", "fine"), [("9500", True), ("576", True), ("9501", False), ("64", False), ("65536", False)]
)
def test_an_mtu_is_taken_up_to_containerlabs_own(mtu: str, fine: bool) -> None:
    link = f'{{endpoints: ["a:eth1", "b:eth1"], mtu: {mtu}}}'
    if fine:
        assert clab(link).links[0].mtu == int(mtu)
    else:
        with pytest.raises(InputError, match=rf"t\.clab\.yml:5: .*mtu {mtu} cannot be honoured"):
            clab(link)


def test_a_link_of_containerlab_that_says_no_mtu_is_told_of() -> None:
    assert "containerlab's own is 9500" in " ".join(clab('{endpoints: ["a:eth1", "b:eth1"]}').notes)


LOST = {
    "cpu": (CLAB.replace("b: {kind: linux}", "b: {kind: linux, cpu: 1.5}"), 3, "cpu 1.5"),
    "mac": (CLAB + "    - {endpoints: [{node: a, interface: eth1, mac: '02:6d:67:00:00:01'}, {node: b}]}\n", 5, "mac"),
    "host": (CLAB + '    - {endpoints: ["a:eth1", "host:eth7"]}\n', 5, "a link of type 'host'"),
    "vxlan": (CLAB + "    - {type: vxlan, endpoint: {node: a}}\n", 5, "a link of type 'vxlan'"),
    "no-hosts-address": (
        CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["192.0.2.255/24"]}\n',
        5,
        "address 192",
    ),
    "one-address": (
        CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["192.0.2.7/24", "192.0.2.7/24"]}\n',
        5,
        "address 192.0.2.7",
    ),
    "kept-block": (CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["10.255.0.1/24"]}\n', 5, "network 10.255"),
    "pair-of-addresses": (CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["192.0.2.0/31"]}\n', 5, "network 192"),
    "used-kind": (CLAB.replace("  nodes", "  kinds: {linux: {binds: ['/a:/b']}}\n  nodes"), 3, "bind /a:/b"),
    "tunnel": (NETLAB + "  - {h1: , h2: , type: tunnel}\n", 5, "a link of type 'tunnel'"),
    "clab-binds": (NETLAB.replace("h1, ", "{name: h1, clab.binds: [x]}, "), 3, "binds"),
    "made": ("input: [a.yml]\n" + NETLAB, 1, "input"),
    "its-number": (NETLAB + "  - {h2: {ipv4: 255}, h3: , prefix: 192.0.2.0/24}\n", 5, "address 192.0.2.255"),
    "two-mtus": (NETLAB + "  - {h1: {mtu: 1400}, h2: }\n", 5, "mtu 1400 and 1500"),
    "queue": (NETLAB + "  - {h1: , h2: , tc.queue: 5}\n", 5, "the key 'queue'"),
    "mistyped": (NETLAB + "  - {h1: , h2: , bandwith: 5}\n", 5, "the key 'bandwith'"),
    "unnumbered": (NETLAB + "  - {h1: , h2: , prefix: false}\n", 5, "prefix false"),
    "no-address": (NETLAB + "  - {h1: {ipv4: false}, h2: }\n", 5, "ipv4 false"),
    "ipv6": (NETLAB + "  - {h1: , h2: , prefix.ipv6: '2001:db8::/64'}\n", 5, "ipv6"),
    "module": ("module: [ospf]\n" + NETLAB, 1, "module"),
    "default-tc": ("defaults.tc.enable: false\n" + NETLAB, 1, "tc"),
    "vlan-group": (NETLAB.replace("links", "groups: {v: {type: vlan, members: [x]}}\nlinks"), 4, "group v"),
    "regex": (NETLAB.replace("links", "groups: {v: {members: ['~h.*'], memory: 256}}\nlinks"), 4, "member ~h"),
}


@pytest.mark.parametrize("case", LOST)
def test_what_cannot_be_honoured_is_an_error_with_its_line_and_can_be_left_out(case: str) -> None:
    text, line, what = LOST[case]
    with pytest.raises(InputError) as caught:
        detect.read(text, "t.yml")
    found = [problem for problem in caught.value.problems if f"{what} " in problem.message or what in problem.message]
    assert [problem.line for problem in found] == [line], str(caught.value)
    assert all("--leave-out" in problem.message for problem in caught.value.problems)
    read = detect.read(text, "t.yml", leave_out=True)
    assert any(note.startswith(what) and "left out" in note for note in read.notes), read.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NETLAB.replace("[h1, h2, h3]", "{h1: {device: eos}, h2: , h3: }"), r"t\.yml:3: .*device 'eos'"),
        (NETLAB + "  - {h1: , h2: , tc: {delay: 5}, tc.delay: 6}\n", r"t\.yml:5: links\[0\]\.tc\.delay: given twice"),
        (NETLAB.replace("links", "groups: {a: [b], b: [a]}\nlinks"), r"t\.yml:4: .*is in a cycle of groups"),
        (NETLAB.replace("links", "groups: {a: [h9]}\nlinks"), r"t\.yml:4: .*'h9' is no node and no group"),
        (NETLAB + "  - {h1: , h9: }\n", r"t\.yml:5: links\[0\]: no node 'h9'"),
        (CLAB.replace("c: {kind: linux}", "c: {kind: ceos}"), r"t\.yml:3: topology\.nodes\.c: kind 'ceos'"),
    ],
)
def test_what_is_wrong_stays_an_error_when_much_is_left_out(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        detect.read(text, "t.yml", leave_out=True)


def test_a_key_with_very_many_dots_is_one_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="is not known"):
        netlab(f"{{h1: , h2: , {'.'.join('a' * 500)}: 1}}")


# Every key that the tools document.

DOCUMENTED = {
    (
        "containerlab",
        "node",
    ): """image image-pull-policy restart-policy kind license type group startup-config startup-delay
        enforce-startup-config suppress-startup-config auto-remove exec binds volumes ports env credentials
        env-files user hostname entrypoint cmd labels runtime mgmt-ipv4 mgmt-ipv6 network-mode link-apply-mode
        cpu memory cpu-set extras config stages dns certificate healthcheck components aliases shm-size cap-add
        privileged cgroupns-mode cgroup-parent pid-mode tmpfs security-opts sysctls devices""",
    ("containerlab", "link"): "type endpoints mtu ipv4 ipv6 vars labels",
    ("containerlab", "endpoint"): "node interface mac ipv4 ipv6 vars",
    ("containerlab", "topology"): "defaults kinds groups nodes links",
    ("containerlab", "file"): "name prefix mgmt settings topology",
    (
        "netlab",
        "file",
    ): "addressing defaults groups links module name nodes plugin prefix provider tools validate version",
    ("netlab", "link"): """bandwidth bridge disable shutdown name prefix ra role pool tc type unnumbered interfaces mtu
        vlan_name gateway group members""",
    ("netlab", "interface"): "node ipv4 ipv6 ifindex ifname tc mtu bandwidth",
    ("netlab", "tc"): "delay jitter loss corrupt duplicate reorder rate",
    (
        "netlab",
        "node",
    ): """interfaces module device box image id config skip_config group role mgmt mtu loopback provider
        cpu memory unmanaged""",
    ("netlab", "group"): "members vars config node_data device module type",
    ("netlab", "prefix"): "ipv4 ipv6 allocation",
    ("GraphML", "node"): "label Latitude Longitude",
    ("GraphML", "edge"): "LinkSpeed LinkSpeedRaw LinkSpeedUnits LinkLabel LinkNote LinkType LinkStatus id",
}
"""By tool and place: schemas/clab.schema.json of containerlab, netsim/defaults/attributes.yml of netlab, and what files
of the Topology Zoo have."""


@pytest.mark.parametrize(("tool", "place"), DOCUMENTED)
def test_the_table_has_every_documented_key(tool: str, place: str) -> None:
    assert not set(DOCUMENTED[tool, place].split()) - keys.FORMATS[tool][place].keys()


CLAB_BASE = {
    "name": "lab",
    "topology": {
        "nodes": {"a": {"kind": "linux"}, "b": {"kind": "linux"}},
        "links": [
            {
                "type": "veth",
                "endpoints": [{"node": "a", "interface": "eth1"}, {"node": "b", "interface": "eth1"}],
                "mtu": 1400,
            }
        ],
    },
}
NETLAB_BASE = {
    "name": "lab",
    "defaults": {"device": "linux", "interfaces": {}, "devices": {"linux": {}}},
    "groups": {"g": {"members": ["h1"]}},
    "nodes": {"h1": {}, "h2": {}},
    "links": [{"h1": {}, "h2": {}, "tc": {"delay": 1}, "prefix": {"ipv4": "192.0.2.0/24"}}],
}
AT: Mapping[tuple[str, str], tuple[str | int, ...]] = {
    ("containerlab", "file"): (),
    ("containerlab", "topology"): ("topology",),
    ("containerlab", "node"): ("topology", "nodes", "a"),
    ("containerlab", "link"): ("topology", "links", 0),
    ("containerlab", "endpoint"): ("topology", "links", 0, "endpoints", 0),
    ("netlab", "file"): (),
    ("netlab", "defaults"): ("defaults",),
    ("netlab", "interfaces"): ("defaults", "interfaces"),
    ("netlab", "device"): ("defaults", "devices", "linux"),
    ("netlab", "group"): ("groups", "g"),
    ("netlab", "node"): ("nodes", "h1"),
    ("netlab", "link"): ("links", 0),
    ("netlab", "interface"): ("links", 0, "h1"),
    ("netlab", "tc"): ("links", 0, "tc"),
    ("netlab", "prefix"): ("links", 0, "prefix"),
}
PLACED = [
    (tool, place, key)
    for tool, place in AT
    for key in keys.FORMATS[tool][place]
    if place not in ("topology", "interfaces")
]
SAMPLES: Mapping[tuple[str, str], object] = {
    ("containerlab", "name"): "other",
    ("containerlab", "kind"): "bridge",
    ("containerlab", "group"): None,
    ("containerlab", "cpu"): 2,
    ("containerlab", "memory"): "1Gib",
    ("containerlab", "env"): {"A": "b"},
    ("containerlab", "exec"): ["ls"],
    ("containerlab", "sysctls"): {"net.ipv4.ip_forward": "0"},
    ("containerlab", "labels"): {"location": "AMS"},
    ("containerlab", "mtu"): 1300,
    ("containerlab", "ipv4"): "192.0.2.1/24",
    ("netlab", "name"): "other",
    ("netlab", "device"): "eos",
    ("netlab", "cpu"): 2,
    ("netlab", "memory"): 256,
    ("netlab", "role"): "bridge",
    ("netlab", "mtu"): 1500,
    ("netlab", "tc"): {"loss": 5},
    ("netlab", "bandwidth"): 1000,
    ("netlab", "prefix"): "198.51.100.0/24",
    ("netlab", "ipv4"): "192.0.2.9/24",
    ("netlab", "disable"): True,
    ("netlab", "ifindex"): 4,
    ("netlab", "ifname"): "data0",
    ("netlab", "allocation"): "else",
    ("netlab", "id"): 7,
    ("netlab", "clab"): {"binds": ["a:/b"]},
    ("netlab", "type"): "stub",
    ("netlab", "node_data"): {"memory": 256},
    **{("netlab", word): 2 for word in ("delay", "jitter", "loss", "corrupt", "duplicate", "reorder", "rate")},
}
"""A value for each honoured key by which the network changes, or which is refused."""
STRUCTURE = {
    *("nodes", "links", "groups", "defaults", "kinds", "topology", "endpoints", "interfaces", "members", "node"),
    *("devices", "interface", "group", "endpoint", "_auto_create", "bridge"),
}
"""What other tests of this file try, since it has no one value."""


def _with(tool: str, place: str, key: str, value: object) -> str:
    document = yaml.safe_load(yaml.safe_dump(CLAB_BASE if tool == "containerlab" else NETLAB_BASE))
    at = document
    for part in AT[tool, place]:
        at = at[part]
    at[key] = 1400 if key == "mtu" and place in ("node", "device", "group") else value
    return yaml.safe_dump(document, sort_keys=False)


def _read(text: str, leave_out: bool = False) -> Network:
    read = detect.read(text, "t.yml", leave_out=leave_out)
    machines = tuple(network.replace(each, line=1) for each in read.machines)
    return network.replace(read, machines=machines, links=tuple(network.replace(each, line=1) for each in read.links))


@pytest.mark.parametrize(("tool", "place", "key"), PLACED)
def test_every_key_is_honoured_or_an_error_or_a_note(tool: str, place: str, key: str) -> None:
    fate = keys.FORMATS[tool][place][key].fate
    base = _read(yaml.safe_dump(CLAB_BASE if tool == "containerlab" else NETLAB_BASE, sort_keys=False))
    text = _with(tool, place, key, SAMPLES.get((tool, key), "anything"))
    lines = {number for number, each in enumerate(text.splitlines(), 1) if f"{key}:" in each}
    if fate == "honoured":
        if key in STRUCTURE or (place, key) in {
            ("link", "type"),
            ("group", "type"),
            ("node", "name"),
            ("prefix", "ipv4"),
        }:
            return
        try:
            assert _read(text) != base
        except InputError as error:
            assert error.problems
    elif fate == "error":
        with pytest.raises(InputError, match=rf"t\.yml:\d+: .*{key} cannot be honoured: .*--leave-out") as caught:
            detect.read(text, "t.yml")
        assert lines.issuperset(problem.line for problem in caught.value.problems)
        left = detect.read(text, "t.yml", leave_out=True)
        assert any(note.startswith(f"{key} of ") for note in left.notes), left.notes
    else:
        assert any(note.startswith(f"{key} of ") for note in detect.read(text, "t.yml").notes)


@pytest.mark.parametrize("tool", keys.FORMATS)
def test_the_documents_have_the_table(tool: str) -> None:
    shown = (PROJECT / "docs" / "imports.md").read_text(encoding="utf-8")
    assert "\n".join(keys.tables(tool)) in shown


# GraphML

GRAPH = """\
<graphml><key attr.name="label" for="node" id="n" />
<key attr.name="LinkStatus" for="edge" id="s" /><key attr.name="LinkSpeedRaw" for="edge" id="r" />
<key attr.name="LinkSpeed" for="edge" id="v" /><key attr.name="LinkSpeedUnits" for="edge" id="u" />
<key attr.name="latency" for="edge" id="l" />
<graph edgedefault="undirected">
<node id="0"><data key="n">Alpha</data></node>
<node id="1"><data key="n">Beta</data></node>
<node id="2"><data key="n">Gamma</data></node>
<edge source="0" target="1" />
<edge source="1" target="2">{edge}</edge>
{more}
</graph></graphml>
"""


def graph(edge: str = "", more: str = "", *, leave_out: bool = False) -> Network:
    return detect.read(GRAPH.format(edge=edge, more=more), "t.graphml", leave_out=leave_out)


@pytest.mark.parametrize("status", ["Planned", "Proposed", "Future", "Under Construction"])
def test_an_edge_that_is_only_planned_is_no_link(status: str) -> None:
    read = graph(more=f'<edge source="0" target="2"><data key="s">{status}</data></edge>')
    assert [link.ends for link in read.links] == [("alpha", "beta"), ("beta", "gamma")]
    assert any(f"LinkStatus {status} of alpha-gamma" in note for note in read.notes)
    assert len(graph(more='<edge source="0" target="2"><data key="s">Leased</data></edge>').links) == 3


def test_what_yed_draws_of_an_edge_is_a_note() -> None:
    drawn = '<data key="y"><y:PolyLineEdge xmlns:y="http://www.yworks.com/xml/graphml"><y:EdgeLabel>1</y:EdgeLabel>'
    text = GRAPH.format(edge=f"{drawn}</y:PolyLineEdge></data>", more="")
    text = text.replace("<graph ", '<key for="edge" id="y" yfiles.type="edgegraphics"/>\n<graph ')
    read = detect.read(text, "t.graphml")
    assert len(read.links) == 2
    assert "the edges' data of edgegraphics: left out" in read.notes


def test_two_edges_between_the_same_nodes_are_two_links() -> None:
    read = graph(more='<edge source="1" target="0" />')
    assert len(parse(network.text(read), "t.yaml").links) == 3


def test_hosts_that_no_link_joins_are_an_error_or_left_out() -> None:
    alone = '<edge source="1" target="0"/><node id="3"/><node id="4"/><edge source="3" target="4"/>'
    with pytest.raises(InputError, match=r"t\.graphml:11: host n3, n4 of 'the graph' cannot be honoured: no link"):
        graph(more=alone)
    assert [machine.name for machine in graph(more=alone, leave_out=True).machines] == ["alpha", "beta", "gamma"]


IN_PARTS = """\
graph [
  node [ id 0 label "Alpha" ] node [ id 1 label "Beta" ] node [ id 2 label "Gamma" ]
  node [ id 3 label "Delta" ] node [ id 4 label "Epsilon" ]
  node [ id 5 label "Zeta" ]
  edge [ source 3 target 4 LinkSpeedRaw 1000000.0 ]
  edge [ source 0 target 1 ] edge [ source 1 target 2 ]
]
"""


def test_a_graph_in_parts_gives_a_lab_for_each() -> None:
    with pytest.raises(InputError) as refused:
        detect.read(IN_PARTS, "t.gml")
    assert [problem.line for problem in refused.value.problems] == [3, 4]
    assert str(refused.value).endswith("With --leave-out it is left out; --part 3 takes it alone")
    largest = detect.read(IN_PARTS, "t.gml", leave_out=True)
    assert largest == detect.read(IN_PARTS, "t.gml", part=1)
    assert "part 1 of the graph: 3 of its 6 hosts" in largest.notes
    assert "host zeta of the graph: left out: no link joins it to the others" in largest.notes
    second, third = (detect.read(IN_PARTS, "t.gml", part=part) for part in (2, 3))
    assert [link.rate_mbit for link in second.links] == [(1.0, 1.0)]
    assert [host.name for host in parse(network.text(second), "t.yaml").hosts] == ["delta", "epsilon"]
    assert [host.name for host in parse(network.text(third), "t.yaml").hosts] == ["zeta"]


@pytest.mark.parametrize(
    ("part", "file", "message"),
    [
        (4, "t.gml", r"t\.gml: the graph has 3 parts, and no part 4"),
        (0, "t.gml", r"t\.gml: the graph has 3 parts, and no part 0"),
        (1, "t.yml", r"t\.yml: only graphs \(GraphML, GML\) are taken in parts: leave out --part"),
    ],
)
def test_a_part_that_is_not_there_is_an_error(part: int, file: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        detect.read(IN_PARTS, file, part=part)


def test_the_verb_takes_a_part(tmp_path: Path) -> None:
    file = tmp_path / "t.gml"
    file.write_text(IN_PARTS)
    done = runner.invoke(app, ["import", str(file), "--part", "2"])
    assert (done.exit_code, "{ends: [delta, epsilon], rate: 1mbit}" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("edge", "mbit"),
    [
        ('<data key="r">1000000.0</data>', 1.0),
        ('<data key="v">2.5</data><data key="u">G</data>', 2500.0),
        ('<data key="v">155</data><data key="u">Mbps</data>', 155.0),
        ("", None),
    ],
)
def test_an_edge_has_the_speed_that_it_says(edge: str, mbit: float | None) -> None:
    assert graph(edge).links[1].rate_mbit == (None if mbit is None else (mbit, mbit))


@pytest.mark.parametrize(
    ("edge", "more", "what"),
    [
        ('<data key="r">400000000000</data>', "", "the speed 400000 Mbit/s"),
        ('<data key="v">10-100</data>', "", "the speed '10-100'"),
        ('<data key="l">20</data>', "", "the key 'latency'"),
        ("", '<edge source="0" target="0" />', "an edge to itself"),
        ("", "<hyperedge />", "a hyperedge"),
    ],
)
def test_what_a_graph_says_of_its_links_and_nobody_honours_is_an_error(edge: str, more: str, what: str) -> None:
    with pytest.raises(InputError, match=rf"t\.graphml:1[012]: {what} of .* cannot be honoured"):
        graph(edge, more)
    assert any(note.startswith(what) for note in graph(edge, more, leave_out=True).notes)


@pytest.mark.parametrize("text", ["<project><node id='1'/></project>", "<html/>", "<x:graph xmlns:x='y'/>"])
def test_xml_that_is_no_graphml_is_refused_as_such(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.xml:1: no GraphML: this file begins with <.*first element is <graphml>"):
        detect.read(text, "t.xml")
    file = tmp_path / "t.xml"
    file.write_text(text)
    done = runner.invoke(app, ["plan", str(file)])
    assert (done.exit_code, "this file is XML, and no topology" in done.stderr) == (2, True)


def test_a_graph_as_large_as_the_topology_zoos_largest_is_taken(tmp_path: Path) -> None:
    """Kdl has 754 nodes and 321 kB."""
    nodes = "".join(
        f'<node id="{number}"><data key="n">Town {number}</data>{" " * 320}</node>\n' for number in range(754)
    )
    edges = "".join(f'<edge source="{number}" target="{number + 1}"/>\n' for number in range(753))
    file = tmp_path / "large.graphml"
    file.write_text(f'<graphml><key attr.name="label" for="node" id="n"/><graph>\n{nodes}{edges}</graph></graphml>')
    assert file.stat().st_size > 300_000
    done = runner.invoke(app, ["import", str(file)])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("location: Town") == 0
    assert done.stdout.count("ends: [") == 753
    done = runner.invoke(app, ["plan", str(file)])
    assert (done.exit_code, f"minigts import {file} -o" in done.stderr) == (2, True)


def test_a_topology_that_would_be_too_large_is_not_written() -> None:
    machines = tuple(network.NetworkMachine(f"h{number}", location="x" * 300) for number in range(999))
    with pytest.raises(InputError, match=r"t\.graphml: its topology would have \d+ kB, and a topology has at most 256"):
        require_fit(Network("x", machines, ()), "t.graphml")


# What nobody hears

HEARD: Mapping[str, str] = {
    "t.clab.yml": CLAB.replace(
        "a: {kind: linux}", "a: {kind: linux, cpu: 2, env: {A: b}, exec: [ls], sysctls: {a.b: 1}}"
    )
    + '    - {endpoints: ["a:eth2", "b:eth1"], mtu: 1400, labels: {x: y}}\n'
    + "    - endpoints: [{node: a, interface: eth1, ipv4: 192.0.2.1/24}, {node: c, interface: net0}]\n",
    "t.yml": NETLAB.replace("h3]", "{name: h3, id: 4, memory: 256}]").replace(
        "links", "groups: {g: {members: ['h?'], cpu: 2}}\nlinks"
    )
    + "  - {h1: {tc.delay: 5}, h2: {ifindex: 3}, prefix: 192.0.2.0/24, tc: {loss: 1, rate: 5000}}\n"
    + "  - {group: g, tc.corrupt: 1, members: [h2-h3]}\n",
}


@pytest.mark.parametrize("name", HEARD)
def test_nothing_in_a_file_goes_unheard(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(HEARD[name])
    tool = foreign_files.tool_of(file)
    assert tool is not None
    assert foreign_files.unheard(tool, file, foreign_files.read(tool, file), 1000) == []


def test_a_key_that_a_reader_passes_over_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was with the kinds of containerlab once: the table says honoured, and no reader looks."""
    file = tmp_path / "t.clab.yml"
    file.write_text(CLAB.replace("a: {kind: linux}", "a: {kind: linux, colour: red}"))
    monkeypatch.setitem(keys.CONTAINERLAB["node"], "colour", keys.Key("honoured", "-"))
    taken = foreign_files.read("containerlab", file)
    assert foreign_files.unheard("containerlab", file, taken, 1000) == ["topology.nodes.a.colour: red"]


# The verbs


@pytest.mark.parametrize(
    ("name", "text", "tool"),
    [
        ("a.clab.yml", CLAB + '    - endpoints: ["a:eth1", "b:eth1"]\n', "containerlab's"),
        ("a.yml", NETLAB + "  - h1-h2\n", "netlab's"),
        ("b.yaml", "name: x\nnodes: {h1: {device: linux}}\n", "netlab's"),
        ("a.graphml", GRAPH.format(edge="", more=""), "GraphML"),
        ("a.gml", IN_PARTS, "GML"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "up", "export"])
def test_a_verb_that_wants_a_topology_says_how_another_tools_file_becomes_one(
    verb: str, name: str, text: str, tool: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = runner.invoke(app, [verb, str(file), *(["--as", "dot"] if verb == "export" else [])])
    assert done.exit_code == 2
    assert f"this file is {tool}" in done.stderr
    assert f"minigts import {file} -o" in done.stderr
    assert done.stderr.count("\n") < 3


@pytest.mark.parametrize("verb", ["plan", "import"])
def test_a_compose_file_is_told_from_a_topology(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services: {web: {image: nginx}}\nnetworks: {x: }\n")
    done = runner.invoke(app, [verb, str(file)])
    assert (done.exit_code, "a host of a topology takes it" in done.stderr) == (2, True)
    assert done.stderr.count("\n") < 3


def test_a_manifest_with_nodes_is_no_netlab_file() -> None:
    with pytest.raises(InputError, match=r"t\.yml:1: neither containerlab's nor netlab's"):
        detect.read("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: worker}]\n", "t.yml")


def test_a_topology_of_ours_with_a_key_of_netlabs_is_still_ours() -> None:
    with pytest.raises(InputError, match=r"nodes"):
        parse("name: x\nnodes: {a: , b: }\nlinks:\n  - {ends: [a, b]}\n", "t.yaml")
    with pytest.raises(InputError) as caught:
        parse("name: x\ntopology: topologies/chain6.yaml\n", "t.yaml")
    assert "import" not in str(caught.value)


def test_import_leaves_out_what_it_is_told_to(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_text(NETLAB + "  - {h1: , h2: , shutdown: true}\n  - h2-h3\n")
    done = runner.invoke(app, ["import", str(file)])
    assert done.exit_code == 2
    assert f"{file}:5: links[0].shutdown: shutdown cannot be honoured" in done.stderr
    assert not done.stdout
    done = runner.invoke(app, ["import", str(file), "--leave-out"])
    assert done.exit_code == 0
    assert "shutdown of h1-h2: left out" in done.stderr
    assert "# shutdown of h1-h2: left out" in done.stdout


EXPORTED: Mapping[str, tuple[str, str]] = {
    "overlay": ("pair: {}\noverlay: swarm", "overlay swarm"),
    "burst": ("pair: {link: {loss: 5%, burst: 8packets}}", "burst"),
    "corrupt": ("pair: {link: {corrupt: 5%}}", "corrupt"),
    "mtu": ("pair: {link: {mtu: 1400}}", "mtu"),
    "subnet": ("subnets: 192.168.0.0/16\npair: {}", "subnet"),
    "ipv6": ("ipv6: true\npair: {}", "ipv6"),
    "queue": ("pair: {link: {rate: 1mbit, queue: 100kB}}", "queue"),
}


@pytest.mark.parametrize("case", EXPORTED)
def test_an_export_that_loses_something_is_an_error_unless_it_may(case: str, tmp_path: Path) -> None:
    topology, said = EXPORTED[case]
    file, into = tmp_path / "t.yaml", tmp_path / "out"
    file.write_text(f"name: t\n{topology}\n")
    done = runner.invoke(app, ["export", str(file), "--as", "gts", "-o", str(into)])
    assert (done.exit_code, said in done.stderr, into.exists()) == (2, True, False), done.stderr
    done = runner.invoke(app, ["export", str(file), "--as", "gts", "-o", str(into), "--leave-out"])
    assert (done.exit_code, said in done.stderr, into.exists()) == (0, True, True), done.stderr


def test_what_netlab_can_say_is_read() -> None:
    text = "name: t\nsubnets: 192.168.0.0/16\npair: {link: {corrupt: 5%, duplicate: 1%, delay: 2ms, reorder: 3%}}\n"
    plan = parse(text, "t.yaml")
    written = foreign_writers.netlab(network_of(plan))
    assert parse(network.text(detect.read(written, "t.yml")), "t.yaml").links == plan.links


DECLARED_ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "expect": ("pair: {link: {rtt: 1ms}}\nexpect: [{latency: as-declared}]", "expect"),
    "tolerances": ("pair: {}\ntolerances: {rtt: 1ms}", "tolerances"),
    "dns": ("pair: {}\ndns: true", "dns of t"),
    "kubernetes": ("pair: {}\nkubernetes: {proxy: nftables}", "kubernetes of t"),
    "gateway": ("pair: {}\nhosts: {h3: {gateway: true}}\nlinks: [{ends: [h2, h3]}]", "gateway of h3"),
    "containers": ("pair: {}\ndefaults: {host: {containers: [{name: c, image: c.tar}]}}", "containers of h1"),
    "packages": ("pair: {}\ndefaults: {host: {packages: [curl]}}", "software and containers of h1, h2"),
}
LOST_ABROAD: Mapping[str, tuple[str, str]] = {
    "overlay": ("pair: {}\noverlay: flannel", "overlay flannel"),
    "ipv6": ("pair: {}\nipv6: true", "ipv6"),
    "schedule": ("pair: {link: {rate: 9mbit}}\nschedule: [{at: 1s, link: h1-h2, set: {rate: 5mbit}}]", "schedule"),
    "burst": ("pair: {link: {loss: 5%, burst: 8packets}}", "burst of h1-h2"),
    "slot": ("time: virtual\npair: {link: {slot: 2ms}}", "slot of h1-h2"),
    "queue": ("pair: {link: {rate: 1mbit, queue: 100kB}}", "queue of h1-h2"),
    "processor": ("time: virtual\npair: {}\ndefaults: {host: {processor: {frame: 3us}}}", "processor of h1"),
}


@pytest.mark.parametrize("case", DECLARED_ELSEWHERE)
def test_what_other_formats_leave_to_us_is_a_note(case: str) -> None:
    topology, said = DECLARED_ELSEWHERE[case]
    found = network_of(parse(f"name: t\n{topology}\n", "t.yaml"))
    assert [line for line in found.notes if said in line], found.notes
    assert not found.lost


@pytest.mark.parametrize("case", LOST_ABROAD)
def test_what_no_other_format_can_say_is_lost_and_nothing_else(case: str) -> None:
    topology, said = LOST_ABROAD[case]
    found = network_of(parse(f"name: t\n{topology}\n", "t.yaml"))
    assert [line for line in found.lost if said in line], found.lost
    assert len(found.lost) == 1
    plain = network_of(parse("name: t\npair: {}\n", "t.yaml"))
    assert (plain.lost, plain.notes) == ((), ())


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("", {"mtu": None, "rate_mbit": None, "jitter_ms": None, "loss_percent": None, "subnet": None}),
        ("mtu: 1500", {"mtu": None}),
        ("mtu: 1499", {"mtu": 1499}),
        ("rate: 5mbit", {"rate_mbit": (5, 5)}),
        ("rate: {to: 5mbit, from: 2mbit}", {"rate_mbit": (5, 2)}),
        ("delay: {to: 3ms, from: 4ms}", {"delay_ms": (3, 4)}),
        ("delay: 3ms, jitter: {to: 1ms, from: 0ms}", {"jitter_ms": (1, 0)}),
        ("loss: {to: 0%, from: 1%}", {"loss_percent": (0, 1)}),
        (
            "corrupt: {to: 1%, from: 0%}, duplicate: {to: 0%, from: 2%}",
            {"corrupt_percent": (1, 0), "duplicate_percent": (0, 2)},
        ),
        ("delay: 3ms, reorder: {to: 0%, from: 2%}", {"reorder_percent": (0, 2)}),
    ],
)
def test_a_link_is_exported_as_declared_and_a_default_is_left_open(link: str, expected: Mapping[str, object]) -> None:
    (found,) = network_of(parse(f"name: t\npair: {{link: {{{link}}}}}\n", "t.yaml")).links
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [("", (None, None)), ("cpus: 3", (3, 512)), ("memory: 700MB", (1, 700)), ("cpus: 1, memory: 512MB", (None, None))],
)
def test_a_hosts_size_is_exported_where_it_is_no_default(host: str, expected: tuple[int | None, int | None]) -> None:
    first, _ = network_of(parse(f"name: t\npair: {{}}\ndefaults: {{host: {{{host}}}}}\n", "t.yaml")).machines
    assert (first.cpus, first.memory_mb) == expected


@pytest.mark.parametrize("place", ["file", "topology", "links[0]"])
def test_a_key_of_containerlab_that_nobody_knows_is_named_with_its_place(place: str) -> None:
    added = {
        "file": "colour: red\n",
        "topology": "  colour: red\n",
        "links[0]": "    - {endpoints: ['a:eth1', 'b:eth1'], colour: red}\n",
    }
    with pytest.raises(InputError) as caught:
        detect.read(CLAB + added[place], "t.clab.yml")
    (problem,) = caught.value.problems
    assert str(problem).startswith(
        "t.clab.yml:5: " + {"file": "", "topology": "topology.", "links[0]": "topology.links[0]"}[place]
    )
    assert "colour" in problem.message
