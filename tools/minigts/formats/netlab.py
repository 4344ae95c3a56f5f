"""netlab's topologies: Linux hosts, bridges and links between them are read.

    name: pair
    defaults.device: linux
    nodes: {h1: , h2: }
    links:
      - h1-h2
      - {h1: , h2: , mtu: 1400, tc: {delay: 10ms, loss: 1, rate: 50000}}

A key with dots means nested mappings, in any place (docs/topology/hierarchy.md). A link's `tc` holds for both its
interfaces, and an interface's own for frames that leave by it; its `delay` and `jitter` are in ms, its `rate` in
kbit/s, all else in percent (docs/links.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from minigts.formats import netlab_addresses, netlab_nodes
from minigts.formats.attached import Attached, WantedLink, fit_links
from minigts.formats.keys import NETLAB
from minigts.formats.network import WAYS, Names, Network, NetworkLink, NetworkMachine, title
from minigts.formats.yaml_document import NO_LAYERS, Document, Layers, expand_dotted_keys
from minigts.language.problems import Location, did_you_mean, quote, require_none
from minigts.language.quantities import LOSS_PERCENT, RATE_MBIT, TIME_MS, Quantity
from minigts.language.tree import Data, Tree

_TC: Mapping[str, tuple[Quantity, str, str]] = {
    "delay": (TIME_MS, "ms", "delay_ms"),
    "jitter": (TIME_MS, "ms", "jitter_ms"),
    "loss": (LOSS_PERCENT, "%", "loss_percent"),
    "rate": (RATE_MBIT, "kbit", "rate_mbit"),
    "corrupt": (LOSS_PERCENT, "%", "corrupt_percent"),
    "duplicate": (LOSS_PERCENT, "%", "duplicate_percent"),
    "reorder": (LOSS_PERCENT, "%", "reorder_percent"),
}
"""The keys of `tc`, each with its quantity, the unit of a bare number, and the field of a link."""
_OF_LINK = NETLAB["link"]
_OWN_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
_MOST_HYPHENS = 20
"""The most words in a node's name that hyphens join."""
_MANAGEMENT = "eth0"
_UNLIMITED = 100_000.0
"""The rate in Mbit/s of a direction without one, where the other has one: the highest in a topology."""


def read(tree: Tree, file: str, *, leave_out: bool = False) -> Network:
    """The network of a netlab file. Raises InputError with every problem, each with its line."""
    whole = expand_dotted_keys(tree, file)
    document = Document(whole, file, leave_out=leave_out)
    top = document.mapping(whole.data, ())
    document.judge(top, (), NETLAB["file"], "the file")
    nodes = netlab_nodes.read(document, top)
    reading = _Links(document, nodes, document.mapping(top.get("prefix"), ("prefix",)))
    for data, layers in _flat(document, top.get("links"), ("links",)):
        reading.add(data, layers)
    machines = (*nodes.machines.values(), *reading.switches)
    found = fit_links({each.name: each for each in machines}, reading.attached)
    document.settle(found)
    require_none(document.problems, file)
    return document.network(title(str(top.get("name") or ""), "netlab"), machines, found.links)


def _flat(
    document: Document, data: Data, where: Location, of_group: Layers = NO_LAYERS
) -> Iterator[tuple[Data, Layers]]:
    """Yield every link with its settings and those of its groups of links. `data` is a list, or lists by name."""
    if isinstance(data, dict):
        for name, each in data.items():
            yield from _flat(document, each, (*where, name), of_group)
        return
    for index, each in enumerate(document.entries(data, where)):
        own: Location = (*where, index)
        settings = each if isinstance(each, dict) else {}
        layers = Layers(((settings, own), *of_group.layers))
        if "members" not in settings:
            yield each, layers
            continue
        group = settings.get("group")
        document.judge(settings, own, _OF_LINK, group if isinstance(group, str) else f"link {document.line(own)}")
        shared = {key: value for key, value in settings.items() if key not in ("group", "members")}
        yield from _flat(document, settings["members"], (*own, "members"), Layers(((shared, own), *of_group.layers)))


