"""netlab's nodes, with their settings from groups and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from minigts.formats.keys import ANSIBLES, NETLAB, Place
from minigts.formats.netlab_addresses import SegmentMember
from minigts.formats.network import Names, NetworkMachine
from minigts.formats.yaml_document import Document, Layers
from minigts.language.problems import Location, quote
from minigts.language.quantities import MEMORY_MB
from minigts.language.tree import Data

FRR = "frr"
DEVICES = ("linux", FRR)
LONGEST_NAME = 64
"""The longest name of a node that a pattern can match."""
_OF_ALL = "all"
"""The group of all nodes; a device has one of its name, too."""
_START = "chown -R frr:frr /etc/frr; /usr/lib/frr/frrinit.sh start"
_MOST_ID = 150
"""The highest id of a node in netlab (`defaults.const.MAX_NODE_ID`)."""
_ROLES = ("host", "router", "bridge")


@dataclass(frozen=True)
class Nodes:
    """The nodes by their names in the file."""

    machines: Mapping[str, NetworkMachine]
    mtus: Mapping[str, tuple[int, Location]]
    """The MTU of all links of a node, by the node or by the defaults, with its place."""
    members: Mapping[str, SegmentMember]


@dataclass(frozen=True)
class _Group:
    name: str
    settings: Mapping[str, Data]
    where: Location
    members: Sequence[str]


def read(document: Document, top: Mapping[str, Data]) -> Nodes:
    """Read the nodes: a list of names or of mappings, or a mapping; a group may create further members."""
    by_device = {device: _defaults(document, top, device) for device in DEVICES}
    given = _given(document, top.get("nodes"))
    groups = _groups(document, top.get("groups"), given)
    names, machines, mtus = Names(document.notes), dict[str, NetworkMachine](), dict[str, tuple[int, Location]]()
    members, numbers = dict[str, SegmentMember](), _numbers(document, given)
    for name, (node, where) in given.items():
        of_all = by_device[DEVICES[0]][-1]
        usual = Layers(((node, where), of_all)).get("device")[0]
        said = ((node, where), *_of_groups(document, groups, name, node, where, str(usual)))
        device = Layers((*said, of_all)).get("device")[0]
        own = Layers((*said, *by_device.get(str(device), by_device[DEVICES[0]])))
        _judge(document, node, where, NETLAB["node"], name)
        for clab, place in Layers(said).every("clab"):
            document.judge(document.mapping(clab, place), place, NETLAB["clab"], name)
        machines[name] = _machine(document, names.unique_name(name), own, where, name)
        role = own.get("role")[0] or "host"
        members[name] = SegmentMember(name, numbers[name], is_host=role == "host", is_switch=role == "bridge")
        data, place = own.get("mtu")
        if (mtu := document.mtu(data, place, name)) is not None:
            mtus[name] = mtu, place
    return Nodes(machines, mtus, members)


def _numbers(document: Document, given: Mapping[str, tuple[Mapping[str, Data], Location]]) -> Mapping[str, int]:
    """The nodes' ids: their own, or the lowest that is free, in file order."""
    found: dict[str, int] = {}
    for name, (node, where) in given.items():
        if (data := node.get("id")) is None:
            continue
        if not isinstance(data, str) or not data.isascii() or not data.isdigit() or not 1 <= int(data[:6]) <= _MOST_ID:
            document.wrong((*where, "id"), f"{quote(data)} is no number of a node, from 1 to {_MOST_ID}")
        elif int(data) in found.values():
            document.wrong((*where, "id"), f"{data} is the number of another node already")
        else:
            found[name] = int(data)
            document.notes.add("id", name, "it counts on links with a `prefix`; all other addresses are minigts' own")
    taken = {*found.values()}
    free = iter(number for number in range(1, len(taken) + len(given) + 1) if number not in taken)
    return found | {name: next(free) for name in given if name not in found}


def _machine(document: Document, name: str, own: Layers, where: Location, owner: str) -> NetworkMachine:
    device, _ = own.get("device")
    if device is None:
        wanted = "netlab has it from its command line or the user's defaults. Write `defaults.device: linux`"
        document.wrong(where, f"no device is named: {wanted}")
    elif device not in DEVICES:
        known = "only nodes of Linux and FRR can be imported (device: linux, device: frr)"
        document.wrong(where, f"device {quote(device)}: {known}")
    role, place = own.get("role")
    if role not in (None, *_ROLES):
        document.lose(place, f"role {quote(role)}", owner, f"roles are {', '.join(_ROLES)}")
    cpus, place = own.get("cpu")
    if cpus is not None and not (
        isinstance(cpus, str) and cpus.isascii() and cpus.isdigit() and 1 <= int(cpus[:4]) <= 64
    ):
        document.wrong(place, f"{quote(cpus)} is not a number of processors, from 1 to 64")
        cpus = None
    memory_mb = document.quantity(*own.get("memory"), MEMORY_MB, "MB")
    return NetworkMachine(
        name,
        document.line(where),
        is_switch=role == "bridge",
        cpus=None if cpus is None else int(str(cpus)),
        memory_mb=None if memory_mb is None else round(memory_mb),
        packages=(FRR,) if device == FRR and role != "bridge" else (),
        run=(_START,) if device == FRR and role != "bridge" else (),
    )


