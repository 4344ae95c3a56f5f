"""Switch machines: what makes one, the same on every provider. Their scripts are provision/switch.sh's functions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Literal

from minigts import paths
from minigts.topology.parts import Switch, vlans_in_words
from minigts.topology.plan import Plan

Step = Literal["make_switch", "ask_controller"]
SHOW_VLANS = "ovs-vsctl --format=json --columns=name,tag,trunks,vlan_mode list port"
SCRIPTS = ("lib.sh", "overlays/openvswitch.sh", "switch.sh")


def script(plan: Plan, switch: Switch, step: Step) -> str:
    """For `bash` as root on a switch whose links have their names: one of the steps that provision/switch.sh describes.

    All in one, so that nothing has to be copied to the machine first. A second run changes nothing.
    """
    links = {link.name: link for link in plan.links}
    access = {port.name: links[port.link].vlan for port in switch.ports}
    trunks = {port.name: ",".join(str(vlan.number) for vlan in links[port.link].vlans) for port in switch.ports}
    settings = {
        "MINIGTS_PORTS": " ".join(port.name for port in switch.ports),
        "MINIGTS_ADDRESS": f"{switch.address}/{switch.prefix}",
        "MINIGTS_ACCESS": _pairs(access),
        "MINIGTS_TRUNKS": _pairs(trunks),
        "MINIGTS_VLANS": _pairs({str(each.vlan): f"{each.address}/{each.prefix}" for each in switch.vlans}),
        "MINIGTS_MTU": str(switch.ports[0].mtu),
        "MINIGTS_CONTROLLER": switch.controller or "",
    }
    lines = ["set -o pipefail", *(f"{key}={shlex.quote(value)}" for key, value in settings.items())]
    parts = [(paths.project_root() / "provision" / name).read_text() for name in SCRIPTS]
    return "\n".join([*lines, *parts, step, ""])


def shown_vlans(ports: Mapping[str, Any]) -> Mapping[str, str]:
    """What SHOW_VLANS prints, by port: `10`, or of a trunk `10, 20 tagged`. Raises what reading other JSON raises."""
    rows = [dict(zip(ports["headings"], row, strict=True)) for row in ports["data"]]
    return {str(row["name"]): _membership(row) for row in rows}


def _membership(row: Mapping[str, Any]) -> str:
    vlans = _members(row["tag"]) or _members(row["trunks"])
    return vlans_in_words(vlans, tagged=row["vlan_mode"] == "trunk") if vlans else "none"


def _members(column: Any) -> list[Any]:
    """Of a set in Open vSwitch's database (RFC 7047, section 5.1): one of a single member may be that member."""
    return list(column[1]) if isinstance(column, list) else [column]


def _pairs(words: Mapping[str, object]) -> str:
    """`eth1=10 eth3=20`; what has none is left out."""
    return " ".join(f"{key}={value}" for key, value in words.items() if value)
