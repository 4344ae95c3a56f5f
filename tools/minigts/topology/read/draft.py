"""Shorthands expanded and defaults filled in: every host, switch and link of a file, with where it was written.

Drafting never fails: what the model refuses is left out, and `all_hosts` and `all_links` say so. That lets the
checks on the whole (unknown hosts, overlaps, connectedness) run in the same pass as the checks on single values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from minigts.language.problems import Location
from minigts.language.tree import Data
from minigts.topology import disciplines
from minigts.topology.facts.hosts.memory import DEFAULT_MEMORY_MB
from minigts.topology.facts.links import queue
from minigts.topology.host_settings import HostSpec, merge
from minigts.topology.link_setting import Amount, Setting
from minigts.topology.link_settings import LINK_SETTINGS, Shaping
from minigts.topology.read.declared import DEFAULT_MTU, Draft, DraftHost, DraftLink, DraftSwitch, OwnTable
from minigts.topology.read.links import LinkSettings, LinkSpec
from minigts.topology.read.model import Defaults, SwitchSpec
from minigts.topology.read.per_direction import BothWays
from minigts.topology.read.shorthands import Chain, Clos, Pair, Ring, Star
from minigts.topology.routes.spanning_tree import DEFAULT_PRIORITY

_M = TypeVar("_M", bound=BaseModel)


def draft(data: Data) -> Draft:
    """The hosts and links of the document `data`: those of shorthands first, then those written one by one."""
    if not isinstance(data, dict):
        return _REFUSED
    defaults = _accepted(Defaults, data.get("defaults") or {}) or Defaults()
    parts = [
        _chain(data.get("chain"), defaults),
        _pair(data.get("pair"), defaults),
        _star(data.get("star"), defaults),
        _ring(data.get("ring"), defaults),
        _clos(data.get("clos"), defaults),
        _written_hosts(data.get("hosts"), defaults),
        _written_links(data.get("links"), defaults),
    ]
    return Draft(
        tuple(host for part in parts for host in part.hosts),
        tuple(link for part in parts for link in part.links),
        all(part.all_hosts for part in parts),
        all(part.all_links for part in parts),
        _written_switches(data.get("switches"), defaults),
    )


_NOTHING = Draft((), (), True, True)
_REFUSED = Draft((), (), False, False)


def _accepted(model: type[_M], data: Data) -> _M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def _chain(data: Data, defaults: Defaults) -> Draft:
    if data is None:
        return _NOTHING
    spec = _accepted(Chain, data)
    if spec is None:
        return _REFUSED
    return _in_order(("chain",), spec, zip(spec.hosts, spec.hosts[1:], strict=False), defaults)


def _ring(data: Data, defaults: Defaults) -> Draft:
    if data is None:
        return _NOTHING
    spec = _accepted(Ring, data)
    if spec is None:
        return _REFUSED
    return _in_order(("ring",), spec, zip(spec.hosts, (*spec.hosts[1:], spec.hosts[0]), strict=True), defaults)


def _in_order(where: Location, spec: Chain | Ring, ends: Iterable[tuple[str, str]], defaults: Defaults) -> Draft:
    """The hosts of a chain or ring, and the links between `ends`, each of which is a segment."""
    links = []
    for index, pair in enumerate(ends):
        own = spec.segments[index] if spec.segments else None
        place = (*where, "segments", index) if own else where
        links.append(draft_link(place, pair, (own, spec.link, defaults.link)))
    return Draft(_hosts(where, spec.hosts, (spec.host, defaults.host)), tuple(links), True, True)


def _pair(data: Data, defaults: Defaults) -> Draft:
    if data is None:
        return _NOTHING
    spec = _accepted(Pair, data)
    if spec is None:
        return _REFUSED
    link = draft_link(("pair",), spec.hosts, (spec.link, defaults.link))
    return Draft(_hosts(("pair",), spec.hosts, (spec.host, defaults.host)), (link,), True, True)


def _star(data: Data, defaults: Defaults) -> Draft:
    if data is None:
        return _NOTHING
    spec = _accepted(Star, data)
    if spec is None:
        return _REFUSED
    hosts = _hosts(("star",), (spec.centre, *spec.clients), (spec.host, defaults.host))
    links = (draft_link(("star",), (spec.centre, client), (spec.link, defaults.link)) for client in spec.clients)
    return Draft(hosts, tuple(links), True, True)


def _clos(data: Data, defaults: Defaults) -> Draft:
    """Hosts, leaves and spines; the hosts' links leaf by leaf, then the uplinks leaf by leaf.

    The n-th leaf begins with the n-th spine; after the last spine comes the first. Of equal paths the one whose latest
    link is the earliest is taken (`routes.best_ways`), so between two leaves it is the first spine of the later one.
    That spreads the paths over the spines.
    """
    if data is None:
        return _NOTHING
    spec = _accepted(Clos, data)
    if spec is None:
        return _REFUSED
    names = [f"h{number}" for number in range(1, len(spec.leaves) * spec.hosts + 1)]
    down = [(name, spec.leaves[index // spec.hosts]) for index, name in enumerate(names)]
    up = [
        (leaf, spec.spines[(first + turn) % len(spec.spines)])
        for first, leaf in enumerate(spec.leaves)
        for turn in range(len(spec.spines))
    ]
    links = (
        *(draft_link(("clos",), ends, (spec.link, defaults.link)) for ends in down),
        *(draft_link(("clos",), ends, (spec.uplink, spec.link, defaults.link)) for ends in up),
    )
    hosts = _hosts(("clos",), (*names, *spec.leaves, *spec.spines), (spec.host, defaults.host))
    return Draft(hosts, links, True, True)


def _written_hosts(data: Data, defaults: Defaults) -> Draft:
    if not isinstance(data, dict):
        return _NOTHING if data is None else _REFUSED
    # A host whose settings are refused still exists, for the links that name it.
    hosts = tuple(
        draft_host(("hosts", name), name, (_accepted(HostSpec, settings or {}), defaults.host))
        for name, settings in data.items()
    )
    return Draft(hosts, (), True, True)


def _written_switches(data: Data, defaults: Defaults) -> tuple[DraftSwitch, ...]:
    """A switch whose settings are refused still exists, as a host does."""
    if not isinstance(data, dict):
        return ()
    specs = ((name, _accepted(SwitchSpec, settings or {}) or SwitchSpec()) for name, settings in data.items())
    return tuple(_switch(name, [spec, defaults.switch or SwitchSpec()]) for name, spec in specs)


def _switch(name: str, near: Sequence[SwitchSpec]) -> DraftSwitch:
    """A switch from its layers of settings, the nearest first."""
    protocol = _nearest(near, "spanning_tree", "none")
    return DraftSwitch(
        ("switches", name),
        name,
        _nearest(near, "location", None),
        _nearest(near, "memory", DEFAULT_MEMORY_MB),
        _nearest(near, "controller", None),
        None if protocol == "none" else protocol,
        _nearest(near, "priority", DEFAULT_PRIORITY),
    )


def _written_links(data: Data, defaults: Defaults) -> Draft:
    if not isinstance(data, list):
        return Draft((), (), True, data is None)
    links = []
    for index, item in enumerate(data):
        whole = _accepted(LinkSpec, item)
        spec = whole or _accepted(LinkSpec, {"ends": _raw_ends(item)})
        if spec is not None:
            link = draft_link(("links", index), spec.ends, (spec, defaults.link), spec)
            links.append(replace(link, whole=whole is not None))
    return Draft((), tuple(links), True, len(links) == len(data))


def _raw_ends(item: Data) -> Data:
    """The ends of a link whose other settings are refused: they can still be checked."""
    return item.get("ends") if isinstance(item, dict) else None


def _hosts(where: Location, names: Iterable[str], layers: tuple[HostSpec | None, ...]) -> tuple[DraftHost, ...]:
    return tuple(draft_host(where, name, layers) for name in names)


def draft_host(where: Location, name: str, layers: tuple[HostSpec | None, ...]) -> DraftHost:
    """A host from its layers of settings, the nearest first."""
    spec = merge(layers)
    return DraftHost(where, name, spec, spec.containers or ())


def draft_link(
    where: Location,
    ends: tuple[str, str],
    layers: tuple[LinkSettings | None, ...],
    written: LinkSpec | None = None,
) -> DraftLink:
    """A link from its layers of settings, the nearest first; the nearest rtt or delay overrides both in the others."""
    near = [layer for layer in layers if layer is not None]
    delays_ms = next((ms for layer in near if (ms := _one_way_ms(layer)) is not None), None)
    given = {each.field: value for each in LINK_SETTINGS if (value := _first_said(near, each)) is not None}
    if delays_ms is not None:
        given["delay_ms"] = delays_ms
    tables = _own_tables(given)
    to, back = (
        Shaping.model_validate({field: value[number] for field, value in given.items() if value[number] is not None})
        for number in (0, 1)
    )
    own = LinkSpec.model_construct(ends=ends) if written is None else written
    return DraftLink(
        where,
        ends,
        own.name,
        own.subnet,
        BothWays(to, back),
        _nearest(near, "mtu", DEFAULT_MTU),
        own_delay=delays_ms is not None,
        tables=tables,
        costs=_nearest(near, "cost", None),
        relationship=own.relationship,
        addresses=tuple((own.addresses or {}).items()),
        macs=tuple((own.macs or {}).items()),
        interfaces=tuple((own.interfaces or {}).items()),
        vlan=own.vlan,
        vlans=None if own.vlans is None else tuple(sorted(own.vlans)),
    )


def _own_tables(given: dict[str, Any]) -> BothWays[OwnTable | None] | None:
    """Take the tables out of the values by field; until they are read, delays are as without."""
    sources, jitters_ms = given.pop("jitter_table", None), given.get("jitter_ms", (None, None))
    if sources is None or not any(sources):
        return None
    given["jitter_distribution"] = BothWays("uniform", "uniform")
    to, back = (
        None if source is None else OwnTable(str(source), jitter_ms is not None)
        for source, jitter_ms in zip(sources, jitters_ms, strict=True)
    )
    return BothWays(to, back)


def _nearest(near: Iterable[BaseModel], key: str, otherwise: Any) -> Any:
    """The value of `key` in the first layer that has it."""
    return next((value for layer in near if (value := getattr(layer, key)) is not None), otherwise)


def _first_said(near: Iterable[LinkSettings], setting: Setting) -> BothWays[Amount] | None:
    """The setting's value in the first layer that has it. The options of a queue discipline are those of the layer that
    names it, or of nearer ones, and a queue has one size, in the unit of the nearest."""
    for layer in near:
        under = getattr(layer, setting.head) or {}
        if setting.field in under:
            found: BothWays[Amount] = under[setting.field]
            return found
        if setting.field in disciplines.OPTIONS and "queue_discipline" in under:
            break
        if setting.field in queue.other_sizes(under):
            break
    return None


def _one_way_ms(layer: LinkSettings) -> BothWays[Amount] | None:
    if layer.rtt is None:
        return None if layer.delay is None else layer.delay["delay_ms"]
    half_ms = round(layer.rtt / 2, 6)
    return BothWays(half_ms, half_ms)
