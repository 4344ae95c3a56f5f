"""The program that gives hosts with `gateway: true` access to the Internet.

The program is slirp4netns, a TCP/IP stack in user space: packets that the host sends out become connections of this
machine's user, without root and without a network interface of this machine. providers/uml/run/slirp.py starts it.
"""

from __future__ import annotations

import os
import shutil

from minigts.errors import EnvironmentLacks
from minigts.providers.base import DoctorFinding
from minigts.topology.plan.plan import Plan

PROGRAM = "slirp4netns"
REMEDY = f"apt-get install {PROGRAM}"


def program() -> str | None:
    """The program's path; None where it is not installed."""
    return shutil.which(PROGRAM, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def require(plan: Plan) -> str:
    """The program's path for a lab of this plan; empty when no host has a gateway. Raises EnvironmentLacks when a host
    has one and the program is not installed.
    """
    if not plan.ways_out:
        return ""
    found = program()
    if found is None:
        raise EnvironmentLacks(f"{_named(plan)}: the way out takes {PROGRAM}, which is not installed: {REMEDY}")
    return found


def finding() -> DoctorFinding:
    """What `minigts doctor` says about gateways. The state is always `ok`, since labs without one run all the same."""
    name, found = "way out", program()
    if found is None:
        return DoctorFinding(
            name, "ok", f"hosts with `gateway: true` are refused: {PROGRAM} is not installed; {REMEDY}"
        )
    return DoctorFinding(name, "ok", f"hosts with `gateway: true` have one, by {found}; no host has one otherwise")


def _named(plan: Plan) -> str:
    return ", ".join(f"{host.name} with `gateway: true`" for host in plan.ways_out)
