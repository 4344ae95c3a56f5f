"""Of what the seeds of a lab's random numbers are made, a function for each. Pure, and the same on every machine.

All are made of the lab's draw: the topology's `seed`, and the replicate, which in an exploration is the explored seed.
docs/virtual-time.md has the table of everything that is drawn.
"""

from __future__ import annotations

import zlib

from minigts.topology.plan.plan import Plan

_BEYOND_REPLICATES = 2**32
"""No number of a replicate is as high, so a topology's seed gives kernels none of those that replicates give them."""


def course(plan: Plan) -> int | str:
    """The name of the lab's draw: the replicate's number, behind the topology's seed where that is not 0."""
    return f"{plan.seed}/replicate {plan.replicate}" if plan.seed else plan.replicate


def links_draw(plan: Plan) -> str:
    """The name of the draw of the lab's links. A lab that begins with a later repetition of a run has one of its own,
    since it would otherwise lose what the first lab has lost."""
    replicate = f"/replicate {plan.replicate}" if plan.replicate else ""
    return f"{plan.seed}{replicate}" + (f"/repetition {plan.repetition}" if plan.repetition else "")


def declared_seed(seed: int, link: str, way: int) -> int:
    """The seed of one direction of a link as the topology declares it: `way` is 1 from its first end to its second, and
    0 back. A replicate's is made of it (`reseed`)."""
    return zlib.crc32(f"{seed}/{link}/{way}".encode())


def setting_seed(plan: Plan, link: str, sender: str, number: int) -> int:
    """The seed of the direction in which `sender` sends over a link, once that has been set `number` times otherwise
    than it was. Raises KeyError for an unknown link."""
    way = int(plan.ends_of(link)[0] == sender)
    return zlib.crc32(f"{links_draw(plan)}/{link}/{way}/setting {number}".encode())


def kernel_seed(plan: Plan) -> int:
    """The number of which the seeds of all hosts' kernels are made in virtual time (providers/uml/clock/process.py)."""
    if not plan.seed:
        return 1 + plan.replicate
    return _BEYOND_REPLICATES + zlib.crc32(f"{course(plan)}/kernels".encode())


def forked_seed(kernels: int, seed: int) -> int:
    """The number that takes the place of `kernel_seed` in a fork with that seed, for hosts that are started again."""
    return _BEYOND_REPLICATES + zlib.crc32(f"{kernels}/fork {seed}".encode()) if seed else kernels


def hash_seed(plan: Plan, host: str) -> int:
    """The seed of the hash by which a host chooses among equal ways; never 0, which is none."""
    return zlib.crc32(f"{links_draw(plan)}/ways/{host}".encode()) or 1


def traffic_seed(named: int | str, seed: int) -> int | str:
    """The seed of the arrivals and sizes of a measurement's flows in the draw of that name (`course`); their own is
    `seed`."""
    return f"{seed}/{named}" if named else seed
