"""Networks as files of containerlab and netlab: what the tests of their readers read. What a file cannot say is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from minigts.formats.attached import segments
from minigts.formats.network import Network, NetworkLink, NetworkMachine, Ways, flow, number, ports
from minigts.language.tree import Data

_OF_TC: Mapping[str, tuple[str, float, str]] = {
    "delay": ("delay_ms", 1, "ms"),
    "jitter": ("jitter_ms", 1, "ms"),
    "loss": ("loss_percent", 1, ""),
    "rate": ("rate_mbit", 1000, ""),
    "corrupt": ("corrupt_percent", 1, ""),
    "duplicate": ("duplicate_percent", 1, ""),
    "reorder": ("reorder_percent", 1, ""),
}
"""The keys of netlab's `tc`, each with the field of a link, its unit there in ours, and what follows the number."""


def containerlab(network: Network) -> str:
    """MTUs are always written, since containerlab's own is 9500; a link has no name, delay, loss, rate or subnet."""
    lines = [f"name: {flow(network.name)}", "topology:", "  nodes:"]
    lines += [f"    {flow(each.name)}: {flow(_containerlab_node(each))}" for each in network.machines]
    lines += ["  links:"] if network.links else []
    for link, given in ports(network.links):
        names = {**dict(zip(link.ends, given, strict=True)), **dict(link.interfaces)}
        ends: list[Data] = [f"{end}:{names[end]}" for end in link.ends]
        lines.append(f"    - {flow({'endpoints': ends, 'mtu': str(link.mtu or 1500)})}")
    return "\n".join(lines) + "\n"


def _containerlab_node(machine: NetworkMachine) -> dict[str, Data]:
    node: dict[str, Data] = {"kind": "ovs-bridge" if machine.is_switch else "linux"}
    if machine.cpus is not None:
        node["cpu"] = f"{machine.cpus:g}"
    if machine.memory_mb is not None:
        node["memory"] = f"{machine.memory_mb}Mib"
    if machine.location is not None:
        node["labels"] = {"location": machine.location}
    return node


def netlab(network: Network) -> str:
    """Addresses are written where a segment has a network, since netlab itself would give others; a machine has no
    location."""
    lines = [f"name: {flow(network.name)}", "provider: clab", "defaults.device: linux", "nodes:"]
    for machine in network.machines:
        node: dict[str, Data] = {"role": "bridge"} if machine.is_switch else {}
        if machine.cpus is not None and float(machine.cpus).is_integer():  # netlab's nodes have whole processors
            node["cpu"] = f"{machine.cpus:g}"
        if machine.memory_mb is not None:
            node["memory"] = str(machine.memory_mb)
        lines.append(f"  {flow(machine.name)}: {flow(node) if node else ''}".rstrip())
    lines += ["links:"] if network.links else []
    addresses = _addresses(network)
    lines += [f"  - {flow(_netlab_link(*each))}" for each in zip(network.links, addresses, strict=True)]
    return "\n".join(lines) + "\n"


def _addresses(network: Network) -> list[dict[str, str]]:
    """By link, the addresses of its hosts."""
    machines = {machine.name: machine for machine in network.machines}
    found: list[dict[str, str]] = [{} for _ in network.links]
    for segment in segments(machines, network.links):
        subnet = next((network.links[index].subnet for index in segment if network.links[index].subnet), None)
        ends = ((index, end) for index in segment for end in network.links[index].ends if not machines[end].is_switch)
        for count, (index, end) in enumerate(ends, 1):
            if subnet is not None:
                found[index][end] = f"{IPv4Network(subnet)[count]}/{IPv4Network(subnet).prefixlen}"
    return found


def _netlab_link(link: NetworkLink, addresses: Mapping[str, str]) -> Data:
    to, back = (dict(_tc(link, way)) for way in (0, 1))
    names = dict(link.interfaces)
    interfaces: list[Data] = [
        {
            "node": end,
            **({} if to == back or not tc else {"tc": dict(tc)}),
            **({"ipv4": addresses[end]} if end in addresses else {}),
            **({"ifname": names[end]} if end in names else {}),
        }
        for end, tc in zip(link.ends, (to, back), strict=True)
    ]
    settings: dict[str, Data] = {"interfaces": interfaces}
    settings |= {key: each for key, each in (("name", link.name), ("prefix", link.subnet)) if each is not None}
    if link.mtu is not None:
        settings["mtu"] = str(link.mtu)
    if to == back and to:
        settings["tc"] = dict(to)
    return settings


def _tc(link: NetworkLink, way: int) -> Iterator[tuple[str, str]]:
    for key, (field, factor, unit) in _OF_TC.items():
        ways: Ways | None = getattr(link, field)
        if ways is not None:
            yield key, f"{number(ways[way] * factor)}{unit}"
