"""The routing protocol of a lab's hosts: OSPF or BGP by BIRD 2, its configuration, and the routes it should find. Pure.

The underlay's BIRD is apart from an overlay's on the same host: it has its own table of routes, OSPF instance number
(RFC 6549) and BGP port. Each host has its own directory for it, since hosts may share a file system.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from minigts.topology.facts.lab import bfd
from minigts.topology.plan.addressing import Addressing
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.best_ways import MOST_WAYS

TABLE, RULE = 20, 32000
"""The kernel's table of these routes, looked up before the main one, where the host's own segments and overlays are."""
INSTANCE = 64
HELLO_S, DEAD_S = 1, 4
"""OSPF's seconds between hellos, and until a silent neighbour counts as gone (RFC 2328, section 9.5)."""
BGP_PORT = 1179
HOLD_S, KEEPALIVE_S = 3, 1
"""BGP's hold time and interval of keepalives; RFC 4271, section 4.2, allows no hold time below three seconds."""
FIRST_AS = 64512
"""The first AS number for private use (RFC 6996): the n-th host, from 0, has the n-th."""
MOST_COST = 1_000_000_000
WAIT_S = 60
"""The most seconds until all routes are there: OSPF takes some 5 s, BGP about 2 s for each late session."""


def directory(host: Host) -> str:
    return f"/run/minigts/underlay/{host.name}"


def start(plan: Plan, host: Host) -> Iterator[str]:
    """Lines of a `bash -eu` script that start BIRD, or have it read its configuration again. A second run changes
    nothing."""
    folder = shlex.quote(directory(host))
    ask = f"birdc -s {folder}/bird.ctl"
    yield "command -v bird >/dev/null || { echo 'there is no bird on this host: install bird2' >&2; exit 1; }"
    yield f"mkdir -p {folder}"
    yield f"printf %s {shlex.quote(configuration(plan, host))} >{folder}/bird.conf"
    for each in plan.addressings:
        rule = f"ip -{each.version} rule"
        yield f"[[ $({rule} show) == *'lookup {TABLE}'* ]] || {rule} add pref {RULE} lookup {TABLE}"
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
    to = [route.to for route in addressing.routes(plan.routes_of(host.name))]
    given = f"filter {{ if net !~ [{', '.join(to)}] then reject; krt_prefsrc = {address}; accept; }}" if to else "none"
    return [
        f"protocol kernel kernel{family} {{",
        f"  kernel table {TABLE};",
        f"  ipv{family} {{ import none; export {given}; }};",
        *([f"  merge paths yes limit {MOST_WAYS};"] if plan.ecmp is not None else []),
        "}",
    ]


