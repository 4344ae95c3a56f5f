"""The interfaces, addresses, routes and forwarding that a host shows, and how they differ from what `interfaces` sets.
Pure.

What the user has added is no difference, except for a route to a part of a planned route's destination.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import pairwise
from typing import Any, TypeAlias

from minigts.dataplane.shaping import holds_arrivals, ifb
from minigts.language.problems import list_names
from minigts.topology.plan.addressing import Addressing, AnyRoute
from minigts.topology.plan.elements import Host, HostPort, Port, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import addresses

BEGIN, _IPV6, _FORWARDING = "--routes--", "--routes of IPv6--", "--forwarding--"
SHOW = (
    f"echo '{BEGIN}'; ip -4 route show; echo '{_IPV6}'; ip -6 route show 2>/dev/null; echo '{_FORWARDING}'; "
    "for file in /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding; do "
    '[ ! -e "$file" ] || { read -r number <"$file"; echo "$number"; }; done'
)
"""Commands that print `10.255.0.2 via 10.20.0.2 dev eth1 src 10.255.0.1` and so on, IPv6's routes, and two numbers."""
DOWN = "the interface is down"
NO_INTERFACE = "there is no such interface"
_KINDS = ("unicast", "blackhole", "unreachable", "prohibit", "throw", "local", "broadcast", "multicast", "anycast")
_NO_WAY = ("blackhole", "unreachable", "prohibit", "throw")

Block: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Shown:
    """The state that one host shows."""

    up: frozenset[str] = frozenset()
    """Devices that are up."""
    silent: frozenset[str] = frozenset()
    """Devices that do not resolve neighbours (`ip link set … arp off`)."""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """IPv4 addresses by device, `10.20.0.1/24`."""
    altnames: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further names by device."""
    routes: Mapping[Block, ShownRoute] = field(default_factory=dict)
    """The routes of the main table, IPv4 and IPv6; of several to the same destination the one in use."""
    forwards: frozenset[int] = frozenset()
    """The versions of IP that the host forwards."""


@dataclass(frozen=True)
class ShownRoute:
    kind: str
    via: str | None
    device: str | None
    source: str | None
    metric: int
    line: str
    further: tuple[str, ...] = ()
    """The neighbours of a route over several ways, of which `via` and `device` are the first."""

    @property
    def way(self) -> str:
        """`by 10.20.0.2`, `by eth1`, `by 10.20.0.2 and 10.20.1.2`, or `nowhere`."""
        if self.kind in _NO_WAY:
            return "nowhere"
        return f"by {' and '.join((self.via or self.device or '', *self.further))}"


def read(devices: Sequence[Mapping[str, Any]], text: str) -> Shown:
    """The state from `ip -j address show`, and the output of SHOW after BEGIN. Raises ValueError, KeyError for other
    output."""
    four, _, rest = text.partition(_IPV6)
    six, complete, forwarding = rest.partition(_FORWARDING)
    if not complete:
        raise ValueError("routes and forwarding are not all shown")
    routes: dict[Block, ShownRoute] = {}
    for line in _in_one_line((*four.splitlines(), *six.splitlines())):
        if line[:1].strip() and (found := _route(line)) is not None:
            block, route = found
            if block not in routes or route.metric < routes[block].metric:
                routes[block] = route
    return Shown(
        up=frozenset(str(each["ifname"]) for each in devices if "UP" in each.get("flags", ())),
        silent=frozenset(str(each["ifname"]) for each in devices if "NOARP" in each.get("flags", ())),
        addresses={
            str(device["ifname"]): tuple(
                f"{each['local']}/{each['prefixlen']}"
                for each in device.get("addr_info", ())
                if each["family"] == "inet"
            )
            for device in devices
        },
        altnames={str(device["ifname"]): tuple(device.get("altnames", ())) for device in devices},
        routes=routes,
        forwards=frozenset(
            version for version, number in zip((4, 6), forwarding.split(), strict=False) if number == "1"
        ),
    )


def _in_one_line(lines: Sequence[str]) -> list[str]:
    """Each route with its ways, which stand indented in lines of their own."""
    found: list[str] = []
    for line in lines:
        if found and line[:1].isspace() and line.split()[:1] == ["nexthop"]:
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def _route(line: str) -> tuple[Block, ShownRoute] | None:
    words = line.split()
    kind = words.pop(0) if words[0] in _KINDS else "unicast"
    to = words.pop(0)
    if kind in ("local", "broadcast", "multicast", "anycast"):
        return None
    pairs = [(word, value) for word, value in pairwise(words) if word in ("via", "dev", "src", "metric")]
    given = dict(reversed(pairs))
    neighbours = [value for word, value in pairs if word == "via"]
    block = ip_network("0.0.0.0/0" if to == "default" and ":" not in line else "::/0" if to == "default" else to)
    metric = int(given.get("metric", 0))
    return block, ShownRoute(
        kind, given.get("via"), given.get("dev"), given.get("src"), metric, line.strip(), tuple(neighbours[1:])
    )


@dataclass(frozen=True)
class StateDifference:
    """A difference from the plan. `mend` is a line of `ip -batch` for what a second run of `interfaces.script`
    leaves."""

    text: str
    mend: str | None = None


def differences(plan: Plan, machine: Host | Switch, shown: Shown, ports: Sequence[Port]) -> list[StateDifference]:
    """How a machine's state on `ports`, which have their current settings, differs from the plan."""
    found = [StateDifference(text) for port in ports for text in _of_device(port, shown)]
    if not isinstance(machine, Host):
        return found
    ends = [end for port in ports if isinstance(port, HostPort) for end in port.on_segments]
    found += [StateDifference(text) for end in ends for text in _of_end(end, shown, plan.addressings)]
    for each in (each for each in plan.addressings if each.family == "ipv4"):
        if each.own(machine) not in shown.addresses.get("lo", ()):
            found.append(StateDifference(f"lo: the host's own address {machine.address} is gone"))
    for each in plan.addressings:
        if each.version not in shown.forwards:
            found.append(StateDifference(f"the host does not forward IPv{each.version}"))
    return [*found, *_of_routes(_wanted(plan, machine, ends), shown)]