@dataclass(frozen=True)
class _End:
    """An interface: its node in the file, its settings, and their place."""

    node: str
    settings: Mapping[str, Data]
    where: Location


class _Links:
    def __init__(self, document: Document, nodes: netlab_nodes.Nodes, networks: Mapping[str, Data]) -> None:
        self._document, self._nodes, self._machines, self._mtus = document, nodes, nodes.machines, nodes.mtus
        self._networks = networks
        self.attached: list[Attached] = []
        self.switches: list[NetworkMachine] = []
        self._names = Names(document.notes)
        for machine in nodes.machines.values():
            self._names.unique_name(machine.name)

    def add(self, data: Data, of_link: Layers) -> None:
        """Add a link: `h1-h2`, `[h1, h2]`, or a mapping. One of several nodes becomes a switch with a link to each."""
        document, where = self._document, of_link.layers[0][1]
        settings, ends = of_link.layers[0][0], self._ends(data, where)
        owner = "-".join(end.node for end in ends)[:40] or f"link {document.line(where)}"
        unknown = [end for end in ends if end.node not in self._machines]
        disabled = of_link.get("disable")
        if document.truth(*disabled):
            document.notes.add("disable", owner, "it is not there")
            return
        if unknown:
            known = did_you_mean(unknown[0].node, self._machines)
            document.wrong(where, f"no node {quote(unknown[0].node)}{known}")
            return
        if not ends:
            document.wrong(where, "no node in this link: write h1-h2, [h1, h2] or {h1: , h2: }")
            return
        kind, place = of_link.get("type")
        if kind not in (None, "p2p", "lan", "stub"):
            document.lose(place, f"a link of type {quote(kind)}", owner, "links here are of type p2p, lan or stub")
            return
        nodes = {end.node for end in ends}
        document.judge({k: v for k, v in settings.items() if k not in nodes}, where, _OF_LINK, owner)
        for end in ends:
            document.judge(end.settings, end.where, NETLAB["interface"], end.node)
        self._attach(of_link, ends, where, owner)

    def _attach(self, of_link: Layers, ends: Sequence[_End], where: Location, owner: str) -> None:
        document, line = self._document, self._document.line(where)
        each = [self._settings(Layers(((end.settings, end.where), *of_link.layers)), end.node) for end in ends]
        mtu = self._mtu(of_link, ends, owner)
        interfaces = [(end.node, end.settings, end.where) for end in ends]
        network, place = netlab_addresses.network(document, self._networks, of_link, interfaces, owner)
        wanted = [netlab_addresses.interface_address(document, each, network) for each in interfaces]
        if network is not None and of_link.get("prefix")[0] is not None:
            wanted = netlab_addresses.allocate(
                of_link, network, wanted, [self._nodes.members[end.node] for end in ends]
            )
        bridge = self._bridge(of_link, owner)
        names = [self._machines[end.node].name for end in ends]
        if len(ends) == 2 and bridge is None:
            link = _link((names[0], names[1]), line, self._name(of_link, owner), each[0], each[1], mtu)
            self.attached.append(Attached(link, (wanted[0], wanted[1]), network, place))
            return
        if bridge is None:
            bridge = NetworkMachine(self._names.unique_name(f"lan{len(self.switches) + 1}"), line, is_switch=True)
            self.switches.append(bridge)
            if len(ends) == 1:
                document.notes.add(
                    "the stub link", owner, f"it leads to a switch, {bridge.name}, with nobody else on it"
                )
        if of_link.get("name")[0] is not None:
            document.notes.add("name", owner, "left out: its links have names of their own")
        for name, its, at in zip(names, each, wanted, strict=True):
            link = _link((name, bridge.name), line, None, its, {}, mtu)
            self.attached.append(Attached(link, (at, WantedLink(where)), network, place))

    def _ends(self, data: Data, where: Location) -> list[_End]:
        """The nodes, each with the settings of its interface."""
        if isinstance(data, str):
            return [_End(each, {}, where) for each in self._parted(data)]
        if isinstance(data, dict) and isinstance(inner := data.get("interfaces"), list):
            data, where = inner, (*where, "interfaces")
        if isinstance(data, list):
            named = [(each.get("node"), each) if isinstance(each, dict) else (each, {}) for each in data]
            return [_End(str(name), its, (*where, index)) for index, (name, its) in enumerate(named)]
        if isinstance(data, dict):
            return [
                _End(key, each if isinstance(each, dict) else {}, (*where, key))
                for key, each in data.items()
                if key in self._machines or (key not in _OF_LINK and each is None)
            ]
        return []

    def _parted(self, text: str) -> list[str]:
        """The nodes of `h1-h2` and `h1-h2-h3`. Names may have hyphens: the split with the most known nodes is taken."""
        words = [word.strip() for word in text[:1000].split("-")]
        best: list[tuple[int, int, list[str]]] = [(0, 0, [])]
        """By number of words, the best split: its known nodes, its number of parts as a negative, and the parts."""
        for end in range(1, len(words) + 1):
            names = ((start, "-".join(words[start:end])) for start in range(max(0, end - _MOST_HYPHENS), end))
            ways = (
                (best[start][0] + (name in self._machines), best[start][1] - 1, [*best[start][2], name])
                for start, name in names
            )
            best.append(max(ways))
        nodes, _, parts = best[-1]
        return parts if nodes else words

    def _settings(self, layers: Layers, owner: str) -> dict[str, float]:
        """The settings of an interface with its link's, in the plan's units."""
        document = self._document
        tc = layers.descend(document, "tc")
        for each, where in tc.layers:
            document.judge(each, where, NETLAB["tc"], owner)
        found = {name: document.quantity(*tc.get(key), kind, unit) for key, (kind, unit, name) in _TC.items()}
        if found["rate_mbit"] is None:
            found["rate_mbit"] = document.quantity(*layers.get("bandwidth"), RATE_MBIT, "kbit")
        return {key: value for key, value in found.items() if value is not None}

    def _mtu(self, of_link: Layers, ends: Sequence[_End], owner: str) -> int | None:
        """The link's MTU: an interface's own, its link's, its node's, or the defaults'. All ends must have the same."""
        document, found = self._document, dict[int | None, Location]()
        for end in ends:
            data, where = Layers(((end.settings, end.where), *of_link.layers)).get("mtu")
            if data is not None:
                found.setdefault(document.mtu(data, where, owner), where)
            elif not self._machines[end.node].is_switch:
                mtu, where = self._mtus.get(end.node, (None, end.where))
                found.setdefault(mtu, where)
        if len({each or 1500 for each in found}) > 1:
            where = next(where for mtu, where in found.items() if mtu is not None)
            sizes = " and ".join(str(each or 1500) for each in found)
            document.lose(where, f"mtu {sizes}", owner, "a link has the same MTU at all its ends")
            return None
        return next(iter(found), None)

    def _bridge(self, of_link: Layers, owner: str) -> NetworkMachine | None:
        data, _ = of_link.get("bridge")
        if data is None:
            return None
        bridge = self._machines.get(data) if isinstance(data, str) else None
        if bridge is None or not bridge.is_switch:
            self._document.notes.add("bridge", owner, "left out: no node, but a name for a bridge of netlab's")
            return None
        return bridge

    def _name(self, of_link: Layers, owner: str) -> str | None:
        data, _ = of_link.get("name")
        if not isinstance(data, str) or _OWN_NAME.fullmatch(data):
            return data if isinstance(data, str) else None
        self._document.notes.add(f"the name {data[:40]!r}", owner, "left out, since a name here is shorter and plainer")
        return None


def _link(
    ends: tuple[str, str],
    line: int,
    name: str | None,
    to: Mapping[str, float],
    back: Mapping[str, float],
    mtu: int | None,
) -> NetworkLink:
    link = NetworkLink(ends, line, name, mtu=mtu)
    ways = {key: (to.get(key, 0.0), back.get(key, 0.0)) for key in WAYS if key in to or key in back}
    if "rate_mbit" in ways:
        ways["rate_mbit"] = (ways["rate_mbit"][0] or _UNLIMITED, ways["rate_mbit"][1] or _UNLIMITED)
    return replace(link, **ways)  # type: ignore[arg-type]  # each is a field of Ways
