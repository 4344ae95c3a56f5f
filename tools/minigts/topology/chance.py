"""A plan in which chance decides otherwise. Pure."""

from __future__ import annotations

import zlib
from typing import TypeVar

from minigts.topology.parts import Host, Shaping, Switch
from minigts.topology.plan import Plan

_M = TypeVar("_M", Host, Switch)


def drawn_anew(plan: Plan, number: int) -> Plan:
    """The plan with another seed wherever chance decides something of a link; for one number always the same."""
    hosts = tuple(_machine(each, number) for each in plan.hosts)
    switches = tuple(_machine(each, number) for each in plan.switches)
    return plan.set_to(hosts, switches, plan.links)


def _machine(machine: _M, number: int) -> _M:
    ports = tuple(
        port.model_copy(update={"outgoing": _way(port.outgoing, number), "incoming": _way(port.incoming, number)})
        for port in machine.ports
    )
    return machine.model_copy(update={"ports": ports})


def _way(shaping: Shaping, number: int) -> Shaping:
    # By the seed alone, and not by the port: both ends of a link say the same of a direction.
    if shaping.seed is None:
        return shaping
    return shaping.model_copy(update={"seed": zlib.crc32(f"{shaping.seed}/{number}".encode())})