def added_addresses(port: Port, shown: Shown) -> str:
    """`, also has 192.0.2.1/24`: the addresses that the user has added to a port; empty for none."""
    own = {f"{end.address}/{end.prefix}" for end in port.on_segments} if isinstance(port, HostPort) else set[str]()
    others = (
        [each for each in shown.addresses.get(port.name, ()) if each not in own] if isinstance(port, HostPort) else []
    )
    return f", also has {list_names(others)}" if others else ""


def _of_device(port: Port, shown: Shown) -> Iterator[str]:
    if port.name not in shown.addresses:
        yield f"{port.name}: {NO_INTERFACE}"
        return
    if port.name not in shown.up:
        yield f"{port.name}: {DOWN}"
    if port.altname is not None and port.altname not in shown.altnames.get(port.name, ()):
        yield f"{port.name}: its name {port.altname} is gone"
    if port.name in shown.silent:
        yield f"{port.name}: the interface does not resolve neighbours (arp off)"
    if holds_arrivals(port.incoming) and ifb(port) in shown.addresses and ifb(port) not in shown.up:
        yield f"{port.name}: {ifb(port)}, which delays what arrives, is down"


def _of_end(end: HostPort, shown: Shown, addressings: Sequence[Addressing]) -> Iterator[str]:
    there = shown.addresses.get(end.name)
    for own in (each.segment_address(end) for each in addressings if each.family == "ipv4"):
        if there is not None and own not in there:
            yield f"{end.name}: its address {own} is gone"
    if there is not None and end.vlan is not None and end.name not in shown.up:
        yield f"{end.name}: the interface is down"


@dataclass(frozen=True)
class _Wanted:
    via: str | None
    device: str
    """The port on the segment of `via`."""
    source: str | None
    further: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        return f"by {' and '.join((self.via or self.device, *self.further))}"