def _defaults(document: Document, top: Mapping[str, Data], of: str) -> tuple[tuple[Mapping[str, Data], Location], ...]:
    """The default settings of all nodes of a device: those of the device, of all interfaces, and the device of nodes
    that name none."""
    where: Location = ("defaults",)
    defaults = document.mapping(top.get("defaults"), where)
    document.judge(defaults, where, NETLAB["defaults"], "defaults")
    devices = document.mapping(defaults.get("devices"), (*where, "devices"))
    own: Location = (*where, "devices", of)
    of_device = document.mapping(devices.get(of), own)
    document.judge(of_device, own, NETLAB["device"], of)
    interfaces: Location = (*where, "interfaces")
    of_interfaces = document.mapping(defaults.get("interfaces"), interfaces)
    document.judge(of_interfaces, interfaces, NETLAB["interfaces"], "interfaces")
    device = {"device": defaults["device"]} if "device" in defaults else {}
    return (of_device, own), (of_interfaces, interfaces), (device, where)


def _given(document: Document, data: Data) -> dict[str, tuple[dict[str, Data], Location]]:
    """The settings of each node, and their place."""
    found: dict[str, tuple[dict[str, Data], Location]] = {}
    if not isinstance(data, list):
        for name, each in document.mapping(data, ("nodes",)).items():
            found[name] = dict(document.mapping(each, ("nodes", name))), ("nodes", name)
        return found
    for index, each in enumerate(data):
        where: Location = ("nodes", index)
        named = each.get("name") if isinstance(each, dict) else each
        if not isinstance(named, str) or named in found:
            document.wrong(where, f"{quote(named)} is no name of a node, or there already")
            continue
        own = {key: value for key, value in each.items() if key != "name"} if isinstance(each, dict) else {}
        found[named] = own, where
    return found


def _groups(document: Document, data: Data, given: dict[str, tuple[dict[str, Data], Location]]) -> Mapping[str, _Group]:
    """The groups by name. Members that a group creates are added to `given`."""
    of_all = document.mapping(data, ("groups",))
    all_made = document.truth(of_all.get("_auto_create"), ("groups", "_auto_create"))
    names = [name for name in of_all if name != "_auto_create"]
    found = {}
    for name in names:
        where: Location = ("groups", name)
        each = of_all[name]
        settings = {"members": each} if isinstance(each, list) else dict(document.mapping(each, where))
        inner = document.mapping(settings.pop("node_data", None), (*where, "node_data"))
        kind = settings.get("type")
        if kind not in (None, "node"):
            document.lose((*where, "type"), f"group {name[:40]} of type {quote(kind)}", name, "groups are of nodes")
            continue
        _judge(document, settings, where, NETLAB["group"], name)
        _judge(document, inner, (*where, "node_data"), NETLAB["group"], name)
        makes = all_made or document.truth(settings.get("_auto_create"), (*where, "_auto_create"))
        found[name] = _Group(name, {**inner, **settings}, where, document.texts(settings.get("members"), where))
        for member in found[name].members if makes else ():
            if member not in given and member not in names:
                given[member] = {}, where
    complete = {
        name: _Group(name, group.settings, group.where, _members(document, group, names, list(given)))
        for name, group in found.items()
    }
    return _innermost_first(document, complete)


def _members(document: Document, group: _Group, groups: Sequence[str], nodes: Sequence[str]) -> list[str]:
    """The group's nodes and groups by name, with those that match a pattern such as `h*`."""
    found: dict[str, None] = {}
    for member in group.members:
        where: Location = (*group.where, "members")
        if member in nodes or member in groups:
            found[member] = None
        elif member.startswith("~"):
            document.lose(
                where, f"member {member[:40]}", group.name, "a regular expression; name the nodes, or write h*"
            )
        elif any(sign in member for sign in "*?[]") and len(member) <= LONGEST_NAME and member.count("*") < 4:
            matching = [name for name in nodes if fnmatchcase(name[:LONGEST_NAME], member)]
            found.update(dict.fromkeys(matching))
            if not matching:
                document.wrong(where, f"no node matches {quote(member)}")
        else:
            document.wrong(where, f"{quote(member)} is no node and no group")
    return list(found)


def _of_groups(
    document: Document, groups: Mapping[str, _Group], name: str, node: Mapping[str, Data], where: Location, device: str
) -> list[tuple[Mapping[str, Data], Location]]:
    """Settings of the groups that a node is in, directly or by another group: the innermost first (`groups` has them in
    that order)."""
    there = {*document.texts(node.get("group"), (*where, "group")), _OF_ALL, device}
    waiting = [*there, *(each.name for each in groups.values() if name in each.members)]
    there.update(waiting)
    while waiting:
        inner = waiting.pop()
        outer = [each.name for each in groups.values() if inner in each.members and each.name not in there]
        there.update(outer)
        waiting += outer
    return [(each.settings, each.where) for each in groups.values() if each.name in there]


def _innermost_first(document: Document, groups: Mapping[str, _Group]) -> dict[str, _Group]:
    """The groups, each after those that are its members, else by name, as netlab copies their settings."""
    left, found = dict(groups), dict[str, _Group]()
    while left:
        before = len(left)
        for name in sorted(left):
            if left.keys().isdisjoint(left[name].members):
                found[name] = left.pop(name)
        if len(left) == before:
            name = min(left)
            document.wrong((*left[name].where, "members"), f"group {quote(name)} is in a cycle of groups")
            found.update(left)
            break
    return found


def _judge(document: Document, settings: Mapping[str, Data], where: Location, place: Place, owner: str) -> None:
    """Report keys by the table; keys that only Ansible reads have names of the user's."""
    ansibles = [key for key in settings if key.startswith(ANSIBLES)]
    for key in ansibles:
        document.notes.add(key[:40], owner[:40], "left out: only Ansible reads it")
    document.judge({key: value for key, value in settings.items() if key not in ansibles}, where, place, owner)
