"""An exploration, and one seed of it as a worker takes it. Both are JSON; all that a seed needs is in them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from minigts.explore import draws
from minigts.explore import faults as plans
from minigts.explore.faults import Fault
from minigts.explore.host_files import HostFile
from minigts.explore.program import Program
from minigts.results.gate import Trusted
from minigts.topology.plan.plan import Plan
from minigts.topology.plan.reseed import replicate
from minigts.topology.plan.stored import HIGHEST_SEED
from minigts.topology.time import Time

ORIGIN = 1
"""The seed of the lab that seeds fork."""
MOST_TAILS = 1000
BEGINNING_S = 10.0
"""What a lab's start is taken to cost, for the estimate of the time that is left."""


class Exploration(BaseModel):
    """explore.json: what is explored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    minigts: str
    commit: str = ""
    topology: str
    """The topology file's name."""
    plan: Plan
    provider: str
    overlay: str | None = None
    """The overlay that is joined; None: the plan's."""
    test: Program
    faults: str = ""
    """The text of the file with the plan of faults; empty without one."""
    first: Annotated[int, Field(ge=0, le=HIGHEST_SEED)]
    last: Annotated[int, Field(ge=0, le=HIGHEST_SEED)]
    """The first and the last seed."""
    longest_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """How long the test may take, by the lab's clock."""
    parts: dict[str, str] = {}
    """The digests of image, kernel and clock of the labs; empty for a provider without such."""
    started: str
    host_files: dict[str, HostFile] = {}
    """The files of hosts that are kept, by their digests."""
    forks: Annotated[bool, Field(exclude_if=lambda forks: not forks)] = False
    """Whether seeds are forks of one lab, which is brought up as that of seed ORIGIN."""

    tails: Annotated[int, Field(ge=0, le=MOST_TAILS, exclude_if=lambda tails: not tails)] = 0
    """How many tails each seed has, which go on in forks of its lab from a moment on."""

    def draw_faults(self, seed: int) -> tuple[Fault, ...]:
        """The faults of a seed."""
        if not self.faults:
            return ()
        return draws.draw(plans.parse(self.faults, "faults.yaml", self.plan), self.plan, seed)

    def draw_branch_s(self, seed: int) -> float | None:
        """When tails of a seed begin, in seconds after the test's begin; None: it has no fault, and no tails."""
        return draws.draw_branch_s(self.draw_faults(seed), seed)

    def draw_tail(self, seed: int, tail: int) -> tuple[Fault, ...]:
        """The faults of a tail of a seed, with those that it shares with it."""
        branch_s = self.draw_branch_s(seed)
        if branch_s is None:
            return ()
        return draws.draw_tail(plans.parse(self.faults, "faults.yaml", self.plan), self.plan, seed, tail, branch_s)

    def plan_of(self, seed: int) -> Plan:
        """The plan of a seed's lab."""
        return replicate(self.plan, seed)

    @property
    def plan_of_origin(self) -> Plan:
        """The plan of the lab that seeds fork."""
        return self.plan_of(ORIGIN)


class Reduced(BaseModel):
    """shrunk.json: what of a seed is played, its faults by their numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    faults: tuple[Annotated[int, Field(ge=0)], ...]
    for_s: dict[int, Annotated[float, Field(ge=0)]] = {}
    """How long, in seconds, faults last, where that is not as it was drawn."""
    without: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """The numbers of the test's own acts that it leaves out."""


class SeedOfWork(BaseModel):
    """One seed of an exploration; see `cluster.dispatch.Work`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    """The seed."""
    exploration: Exploration
    only: Reduced | None = None
    """What is played; None: all that the seed draws."""
    tails: tuple[int, ...] = ()
    """The numbers of the tails that are taken with it."""
    ends_with_tails: bool = False
    """Whether the seed itself ends where they begin."""
    performed_by: ClassVar[str] = "minigts.explore.on_worker:perform"

    @property
    def name(self) -> str:
        return f"seed {self.number}"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults that are played."""
        drawn, only = self.exploration.draw_faults(self.number), self.only
        if only is None:
            return drawn
        left = (each for each in drawn if each.number in only.faults)
        return tuple(each.model_copy(update={"for_s": only.for_s.get(each.number, each.for_s)}) for each in left)

    @property
    def without(self) -> tuple[int, ...]:
        """The test's own acts that it leaves out."""
        return () if self.only is None else self.only.without

    @property
    def size(self) -> int:
        return 1

    @property
    def seconds(self) -> float:
        return BEGINNING_S

    @property
    def provider(self) -> str:
        return self.exploration.provider

    @property
    def time(self) -> Time:
        return self.exploration.plan.time


def seed_of_work(exploration: Trusted[Exploration], number: int, only: Reduced | None = None) -> SeedOfWork:
    """A seed to be taken without tails, which runs the exploration's test on a machine."""
    return SeedOfWork(number=number, exploration=exploration.content, only=only)


def whole_seed_of_work(exploration: Trusted[Exploration], number: int) -> SeedOfWork:
    """A seed to be taken with all of its tails."""
    tails = tuple(range(1, exploration.content.tails + 1))
    return SeedOfWork(number=number, exploration=exploration.content, tails=tails)


def tail_of_work(exploration: Trusted[Exploration], number: int, tail: int) -> SeedOfWork:
    """The beginning of a seed, and one tail of it."""
    return SeedOfWork(number=number, exploration=exploration.content, tails=(tail,), ends_with_tails=True)
