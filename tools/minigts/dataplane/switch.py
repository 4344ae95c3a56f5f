"""The scripts that set up switches, the same on every provider: functions of provision/switch.sh."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Literal

from minigts import paths
from minigts.topology.plan.elements import OnVlan, Switch, vlans_in_words
from minigts.topology.plan.plan import Plan

Step = Literal["make_switch", "ask_controller", "wait_for_tree", "show_tree"]
CONVERGENCE_S = 50
"""The most seconds until a spanning tree is complete: the age at which what was heard of the root is forgotten, 20 s,
and twice the forward delay of 15 s (IEEE 802.1D-1998, table 8-3). When a lab comes up nothing has to be forgotten."""
HELLO_S = 2
SHOW_VLANS = "ovs-vsctl --format=json --columns=name,tag,trunks,vlan_mode list port"
SCRIPTS = ("lib.sh", "overlays/openvswitch.sh", "switch.sh")


@dataclass(frozen=True)
class PortInTree:
    """What the spanning tree makes of a switch's port."""

    link: str
    role: str
    """`root`, `designated` or `alternate`, which is the one that blocks; others of Open vSwitch's while it changes."""
    state: str
    """`forwarding`, `learning`, and otherwise with STP `listening` or `blocking`, with RSTP `discarding`."""


@dataclass(frozen=True)
class InTree:
    """What a switch says of its spanning tree."""

    root: str
    """The root's priority and address: `4096 02:6d:67:00:00:01`."""
    ports: Mapping[str, PortInTree]
    """By interface."""


def script(plan: Plan, switch: Switch, step: Step, without: Collection[str] = ()) -> str:
    """A `bash` script for root on a switch whose links have their names: one of the steps in provision/switch.sh.

    It has all functions in it, so that nothing has to be copied to the machine first. A second run changes nothing.
    `without` are the links that carry nothing, over which the spanning tree does not go.
    """
    links = {link.name: link for link in plan.links}
    access = {port.name: links[port.link].vlan for port in switch.ports}
    trunks = {port.name: ",".join(str(vlan.number) for vlan in links[port.link].vlans) for port in switch.ports}
    settings = {
        "MINIGTS_PORTS": " ".join(port.name for port in switch.ports),
        "MINIGTS_ADDRESS": _address(plan, switch),
        "MINIGTS_ACCESS": _pairs(access),
        "MINIGTS_TRUNKS": _pairs(trunks),
        "MINIGTS_VLAN_MACS": _pairs({str(each.vlan): _mac(each) for each in switch.vlans}),
        "MINIGTS_VLANS": _pairs({str(each.vlan): _address(plan, each) for each in switch.vlans}),
        "MINIGTS_MTU": str(switch.ports[0].mtu),
        "MINIGTS_CONTROLLER": switch.controller or "",
        **_tree_settings(plan, switch, without),
        **_ring_settings(plan, switch),
    }
    lines = ["set -o pipefail", *(f"{key}={shlex.quote(value)}" for key, value in settings.items())]
    parts = [(paths.project_root() / "provision" / name).read_text() for name in SCRIPTS]
    return "\n".join([*lines, *parts, step, ""])


def _tree_settings(plan: Plan, switch: Switch, without: Collection[str]) -> dict[str, str]:
    own = switch.spanning_tree
    costs = {link.name: link.tree_cost for link in plan.links}
    converged = "" if own is None else "\n".join(_lines(expected_tree(plan, switch, without)))
    return {
        "MINIGTS_TREE": "" if own is None else own.protocol,
        "MINIGTS_PRIORITY": "" if own is None else str(own.priority),
        "MINIGTS_MAC": switch.mac,
        "MINIGTS_COSTS": _pairs({port.name: costs[port.link] for port in switch.ports}),
        "MINIGTS_CONVERGED": converged,
        "MINIGTS_PATIENCE": str(CONVERGENCE_S + HELLO_S),
    }


