"""A plan of faults, as a file has it, and what a fault is. Pure.

    faults:
      partition: {every: 20s, for: 2s to 15s}
      kill: {every: 1min, for: 5s to 20s, of: [db1, db2]}
      length: 2min
      at_most: 1
      heal: 30s before the end

What a seed draws of it is in `draws.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from minigts.explore.kinds import (
    OF_A_LINK,
    OF_DISKS,
    OF_FRAMES,
    ClockRate,
    ClockSkew,
    Corrupt,
    DiskError,
    DiskSlow,
    Duplicate,
    Flap,
    KillProcess,
    Kind,
    Loss,
    OfAHost,
    Often,
    Partition,
    Preempt,
    ProcessFault,
    Reorder,
    Requests,
    SlowLink,
    Span,
    span,
)
from minigts.language import validation
from minigts.language.fields import Strict, quantity, unknown, whole
from minigts.language.figures import digits
from minigts.language.problems import Finding, list_names
from minigts.language.quantities import DURATION_S, MOMENT_S, TIME_MS
from minigts.language.source import Language
from minigts.language.tree import read_tree
from minigts.topology import link_rules
from minigts.topology.outage import Outage
from minigts.topology.plan.elements import CACHED
from minigts.topology.plan.plan import Plan
from minigts.topology.plan.stored import HIGHEST_SEED

LANGUAGE = Language(
    name="plan of faults",
    opening="`faults:`",
    largest_bytes=100_000,
    instead_of_aliases="write out what is meant",
)
APART_S = 10.0
"""How long after a fault of a host the next fault of that host comes at the earliest, unless a plan says otherwise: a
killed host has to boot."""
LONGEST_DELAY_MS = TIME_MS.parse(TIME_MS.most)
BEFORE_THE_END = " before the end"
ALL_PERCENT = 100.0
_WAYS = {"": "", "out": ", outgoing alone", "in": ", incoming alone"}


def _before_the_end(value: object) -> float:
    return MOMENT_S.parse(value.removesuffix(BEFORE_THE_END) if isinstance(value, str) else value)


class Fault(BaseModel):
    """A fault of a seed: `at_s` seconds after the test's begin, for `for_s` seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    number: int
    """Its number among the seed's faults, from 1 in the order of time."""
    kind: Kind
    at_s: float
    for_s: float
    machines: tuple[str, ...] = ()
    """The host, or the machines that a partition cuts off from all others."""
    link: str = ""
    amount: float = 0.0
    """More delay, each way or of a disk, in ms; a share or a clock's gain in percent; its step in seconds."""
    end: Annotated[str, Field(exclude_if=lambda end: not end)] = ""
    """Of a link that goes down, the only end that loses its carrier; empty: both do."""
    way: Annotated[Literal["", "out", "in"], Field(exclude_if=lambda way: not way)] = ""
    """Of a partition the only way that is cut: what its machines send, or what is sent to them; empty: both are."""
    requests: Annotated[Requests, Field(exclude_if=lambda requests: requests == "all")] = "all"
    """Of a disk with errors, which requests fail."""
    process: Annotated[ProcessFault | None, Field(exclude_if=lambda process: process is None)] = None
    """Of a fault of processes, which they are and how they begin again."""
    seed: Annotated[int, Field(ge=0, le=HIGHEST_SEED, exclude_if=lambda seed: not seed)] = 0
    """Where programs of a host wait, and how long; what a disk loses, or which of its requests fail: drawn by it."""
    longest_ms: Annotated[float, Field(exclude_if=lambda longest: not longest)] = 0.0
    """How long they wait at most."""

    @property
    def outage(self) -> Outage:
        """How the link is down meanwhile, of a flap."""
        return Outage(end=self.end or None)

    @property
    def end_s(self) -> float:
        return round(self.at_s + self.for_s, 6)

    @property
    def in_words(self) -> str:
        """`partition of db1, db2`, `loss of 12.5 % on a-b`"""
        if self.kind in OF_A_LINK:
            return self._of_a_link
        if self.kind == "partition":
            return f"partition of {', '.join(self.machines)}{_WAYS[self.way]}"
        return self._of_a_host

    @property
    def _of_a_host(self) -> str:
        (host,) = self.machines
        if self.kind == "clock-skew":
            return f"clock of {host} stepped by {self.amount:+.6f} s"
        if self.kind == "clock-rate":
            return f"clocks of {host} {digits(abs(self.amount))} % {'fast' if self.amount > 0 else 'slow'}"
        if self.kind == "preempt":
            return f"programs of {host} wait at {digits(self.amount)} % of their calls"
        if self.process is not None:
            return f"{self.process.signal} for {self.process.program} on {host}"
        if self.kind in OF_DISKS:
            return self._of_a_disk
        return f"{self.kind} of {host}"

    @property
    def _of_a_disk(self) -> str:
        (host,) = self.machines
        if self.kind == "power-cut":
            return f"power cut of {host}, seed {self.seed}"
        if self.kind == "disk-slow":
            return f"disk of {host} {digits(self.amount)} ms later"
        return f"disk of {host} fails {digits(self.amount)} % of {self.requests}, seed {self.seed}"

    @property
    def _of_a_link(self) -> str:
        if self.kind == "slow-link":
            return f"{digits(self.amount)} ms more each way on {self.link}"
        if self.kind == "flap":
            return f"{self.link} {self.outage.in_words}"
        return f"{self.kind} of {digits(self.amount)} % on {self.link}"


