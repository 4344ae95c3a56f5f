"""A plan of faults, as a file has it, and the faults that a seed draws of it. Pure.

    faults:
      partition: {every: 20s, for: 2s to 15s}
      kill: {every: 1min, for: 5s to 20s, of: [db1, db2]}
      length: 2min
      at_most: 1
      heal: 30s before the end

Each kind draws from random numbers of its own, so that one kind more or less leaves the others' draws as they are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from minigts.language import validation
from minigts.language.fields import Strict, quantity, unknown, whole
from minigts.language.figures import digits
from minigts.language.problems import Finding, list_names
from minigts.language.quantities import DURATION_S, LOSS_PERCENT, MOMENT_S, TIME_MS, Quantity
from minigts.language.source import Language
from minigts.language.tree import read_tree
from minigts.topology import link_rules
from minigts.topology.outage import Outage
from minigts.topology.plan.plan import Plan

LANGUAGE = Language(
    name="plan of faults",
    opening="`faults:`",
    largest_bytes=100_000,
    instead_of_aliases="write out what is meant",
)
Kind = Literal["partition", "kill", "pause", "slow-link", "loss", "flap", "clock-skew", "disk-full"]
OF_A_HOST: tuple[Kind, ...] = ("kill", "pause", "clock-skew", "disk-full")
OF_A_LINK: tuple[Kind, ...] = ("slow-link", "loss", "flap")
MOST_FAULTS = 10_000
APART_S = 10.0
"""How long after a fault of a host the next fault of that host comes at the earliest: a killed host has to boot."""
LONGEST_DELAY_MS = TIME_MS.parse(TIME_MS.most)
BEFORE_THE_END = " before the end"
Span: TypeAlias = tuple[float, float]
_T = TypeVar("_T")


def _span(kind: Quantity) -> tuple[BeforeValidator, WithJsonSchema]:
    """`2s to 15s`, or one quantity for both ends; parsed to the two in the kind's unit."""

    def parse(value: object) -> Span:
        first, _, last = value.partition(" to ") if isinstance(value, str) else (value, "", "")
        low = kind.parse(first.strip() if isinstance(first, str) else first)
        high = kind.parse(last.strip()) if last else low
        if low > high:
            raise ValueError(f"{value} ends before it begins: write the smaller one first")
        return low, high

    one = kind.pattern.removeprefix("^").removesuffix("$")
    schema = {"type": "string", "pattern": f"^{one}( to {one})?$", "examples": [kind.example]}
    return BeforeValidator(parse), WithJsonSchema(schema)


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
    """More delay each way in ms, loss in percent, or the clock's step in seconds."""
    end: Annotated[str, Field(exclude_if=lambda end: not end)] = ""
    """Of a link that goes down, the only end that loses its carrier; empty: both do."""

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
        match self.kind:
            case "slow-link":
                return f"{digits(self.amount)} ms more each way on {self.link}"
            case "loss":
                return f"loss of {digits(self.amount)} % on {self.link}"
            case "flap":
                return f"{self.link} {self.outage.in_words}"
            case "clock-skew":
                return f"clock of {self.machines[0]} stepped by {self.amount:+.6f} s"
            case "partition":
                return f"partition of {', '.join(self.machines)}"
            case _:
                return f"{self.kind} of {self.machines[0]}"


class _Often(Strict):
    """Faults of one kind."""

    every: Annotated[float, *quantity(DURATION_S)]
    """The mean time from one to the next; each time is drawn between 0 and twice that."""
    lasts: Annotated[Span, *_span(DURATION_S)] = Field(alias="for")
    """How long each lasts, drawn between the two."""
    of: tuple[str, ...] = ()
    """The hosts, or for slow-link, loss and flap the links, of which one is drawn. Default: all."""


class Partition(_Often):
    """Hosts that are cut off: at least one and at most half of `of`. Links between them stay whole."""


class OfAHost(_Often):
    """A fault of a host that has no amount: kill, pause, disk-full."""


class SlowLink(_Often):
    """A link that is slower in both directions."""

    delay: Annotated[Span, *_span(TIME_MS)] = (100.0, 1000.0)
    """The delay that is added each way."""


class Loss(_Often):
    """A link that loses packets in both directions."""

    loss: Annotated[Span, *_span(LOSS_PERCENT)] = (5.0, 50.0)
    """The share of packets that it loses."""


class Flap(_Often):
    """A link that goes down, with its carrier, and comes up again."""

    ends: Literal["both", "one", "either"] = "both"
    """Which of its ends lose their carrier: both; one, which is drawn; or either of the two, which is drawn first."""


class ClockSkew(_Often):
    """A host whose time of day is stepped forward or back, and back again at the end."""

    by: Annotated[Span, *_span(DURATION_S)] = (0.1, 5.0)
    """The size of the step."""


