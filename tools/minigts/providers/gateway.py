"""What `gateway: true` of a topology's hosts means to providers: the program behind it.

The program is slirp4netns, a TCP/IP stack in user space: what the host sends out becomes connections of this machine's
user, without root and without an interface of this machine's. See providers/uml/way_out.py, which starts it.
"""

from __future__ import annotations

import os
import shutil

from minigts.errors import EnvironmentLacks
from minigts.providers.base import Finding
from minigts.topology.plan import Plan

PROGRAM = "slirp4netns"
REMEDY = f"apt-get install {PROGRAM}"


def program() -> str | None:
    """The program's path; None where it is not installed."""
    return shutil.which(PROGRAM, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def require(plan: Plan) -> str:
    """The path of the program that a lab of this plan takes; empty when it takes none. Raises EnvironmentLacks."""
    if not plan.ways_out:
        return ""
    found = program()
    if found is None:
        raise EnvironmentLacks(f"{_named(plan)}: the way out takes {PROGRAM}, which is not installed: {REMEDY}")
    return found


def finding() -> Finding:
    """What `minigts doctor` says of it on this machine. Labs without a way out are neither stopped nor slowed."""
    name, found = "way out", program()
    if found is None:
        return Finding(name, "ok", f"hosts with `gateway: true` are refused: {PROGRAM} is not installed; {REMEDY}")
    return Finding(name, "ok", f"hosts with `gateway: true` have one, by {found}; no host has one otherwise")


def _named(plan: Plan) -> str:
    return ", ".join(f"{host.name} with `gateway: true`" for host in plan.ways_out)
