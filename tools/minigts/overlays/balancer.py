"""Addresses for Services of type LoadBalancer: those that are free at the end of a segment of each cluster's control
plane. Every host of the lab has a route to that segment, so it reaches them, whether it is a node or not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from itertools import islice

from pydantic import BaseModel, ConfigDict

from minigts.overlays.teams import teams
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

MOST = 16
"""The most addresses of one cluster."""


class Balancer(BaseModel):
    """The addresses of a cluster, the lowest first, and the control plane's interface on their segment."""

    model_config = ConfigDict(frozen=True)

    interface: str
    addresses: tuple[str, ...]


def balancer_on(plan: Plan, overlay: str, leader: Host) -> Balancer | None:
    """That of the cluster whose control plane is on this host: at most `MOST` of the highest addresses that are free on
    its first segment that has any. None where none has."""
    taken = set(_addresses(plan))
    for team in teams(plan, overlay):
        found = _highest_free(team.leader, taken)
        if team.leader == leader:
            return found
        taken.update(IPv4Address(each) for each in (found.addresses if found else ()))
    return None


def _highest_free(leader: Host, taken: set[IPv4Address]) -> Balancer | None:
    for port in leader.on_segments:
        subnet = IPv4Network(port.subnet)
        # Neither the network's own address nor the broadcast address.
        numbers = range(int(subnet.broadcast_address) - 1, int(subnet.network_address), -1)
        free = (address for number in numbers if (address := IPv4Address(number)) not in taken)
        if found := list(islice(free, MOST)):
            return Balancer(interface=port.name, addresses=tuple(map(str, reversed(found))))
    return None


def _addresses(plan: Plan) -> Iterator[IPv4Address]:
    """Of all hosts' and switches' ends."""
    for host in plan.hosts:
        for port in host.on_segments:
            yield from (IPv4Address(port.address), IPv4Address(port.peer_address))
    for switch in plan.switches:
        yield from (IPv4Address(each) for each in (switch.address, *(vlan.address for vlan in switch.vlans)))
