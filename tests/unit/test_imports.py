"""What other tools' files say and nobody loses quietly: it is honoured, or an error with its line, or a note."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.formats import keys, network, reading
from minigts.formats.network import Network
from minigts.topology.load import load, parse, require_fit

PROJECT = Path(__file__).parents[2]
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
    return reading.read(file + "".join(f"  - {link}\n" for link in links), "t.yml", leave_out=leave_out)


def clab(*links: str, file: str = CLAB, leave_out: bool = False) -> Network:
    return reading.read(file + "".join(f"    - {link}\n" for link in links), "t.clab.yml", leave_out=leave_out)


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
    read = reading.read(GROUPS.format(groups=groups, nodes=nodes), "t.yml")
    assert [machine.memory_mb for machine in read.machines] == memory


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{h1: {ipv4: 192.0.2.1/24}, h2: {ipv4: 192.0.2.2/24}}", {"h1": ["192.0.2.1/24"], "h2": ["192.0.2.2/24"]}),
        ("{h1: {ipv4: 192.0.2.2/24}, h2: {ipv4: 192.0.2.1/24}}", {"h1": ["192.0.2.2/24"], "h2": ["192.0.2.1/24"]}),
        ("{h1: , h2: {ipv4: 2}, prefix: 192.0.2.8/29}", {"h1": ["192.0.2.9/29"], "h2": ["192.0.2.10/29"]}),
        ("{h1: , h2: , prefix.ipv4: 192.0.2.0/30}", {"h1": ["192.0.2.1/30"], "h2": ["192.0.2.2/30"]}),
    ],
)
def test_addresses_that_our_language_can_give_are_given(written: str, expected: dict[str, list[str]]) -> None:
    read = netlab(written, file=NETLAB.replace(", h3", ""))
    assert addresses(read) == expected


def test_the_delay_of_a_link_that_is_turned_for_its_addresses_stays_with_its_end() -> None:
    link = netlab("{h1: {ipv4: 192.0.2.2/24, tc.delay: 5}, h2: {ipv4: 192.0.2.1/24}}").links[0]
    assert (link.ends, link.delay_ms) == (("h2", "h1"), (0, 5))


def test_a_lan_has_its_addresses_in_the_order_of_its_nodes() -> None:
    read = netlab("{h3: {ipv4: 192.0.2.1/24}, h1: {ipv4: 192.0.2.2/24}, h2: {ipv4: 192.0.2.3/24}}")
    assert addresses(read) == {"h1": ["192.0.2.2/24"], "h2": ["192.0.2.3/24"], "h3": ["192.0.2.1/24"]}


def test_links_are_put_into_the_order_that_gives_each_host_its_ports() -> None:
    read = clab('{endpoints: ["a:eth2", "b:eth1"]}', '{endpoints: ["a:eth1", "c:eth1"]}')
    assert ports_of(read, "a") == ["c", "b"]
    read = netlab("{h1: {ifindex: 2}, h2: }", "{h1: {ifname: eth1}, h3: }")
    assert ports_of(read, "h1") == ["h3", "h2"]


def test_ports_that_no_order_of_links_can_give_are_errors() -> None:
    links = '{endpoints: ["a:eth1", "b:eth2"]}', '{endpoints: ["a:eth2", "b:eth1"]}'
    with pytest.raises(InputError, match=r"t\.clab\.yml:5: .*interface eth2 cannot be honoured: it is eth1 here"):
        clab(*links)
    assert "interface eth2 of b" in " ".join(clab(*links, leave_out=True).notes)


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
    a, b = reading.read(text, "t.yml").machines
    assert (a.cpus, a.memory_mb, a.environment, a.run) == (0.5, 512, (("A", "d"),), ("ls",))
    assert (b.cpus, b.memory_mb, b.environment, b.run) == (4, 512, (("A", "g"),), ("ls", "ip route"))


def test_a_nodes_kind_may_come_from_its_group_and_its_group_from_its_kind() -> None:
    text = LAYERED.replace("kind: linux, ", "").format(defaults="", kinds="", groups=", kind: linux", a="group: big")
    assert [machine.cpus for machine in reading.read(text, "t.yml").machines] == [4, 4]
    text = LAYERED.format(defaults="", kinds=", group: big", groups="", a="")
    assert reading.read(text, "t.yml").machines[0].cpus == 4


def test_exec_sets_the_addresses_that_it_says() -> None:
    """`exec` runs no shell: what one would fill in is a plain word."""
    nodes = 'a: {kind: linux, exec: ["ip addr add 192.0.2.1/24 dev eth1", "echo a*b && ls __clabNodeName__"]}'
    read = clab('{endpoints: ["a:eth1", "b:eth1"]}', file=CLAB.replace("a: {kind: linux}", nodes))
    assert read.machines[0].run == ("ip addr add 192.0.2.1/24 dev eth1", "echo 'a*b' '&&' ls a")
    assert "run" in network.text(read)
    with pytest.raises(InputError, match=r"t\.clab\.yml:3: .*exec echo \$HOME cannot be honoured"):
        clab(file=CLAB.replace("a: {kind: linux}", 'a: {kind: linux, exec: ["echo $HOME"]}'))


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
    "mac": (CLAB + "    - {endpoints: [{node: a, interface: eth1, mac: '02:00:00:00:00:01'}, {node: b}]}\n", 5, "mac"),
    "data0": (CLAB + '    - {endpoints: ["a:eth1", "b:data0"]}\n', 5, "interface data0"),
    "host": (CLAB + '    - {endpoints: ["a:eth1", "host:eth7"]}\n', 5, "a link of type 'host'"),
    "vxlan": (CLAB + "    - {type: vxlan, endpoint: {node: a}}\n", 5, "a link of type 'vxlan'"),
    "far-address": (CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["192.0.2.7/24"]}\n', 5, "address 192.0.2.7"),
    "kept-block": (CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["172.16.0.1/24"]}\n', 5, "network 172.16"),
    "pair-of-addresses": (CLAB + '    - {endpoints: ["a:eth1", "b:eth1"], ipv4: ["192.0.2.0/31"]}\n', 5, "network 192"),
    "used-kind": (CLAB.replace("  nodes", "  kinds: {linux: {binds: ['a:/b']}}\n  nodes"), 3, "binds"),
    "stub": (NETLAB + "  - {h1: , type: stub}\n", 5, "a link of 'stub'"),
    "one-node": (NETLAB + "  - h1-h2\n  - [h3]\n", 6, "a link of 'one node'"),
    "tunnel": (NETLAB + "  - {h1: , h2: , type: tunnel}\n", 5, "a link of 'tunnel'"),
    "two-mtus": (NETLAB + "  - {h1: {mtu: 1400}, h2: }\n", 5, "mtu 1400 and 1500"),
    "queue": (NETLAB + "  - {h1: , h2: , tc.queue: 5}\n", 5, "the key 'queue'"),
    "mistyped": (NETLAB + "  - {h1: , h2: , bandwith: 5}\n", 5, "the key 'bandwith'"),
    "unnumbered": (NETLAB + "  - {h1: , h2: , prefix: false}\n", 5, "prefix false"),
    "no-address": (NETLAB + "  - {h1: {ipv4: false}, h2: }\n", 5, "ipv4 false"),
    "ipv6": (NETLAB + "  - {h1: , h2: , prefix.ipv6: '2001:db8::/64'}\n", 5, "ipv6"),
    "node-id": (NETLAB.replace("[h1, h2, h3]", "{h1: {id: 7}, h2: , h3: }"), 3, "id"),
    "module": ("module: [ospf]\n" + NETLAB, 1, "module"),
    "default-tc": ("defaults.tc.enable: false\n" + NETLAB, 1, "tc"),
    "vlan-group": (NETLAB.replace("links", "groups: {v: {type: vlan, members: [x]}}\nlinks"), 4, "group v"),
    "regex": (NETLAB.replace("links", "groups: {v: {members: ['~h.*'], memory: 256}}\nlinks"), 4, "member ~h"),
}


@pytest.mark.parametrize("case", LOST)
def test_what_cannot_be_honoured_is_an_error_with_its_line_and_can_be_left_out(case: str) -> None:
    text, line, what = LOST[case]
    with pytest.raises(InputError) as caught:
        reading.read(text, "t.yml")
    found = [problem for problem in caught.value.problems if f"{what} " in problem.message or what in problem.message]
    assert [problem.line for problem in found] == [line], str(caught.value)
    assert all("--leave-out" in problem.message for problem in caught.value.problems)
    read = reading.read(text, "t.yml", leave_out=True)
    assert any(note.startswith(what) and "left out" in note for note in read.notes), read.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NETLAB.replace("[h1, h2, h3]", "{h1: {device: eos}, h2: , h3: }"), r"t\.yml:3: .*device 'eos'"),
        (NETLAB + "  - {h1: , h2: , tc: {delay: 5}, tc.delay: 6}\n", r"t\.yml:5: links\[0\]\.tc\.delay: given twice"),
        (NETLAB.replace("links", "groups: {a: [b], b: [a]}\nlinks"), r"t\.yml:4: .*is in a circle of groups"),
        (NETLAB.replace("links", "groups: {a: [h9]}\nlinks"), r"t\.yml:4: .*'h9' is no node and no group"),
        (NETLAB + "  - {h1: , h9: }\n", r"t\.yml:5: links\[0\]: no node 'h9'"),
        (CLAB.replace("c: {kind: linux}", "c: {kind: ceos}"), r"t\.yml:3: topology\.nodes\.c: kind 'ceos'"),
    ],
)
def test_what_is_wrong_stays_an_error_when_much_is_left_out(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reading.read(text, "t.yml", leave_out=True)


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
    ("netlab", "allocation"): "id_based",
    ("netlab", "type"): "stub",
    ("netlab", "node_data"): {"memory": 256},
    **{("netlab", word): 2 for word in ("delay", "jitter", "loss", "corrupt", "duplicate", "reorder", "rate")},
}
"""A value for each honoured key by which the network changes, or which is refused."""
STRUCTURE = {
    *("nodes", "links", "groups", "defaults", "kinds", "topology", "endpoints", "interfaces", "members", "node"),
    *("devices", "interface", "group", "_auto_create", "bridge"),
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
    read = reading.read(text, "t.yml", leave_out=leave_out)
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
            reading.read(text, "t.yml")
        assert lines.issuperset(problem.line for problem in caught.value.problems)
        left = reading.read(text, "t.yml", leave_out=True)
        assert any(note.startswith(f"{key} of ") for note in left.notes), left.notes
    else:
        assert any(note.startswith(f"{key} of ") for note in reading.read(text, "t.yml").notes)


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
    return reading.read(GRAPH.format(edge=edge, more=more), "t.graphml", leave_out=leave_out)


@pytest.mark.parametrize("status", ["Planned", "Proposed", "Future", "Under Construction"])
def test_an_edge_that_is_only_planned_is_no_link(status: str) -> None:
    read = graph(more=f'<edge source="0" target="2"><data key="s">{status}</data></edge>')
    assert [link.ends for link in read.links] == [("alpha", "beta"), ("beta", "gamma")]
    assert any(f"LinkStatus {status} of alpha-gamma" in note for note in read.notes)
    assert len(graph(more='<edge source="0" target="2"><data key="s">Leased</data></edge>').links) == 3


def test_two_edges_between_the_same_nodes_are_two_links() -> None:
    read = graph(more='<edge source="1" target="0" />')
    assert len(parse(network.text(read), "t.yaml").links) == 3


def test_hosts_that_no_link_joins_are_an_error_or_left_out() -> None:
    alone = '<edge source="1" target="0"/><node id="3"/><node id="4"/><edge source="3" target="4"/>'
    with pytest.raises(InputError, match=r"t\.graphml:11: host n3, n4 of 'the graph' cannot be honoured: no link"):
        graph(more=alone)
    assert [machine.name for machine in graph(more=alone, leave_out=True).machines] == ["alpha", "beta", "gamma"]


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


# The verbs


@pytest.mark.parametrize(
    ("name", "text", "tool"),
    [
        ("a.clab.yml", CLAB + '    - endpoints: ["a:eth1", "b:eth1"]\n', "containerlab's"),
        ("a.yml", NETLAB + "  - h1-h2\n", "netlab's"),
        ("b.yaml", "name: x\nnodes: {h1: {device: linux}}\n", "netlab's"),
        ("a.graphml", GRAPH.format(edge="", more=""), "GraphML"),
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
    assert "shutdown of link 5: left out" in done.stderr
    assert "# shutdown of link 5: left out" in done.stdout


EXPORTED: Mapping[str, tuple[str, str, Callable[[str], bool]]] = {
    "delay": ("pair: {link: {rtt: 10ms}}", "containerlab", lambda text: "delay" in text),
    "overlay": ("pair: {}\noverlay: swarm", "netlab", lambda text: "overlay swarm" in text),
    "burst": ("pair: {link: {loss: 5%, burst: 8packets}}", "netlab", lambda text: "burst" in text),
    "corrupt": ("pair: {link: {corrupt: 5%}}", "gts", lambda text: "corrupt" in text),
    "mtu": ("pair: {link: {mtu: 1400}}", "gts", lambda text: "mtu" in text),
    "subnet": ("subnets: 192.168.0.0/16\npair: {}", "containerlab", lambda text: "subnet" in text),
    "ipv6": ("ipv6: true\npair: {}", "netlab", lambda text: "ipv6" in text),
    "queue": ("pair: {link: {rate: 1mbit, queue: 100kB}}", "netlab", lambda text: "queue" in text),
}


@pytest.mark.parametrize("case", EXPORTED)
def test_an_export_that_loses_something_is_an_error_unless_it_may(case: str, tmp_path: Path) -> None:
    topology, kind, said = EXPORTED[case]
    file, into = tmp_path / "t.yaml", tmp_path / "out"
    file.write_text(f"name: t\n{topology}\n")
    done = runner.invoke(app, ["export", str(file), "--as", kind, "-o", str(into)])
    assert (done.exit_code, said(done.stderr), into.exists()) == (2, True, False), done.stderr
    done = runner.invoke(app, ["export", str(file), "--as", kind, "-o", str(into), "--leave-out"])
    assert (done.exit_code, said(done.stderr), into.exists()) == (0, True, True), done.stderr


def test_what_netlab_can_say_it_is_told() -> None:
    text = "name: t\nsubnets: 192.168.0.0/16\npair: {link: {corrupt: 5%, duplicate: 1%, delay: 2ms, reorder: 3%}}\n"
    plan = parse(text, "t.yaml")
    from minigts.topology.exchange import network_of  # noqa: PLC0415

    written = reading.WRITERS["netlab"](network_of(plan))
    assert not written.lost
    assert parse(network.text(reading.read(written.text, "t.yml")), "t.yaml").links == plan.links


def test_an_export_says_the_mtu_that_containerlab_would_have_otherwise() -> None:
    from minigts.topology.exchange import network_of  # noqa: PLC0415

    written = reading.WRITERS["containerlab"](network_of(load(PROJECT / "topologies" / "pair.yaml")))
    assert "mtu: 1500" in written.text
