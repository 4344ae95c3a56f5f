"""host.json: facts of a host, its lab and its overlay for the overlay's phases. Pure.

provision/overlays/host.sh reads it.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minigts.overlays.balancer import Balancer, balancer_on
from minigts.overlays.catalogue import Engine, Overlay
from minigts.overlays.teams import UNDERLAY, team_of
from minigts.topology.plan.elements import Host, Kubernetes
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

ETHERNET_MTU = 1500


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Peer(_Part):
    """Another host of the network."""

    name: str
    address: str
    index: int
    address_v6: str = ""
    """Empty in a lab without IPv6."""


class LinkEnd(_Part):
    """A link's end on this host, with a neighbour; a link to a switch has one for every host behind the switch."""

    interface: str
    address: str
    peer: str
    peer_address: str


class HostFacts(_Part):
    """The content of host.json. Addresses of hosts are on their loopback, and IPv6 addresses in a lab without IPv4;
    MTUs are in bytes."""

    name: str
    address: str
    address_v6: str = ""
    """Empty in a lab without IPv6."""
    index: int
    """The host's number in the lab, from 0: containers' addresses are made of it, so no two networks share one."""
    position: int
    """The host's number in its network, from 0."""
    leader: str
    """The address of the first host of its network."""
    peers: tuple[Peer, ...]
    """The other hosts of its network."""
    links: tuple[LinkEnd, ...]
    """The links that lead to one of the peers."""
    link_mtu: int
    """The smallest MTU of the lab's links."""
    engine: Engine
    clock: Time
    folders: tuple[str, ...]
    variant: str
    programs: str
    """The directory on the host with the overlay's own programs; empty when it has none."""
    encapsulation: str
    overlay_mtu: int
    prove_encryption: bool
    kernel_modules: tuple[str, ...]
    policy: str
    patience_s: int = 1
    """How long a phase waits for an answer to an echo request."""
    kubernetes: Annotated[Kubernetes | None, Field(exclude_if=lambda each: each is None)] = None
    """Only for an overlay whose containers are pods."""
    balancer: Annotated[Balancer | None, Field(exclude_if=lambda each: each is None)] = None
    """The addresses of Services of type LoadBalancer, on a cluster's first host."""


QUICK_MS = 900.0
"""Up to this RTT phases wait one second for an answer."""


def patience_s(plan: Plan) -> int:
    """How long phases wait for an answer, in seconds: twice the longest RTT, since on an unused path each hop first
    asks for its neighbour's hardware address."""
    longest_ms = max((path.rtt_ms for path in plan.paths if path.reachable), default=0.0)
    return 1 if longest_ms <= QUICK_MS else math.ceil(2 * longest_ms / 1000)


def facts_for(
    plan: Plan, host: Host, overlay: Overlay, programs: str, engine: Engine, patience_s: int = 1
) -> HostFacts:
    """The content of host.json on `host` for `overlay`; `programs` is the directory with the overlay's own programs."""
    team = team_of(plan, overlay.name, host.name)
    leads = overlay.declaration.pods and host == team.leader
    link_mtu = min((port.mtu for other in plan.hosts for port in other.ports), default=ETHERNET_MTU)
    return HostFacts(
        name=host.name,
        address=plan.address_of(host),
        address_v6=_ipv6_address(plan, host),
        index=host.index,
        position=team.index(host),
        leader=plan.address_of(team.leader),
        peers=tuple(
            Peer(
                name=other.name,
                address=plan.address_of(other),
                index=other.index,
                address_v6=_ipv6_address(plan, other),
            )
            for other in team
            if other != host
        ),
        links=tuple(
            LinkEnd(
                interface=port.name,
                address=plan.address_of(port),
                peer=peer.name,
                peer_address=plan.address_of(far),
            )
            for port, peer, far in plan.neighbours(host)
            if peer in team
        ),
        link_mtu=link_mtu,
        engine=engine,
        clock=plan.time,
        folders=tuple(folder.name for folder in overlay.folders),
        variant=overlay.variant,
        programs=programs,
        encapsulation=_encapsulation(plan, overlay),
        overlay_mtu=overlay.data_path.mtu_over(link_mtu),
        prove_encryption=overlay.data_path.prove_encryption,
        kernel_modules=overlay.kernel_modules,
        policy=overlay.declaration.policy or "",
        patience_s=patience_s,
        kubernetes=plan.kubernetes if overlay.declaration.pods else None,
        balancer=balancer_on(plan, overlay.name, host) if leads else None,
    )


def _encapsulation(plan: Plan, overlay: Overlay) -> str:
    """What packets are in on the links. Those of plain hosts are of the version of IP by which these reach each
    other."""
    if overlay.name == UNDERLAY and plan.family == "ipv6":
        return "ipv6"
    return overlay.data_path.encapsulation


def largest_carried(plan: Plan, mtu: int) -> dict[str, str]:
    """LARGEST for phase verify in a lab with a black hole: the bytes of the largest packet that every link carries from
    a measuring end with this MTU. Empty in other labs, where that is the MTU."""
    holes = [hole for link in plan.links for way in plan.directions(link) if (hole := way.blackhole_bytes) is not None]
    if not holes:
        return {}
    headers = min(port.mtu for host in plan.hosts for port in host.ports) - mtu
    return {"LARGEST": str(min(mtu, min(holes) - headers))}


def _ipv6_address(plan: Plan, host: Host) -> str:
    beside = plan.ipv6_of(host.name)
    return "" if beside is None else beside.address