def _ring_settings(plan: Plan, switch: Switch) -> dict[str, str]:
    """What a switch needs to reach the user's controller over a ring without a storm."""
    is_told = switch.name in plan.told_switches
    address = (switch.controller or "").partition(":")[0]
    macs = (port.mac for host in plan.hosts for port in host.on_segments if port.address == address)
    mac = next(macs, None) if is_told else None
    return {
        "MINIGTS_RING": "yes" if is_told else "",
        "MINIGTS_UNFLOODED": " ".join(port.name for port in switch.ports if port.link in plan.unflooded),
        "MINIGTS_NEIGHBOUR": "" if mac is None else f"{address}={mac}",
    }


def _lines(tree: InTree) -> list[str]:
    """As `show_tree` prints them."""
    return [f"root {tree.root}", *(f"{name} {port.role} {port.state}" for name, port in tree.ports.items())]


def expected_tree(plan: Plan, switch: Switch, without: Collection[str] = ()) -> InTree:
    """What the switch says when no timer runs any more, of its ports on links other than `without`, by name. Only for a
    switch with a spanning tree."""
    assert switch.spanning_tree is not None
    tree = plan.tree(without)
    indices = {link.name: link.index for link in plan.links}
    root = plan.machine(tree.roots[switch.name])
    assert isinstance(root, Switch)
    assert root.spanning_tree is not None
    blocking = {"stp": "blocking", "rstp": "discarding"}[switch.spanning_tree.protocol]
    roles = {
        port: tree.roles.get((indices[port.link], switch.name), "designated")
        for port in switch.ports
        if port.link not in without
    }
    ports = {
        port.name: PortInTree(port.link, role, blocking if role == "alternate" else "forwarding")
        for port, role in roles.items()
    }
    return InTree(f"{root.spanning_tree.priority} {root.mac}", ports)


def shown_tree(switch: Switch, text: str) -> InTree:
    """What `show_tree` has printed: `root 4096 02:6d:67:00:00:01`, then `eth1 root forwarding` for each port."""
    lines = [line.split() for line in text.splitlines()]
    links = {port.name: port.link for port in switch.ports}
    roots = [" ".join(words[1:]) for words in lines if words[:1] == ["root"] and len(words) == 3]
    rows = [words for words in lines if len(words) == 3 and words[0] in links]
    ports = {name: PortInTree(links[name], role, state) for name, role, state in rows}
    return InTree(roots[0] if roots else "unknown", ports)


def tree_differences(wanted: InTree, shown: InTree) -> Iterator[str]:
    """How what a switch says of its spanning tree differs from what it should say, a sentence each."""
    if shown.root != wanted.root:
        yield f"the root of the spanning tree is {shown.root}, should be {wanted.root}"
    for name, port in wanted.ports.items():
        found = shown.ports.get(name)
        has = "not in the spanning tree" if found is None else f"{found.role} and {found.state} in the spanning tree"
        if found != port:
            yield f"{name}: it is {has}, should be {port.role} and {port.state}"


def _address(plan: Plan, of: Switch | OnVlan) -> str:
    return plan.addressings[0].segment_address(of)


def _mac(of: OnVlan) -> str:
    """A fixed MAC for the switch's port in a VLAN, since Open vSwitch draws random ones: its number in IPv4, with
    06:6d in front."""
    return ":".join(("06", "6d", *(f"{octet:02x}" for octet in IPv4Address(of.address).packed)))


def shown_vlans(ports: Mapping[str, Any]) -> Mapping[str, str]:
    """The VLANs by port in the output of SHOW_VLANS: `10`, or `10, 20 tagged` for a trunk. Raises LookupError,
    TypeError or ValueError for other JSON."""
    rows = [dict(zip(ports["headings"], row, strict=True)) for row in ports["data"]]
    return {str(row["name"]): _membership(row) for row in rows}


def _membership(row: Mapping[str, Any]) -> str:
    vlans = _members(row["tag"]) or _members(row["trunks"])
    return vlans_in_words(vlans, tagged=row["vlan_mode"] == "trunk") if vlans else "none"


def _members(column: Any) -> list[Any]:
    """The members of a set in Open vSwitch's database (RFC 7047, section 5.1), where a set of one may be its member."""
    return list(column[1]) if isinstance(column, list) else [column]


def _pairs(words: Mapping[str, object]) -> str:
    """`eth1=10 eth3=20`, without keys that have no value."""
    return " ".join(f"{key}={value}" for key, value in words.items() if value)
