"""netlab's topologies: Linux hosts, bridges and links between them are read, and written.

    name: pair
    defaults.device: linux
    nodes: {h1: , h2: }
    links:
      - h1-h2
      - {h1: , h2: , mtu: 1400, tc: {delay: 10ms, loss: 1, rate: 50000}}

`tc` of a link is that of both its interfaces, and an interface's own is that of what leaves by it; `rate` and
`bandwidth` are in kbit/s.
"""

from __future__ import annotations

from collections.abc import Mapping

from minigts.formats.foreign import Document, nested
from minigts.formats.network import Link, Machine, Names, Network, Notes, Ways, flow, number, title
from minigts.language.problems import Location, require_none, shown
from minigts.language.quantities import LOSS_PERCENT, MEMORY_MB, RATE_MBIT, TIME_MS, Quantity
from minigts.language.tree import Data, Tree

_TC: Mapping[str, tuple[Quantity, str]] = {
    "delay": (TIME_MS, "ms"),
    "jitter": (TIME_MS, "ms"),
    "loss": (LOSS_PERCENT, "%"),
    "rate": (RATE_MBIT, "kbit"),
}
"""Its words with the units of bare numbers."""
_OF_LINK = ("interfaces", "name", "mtu", "bandwidth", "tc", "type")
_DEVICE = "linux"


def read(tree: Tree, file: str) -> Network:
    """The network of a netlab file. Raises InputError with every problem, each with its line."""
    document = Document(tree, file)
    top = document.mapping(tree.data, ())
    device = next(nested(top, "defaults.device"), None)
    machines = _machines(document, top.get("nodes"), device)
    reading = _Links(document, machines)
    for index, data in enumerate(document.entries(top.get("links"), ("links",))):
        reading.add(data, ("links", index))
    document.unread(top, ("name", "nodes", "links", "defaults", "defaults.device", "provider"), "the file")
    require_none(document.problems, file)
    made = (*machines.values(), *reading.switches)
    return Network(
        title(str(top.get("name") or ""), "netlab"), made, tuple(reading.links), notes=document.notes.lines()
    )


def _machines(document: Document, data: Data, device: Data) -> dict[str, Machine]:
    """By their names in the file. Nodes are a list of names or of mappings, or a mapping."""
    given: dict[str, tuple[Data, Location]] = {}
    if isinstance(data, list):
        for index, each in enumerate(data):
            name = each.get("name") if isinstance(each, dict) else each
            where: Location = ("nodes", index)
            if not isinstance(name, str) or name in given:
                document.wrong(where, f"{shown(name)} is no name of a node, or there already")
                continue
            given[name] = (
                {key: value for key, value in each.items() if key != "name"} if isinstance(each, dict) else None,
                where,
            )
    else:
        given = {name: (each, ("nodes", name)) for name, each in document.mapping(data, ("nodes",)).items()}
    names, found = Names(document.notes), {}
    for name, (each, where) in given.items():
        node = document.mapping(each, where)
        kind = node.get("device", device)
        if kind != _DEVICE:
            document.wrong(where, f"device {shown(kind)}: Linux nodes alone can be taken over (device: linux)")
        memory_mb = document.quantity(node.get("memory"), (*where, "memory"), MEMORY_MB, "MB")
        cpus = node.get("cpu")
        if cpus is not None and not (
            isinstance(cpus, str) and cpus.isascii() and cpus.isdigit() and 1 <= int(cpus[:4]) <= 64
        ):
            document.wrong((*where, "cpu"), f"{shown(cpus)} is not a number of processors, from 1 to 64")
            cpus = None
        found[name] = Machine(
            names.of(name),
            document.line(where),
            is_switch=node.get("role") == "bridge",
            cpus=None if cpus is None else int(str(cpus)),
            memory_mb=None if memory_mb is None else round(memory_mb),
        )
        document.unread(node, ("device", "memory", "cpu", "role"), name)
    return found


