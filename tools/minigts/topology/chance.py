"""A plan in which chance decides otherwise, and what a replicate draws beside it. Pure: the same everywhere.

In virtual time a lab is one course of events. A replicate is the same lab with another draw of what no topology
declares: which frames links lose and how long each takes within its jitter, the hosts' random numbers, when within a
tick each host's clock begins, and when within a few milliseconds each program does. Without the last two whatever is
periodic stays in step for good (Floyd and Jacobson, Traffic phase effects in packet-switched gateways, 1991).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from typing import TypeVar

from minigts.topology.link_settings import Shaping
from minigts.topology.parts import Host, Switch
from minigts.topology.plan import Plan

_M = TypeVar("_M", Host, Switch)
TICK_S = 0.004
"""A kernel's own, of 250 Hz: its timers go by it."""
LATEST_START_S = 0.010
"""So much later than asked for a program begins at the most."""


def replicate(plan: Plan, number: int) -> Plan:
    """The plan of that replicate, from 1; for one number always the same."""
    return drawn_anew(plan, f"replicate {number}").model_copy(update={"replicate": number})


def phases_s(plan: Plan) -> Mapping[str, float]:
    """How much later than the lab's each machine's clock begins: within a tick. Nothing of what is no replicate."""
    if not plan.replicate:
        return {}
    return {each.name: _drawn(TICK_S, plan.replicate, "clock", each.name) for each in plan.machines}


def late_s(number: int, *what: object) -> float:
    """How much later than asked for a program begins in the replicate of that number; `what` tells it apart."""
    return _drawn(LATEST_START_S, number, "program", *what)


def _drawn(below_s: float, *what: object) -> float:
    """Between 0 and `below_s`, in whole microseconds."""
    return round(random.Random("/".join(map(str, what))).uniform(0, below_s), 6)


def drawn_anew(plan: Plan, number: int | str) -> Plan:
    """The plan with another seed wherever chance decides something of a link; for one number always the same."""
    hosts = tuple(_machine(each, number) for each in plan.hosts)
    switches = tuple(_machine(each, number) for each in plan.switches)
    return plan.set_to(hosts, switches, plan.links)


def _machine(machine: _M, number: int | str) -> _M:
    ports = tuple(
        port.model_copy(update={"outgoing": _way(port.outgoing, number), "incoming": _way(port.incoming, number)})
        for port in machine.ports
    )
    return machine.model_copy(update={"ports": ports})


def _way(shaping: Shaping, number: int | str) -> Shaping:
    # By the seed alone, and not by the port: both ends of a link say the same of a direction.
    if shaping.seed is None:
        return shaping
    return shaping.model_copy(update={"seed": zlib.crc32(f"{shaping.seed}/{number}".encode())})
