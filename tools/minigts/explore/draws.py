"""The faults that a seed draws of a plan. Pure.

Each kind draws from random numbers of its own, so that one kind more or less leaves the others' draws as they are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from minigts.explore.faults import Fault, Faults
from minigts.explore.kinds import (
    OF_A_HOST,
    OF_A_LINK,
    ClockRate,
    ClockSkew,
    DiskError,
    DiskSlow,
    Flap,
    KillProcess,
    Kind,
    Often,
    Partition,
    Preempt,
    ProcessFault,
)
from minigts.topology.plan.plan import Plan
from minigts.topology.plan.stored import HIGHEST_SEED

MOST_FAULTS = 10_000
SEEDED: tuple[Kind, ...] = ("preempt", "power-cut", "disk-error")
"""Faults that draw something themselves."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Wanted:
    """A fault that is drawn and may not have room; `free_s` is when the next one of its host may come."""

    fault: Fault
    free_s: float


def draw(faults: Faults, plan: Plan, seed: int) -> tuple[Fault, ...]:
    """The faults of a seed, in the order of time. The same plan and seed give the same on every machine."""
    return _chosen(_wanted(faults, plan, str(seed), faults.begin), faults, ())


def draw_branch_s(drawn: Sequence[Fault], seed: int) -> float | None:
    """The moment at which tails of a seed begin: right before one of its faults. None: it has no fault."""
    return _one(drawn, random.Random(f"explore/{seed}/branch")).at_s if drawn else None


def draw_tail(faults: Faults, plan: Plan, seed: int, tail: int, branch_s: float) -> tuple[Fault, ...]:
    """The faults of a tail: those of its seed that have begun before that moment, and others from then on."""
    return draw_further(faults, plan, f"{seed}/{tail}", branch_s, draw(faults, plan, seed))


def draw_further(faults: Faults, plan: Plan, name: str, branch_s: float, whole: Sequence[Fault]) -> tuple[Fault, ...]:
    """Of the faults of a `whole` course those that have begun before that moment, and others from then on, which the
    name draws."""
    before = tuple(fault for fault in whole if fault.at_s < branch_s)
    return _chosen(_wanted(faults, plan, name, branch_s), faults, before)


def _wanted(faults: Faults, plan: Plan, seed: str, begin_s: float) -> list[_Wanted]:
    """The faults that are drawn from that moment on, in the order of time."""
    return sorted(
        (each for kind, often in faults.kinds.items() for each in _of_kind(kind, often, faults, plan, seed, begin_s)),
        key=lambda each: (each.fault.at_s, each.fault.kind, each.fault.machines, each.fault.link),
    )[:MOST_FAULTS]


def _chosen(wanted: Sequence[_Wanted], faults: Faults, before: Sequence[Fault]) -> tuple[Fault, ...]:
    """Those that have room, behind those `before`."""
    chosen = list(before)
    late = [_Wanted(fault, fault.end_s + faults.apart[0]) for fault in before]
    """Those that are not over for long."""
    for each in wanted:
        late = [other for other in late if other.free_s > each.fault.at_s]
        now = [other for other in late if other.fault.end_s > each.fault.at_s]
        if len(now) < faults.at_most and not any(_same(other, each.fault) for other in late):
            chosen.append(each.fault)
            late.append(each)
    return tuple(each.model_copy(update={"number": number}) for number, each in enumerate(chosen, 1))


def _same(earlier: _Wanted, fault: Fault) -> bool:
    """Whether `earlier` is still about what `fault` is about, so that the two cannot be told apart."""
    before = earlier.fault
    if before.kind in OF_A_HOST and fault.kind in OF_A_HOST:
        return before.machines == fault.machines and earlier.free_s > fault.at_s
    if before.end_s <= fault.at_s:
        return False
    of_links = before.kind in OF_A_LINK and fault.kind in OF_A_LINK and before.link == fault.link
    one_way = bool(before.way or fault.way) and {before.kind, fault.kind} == {"partition", "loss"}  # by a loss of all
    one_kind = before.kind == fault.kind and (
        fault.kind == "partition" or (fault.kind == "preempt" and before.machines == fault.machines)
    )
    return of_links or one_way or one_kind