def _wanted(plan: Plan, host: Host, ends: Sequence[HostPort]) -> Mapping[Block, _Wanted]:
    """The wanted routes by destination: to each segment of these ends, and through them."""
    found: dict[Block, _Wanted] = {}
    for each in plan.addressings:
        segments = {ip_network(each.segment_address(end), strict=False): end.name for end in ends}
        found |= _by(segments, () if plan.has_routers else plan.set_routes_of(host, each))
    if host.gateway and len(ends) == len(host.on_segments):
        found[ip_network("0.0.0.0/0")] = _Wanted(
            addresses.GATEWAY_ROUTER, addresses.GATEWAY_INTERFACE, addresses.GATEWAY_ADDRESS
        )
    return found


def _by(segments: Mapping[Block, str], routes: Sequence[AnyRoute]) -> dict[Block, _Wanted]:
    found: dict[Block, _Wanted] = {block: _Wanted(None, name, None) for block, name in segments.items()}
    for route in routes:
        # Every neighbour is on a segment of the host, which is found by the few prefix lengths of its segments.
        via = ip_network(route.via)
        own = (via.supernet(new_prefix=length) for length in {block.prefixlen for block in segments})
        if (block := next((each for each in own if each in segments), None)) is not None:
            found[ip_network(route.to)] = _Wanted(route.via, segments[block], route.source, tuple(route.also))
    return found


def _of_routes(wanted: Mapping[Block, _Wanted], shown: Shown) -> Iterator[StateDifference]:
    missing = [block for block in wanted if block not in shown.routes]
    gone = [str(block) for block in missing if wanted[block].device in shown.up]
    hidden = [block for block in missing if wanted[block].device not in shown.up]
    if gone:
        # A segment's own route comes with its address alone, so the address is deleted to be set again.
        own = [(str(block), wanted[block].device) for block in missing if wanted[block].via is None]
        anew = [
            f"address del {address} dev {device}"
            for block, device in own
            for address in shown.addresses.get(device, ())
            if ":" not in block and str(ip_network(address, strict=False)) == block
        ]
        text = f"{'no route' if len(gone) == 1 else f'{len(gone)} routes are gone'} to {_some(gone)}"
        yield StateDifference(text, "\n".join(anew) or None)
    if hidden:
        yield StateDifference(
            f"the routes by {list_names(sorted({wanted[block].device for block in hidden}))} are gone"
        )
    for block, way in wanted.items():
        there = shown.routes.get(block)
        if there is not None and not _goes_by(there, way):
            yield StateDifference(
                f"the route to {block} goes {there.way}, should go {way.way}",
                f"route del {there.line}" if there.metric == 0 else None,
            )
        elif there is not None and way.source is not None and there.source != way.source:
            yield StateDifference(
                f"the route to {block} has the source {there.source or 'none'}, should have {way.source}"
            )
    yield from _diverting(wanted, shown)


def _goes_by(there: ShownRoute, way: _Wanted) -> bool:
    """Whether a route takes the planned ways, in whichever order the kernel shows them."""
    if not way.further:
        return (there.via, there.device, there.further) == (way.via, way.device, ())
    return {there.via, *there.further} == {way.via, *way.further}


def _diverting(wanted: Mapping[Block, _Wanted], shown: Shown) -> Iterator[StateDifference]:
    """Unplanned routes to a part of a planned route's destination, by another port."""
    lengths = {(block.version, block.prefixlen) for block in wanted if block.prefixlen}
    for block, there in shown.routes.items():
        if block in wanted:
            continue
        for version, length in lengths:
            if version != block.version or length >= block.prefixlen:
                continue
            way = wanted.get(block.supernet(new_prefix=length))
            # On a host's own segment the kernel and the user's programs may have further routes, by the same port.
            if way is not None and there.device != way.device:
                whole = f"all of {block.supernet(new_prefix=length)} should go {way.way}"
                yield StateDifference(
                    f"the route to {block} goes {there.way}, where {whole}", f"route del {there.line}"
                )


def _some(names: Sequence[str]) -> str:
    shown = [name.removesuffix("/32").removesuffix("/128") for name in names]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
