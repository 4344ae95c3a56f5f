"""Containerlab's topologies (`NAME.clab.yml`): Linux nodes, bridges and links between them are read.

    name: pair
    topology:
      nodes:
        h1: {kind: linux, image: "debian:stable-slim"}
        h2: {kind: linux, image: "debian:stable-slim"}
      links:
        - {endpoints: ["h1:eth1", "h2:eth1"], mtu: 1500}

The file has no delay, rate or loss: they are set on a lab that is up (`containerlab tools netem set`). A node has its
own settings, then its group's, its kind's and the defaults (docs/manual/topo-def-file.md); `exec` and `env` of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path, PurePosixPath

from minigts.formats import containerlab_commands, containerlab_frr
from minigts.formats.attached import Attached, Fitted, WantedLink, fit_links
from minigts.formats.beside import FileDirectory
from minigts.formats.containerlab_commands import FILLED_IN, lack_of_value
from minigts.formats.keys import CONTAINERLAB
from minigts.formats.network import Names, Network, NetworkLink, NetworkMachine, memory_of_host, ports, title
from minigts.formats.variables import Filled
from minigts.formats.yaml_document import Document, Layers
from minigts.language.blocks import MAC, OWN_MACS
from minigts.language.host_paths import checked_source, checked_target
from minigts.language.interface_names import number_of
from minigts.language.problems import Location, quote, require_none
from minigts.language.quantities import MEMORY_MB
from minigts.language.tree import Data, Tree

_HOSTS, _SWITCHES = ("linux", *containerlab_frr.KINDS), ("bridge", "ovs-bridge")
_MEMORY = re.compile(r"([0-9]+)\s*(?:([kmg])i?b?)", re.IGNORECASE | re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_OWN_MTU, _OUR_MTU = 9500, 1500
_LEADS_OUT: Mapping[str, str] = {
    "host": "it leads to an interface of the machine",
    "mgmt-net": "it leads to the management network",
    "macvlan": "it leads out by an interface of the machine",
    "vxlan": "it leads to another machine, in a tunnel",
    "vxlan-stitch": "it leads to another machine, in a tunnel",
}
_BETWEEN = ("veth", "veth-stitch", "brief")
_TO_NOBODY = "dummy"


def read(tree: Tree, file: str, *, leave_out: bool = False, filled: Filled | None = None) -> Network:
    """The network of a containerlab file, with what is `filled` in. Raises InputError with every problem, each with
    its line."""
    document = Document(tree, file, leave_out=leave_out)
    for name in filled.values if filled else ():
        document.notes.add(f"${name[:40]}", "the file", "what your environment has is filled in, as by containerlab")
    for name, default in filled.defaults.items() if filled else ():
        why = f"your environment has none, so the file's own text is filled in: {quote(default)}"
        document.notes.add(f"${name[:40]}", "the file", why)
    top = document.mapping(tree.data, ())
    document.judge(top, (), CONTAINERLAB["file"], "the file")
    inner = document.mapping(top.get("topology"), ("topology",))
    document.judge(inner, ("topology",), CONTAINERLAB["topology"], "topology")
    names = Names(document.notes)
    machines, settings = _machines(document, inner, names)
    reading = _Links(document, machines, names)
    attached = reading.all(inner)
    found = fit_links({each.name: each for each in (*machines.values(), *reading.switches)}, attached)
    document.settle(found)
    beside = FileDirectory(Path(file).parent if Path(file).is_file() else None)
    lab = str(top.get("name") or "")
    for name, machine in machines.items():
        kept = replace(machine, files=_unmoved(document, settings[name], machine, beside, found))
        machines[name] = _with_commands(document, settings[name], name, lab, kept, found, attached)
    if any(link.mtu is None for link in found.links):
        document.notes.add("mtu", "links that say none", f"{_OUR_MTU} here; containerlab's own is {_OWN_MTU}")
    links = (link if link.mtu != _OUR_MTU else replace(link, mtu=None) for link in found.links)
    require_none(document.problems, file)
    name = title(str(top.get("name") or ""), "containerlab")
    made = document.network(name, (*machines.values(), *reading.switches), tuple(links))
    return replace(made, routing="neighbours") if any(map(containerlab_frr.is_there, settings.values())) else made


def _unmoved(
    document: Document, settings: Layers, machine: NetworkMachine, beside: FileDirectory, found: Fitted
) -> tuple[tuple[str, str], ...]:
    """The files that are copied to a machine; those that name an interface which is another one here are lost."""
    renamed, (kind, _) = found.renamed.get(machine.name, {}), settings.get("kind")
    kept = []
    for source, target in machine.files:
        if (named := beside.naming(source, renamed)) is None:
            kept.append((source, target))
        else:
            why = f"it names {named}, which is {renamed[named]} here: change it, and copy it by `files:`"
            of_frr = (target, kind in containerlab_frr.KINDS) == (containerlab_frr.CONFIGURATION, True)
            key, what = ("startup-config", "startup-config") if of_frr else ("binds", "bind")
            document.lose(settings.get(key)[1], f"{what} {source[:40]}", machine.name, why)
    return tuple(kept)


def _with_commands(
    document: Document,
    settings: Layers,
    name: str,
    lab: str,
    machine: NetworkMachine,
    found: Fitted,
    attached: Sequence[Attached],
) -> NetworkMachine:
    if machine.is_switch:
        return machine
    ends = ((end, wanted.name) for each in attached for end, wanted in zip(each.link.ends, each.ends, strict=True))
    own = [interface for end, interface in ends if end == machine.name]
    here = [
        port
        for link, names in ports(found.links)
        for end, port in zip(link.ends, names, strict=True)
        if end == machine.name
    ]
    renamed = found.renamed.get(machine.name, {})
    runs_frr = containerlab_frr.is_there(settings)
    starts = (containerlab_frr.start(document, settings, name, machine.files),) if runs_frr else ()
    return replace(machine, run=containerlab_commands.run(document, settings, name, lab, renamed, own, here, starts))


def _machines(
    document: Document, inner: Mapping[str, Data], names: Names
) -> tuple[dict[str, NetworkMachine], dict[str, Layers]]:
    """The machines by their names in the file, and the settings of each."""
    found, layered = dict[str, NetworkMachine](), dict[str, Layers]()
    for name, data in document.mapping(inner.get("nodes"), ("topology", "nodes")).items():
        where: Location = ("topology", "nodes", name)
        settings = layered[name] = _settings(document, inner, document.mapping(data, where), where)
        kind, _ = settings.get("kind")
        if kind not in (*_HOSTS, *_SWITCHES):
            what = "no kind" if kind is None else f"kind {quote(kind)}"
            document.wrong(
                where, f"{what}: only Linux nodes, FRR and bridges can be imported (linux, frr, bridge, ovs-bridge)"
            )
        honoured = containerlab_frr.KEYS if kind in containerlab_frr.KINDS else ()
        for layer, place in settings.layers:
            said = {key: each for key, each in layer.items() if _is_said(key, each) and key not in honoured}
            document.judge(said, place, _NODE, str(place[-1]))
        found[name] = NetworkMachine(
            names.unique_name(name),
            document.line(where),
            is_switch=kind in _SWITCHES,
            location=_location(document, settings, name),
            cpus=_cpus(document, settings, name),
            memory_mb=_memory(document, *settings.get("memory"), name),
            environment=_environment(document, settings, name),
            files=_files(document, settings, name),
            management=_management(settings),
        )
        if containerlab_frr.is_there(settings):
            document.notes.add("FRR", name, containerlab_frr.NO_ROUTES)
            own = containerlab_frr.configuration(document, settings, name)
            files = (*found[name].files, *own)
            found[name] = replace(found[name], packages=(containerlab_frr.PACKAGE,), files=files)
        if kind in _SWITCHES:
            found[name] = _switch(document, settings, name, found[name])
    return found, layered


def _switch(document: Document, settings: Layers, name: str, machine: NetworkMachine) -> NetworkMachine:
    """The bridge without a container's settings, since containerlab runs nothing on it."""
    for key in ("cpu", "memory", "env", "exec", "sysctls", "binds"):
        if settings.get(key)[0] is not None:
            document.notes.add(key, name, "left out: a bridge of containerlab's runs nothing")
    return replace(machine, cpus=None, memory_mb=None, environment=(), files=())