def _ospf(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    costs, family = _costs_from(plan, host), addressing.version
    return [
        f"protocol ospf v{2 if family == 4 else 3} ospf{family} {{",
        f"  instance id {INSTANCE};" if family == 4 else "",
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
    """A path's cost travels as MED, to which each host adds its link's: BGP alone would count systems, not time."""
    costs, family = _costs_from(plan, host), addressing.version
    named = {link.name: addressing.network(link.subnet) for link in plan.links}
    lines = [
        f"protocol static own{family} {{",
        f"  ipv{family};",
        f"  route {addressing.own(host)} blackhole;",
        *(f"  route {named[port.link]} blackhole;" for port in host.ports),
        "}",
    ]
    for port in host.ports:
        near, far = map(addressing.address, (port.address, port.peer_address))
        peer = plan.host(port.peer_host)
        lines += [
            f"protocol bgp bgp{family}_{port.name} {{",
            f"  local {near} port {BGP_PORT} as {FIRST_AS + host.index};",
            f"  neighbor {far} port {BGP_PORT} as {FIRST_AS + peer.index};",
            f'  interface "{port.name}";',
            "  direct;",
            *(["  bfd yes;"] if plan.bfd_ms is not None else []),
            f"  hold time {HOLD_S}; keepalive time {KEEPALIVE_S};",
            # Equal costs are equal ways, whether over as many systems or not.
            *(["  path metric no;"] if plan.ecmp is not None else []),
            "  connect delay time 1; connect retry time 2; error wait time 1, 4;",
            f"  ipv{family} {{",
            "    import filter {",
            f"      bgp_med = bgp_med + {costs[port.link]}; bgp_local_pref = {MOST_COST} - bgp_med; accept;",
            "    };",
            "    export filter {",
            "      if source = RTS_STATIC then bgp_med = 0; else bgp_med = bgp_med;",
            "      accept;",
            "    };",
            "    next hop self;",
            "  };",
            "}",
        ]
    return lines


def _costs_from(plan: Plan, host: Host) -> dict[str, int | None]:
    """By link, what it costs to send over it from the host."""
    return {link.name: link.cost_from(host.name) for link in plan.links if host.name in link.ends}


@dataclass(frozen=True)
class ExpectedRoutes:
    """By destination, as `ip route show` writes it, the ports by which it may be reached: several only where paths cost
    the same. With `every` the host's route goes by all of them."""

    ports: Mapping[str, frozenset[str]]
    every: bool = False


def expected_routes(plan: Plan, host: Host, cut: Collection[str] = ()) -> ExpectedRoutes:
    """The routes that a host should have, some time after these links were cut."""
    indices = {each.name: number for number, each in enumerate(plan.hosts)}
    begun = plan.first_links(host.name, cut)
    own = {port.link: port.name for port in host.ports}

    def ports_to(nodes: Mapping[int, int]) -> frozenset[str]:
        """The ports by which the nearest of these hosts is reached; each with what it costs from there."""
        there = [(begun[node][0] + more, begun[node][1]) for node, more in nodes.items() if node in begun]
        least = min((cost for cost, _ in there), default=None)
        return frozenset(own[name] for cost, names in there if cost == least for name in names)

    # OSPF adds what a segment costs the router that announces it; BGP's own segments cost it nothing.
    adds = plan.routing == "ospf"
    targets = {f"{each.address}/32": {indices[each.name]: 0} for each in plan.hosts}
    targets |= {
        link.subnet: {indices[end]: (link.cost_from(end) or 0) if adds else 0 for end in link.ends}
        for link in plan.links
    }
    ways = {route.to: ports_to(targets[route.to]) for route in plan.routes_of(host.name)}
    known = {to: ports for to, ports in ways.items() if ports}
    return ExpectedRoutes(
        {_shown(each.network(to)): ports for each in plan.addressings for to, ports in known.items()},
        plan.ecmp is not None,
    )


def _shown(to: str) -> str:
    return to.removesuffix("/32").removesuffix("/128")


def show(plan: Plan) -> str:
    """A shell command that prints every route of the protocol, `DESTINATION PORT` a line; a route over several ways has
    each in an indented line of its own."""
    each = "awk '!/^[ \\t]/ { to = $1 } { for (i = 2; i < NF; i++) if ($i == \"dev\") print to, $(i + 1) }'"
    shows = "; ".join(f"ip -{each.version} route show table {TABLE} 2>/dev/null" for each in plan.addressings)
    return f"{{ {shows}; }} | {each}"


def wait(plan: Plan, ways: ExpectedRoutes) -> str:
    """A `bash` script that ends when the host has these routes and no other; after WAIT_S it prints its routes and
    exits with 1."""
    # No process substitution: hosts have no /dev/fd.
    allowed = sorted(f"{to} {port}" for to, ports in ways.ports.items() for port in ports)
    count = len(allowed if ways.every else ways.ports)
    return (
        f"allowed={shlex.quote(chr(10).join(allowed))}\n"
        f"for look in $(seq {WAIT_S * 4}); do\n"
        f"  there=$({show(plan)})\n"
        f'  if [[ $(grep -c . <<<"$there") == {count} ]] && '
        '! grep -vxF -e "$allowed" <<<"$there" >/dev/null; then exit 0; fi\n'
        "  sleep 0.25\n"
        "done\n"
        'echo "$there"\nexit 1\n'
    )


def differences(ways: ExpectedRoutes, shown: Sequence[str]) -> list[str]:
    """How the lines of `show` differ from what should be there, a sentence each."""
    wanted = ways.ports
    found = [(to, port) for to, _, port in (line.partition(" ") for line in shown) if to and port]
    there = {to for to, _ in found}
    missing = [f"no route to {to}" for to in wanted if to not in there]
    other = [
        f"the route to {to} goes by {port}, should go by {' or '.join(sorted(wanted[to]))}"
        for to, port in found
        if to in wanted and port not in wanted[to]
    ]
    if ways.every:
        by = {to: {port for each, port in found if each == to} for to in there}
        fewer = ((to, sorted(wanted[to] - by[to])) for to in wanted if to in by)
        other += [f"the route to {to} should go by {' and '.join(ports)}, too" for to, ports in fewer if ports]
    return [*missing, *other, *(f"a route to {to}, which is not planned" for to in sorted(there - wanted.keys()))]
