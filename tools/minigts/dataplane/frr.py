"""FRR as the routing program of a host: its configuration, and how it starts. Pure.

Its daemons have their usual places, so that `vtysh` on the host finds them: no overlay has an FRR of its own. They are
started one by one, without the program that watches them and starts them again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

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
from minigts.topology.routes.valley_free import RELATIONSHIPS

PROGRAMS, SOCKETS = "/usr/lib/frr", "/run/frr"
LARGEST_LSP = 1497
"""IS-IS's default for the largest of its LSPs, in bytes: an MTU of 1500 less the header of LLC (802.2)."""
PROFILE = "links"
"""The name of the settings of BFD."""


def start(plan: Plan, host: Host) -> Iterator[str]:
    """Lines of a `bash -eu` script that start FRR's daemons, or start them anew where their configuration is another
    one. A second run changes nothing."""
    folder = shlex.quote(directory(host))
    mine, before = f"{folder}/frr.conf", f"{folder}/frr.conf.new"
    yield "command -v vtysh >/dev/null || { echo 'there is no FRR on this host: install frr' >&2; exit 1; }"
    yield f"install -d -o frr -g frr {folder} {SOCKETS}"
    yield f"printf %s {shlex.quote(configuration(plan, host))} >{before}"
    yield f"if ! cmp -s {before} {mine} || ! vtysh -c 'show version' >/dev/null 2>&1; then"
    yield f"  for pid in {SOCKETS}/*.pid; do"
    yield '    [[ ! -e $pid ]] || { kill "$(cat "$pid")" 2>/dev/null || true; rm -f "$pid"; }'
    yield "  done"
    yield f"  mv {before} {mine}"
    yield "  [[ -e /etc/frr/vtysh.conf ]] || install -o frr -g frr -m 640 /dev/null /etc/frr/vtysh.conf"
    for name, options in _daemons(plan):
        yield f"  {PROGRAMS}/{name} -d -P 0{options} >&2"
    yield f"  vtysh -f {mine} >{folder}/vtysh.out 2>&1 || {{ cat {folder}/vtysh.out >&2; exit 1; }}"
    yield f"  if grep -q '^line ' {folder}/vtysh.out; then cat {folder}/vtysh.out >&2; exit 1; fi"
    yield "fi"


def _daemons(plan: Plan) -> Iterator[tuple[str, str]]:
    """The daemons in the order in which they start, with their options."""
    yield "zebra", f" -R {TABLE}"
    yield "mgmtd", ""
    match plan.routing:
        case "ospf":
            yield from (("ospfd" if each.version == 4 else "ospf6d", "") for each in plan.addressings)
        case "isis":
            yield "isisd", ""
        case _:
            yield "bgpd", f" -p {BGP_PORT}"
    if plan.bfd_ms is not None:
        yield "bfdd", ""


def configuration(plan: Plan, host: Host) -> str:
    """FRR's configuration on one host, as `vtysh` reads it."""
    lines = [
        f"log file {directory(host)}/frr.log",
        *(line for each in plan.addressings for line in _kernel(plan, host, each)),
        *_bfd(plan),
    ]
    match plan.routing:
        case "ospf":
            lines += [line for each in plan.addressings for line in _ospf(plan, host, each)]
        case "isis":
            lines += _isis(plan, host)
        case _:
            lines += _bgp(plan, host)
    return "\n".join([*lines, ""])