class Faults(Strict):
    """Which faults come how often, and when."""

    partition: Partition | None = None
    kill: OfAHost | None = None
    kill_process: KillProcess | None = Field(default=None, alias="kill-process")
    pause: OfAHost | None = None
    slow_link: SlowLink | None = Field(default=None, alias="slow-link")
    loss: Loss | None = None
    duplicate: Duplicate | None = None
    reorder: Reorder | None = None
    corrupt: Corrupt | None = None
    flap: Flap | None = None
    clock_skew: ClockSkew | None = Field(default=None, alias="clock-skew")
    disk_full: OfAHost | None = Field(default=None, alias="disk-full")
    clock_rate: ClockRate | None = Field(default=None, alias="clock-rate")
    preempt: Preempt | None = None
    power_cut: OfAHost | None = Field(default=None, alias="power-cut")
    disk_error: DiskError | None = Field(default=None, alias="disk-error")
    disk_slow: DiskSlow | None = Field(default=None, alias="disk-slow")
    length: Annotated[float, *quantity(DURATION_S)]
    """The time, from the test's begin, in which faults may be. The test may end earlier or later."""
    begin: Annotated[float, *quantity(MOMENT_S)] = 0.0
    """When the first fault may come."""
    at_most: Annotated[int, *whole("a number of faults", 1, 100)] = 1
    """How many faults there may be at the same time."""
    apart: Annotated[Span, *span(MOMENT_S)] = (APART_S, APART_S)
    """How long after a fault of a host the next one of that host comes at the earliest, drawn between the two."""
    heal: Annotated[float, BeforeValidator(_before_the_end), WithJsonSchema({"type": "string"})] = 0.0
    """How long before the end of `length` the last fault is over."""

    @property
    def kinds(self) -> Mapping[Kind, Often]:
        """The kinds that the plan has, in the order of Kind."""
        named: dict[Kind, Often | None] = {
            "partition": self.partition,
            "kill": self.kill,
            "kill-process": self.kill_process,
            "pause": self.pause,
            "slow-link": self.slow_link,
            "loss": self.loss,
            "duplicate": self.duplicate,
            "reorder": self.reorder,
            "corrupt": self.corrupt,
            "flap": self.flap,
            "clock-skew": self.clock_skew,
            "disk-full": self.disk_full,
            "clock-rate": self.clock_rate,
            "preempt": self.preempt,
            "power-cut": self.power_cut,
            "disk-error": self.disk_error,
            "disk-slow": self.disk_slow,
        }
        return {kind: each for kind, each in named.items() if each is not None}

    @property
    def over_s(self) -> float:
        """When the last fault is over."""
        return self.length - self.heal


class FaultsFile(Strict):
    """A file with a plan of faults."""

    faults: Faults


def parse(text: str, file: str, plan: Plan) -> Faults:
    """The plan of faults for a lab of `plan`; `file` is its name in messages. Raises InputError with every problem."""
    tree = read_tree(text, file, LANGUAGE)
    return validation.read_model(tree, file, FaultsFile, lambda read: _wrong(read.faults, plan)).faults


