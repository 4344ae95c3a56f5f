"""Replicates of a plan: new seeds for its links, and random offsets in time. Pure, and the same on every machine.

In virtual time a lab is one course of events. A replicate is the same lab with another draw of what no topology
declares: which frames links lose and how long each takes within its jitter, the hosts' random numbers, and the few
milliseconds by which each host's clock begins late, and each program. Without the last two, periodic events would stay
in phase for good (Floyd and Jacobson, Traffic phase effects in packet-switched gateways, 1991).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from typing import TypeVar

from minigts.topology.link_settings import Shaping
from minigts.topology.plan import chance
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan

_M = TypeVar("_M", Host, Switch)
LATEST_CLOCK_S = 0.004
"""The most seconds by which a host's clock begins late in a replicate: four of its kernel's ticks of 1 ms."""
LATEST_START_S = 0.010
"""The most seconds by which a program starts late in a replicate."""


def replicate(plan: Plan, number: int) -> Plan:
    """The plan of replicate `number`, from 1. The same number always gives the same plan."""
    return reseed_plan(plan, f"replicate {number}").model_copy(update={"replicate": number})


def beginning_with(plan: Plan, repetition: int) -> Plan:
    """The plan of a lab that measures a run's repetitions from this one on, which is not the first."""
    return reseed_plan(plan, repetition).model_copy(update={"repetition": repetition})


def phases_s(plan: Plan) -> Mapping[str, float]:
    """By machine, how many seconds after the lab's clock its own begins. Empty without a replicate."""
    if not plan.replicate:
        return {}
    return {each.name: _drawn(LATEST_CLOCK_S, chance.course(plan), "clock", each.name) for each in plan.machines}


def late_s(plan: Plan, *what: object) -> float:
    """How many seconds late a program starts in the plan's replicate; `what` identifies the program."""
    return _drawn(LATEST_START_S, chance.course(plan), "program", *what)


def _drawn(below_s: float, *what: object) -> float:
    """A random time between 0 and `below_s` seconds, in whole microseconds, seeded by `what`."""
    return round(random.Random("/".join(map(str, what))).uniform(0, below_s), 6)


def reseed_plan(plan: Plan, number: int | str) -> Plan:
    """The plan with another seed for each link direction that has one. The same number always gives the same plan."""
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
    # The new seed depends on the old one alone, so that both ends of a link hold the same.
    if shaping.seed is None:
        return shaping
    return shaping.model_copy(update={"seed": zlib.crc32(f"{shaping.seed}/{number}".encode())})