def _of_kind(kind: Kind, often: Often, faults: Faults, plan: Plan, seed: str, begin_s: float) -> Iterator[_Wanted]:
    chance, apart = random.Random(f"explore/{seed}/{kind}"), random.Random(f"explore/{seed}/{kind}/apart")
    at_s = begin_s
    for _ in range(MOST_FAULTS):
        at_s = round(at_s + chance.uniform(0, 2 * often.every), 6)
        for_s = round(chance.uniform(*often.lasts), 6)
        machines, link, amount = _what(kind, often, plan, chance)
        fault = Fault(
            number=0,
            kind=kind,
            at_s=at_s,
            for_s=for_s,
            machines=machines,
            link=link,
            amount=amount,
            end=_end(often, plan, link, chance) if isinstance(often, Flap) else "",
            way=_way(often, chance) if isinstance(often, Partition) else "",
            process=_process(often) if isinstance(often, KillProcess) else None,
            seed=int(chance.random() * (HIGHEST_SEED + 1)) if kind in SEEDED else 0,
            longest_ms=often.wait if isinstance(often, Preempt) else 0.0,
            requests=often.requests if isinstance(often, DiskError) else "all",
        )
        if at_s >= faults.over_s:
            return
        fault = fault.model_copy(update={"for_s": round(min(for_s, faults.over_s - at_s), 6)})
        yield _Wanted(fault, fault.end_s + apart.uniform(*faults.apart))


def _what(kind: Kind, often: Often, plan: Plan, chance: random.Random) -> tuple[tuple[str, ...], str, float]:
    """The machines, the link and the amount of a fault."""
    if kind in OF_A_LINK:
        link = _one(often.of or [each.name for each in plan.links], chance)
        return (), link, round(chance.uniform(*often.amount), 3)
    hosts = often.of or tuple(host.name for host in plan.hosts)
    if kind == "partition":
        return _group(hosts, len(plan.machines), chance), "", 0.0
    host = _one(hosts, chance)
    if isinstance(often, ClockSkew | ClockRate):
        return (host,), "", round(chance.uniform(*often.amount) * _one((1, -1), chance), 6)
    if isinstance(often, Preempt):
        return (host,), "", round(chance.uniform(*often.amount), 4)
    if isinstance(often, DiskError | DiskSlow):
        return (host,), "", round(chance.uniform(*often.amount), 3)
    return (host,), "", 0.0


def _process(often: KillProcess) -> ProcessFault:
    return ProcessFault(program=often.program, signal=often.signal, restart=often.restart)


def _way(often: Partition, chance: random.Random) -> Literal["", "out", "in"]:
    """The only way that a partition cuts; empty: both."""
    if often.ways == "both" or (often.ways == "either" and chance.random() < 0.5):
        return ""
    return "out" if chance.random() < 0.5 else "in"


def _end(often: Flap, plan: Plan, link: str, chance: random.Random) -> str:
    """The only end of a link that loses its carrier; empty: both do."""
    either = often.ends == "one" or (often.ends == "either" and chance.random() < 0.5)
    return _one(plan.ends_of(link), chance) if either else ""


def _one(words: Sequence[_T], chance: random.Random) -> _T:
    return words[int(chance.random() * len(words))]


def _group(hosts: Sequence[str], machines: int, chance: random.Random) -> tuple[str, ...]:
    """The hosts that a partition cuts off: up to half of them, and never all machines."""
    size = 1 + int(chance.random() * max(1, min(len(hosts) // 2, machines - 1)))
    left = list(hosts)
    chosen = {left.pop(int(chance.random() * len(left))) for _ in range(min(size, len(left)))}
    return tuple(name for name in hosts if name in chosen)
