"""Limits hosts with `cpus: 0.5`, and whole labs, to a share of the machine by control groups. A host must be one
process of this machine with its children. See machine/cgroups.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.machine import cgroups
from minigts.providers.base import DoctorFinding, Share
from minigts.topology.plan.plan import Plan

REMEDY = "run minigts as root, where root may make control groups with a quota"
EMPTY_S = 10.0
"""How long the processes of a lab that was taken down may take to leave its groups."""


def finding() -> DoctorFinding:
    """What `minigts doctor` says about `cpus` below 1. The state is always `ok`, since other labs run all the same."""
    name, found = "cpus below 1", cgroups.place()
    if isinstance(found, str):
        return DoctorFinding(name, "ok", f"refused: {found}; for such topologies {REMEDY}")
    return DoctorFinding(
        name, "ok", f"a host can be limited to a share of a processor, by control groups in {found.parent}"
    )


def make(plan: Plan, rundir: Path) -> Mapping[str, Path]:
    """Make a control group for each host of the plan with `cpus` below 1; return them by host. Raises EnvironmentLacks
    where this user can make none, and MinigtsError when one cannot be made."""
    if not plan.limited:
        return {}
    found = cgroups.place()
    if isinstance(found, str):
        raise EnvironmentLacks(f"{_named(plan)}: cannot be limited here: {found}; {REMEDY}, or write `cpus: 1`")
    try:
        return {host.name: found.make(f"{cgroups.prefix(rundir)}{host.name}", host.cpus) for host in plan.limited}
    except OSError as error:
        raise MinigtsError(f"{_named(plan)}: {error}") from error


def limit_lab(share: Share, rundir: Path) -> tuple[Path, ...]:
    """Make the control groups that limit all processes of a lab to its share. Raises EnvironmentLacks, MinigtsError."""
    name, groups = f"{cgroups.prefix(rundir)}lab", dict[Path, None]()
    try:
        if share.processors is not None:
            groups[_found(cgroups.place()).make(name, share.processors)] = None
        if share.memory_mb is not None:
            groups[cgroups.limit_memory(_found(cgroups.memory_place()), name, share.memory_mb)] = None
    except OSError as error:
        raise MinigtsError(f"the lab cannot be held to {share.in_words}: {error}") from error
    if len(groups) > 1 and any((group / "cgroup.controllers").exists() for group in groups):
        raise EnvironmentLacks("this machine limits processors and memory in different control groups: set only one")
    return tuple(groups)


def _found(place: cgroups.CgroupPlace | str) -> cgroups.CgroupPlace:
    if isinstance(place, str):
        raise EnvironmentLacks(f"a lab cannot be held to a share here: {place}; {REMEDY}")
    return place


def remove(rundir: Path) -> list[str]:
    """Remove a lab's groups, whose names follow from its run directory; return what could not be removed, one sentence
    each."""
    return cgroups.remove(cgroups.prefix(rundir), patience_s=EMPTY_S)


def _named(plan: Plan) -> str:
    return ", ".join(f"{host.name} with `cpus: {host.cpus}`" for host in plan.limited)
