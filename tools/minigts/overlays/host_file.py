"""host.json: what an overlay's phases know of their host, of the lab, and of the overlay. Pure.

provision/overlays/host.sh reads it.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from minigts.overlays.catalogue import Engine, Overlay
from minigts.overlays.teams import team_of
from minigts.topology.parts import Host
from minigts.topology.plan import Plan
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
    """What a link leads to; one that goes to a switch does to every host behind it."""

    interface: str
    address: str
    peer: str
    peer_address: str
    number: int
    """The link's, the same at both ends."""


class HostFacts(_Part):
    """The file. Addresses of hosts are those on their loopback; MTUs are in bytes."""

    name: str
    address: str
    address_v6: str = ""
    """Empty in a lab without IPv6."""
    index: int
    """Among all hosts of the lab, from 0: addresses are made of it, so that networks side by side share none."""
    position: int
    """Among those of its network, from 0."""
    leader: str
    """The address of the first host of its network."""
    peers: tuple[Peer, ...]
    """The others of its network."""
    links: tuple[LinkEnd, ...]
    """Those that lead to one of them."""
    link_mtu: int
    """The smallest of the lab's links."""
    engine: Engine
    clock: Time
    folders: tuple[str, ...]
    variant: str
    programs: str
    """The directory on the host; empty without."""
    encapsulation: str
    overlay_mtu: int
    prove_encryption: bool
    kernel_modules: tuple[str, ...]
    policy: str
    patience_s: int = 1
    """How long an echo may take to come back."""


QUICK_MS = 900.0
"""A round trip of no more is waited for as phases always did: a second, and then asked again."""


def patience_s(plan: Plan) -> int:
    """How long an echo may take between any two hosts: twice the longest round trip, since each hop on a way that is
    new asks for its neighbour's hardware address first."""
    longest_ms = max((path.rtt_ms for path in plan.paths if path.reachable), default=0.0)
    return 1 if longest_ms <= QUICK_MS else math.ceil(2 * longest_ms / 1000)


def facts_for(
    plan: Plan, host: Host, overlay: Overlay, programs: str, engine: Engine, patience_s: int = 1
) -> HostFacts:
    """What lies on `host` while `overlay` is joined; `programs` is the directory there with the overlay's own."""
    team = team_of(plan, overlay.name, host.name)
    number = {link.name: link.index for link in plan.links}
    link_mtu = min((port.mtu for other in plan.hosts for port in other.ports), default=ETHERNET_MTU)
    return HostFacts(
        name=host.name,
        address=host.address,
        address_v6=_ipv6_address(plan, host),
        index=host.index,
        position=team.index(host),
        leader=team.leader.address,
        peers=tuple(
            Peer(name=other.name, address=other.address, index=other.index, address_v6=_ipv6_address(plan, other))
            for other in team
            if other != host
        ),
        links=tuple(
            LinkEnd(
                interface=port.name,
                address=port.address,
                peer=peer.name,
                peer_address=far.address,
                number=number[port.link],
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
        encapsulation=overlay.data_path.encapsulation,
        overlay_mtu=overlay.data_path.mtu_over(link_mtu),
        prove_encryption=overlay.data_path.prove_encryption,
        kernel_modules=overlay.kernel_modules,
        policy=overlay.declaration.policy or "",
        patience_s=patience_s,
    )


def _ipv6_address(plan: Plan, host: Host) -> str:
    beside = plan.ipv6_of(host.name)
    return "" if beside is None else beside.address
