"""BIRD 2 as the routing program of a host: its configuration, and how it starts. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from minigts.dataplane.router_settings import (
    BGP_PORT,
    DEAD_S,
    HELLO_S,
    HOLD_S,
    KEEPALIVE_S,
    OF_CUSTOMER,
    TABLE,
    costs_from,
    destinations,
    directory,
    preference,
    relationships,
)
from minigts.topology.facts.hosts.asn import number_of
from minigts.topology.facts.lab import bfd
from minigts.topology.plan.addressing import Addressing
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.best_ways import MOST_WAYS
from minigts.topology.routes.valley_free import RELATIONSHIPS, Relationship

INSTANCE = 64
"""OSPFv2's instance number (RFC 6549), by which an overlay's BIRD is told apart. FRR knows none, which is 0."""
MOST_COST = 1_000_000_000


def start(plan: Plan, host: Host) -> Iterator[str]:
    """Lines of a `bash -eu` script that start BIRD, or have it read its configuration again. A second run changes
    nothing."""
    folder = shlex.quote(directory(host))
    ask = f"birdc -s {folder}/bird.ctl"
    yield "command -v bird >/dev/null || { echo 'there is no bird on this host: install bird2' >&2; exit 1; }"
    yield f"mkdir -p {folder}"
    yield f"printf %s {shlex.quote(configuration(plan, host))} >{folder}/bird.conf"
    yield f"if {ask} show status >/dev/null 2>&1; then {ask} configure >/dev/null; else"
    yield f"  rm -f {folder}/bird.ctl {folder}/bird.pid"
    yield f"  bird -c {folder}/bird.conf -s {folder}/bird.ctl -P {folder}/bird.pid"
    yield "fi"


def configuration(plan: Plan, host: Host) -> str:
    """BIRD's configuration on one host."""
    lines = [
        f'log "{directory(host)}/bird.log" {{ info, warning, error, fatal }};',
        f"router id {host.address};",
        "protocol device { scan time 1; }",
        *_bfd(plan, host),
    ]
    lines += _filters() if plan.has_relationships else []
    for each in plan.addressings:
        lines += _kernel(plan, host, each)
        lines += _ospf(plan, host, each) if plan.routing == "ospf" else _bgp(plan, host, each)
    return "\n".join([*lines, ""])


def _bfd(plan: Plan, host: Host) -> list[str]:
    """Sessions of BFD (RFC 5880) over each link, for the protocol that asks for them."""
    if plan.bfd_ms is None:
        return []
    every = f"interval {plan.bfd_ms} ms; multiplier {bfd.MULTIPLIER};"
    return ["protocol bfd {", *(f'  interface "{port.name}" {{ {every} }};' for port in host.ports), "}"]


def _kernel(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    """The kernel gets only routes to the plan's destinations, with the host's own address as the source."""
    address, family = addressing.address(host.address), addressing.version
    if plan.has_relationships:
        given = f"filter {{ if net = {addressing.own(host)} then reject; krt_prefsrc = {address}; accept; }}"
    else:
        given = _of_the_plan(destinations(plan, host, addressing), address)
    return [
        f"protocol kernel kernel{family} {{",
        f"  kernel table {TABLE};",
        f"  ipv{family} {{ import none; export {given}; }};",
        *([f"  merge paths yes limit {MOST_WAYS};"] if plan.ecmp is not None else []),
        "}",
    ]


def _of_the_plan(to: Sequence[str], address: str) -> str:
    return f"filter {{ if net !~ [{', '.join(to)}] then reject; krt_prefsrc = {address}; accept; }}" if to else "none"


def _filters() -> list[str]:
    """What is taken from a neighbour and told to it, by what it is: valley-free (`topology.routes.valley_free`)."""
    lines = []
    for each in RELATIONSHIPS:
        lines += [f"filter from_{each} {{", f"  bgp_local_pref = {preference(each)};", "  accept;", "}"]
    for each in RELATIONSHIPS:
        every = each == "customer"
        told = "accept;" if every else f"if source = RTS_STATIC || bgp_local_pref = {OF_CUSTOMER} then accept; reject;"
        lines += [f"filter to_{each} {{ {told} }}"]
    return lines


def _ospf(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    costs, family = costs_from(plan, host), addressing.version
    return [
        f"protocol ospf v{2 if family == 4 else 3} ospf{family} {{",
        f"  instance id {INSTANCE};" if family == 4 and [*plan.engines] == ["bird"] else "",
        "  ecmp no;" if plan.ecmp is None else f"  ecmp yes limit {MOST_WAYS};",
        f"  ipv{family} {{ import all; export none; }};",
        "  area 0 {",
        f"    stubnet {addressing.own(host)} {{ cost 1; }};",
        *(
            f'    interface "{port.name}" {{ type ptp; cost {costs[port.link]}; hello {HELLO_S}; dead {DEAD_S};'
            f"{' bfd yes;' if plan.bfd_ms is not None else ''} }};"
            for port in host.ports
        ),
        "  };",
        "}",
    ]


def _bgp(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    """A path's cost travels as MED, to which each host adds its link's: BGP alone would count systems, not time. With
    relationships BGP does count systems, among those of equal preference, and a host announces itself alone."""
    costs, kinds, family = costs_from(plan, host), relationships(plan, host), addressing.version
    named = {link.name: addressing.network(link.subnet) for link in plan.links}
    lines = [
        f"protocol static own{family} {{",
        f"  ipv{family};",
        f"  route {addressing.own(host)} blackhole;",
        *(f"  route {named[port.link]} blackhole;" for port in host.ports if not kinds),
        "}",
    ]
    for port in host.ports:
        near, far = map(addressing.address, (port.address, port.peer_address))
        peer = plan.host(port.peer_host)
        lines += [
            f"protocol bgp bgp{family}_{port.name} {{",
            f"  local {near} port {BGP_PORT} as {number_of(host)};",
            f"  neighbor {far} port {BGP_PORT} as {number_of(peer)};",
            f'  interface "{port.name}";',
            "  direct;",
            *(["  bfd yes;"] if plan.bfd_ms is not None else []),
            f"  hold time {HOLD_S}; keepalive time {KEEPALIVE_S};",
            # Equal costs are equal ways, whether over as many systems or not.
            *(["  path metric no;"] if plan.ecmp is not None else []),
            "  connect delay time 1; connect retry time 2; error wait time 1, 4;",
            f"  ipv{family} {{",
            *(_by_kind(kinds[port.link]) if kinds else _by_cost(costs[port.link])),
            "    next hop self;",
            "  };",
            "}",
        ]
    return lines


def _by_kind(kind: Relationship) -> list[str]:
    return [f"    import filter from_{kind};", f"    export filter to_{kind};"]


def _by_cost(cost: int | None) -> list[str]:
    return [
        "    import filter {",
        f"      bgp_med = bgp_med + {cost}; bgp_local_pref = {MOST_COST} - bgp_med; accept;",
        "    };",
        "    export filter {",
        "      if source = RTS_STATIC then bgp_med = 0; else bgp_med = bgp_med;",
        "      accept;",
        "    };",
    ]