_NODE = CONTAINERLAB["node"]


def _is_said(key: str, data: Data) -> bool:
    """Whether a setting means anything: the lack of a management network does not."""
    return data is not None and (key, data) != ("network-mode", "none")


def _settings(document: Document, inner: Mapping[str, Data], own: Mapping[str, Data], where: Location) -> Layers:
    """A node's settings: its own, its group's, its kind's, the defaults. The kind may come from the group, and the
    group from the kind (types/topology.go)."""
    places: dict[str, tuple[Mapping[str, Data], Location]] = {}
    for what in ("groups", "kinds"):
        places[what] = document.mapping(inner.get(what), ("topology", what)), ("topology", what)
    defaults: Location = ("topology", "defaults")
    default = document.mapping(inner.get("defaults"), defaults)

    def named(what: str, name: Data) -> tuple[tuple[Mapping[str, Data], Location], ...]:
        of_all, place = places[what]
        if not isinstance(name, str) or name not in of_all:
            return ()
        return ((document.mapping(of_all[name], (*place, name)), (*place, name)),)

    kind = Layers(((own, where), *named("groups", own.get("group")), (default, defaults))).get("kind")[0]
    of_kind = named("kinds", kind)
    group = Layers(((own, where), *of_kind, (default, defaults))).get("group")[0]
    return Layers(((own, where), *named("groups", group), *of_kind, (default, defaults)))