class Faults(Strict):
    """Which faults come how often, and when."""

    partition: Partition | None = None
    kill: OfAHost | None = None
    pause: OfAHost | None = None
    slow_link: SlowLink | None = Field(default=None, alias="slow-link")
    loss: Loss | None = None
    flap: Flap | None = None
    clock_skew: ClockSkew | None = Field(default=None, alias="clock-skew")
    disk_full: OfAHost | None = Field(default=None, alias="disk-full")
    length: Annotated[float, *quantity(DURATION_S)]
    """The time, from the test's begin, in which faults may be. The test may end earlier or later."""
    begin: Annotated[float, *quantity(MOMENT_S)] = 0.0
    """When the first fault may come."""
    at_most: Annotated[int, *whole("a number of faults", 1, 100)] = 1
    """How many faults there may be at the same time."""
    heal: Annotated[float, BeforeValidator(_before_the_end), WithJsonSchema({"type": "string"})] = 0.0
    """How long before the end of `length` the last fault is over."""

    @property
    def kinds(self) -> Mapping[Kind, _Often]:
        """The kinds that the plan has, in the order of Kind."""
        named: dict[Kind, _Often | None] = {
            "partition": self.partition,
            "kill": self.kill,
            "pause": self.pause,
            "slow-link": self.slow_link,
            "loss": self.loss,
            "flap": self.flap,
            "clock-skew": self.clock_skew,
            "disk-full": self.disk_full,
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
    if isinstance(faults.slow_link, SlowLink):
        slowest_ms = max((way.delay_ms for link in plan.links for way in plan.directions(link)), default=0.0)
        if slowest_ms + faults.slow_link.delay[1] > LONGEST_DELAY_MS:
            yield ("faults", "slow-link", "delay"), f"with a link's own delay it is more than {TIME_MS.most}"

    yield from ((("faults", "loss", "loss"), said) for said in _impossible_losses(faults.loss, plan))


def _impossible_losses(often: Loss | None, plan: Plan) -> Iterator[str]:
    """Why a link cannot lose as little or as much as is drawn: by bursts of its own."""
    if often is None:
        return
    for link in plan.links:
        for percent in often.loss if link.name in (often.of or [link.name]) else ():
            lossy = link_rules.RuledLink.of_plan(plan, link).set_both({"loss_percent": percent})
            yield from (f"{digits(percent)} % on {link.name}: {problem}" for problem in link_rules.problems(lossy))


def draw(faults: Faults, plan: Plan, seed: int) -> tuple[Fault, ...]:
    """The faults of a seed, in the order of time. The same plan and seed give the same on every machine."""
    wanted = sorted(
        (each for kind, often in faults.kinds.items() for each in _of_kind(kind, often, faults, plan, seed)),
        key=lambda fault: (fault.at_s, fault.kind, fault.machines, fault.link),
    )
    chosen: list[Fault] = []
    late: list[Fault] = []
    """Those that are not over for long."""
    for fault in wanted[:MOST_FAULTS]:
        late = [each for each in late if each.end_s + APART_S > fault.at_s]
        now = [each for each in late if each.end_s > fault.at_s]
        if len(now) < faults.at_most and not any(_same(each, fault) for each in late):
            chosen.append(fault)
            late.append(fault)
    return tuple(each.model_copy(update={"number": number}) for number, each in enumerate(chosen, 1))


def _same(before: Fault, fault: Fault) -> bool:
    """Whether `before` is still about what `fault` is about, so that the two cannot be told apart."""
    if before.kind in OF_A_HOST and fault.kind in OF_A_HOST:
        return before.machines == fault.machines and before.end_s + APART_S > fault.at_s
    if before.end_s <= fault.at_s:
        return False
    of_links = before.kind in OF_A_LINK and fault.kind in OF_A_LINK and before.link == fault.link
    return of_links or before.kind == fault.kind == "partition"


def _of_kind(kind: Kind, often: _Often, faults: Faults, plan: Plan, seed: int) -> Iterator[Fault]:
    chance = random.Random(f"explore/{seed}/{kind}")
    at_s = faults.begin
    for _ in range(MOST_FAULTS):
        at_s = round(at_s + chance.uniform(0, 2 * often.every), 6)
        for_s = round(chance.uniform(*often.lasts), 6)
        machines, link, amount = _what(kind, often, plan, chance)
        end = _end(often, plan, link, chance) if isinstance(often, Flap) else ""
        if at_s >= faults.over_s:
            return
        for_s = round(min(for_s, faults.over_s - at_s), 6)
        yield Fault(number=0, kind=kind, at_s=at_s, for_s=for_s, machines=machines, link=link, amount=amount, end=end)


def _what(kind: Kind, often: _Often, plan: Plan, chance: random.Random) -> tuple[tuple[str, ...], str, float]:
    """The machines, the link and the amount of a fault."""
    if kind in OF_A_LINK:
        span = often.delay if isinstance(often, SlowLink) else often.loss if isinstance(often, Loss) else (0.0, 0.0)
        link = _one(often.of or [each.name for each in plan.links], chance)
        return (), link, round(chance.uniform(*span), 3)
    hosts = often.of or tuple(host.name for host in plan.hosts)
    if kind == "partition":
        return _group(hosts, len(plan.machines), chance), "", 0.0
    host = _one(hosts, chance)
    if isinstance(often, ClockSkew):
        return (host,), "", round(chance.uniform(*often.by) * _one((1, -1), chance), 6)
    return (host,), "", 0.0


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


def faults_line(faults: Sequence[Fault]) -> str:
    """`3 faults: partition, kill, partition`; `no faults`."""
    if not faults:
        return "no faults"
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    return f"{count}: {list_names([fault.kind for fault in faults])}"


def json_schema_text() -> str:
    """The JSON Schema of such a file, for editors."""
    return validation.schema_text(validation.json_schema(FaultsFile))