class _Links:
    def __init__(self, document: Document, machines: Mapping[str, Machine]) -> None:
        self._document, self._machines = document, machines
        self.links: list[Link] = []
        self.switches: list[Machine] = []
        self._names = Names(document.notes)
        for machine in machines.values():
            self._names.of(machine.name)

    def add(self, data: Data, where: Location) -> None:
        """One link: `h1-h2`, `[h1, h2]`, or a mapping. One of several nodes is a switch with a link to each."""
        document = self._document
        link: Mapping[str, Data] = data if isinstance(data, dict) else {}
        ends = self._ends(data)
        unknown = [name for name, _ in ends if name not in self._machines]
        if len(ends) < 2 or unknown:
            wrong = f"no node {shown(unknown[0])}" if unknown else "a link has two nodes, as in h1-h2"
            document.wrong(where, wrong)
            return
        own = [self._settings(interface, (*where, name)) for name, interface in ends]
        shared = self._settings(link, where)
        each = [{**shared, **its} for its in own]
        mtu = link.get("mtu")
        if mtu is not None and not (
            isinstance(mtu, str) and mtu.isascii() and mtu.isdigit() and 576 <= int(mtu[:6]) <= 9000
        ):
            document.wrong((*where, "mtu"), f"{shown(mtu)} is not an MTU: from 576 to 9000 are possible")
            return
        name = link.get("name")
        names = [self._machines[name].name for name, _ in ends]
        line, size = document.line(where), None if mtu is None else int(str(mtu))
        if len(ends) == 2:
            title_of = name if isinstance(name, str) and name else None
            self.links.append(self._link((names[0], names[1]), line, title_of, each[0], each[1], size))
        else:
            switch = Machine(self._names.of(f"lan{len(self.switches) + 1}"), line, is_switch=True)
            self.switches.append(switch)
            self.links += [
                self._link((end, switch.name), line, None, its, {}, size) for end, its in zip(names, each, strict=True)
            ]
        nodes = [each for each, _ in ends]
        document.unread(
            {key: value for key, value in link.items() if key not in nodes},
            _OF_LINK,
            f"link {self._document.line(where)}",
        )

    def _ends(self, data: Data) -> list[tuple[str, Mapping[str, Data]]]:
        """The nodes, each with what is said of its interface."""
        if isinstance(data, str):
            return [(each, {}) for each in self._parted(data)]
        if isinstance(data, dict) and isinstance(inner := data.get("interfaces"), list):
            data = inner
        if isinstance(data, list):
            named = [(each.get("node"), each) if isinstance(each, dict) else (each, {}) for each in data]
            return [(str(name), {k: v for k, v in its.items() if k != "node"}) for name, its in named]
        if isinstance(data, dict):
            return [
                (key, each if isinstance(each, dict) else {})
                for key, each in data.items()
                if key not in _OF_LINK and (key in self._machines or each is None)
            ]
        return []

    def _parted(self, text: str) -> list[str]:
        """`h1-h2`, also where the nodes' own names have hyphens."""
        ways = [(text[:at], text[at + 1 :]) for at, sign in enumerate(text[:200]) if sign == "-"]
        best = max(ways, key=lambda way: sum(each in self._machines for each in way), default=None)
        return [text] if best is None else [*best]

    def _settings(self, data: Mapping[str, Data], where: Location) -> dict[str, float]:
        """Of a link or an interface, in the plan's units."""
        document = self._document
        tc = document.mapping(data.get("tc"), (*where, "tc"))
        document.unread(tc, (*_TC,), "tc")
        found = {key: document.quantity(tc.get(key), (*where, "tc", key), *_TC[key]) for key in _TC}
        if found["rate"] is None:
            found["rate"] = document.quantity(data.get("bandwidth"), (*where, "bandwidth"), RATE_MBIT, "kbit")
        return {key: value for key, value in found.items() if value is not None}

    @staticmethod
    def _link(
        ends: tuple[str, str],
        line: int,
        name: str | None,
        to: Mapping[str, float],
        back: Mapping[str, float],
        mtu: int | None,
    ) -> Link:
        def ways(key: str) -> Ways | None:
            return (to.get(key, 0.0), back.get(key, 0.0)) if key in to or key in back else None

        rates = [way.get("rate") for way in (to, back)]
        known = [rate for rate in rates if rate is not None]
        rate: Ways | None = (rates[0] or _UNLIMITED, rates[1] or _UNLIMITED) if known else None
        return Link(ends, line, name, ways("delay"), ways("jitter"), ways("loss"), rate, mtu)


_UNLIMITED = 100_000.0
"""Mbit/s, for a direction without a rate beside one with: our language's highest."""


def write(network: Network) -> tuple[str, tuple[str, ...]]:
    """A netlab file of it, and notes of what that cannot say."""
    notes = Notes()
    lines = [f"name: {flow(network.name)}", "provider: clab", "defaults.device: linux", "nodes:"]
    for machine in network.machines:
        node: dict[str, Data] = {"role": "bridge"} if machine.is_switch else {}
        if machine.cpus is not None and not machine.is_switch:
            node["cpu"] = str(machine.cpus)
        if machine.memory_mb is not None and not machine.is_switch:
            node["memory"] = str(machine.memory_mb)
        for what, value in (("location", machine.location), ("controller", machine.controller)):
            if value is not None:
                notes.add(what, machine.name, "netlab has no word for it")
        lines.append(f"  {flow(machine.name)}: {flow(node) if node else ''}".rstrip())
    lines += ["links:"] if network.links else []
    for link in network.links:
        to, back = (_tc(link, way) for way in (0, 1))
        shared = to == back
        interfaces: list[Data] = [
            {"node": end} if shared or not tc else {"node": end, "tc": dict(tc)}
            for end, tc in zip(link.ends, (to, back), strict=True)
        ]
        settings: dict[str, Data] = {"interfaces": interfaces}
        if link.name is not None:
            settings["name"] = link.name
        if link.mtu is not None:
            settings["mtu"] = str(link.mtu)
        if shared and to:
            settings["tc"] = dict(to)
        lines.append(f"  - {flow(settings)}")
    return "\n".join(lines) + "\n", notes.lines()


def _tc(link: Link, way: int) -> dict[str, str]:
    found = {}
    for key, ways, factor, unit in (
        ("delay", link.delay_ms, 1, "ms"),
        ("jitter", link.jitter_ms, 1, "ms"),
        ("loss", link.loss_percent, 1, ""),
        ("rate", link.rate_mbit, 1000, ""),
    ):
        if ways is not None:
            found[key] = f"{number(ways[way] * factor)}{unit}"
    return found