def _location(document: Document, settings: Layers, name: str) -> str | None:
    labels = [(document.mapping(data, where), where) for data, where in settings.every("labels")]
    for each, _ in labels:
        for label in each.keys() - {"location"}:
            document.notes.add(f"label {label[:40]}", name, "left out: only the container engine reads it")
    found = [each["location"] for each, _ in labels if isinstance(each.get("location"), str)]
    return str(found[-1]) if found else None


def _cpus(document: Document, settings: Layers, name: str) -> float | None:
    """A whole number of processors, or a share of one; a topology cannot have other fractions."""
    data, where = settings.get("cpu")
    try:
        cpus = None if data is None else float(data[:20]) if isinstance(data, str) else -1.0
    except ValueError:
        cpus = -1.0
    if cpus is None or cpus == 0:
        return None
    if not 0 < cpus < float("inf"):
        document.wrong(where, f"{quote(data)} is not a number of processors")
        return None
    if not (0.05 <= cpus < 1 or (cpus.is_integer() and cpus <= 64)):
        why = "a host has whole processors, from 1 to 64, or a share of one, from 0.05 to 0.99"
        document.lose(where, f"cpu {data}", name, why)
        return None
    return cpus if cpus < 1 else int(cpus)


def _management(settings: Layers) -> IPv4Address | None:
    data, _ = settings.get("mgmt-ipv4")
    try:
        return IPv4Address(data) if isinstance(data, str) else None
    except ValueError:
        return None


def _memory(document: Document, data: Data, where: Location, name: str) -> int | None:
    if data is None:
        return None
    found = _MEMORY.fullmatch(data) if isinstance(data, str) and len(data) < 20 else None
    if found is None:
        document.quantity(str(data), where, MEMORY_MB)
        return None
    size_mb = int(found[1]) * {"k": 2**-10, "m": 1, "g": 2**10}[found[2].lower()]
    of_host = memory_of_host(size_mb, "memory", name, document.notes)
    mb = document.quantity(f"{round(of_host)}MB", where, MEMORY_MB)
    return None if mb is None else round(mb)


