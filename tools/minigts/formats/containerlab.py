"""Containerlab's topologies (`NAME.clab.yml`): Linux nodes, bridges and links between them are read, and written.

    name: pair
    topology:
      nodes:
        h1: {kind: linux, image: "debian:stable-slim"}
        h2: {kind: linux, image: "debian:stable-slim"}
      links:
        - {endpoints: ["h1:eth1", "h2:eth1"], mtu: 1500}

Its file says no delay, rate or loss: they are set on a lab that is up (`containerlab tools netem set`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from minigts.formats.foreign import Document
from minigts.formats.network import Link, Machine, Names, Network, Notes, flow, ports, title
from minigts.language.problems import Location, require_none, shown
from minigts.language.quantities import MEMORY_MB
from minigts.language.tree import Data, Tree

_HOSTS, _SWITCHES = ("linux",), ("bridge", "ovs-bridge")
_IMAGE = "debian:stable-slim"
_MEMORY = re.compile(r"([0-9]+)\s*(?:([kmg])i?b?)", re.IGNORECASE | re.ASCII)
_NODE = ("kind", "image", "cpu", "memory", "labels")


def read(tree: Tree, file: str) -> Network:
    """The network of a containerlab file. Raises InputError with every problem, each with its line."""
    document = Document(tree, file)
    top = document.mapping(tree.data, ())
    inner = document.mapping(top.get("topology"), ("topology",))
    machines = _machines(document, inner)
    links = _links(document, inner, machines)
    document.unread(top, ("name", "topology"), "the file")
    document.unread(inner, ("nodes", "links", "defaults", "kinds"), "topology")
    require_none(document.problems, file)
    return Network(
        title(str(top.get("name") or ""), "containerlab"), tuple(machines.values()), links, notes=document.notes.lines()
    )


def _machines(document: Document, inner: Mapping[str, Data]) -> dict[str, Machine]:
    """By their names in the file."""
    names = Names(document.notes)
    found = {}
    defaults = document.mapping(inner.get("defaults"), ("topology", "defaults"))
    for name, data in document.mapping(inner.get("nodes"), ("topology", "nodes")).items():
        where: Location = ("topology", "nodes", name)
        node = {**defaults, **document.mapping(data, where)}
        kind = node.get("kind")
        if kind not in (*_HOSTS, *_SWITCHES):
            what = "no kind" if kind is None else f"kind {shown(kind)}"
            document.wrong(
                where, f"{what}: Linux nodes and bridges alone can be taken over (linux, bridge, ovs-bridge)"
            )
        labels = document.mapping(node.get("labels"), (*where, "labels"))
        location = labels.get("location")
        found[name] = Machine(
            names.of(name),
            document.line(where),
            is_switch=kind in _SWITCHES,
            location=location if isinstance(location, str) else None,
            cpus=_cpus(document, node.get("cpu"), where),
            memory_mb=_memory(document, node.get("memory"), where),
        )
        if node.get("image") not in (None, _IMAGE):
            document.notes.add("image", name, "every host has minigts' own")
        document.unread(node, _NODE, name)
    return found


def _cpus(document: Document, data: Data, where: Location) -> int | None:
    if data is None:
        return None
    try:
        return min(64, max(1, round(float(str(data)[:20]))))
    except (ValueError, OverflowError):
        document.wrong((*where, "cpu"), f"{shown(data)} is not a number of processors")
        return None


def _memory(document: Document, data: Data, where: Location) -> int | None:
    if data is None:
        return None
    found = _MEMORY.fullmatch(data) if isinstance(data, str) and len(data) < 20 else None
    written = f"{found[1]}{found[2].upper()}B" if found is not None else str(data)
    mb = document.quantity(written, (*where, "memory"), MEMORY_MB)
    return None if mb is None else round(mb)


def _links(document: Document, inner: Mapping[str, Data], machines: Mapping[str, Machine]) -> tuple[Link, ...]:
    links = []
    for index, data in enumerate(document.entries(inner.get("links"), ("topology", "links"))):
        where: Location = ("topology", "links", index)
        link = document.mapping(data, where)
        if (kind := link.get("type")) not in (None, "veth"):
            document.wrong(where, f"a link of type {shown(kind)} leads out of the lab: leave it away")
            continue
        given = document.entries(link.get("endpoints"), (*where, "endpoints"))
        ends = [_end(each) for each in given]
        unknown = [end for end in ends if end not in machines]
        if len(ends) != 2:
            document.wrong(where, f'a link has two endpoints, as in ["h1:eth1", "h2:eth1"]; {len(ends)} given')
        elif unknown:
            document.wrong((*where, "endpoints"), f"no node {shown(unknown[0])}; a link leads from node to node")
        else:
            mtu = link.get("mtu")
            if mtu is not None and not (
                isinstance(mtu, str) and mtu.isascii() and mtu.isdigit() and 576 <= int(mtu[:6]) <= 9000
            ):
                document.wrong((*where, "mtu"), f"{shown(mtu)} is not an MTU: from 576 to 9000 are possible")
                continue
            line = document.line(where)
            joined = (machines[ends[0]].name, machines[ends[1]].name)
            links.append(Link(joined, line, mtu=None if mtu is None else int(str(mtu))))
        document.unread(link, ("type", "endpoints", "mtu"), f"link {index + 1}")
    return tuple(links)


def _end(data: Data) -> str:
    """The node of `h1:eth1`, or of `{node: h1, interface: eth1}`."""
    return data.partition(":")[0] if isinstance(data, str) else str(data.get("node")) if isinstance(data, dict) else ""


def write(network: Network) -> tuple[str, tuple[str, ...]]:
    """A containerlab file of it, and notes of what that cannot say."""
    notes = Notes()
    lines = [f"name: {flow(network.name)}", "topology:", "  nodes:"]
    for machine in network.machines:
        node: dict[str, Data] = {"kind": "ovs-bridge"} if machine.is_switch else {"kind": "linux", "image": _IMAGE}
        if machine.cpus is not None and not machine.is_switch:
            node["cpu"] = str(machine.cpus)
        if machine.memory_mb is not None and not machine.is_switch:
            node["memory"] = f"{machine.memory_mb}Mib"
        if machine.location is not None:
            node["labels"] = {"location": machine.location}
        if machine.controller is not None:
            notes.add("controller", machine.name, "set it by ovs-vsctl, where the bridge is made")
        lines.append(f"    {flow(machine.name)}: {flow(node)}")
    lines += ["  links:"] if network.links else []
    for link, numbers in ports(network.links):
        ends: list[Data] = [f"{end}:eth{count}" for end, count in zip(link.ends, numbers, strict=True)]
        settings: dict[str, Data] = {"endpoints": ends}
        if link.mtu is not None:
            settings["mtu"] = str(link.mtu)
        lines.append(f"    - {flow(settings)}")
        name = link.name or "-".join(link.ends)
        for what, ways in (
            ("delay", link.delay_ms),
            ("jitter", link.jitter_ms),
            ("loss", link.loss_percent),
            ("rate", link.rate_mbit),
        ):
            if ways is not None and any(ways):
                notes.add(
                    what,
                    name,
                    "containerlab's file has no word for it; `containerlab tools netem set` sets it on a lab",
                )
    return "\n".join(lines) + "\n", notes.lines()
