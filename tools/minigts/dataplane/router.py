"""The routing protocol of a lab's hosts: how its program starts on each, and the routes it should find. Pure.

`bird` and `frr` have the programs' configurations.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from minigts.dataplane import bird, frr
from minigts.dataplane.router_settings import RULE, TABLE
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

WAIT_S = 60
"""The most seconds until all routes are there: OSPF takes some 5 s, BGP about 2 s for each late session."""
_START: Mapping[str, Callable[[Plan, Host], Iterator[str]]] = {"bird": bird.start, "frr": frr.start}
_CONFIGURATION: Mapping[str, Callable[[Plan, Host], str]] = {"bird": bird.configuration, "frr": frr.configuration}


def start(plan: Plan, host: Host) -> Iterator[str]:
    """Lines of a `bash -eu` script that start the host's routing program, or have it read its configuration again. A
    second run changes nothing."""
    for each in plan.addressings:
        rule = f"ip -{each.version} rule"
        yield f"[[ $({rule} show) == *'lookup {TABLE}'* ]] || {rule} add pref {RULE} lookup {TABLE}"
    yield from _START[host.engine](plan, host)


def configuration(plan: Plan, host: Host) -> str:
    """The configuration of the host's routing program."""
    return _CONFIGURATION[host.engine](plan, host)


@dataclass(frozen=True)
class ExpectedRoutes:
    """By destination, as `ip route show` writes it, the ports by which it may be reached: several only where paths cost
    the same. With `every` the host's route goes by all of them."""

    ports: Mapping[str, frozenset[str]]
    every: bool = False


def expected_routes(
    plan: Plan, host: Host, cut: Collection[str] = (), dark: Collection[tuple[str, str]] = ()
) -> ExpectedRoutes:
    """The routes that a host should have, some time after these links were cut, and these ends of links, by link and
    host, have lost their carrier."""
    indices = {each.name: number for number, each in enumerate(plan.hosts)}
    begun = plan.first_links(host.name, cut)
    own = {port.link: port.name for port in host.ports}

    def ports_to(nodes: Mapping[int, int]) -> frozenset[str]:
        """The ports by which the nearest of these hosts is reached; each with what it costs from there."""
        there = [(begun[node][0] + more, begun[node][1]) for node, more in nodes.items() if node in begun]
        least = min((cost for cost, _ in there), default=None)
        return frozenset(own[name] for cost, names in there if cost == least for name in names)

    # OSPF and IS-IS add what a segment costs the router that announces it, which it does while it has a carrier there.
    # BGP's own segments cost it nothing, and are announced in any case.
    adds, unsaid = (False, frozenset[tuple[str, str]]()) if plan.routing == "bgp" else (True, frozenset(dark))
    targets = {f"{each.address}/32": {indices[each.name]: 0} for each in plan.hosts}
    targets |= {
        link.subnet: {
            indices[end]: (link.cost_from(end) or 0) if adds else 0
            for end in link.ends
            if (link.name, end) not in unsaid
        }
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
    # No process substitution, which needs /dev/fd: not every provider's hosts have it.
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