def _kernel(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    """The kernel gets only routes to the plan's destinations, with the host's own address as the source."""
    ip, name = ("ip", "kernel4") if addressing.version == 4 else ("ipv6", "kernel6")
    if plan.has_relationships:
        return [
            f"{ip} prefix-list {name} seq 1 permit {addressing.own(host)}",
            f"route-map {name} deny 10",
            f" match {ip} address prefix-list {name}",
            "exit",
            f"route-map {name} permit 20",
            f" set src {addressing.address(host.address)}",
            "exit",
            f"{ip} protocol bgp route-map {name}",
        ]
    to = destinations(plan, host, addressing)
    protocol = "ospf6" if plan.routing == "ospf" and addressing.version == 6 else plan.routing
    allowed = [
        f"route-map {name} permit 10",
        f" match {ip} address prefix-list {name}",
        f" set src {addressing.address(host.address)}",
        "exit",
    ]
    return [
        *(f"{ip} prefix-list {name} seq {number} permit {each}" for number, each in enumerate(to, 1)),
        *(allowed if to else [f"route-map {name} deny 10", "exit"]),
        f"{ip} protocol {protocol} route-map {name}",
    ]


def _bfd(plan: Plan) -> list[str]:
    """How often BFD (RFC 5880) speaks over each link, for the protocol that asks for it."""
    if plan.bfd_ms is None:
        return []
    each = [f"transmit-interval {plan.bfd_ms}", f"receive-interval {plan.bfd_ms}"]
    return [
        "bfd",
        f" profile {PROFILE}",
        f"  detect-multiplier {bfd.MULTIPLIER}",
        *(f"  {x}" for x in each),
        " exit",
        "exit",
    ]


def _ospf(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    costs = costs_from(plan, host)
    ip, router = ("ip ospf", "ospf") if addressing.version == 4 else ("ipv6 ospf6", "ospf6")
    lines = ["interface lo", f" {ip} area 0", f" {ip} cost 1", "exit"]
    for port in host.ports:
        lines += [
            f"interface {port.name}",
            f" {ip} area 0",
            f" {ip} network point-to-point",
            f" {ip} cost {costs[port.link]}",
            f" {ip} hello-interval {HELLO_S}",
            f" {ip} dead-interval {DEAD_S}",
            *([f" {ip} bfd", f" {ip} bfd profile {PROFILE}"] if plan.bfd_ms is not None else []),
            "exit",
        ]
    return [
        *lines,
        f"router {router}",
        f" {router} router-id {host.address}",
        f" maximum-paths {_most_ways(plan)}",
        "exit",
    ]


def _isis(plan: Plan, host: Host) -> list[str]:
    """One area of level 2, with costs of 24 bits (RFC 5305)."""
    costs, name = costs_from(plan, host), "lab"
    joined = [f" {'ip' if each.version == 4 else 'ipv6'} router isis {name}" for each in plan.addressings]
    lines = ["interface lo", *joined, " isis passive", "exit"]
    for port in host.ports:
        lines += [
            f"interface {port.name}",
            *joined,
            " isis network point-to-point",
            f" isis metric {costs[port.link]}",
            f" isis hello-interval {HELLO_S}",
            f" isis hello-multiplier {DEAD_S}",
            *([" isis bfd", f" isis bfd profile {PROFILE}"] if plan.bfd_ms is not None else []),
            "exit",
        ]
    least_mtu = min((port.mtu for each in plan.hosts for port in each.ports), default=1500)
    return [
        *lines,
        f"router isis {name}",
        f" net 49.0001.0000.0000.{host.index + 1:04x}.00",
        " is-type level-2-only",
        " metric-style wide",
        " lsp-gen-interval 1",
        " spf-interval 1",
        f" lsp-mtu {min(LARGEST_LSP, least_mtu - 3)}",
        "exit",
    ]


def _bgp(plan: Plan, host: Host) -> list[str]:
    """A path's cost travels as MED, to which each host adds its link's; the lowest is best, over however many systems.
    With relationships BGP does count systems, among those of equal preference."""
    costs = costs_from(plan, host)
    lines = _by_kind() if plan.has_relationships else ["route-map own permit 10", " set metric 0", "exit"]
    for port in () if plan.has_relationships else host.ports:
        lines += [f"route-map from-{port.name} permit 10", f" set metric +{costs[port.link]}", "exit"]
    chosen = ["compare-routerid"] if plan.has_relationships else ["as-path ignore"]
    lines += [
        f"router bgp {number_of(host)}",
        f" bgp router-id {host.address}",
        " no bgp ebgp-requires-policy",
        " no bgp default ipv4-unicast",
        " no bgp network import-check",
        *([] if plan.has_relationships else [" bgp always-compare-med"]),
        *(f" bgp bestpath {each}" for each in chosen),
        *([" bgp bestpath as-path multipath-relax"] if plan.ecmp is not None else []),
        f" timers bgp {KEEPALIVE_S} {HOLD_S}",
    ]
    for each in plan.addressings:
        for port in host.ports:
            far = each.address(port.peer_address)
            lines += [
                f" neighbor {far} remote-as {number_of(plan.host(port.peer_host))}",
                f" neighbor {far} port {BGP_PORT}",
                f" neighbor {far} timers connect 2",
                *([f" neighbor {far} bfd profile {PROFILE}"] if plan.bfd_ms is not None else []),
            ]
    for each in plan.addressings:
        lines += _bgp_family(plan, host, each)
    return [*lines, "exit"]


def _by_kind() -> list[str]:
    """What is taken from a neighbour and told to it, by what it is: valley-free (`topology.routes.valley_free`)."""
    lines = ["route-map own permit 10", f" set local-preference {OF_CUSTOMER}", "exit"]
    for each in RELATIONSHIPS:
        lines += [f"route-map from-{each} permit 10", f" set local-preference {preference(each)}", "exit"]
        told = [] if each == "customer" else [f" match local-preference {OF_CUSTOMER}"]
        lines += [f"route-map to-{each} permit 10", *told, "exit"]
    return lines


def _bgp_family(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    named = {link.name: addressing.network(link.subnet) for link in plan.links}
    kinds = relationships(plan, host)
    own = [addressing.own(host), *(named[port.link] for port in host.ports if not kinds)]
    lines = [
        f" address-family ipv{addressing.version} unicast",
        *(f"  network {each} route-map own" for each in own),
        f"  maximum-paths {_most_ways(plan)}",
    ]
    for port in host.ports:
        far = addressing.address(port.peer_address)
        lines += [
            f"  neighbor {far} activate",
            f"  neighbor {far} route-map from-{kinds.get(port.link, port.name)} in",
            f"  neighbor {far} " + (f"route-map to-{kinds[port.link]} out" if kinds else "attribute-unchanged med"),
        ]
    return [*lines, " exit-address-family"]


def _most_ways(plan: Plan) -> int:
    return 1 if plan.ecmp is None else MOST_WAYS