def _wrong(faults: Faults, plan: Plan) -> Iterator[Finding]:
    if not faults.kinds:
        yield ("faults",), "no kind of fault: add one, as in partition: {every: 20s, for: 2s to 15s}"
    if faults.begin >= faults.over_s:
        yield ("faults", "length"), "no time is left for faults: `begin` is not before `length` less `heal`"
    hosts, machines = [host.name for host in plan.hosts], [each.name for each in plan.machines]
    links = [link.name for link in plan.links]
    for kind, each in faults.kinds.items():
        what, known = ("link", links) if kind in OF_A_LINK else ("host", machines)
        for number, name in enumerate(each.of):
            if name not in known:
                yield ("faults", kind, "of", number), unknown(what, f"{what}s", name, known)
        if kind == "partition" and len(each.of or hosts) == len(machines) == 1:
            yield ("faults", kind), "one machine cannot be cut off from others"
        if kind in OF_A_LINK and not links:
            yield ("faults", kind), "the lab has no links"
    if faults.preempt is not None and plan.time != "virtual":
        yield ("faults", "preempt"), "only hosts in virtual time have it, and this lab runs in real time"
    yield from _wrong_disks(faults, plan)
    yield from _wrong_amounts(faults, plan)


def _wrong_disks(faults: Faults, plan: Plan) -> Iterator[Finding]:
    switches = [switch.name for switch in plan.switches]
    for kind in (kind for kind in OF_DISKS if kind in faults.kinds):
        if plan.time != "virtual":
            yield ("faults", kind), "only disks of virtual time have it, and this lab runs in real time"
        for number, name in enumerate(faults.kinds[kind].of):
            if name in switches:
                yield ("faults", kind, "of", number), f"{name} is a switch, whose disk has nothing to lose: name hosts"


def _wrong_amounts(faults: Faults, plan: Plan) -> Iterator[Finding]:
    if faults.slow_link is not None:
        slowest_ms = max((way.delay_ms for link in plan.links for way in plan.directions(link)), default=0.0)
        if slowest_ms + faults.slow_link.delay[1] > LONGEST_DELAY_MS:
            yield ("faults", "slow-link", "delay"), f"with a link's own delay it is more than {TIME_MS.most}"
    for kind in OF_FRAMES:
        often = faults.kinds.get(kind)
        shares = () if often is None else often.amount
        yield from ((("faults", kind, kind), said) for said in _impossible_shares(kind, often, shares, plan))
    if faults.partition is not None and faults.partition.ways != "both":
        said_of = _impossible_shares("loss", None, (ALL_PERCENT,), plan)
        yield from ((("faults", "partition", "ways"), said) for said in said_of)


def _impossible_shares(kind: Kind, often: Often | None, shares: Sequence[float], plan: Plan) -> Iterator[str]:
    """Why links cannot have shares as small or as large as are drawn: by bursts of their own, or without a delay."""
    for link in plan.links:
        for percent in shares if often is None or link.name in (often.of or [link.name]) else ():
            ruled = link_rules.RuledLink.of_plan(plan, link).set_both({OF_FRAMES[kind]: percent})
            yield from (f"{digits(percent)} % on {link.name}: {problem}" for problem in link_rules.problems(ruled))


def faults_line(faults: Sequence[Fault]) -> str:
    """`3 faults: partition, kill, partition`; `no faults`."""
    if not faults:
        return "no faults"
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    return f"{count}: {list_names([fault.kind for fault in faults])}"


def json_schema_text() -> str:
    """The JSON Schema of such a file, for editors."""
    return validation.schema_text(validation.json_schema(FaultsFile))


def plan_with_caches(plan: Plan, faults: Faults) -> Plan:
    """The plan, in which hosts whose power may be cut have disks that can lose something then."""
    if faults.power_cut is None:
        return plan
    cut = faults.power_cut.of or [host.name for host in plan.hosts]
    hosts = (host.model_copy(update={"disk": CACHED}) if host.name in cut else host for host in plan.hosts)
    return plan.model_copy(update={"hosts": tuple(hosts)})