def _environment(document: Document, settings: Layers, name: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for data, where in settings.every("env"):
        for variable, value in document.mapping(data, where).items():
            text = "" if value is None else value
            if not isinstance(text, str) or not _VARIABLE.fullmatch(variable) or FILLED_IN.search(text):
                why = lack_of_value(text) if isinstance(text, str) else ""
                why = why or "a variable has a plain name and a text"
                document.lose((*where, variable), f"env {variable[:40]}", name, why)
            elif variable.startswith("__"):
                document.lose((*where, variable), f"env {variable[:40]}", name, "variables of your shell are not taken")
            else:
                found[variable] = text
    if found:
        document.notes.add("env", name, "`environment:` here, of what you run on the host, in minigts' own system")
    return tuple(found.items())


def _files(document: Document, settings: Layers, name: str) -> tuple[tuple[str, str], ...]:
    """What is mounted from beside the file, `HOST-PATH:PATH[:OPTIONS]`, as files that are copied. A nearer mount takes
    the place of a farther one at the same path."""
    found: dict[str, str] = {}
    for data, where in settings.every("binds"):
        for bind in document.texts(data, where):
            source, target, *_ = (*bind.split(":"), "")
            if (why := _why_no_file(source, target)) is not None:
                document.lose(where, f"bind {bind[:40]}", name, why)
            else:
                found[target] = source
    if found:
        document.notes.add("binds", name, "`files:` here: copied as the lab comes up; paths begin beside this file")
    return tuple((source, target) for target, source in found.items())


def _why_no_file(source: str, target: str) -> str | None:
    """Why what is mounted cannot be copied; None where it can."""
    if not target:
        return "a bind is a path here, a colon, and a path on the node"
    if why := lack_of_value(source) or lack_of_value(target):
        return why
    if source.startswith(("/", "~")) or ".." in PurePosixPath(source).parts:
        return "files are taken from beside this file; copy it there"
    try:
        checked_source(source)
        checked_target(target)
    except ValueError as error:
        return str(error)
    return None


class _Links:
    """The file's links, and a switch for each dummy link."""

    def __init__(self, document: Document, machines: Mapping[str, NetworkMachine], names: Names) -> None:
        self._document, self._machines, self._names = document, machines, names
        self.switches: list[NetworkMachine] = []

    def all(self, inner: Mapping[str, Data]) -> list[Attached]:
        document, where = self._document, ("topology", "links")
        links = (
            (document.mapping(data, (*where, index)), (*where, index))
            for index, data in enumerate(document.entries(inner.get("links"), where))
        )
        return [found for link, at in links if (found := self._link(link, at)) is not None]

    def _link(self, link: Mapping[str, Data], where: Location) -> Attached | None:
        document, machines = self._document, self._machines
        given = document.entries(link.get("endpoints"), (*where, "endpoints"))
        ends = [_end(each) for each in given]
        special = (*_LEADS_OUT, _TO_NOBODY)
        kind = link.get("type") or next((end for end in ends if end in special and end not in machines), None)
        if kind == _TO_NOBODY:
            return self._to_nobody(link, given, where)
        owner = "-".join(end for end in ends if end)[:40] or f"link {document.line(where)}"
        if isinstance(kind, str) and kind in _LEADS_OUT:
            document.lose(where, f"a link of type {quote(kind)}", owner, _LEADS_OUT[kind])
            return None
        if kind not in (None, *_BETWEEN):
            known = ", ".join((*_BETWEEN, *special))
            document.wrong(where, f"a link of type {quote(kind)}: containerlab's types are {known}")
            return None
        document.judge(link, where, CONTAINERLAB["link"], owner)
        unknown = [end for end in ends if end not in machines]
        if len(ends) != 2:
            document.wrong(where, f'a link has two endpoints, as in ["h1:eth1", "h2:eth1"]; {len(ends)} given')
            return None
        if unknown:
            document.wrong((*where, "endpoints"), f"no node {quote(unknown[0])}; a link leads from node to node")
            return None
        mtu = document.mtu(link.get("mtu"), (*where, "mtu"), owner)
        addresses = document.texts(link.get("ipv4"), (*where, "ipv4"))
        found = [
            self._wanted(each, (*where, "endpoints", number), text, where)
            for number, (each, text) in enumerate(zip(given, (*addresses, None, None), strict=False))
        ]
        joined = (machines[ends[0]].name, machines[ends[1]].name)
        network = next((network for _, network in found if network is not None), None)
        made = NetworkLink(joined, document.line(where), mtu=mtu, macs=self._macs(given, ends, where))
        return Attached(made, (found[0][0], found[1][0]), network, where)

    def _macs(self, given: Sequence[Data], ends: Sequence[str], where: Location) -> tuple[tuple[str, str], ...]:
        """The MAC addresses of ends that say one."""
        found = []
        for number, (each, end) in enumerate(zip(given, ends, strict=True)):
            written = each.get("mac") if isinstance(each, dict) else None
            if written is None:
                continue
            place = (*where, "endpoints", number, "mac")
            if not isinstance(written, str) or not MAC.fullmatch(written.lower()):
                self._document.wrong(place, f"{quote(written)} is not a MAC address of one machine")
            elif written.lower().startswith(OWN_MACS):
                self._document.lose(place, "mac", end, f"{OWN_MACS} begins the addresses that minigts gives")
            else:
                found.append((self._machines[end].name, written.lower()))
        return tuple(found)

    def _to_nobody(self, link: Mapping[str, Data], given: Sequence[Data], where: Location) -> Attached | None:
        """`{type: dummy, endpoint: {node: h1, interface: eth1}}`, or `["h1:eth1", dummy]`: an interface without a peer.
        In the lab it leads to a switch with no other link."""
        document = self._document
        written, at = link.get("endpoint"), (*where, "endpoint")
        if written is None:
            index, written = next(((at, each) for at, each in enumerate(given) if _end(each) != _TO_NOBODY), (0, None))
            at = (*where, "endpoints", index)
        node = _end(written)
        if node not in self._machines:
            document.wrong(
                where, f"no node {quote(node)}; a dummy link has one node, as in {{node: h1, interface: eth1}}"
            )
            return None
        document.judge(link, where, CONTAINERLAB["link"], node)
        mtu = document.mtu(link.get("mtu"), (*where, "mtu"), node)
        wanted, network = self._wanted(written, at, None, where)
        switch = NetworkMachine(
            self._names.unique_name(f"nobody{len(self.switches) + 1}"), document.line(where), is_switch=True
        )
        self.switches.append(switch)
        document.notes.add("the dummy link", node, f"it leads to a switch here, {switch.name}, with nobody else on it")
        ends = self._machines[node].name, switch.name
        macs = self._macs((written,), (node,), where)
        return Attached(
            NetworkLink(ends, document.line(where), mtu=mtu, macs=macs), (wanted, WantedLink(where)), network, where
        )

    def _wanted(
        self, each: Data, at: Location, of_link: str | None, link: Location
    ) -> tuple[WantedLink, IPv4Network | None]:
        """What an endpoint asks for, and the network of its address."""
        document = self._document
        end = each if isinstance(each, dict) else {}
        document.judge(end, at, CONTAINERLAB["endpoint"], _end(each))
        address = interface_address(document, end.get("ipv4") or of_link, (*(at if "ipv4" in end else link), "ipv4"))
        name = end.get("interface") if isinstance(each, dict) else str(each).partition(":")[2]
        name = name if isinstance(name, str) and name else None
        number = None if name is None else number_of(name)
        if address is None:
            return WantedLink(at, name, number), None
        return WantedLink(at, name, number, address.ip), address.network


def interface_address(document: Document, data: Data, where: Location) -> IPv4Interface | None:
    """An address with its prefix length, as in `192.0.2.1/24`; anything else is a problem."""
    if not data:
        return None
    try:
        if not isinstance(data, str) or "/" not in data or len(data) > 40:
            raise ValueError
        return IPv4Interface(data)
    except ValueError:
        document.wrong(where, f"{quote(data)} is not an address with the length of its network, as in 192.0.2.1/24")
        return None


def _end(data: Data) -> str:
    """The node of `h1:eth1`, or of `{node: h1, interface: eth1}`."""
    return data.partition(":")[0] if isinstance(data, str) else str(data.get("node")) if isinstance(data, dict) else ""
