"""The scripts that set up switches, the same on every provider: functions of provision/switch.sh."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, Literal

from minigts import paths
from minigts.topology.plan.elements import OnVlan, Switch, vlans_in_words
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.ipv6 import SEGMENT_PREFIX

Step = Literal["make_switch", "ask_controller"]
SHOW_VLANS = "ovs-vsctl --format=json --columns=name,tag,trunks,vlan_mode list port"
SCRIPTS = ("lib.sh", "overlays/openvswitch.sh", "switch.sh")


def script(plan: Plan, switch: Switch, step: Step) -> str:
    """A `bash` script for root on a switch whose links have their names: one of the steps in provision/switch.sh.

    It has all functions in it, so that nothing has to be copied to the machine first. A second run changes nothing.
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
    }
    lines = ["set -o pipefail", *(f"{key}={shlex.quote(value)}" for key, value in settings.items())]
    parts = [(paths.project_root() / "provision" / name).read_text() for name in SCRIPTS]
    return "\n".join([*lines, *parts, step, ""])


def _address(plan: Plan, of: Switch | OnVlan) -> str:
    return f"{plan.seen_as(of.address)}/{of.prefix if plan.ipv4 else SEGMENT_PREFIX}"


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
