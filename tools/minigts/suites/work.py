"""A run of a suite, and the part of it that a worker takes at a time. Both are JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from minigts.suites.suite import Case, SuiteOptions, SuiteTest
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

MOST_TIMES = 1000
MOST_LOAD = 1024
MOST_IN_A_LAB = 10_000
HOST = "host"
"""The name of a lab's only host."""


class SuiteSettings(BaseModel):
    """All that decides how a test runs. Equal settings give equal courses in virtual time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    directory: str
    """Absolute, on this machine."""
    program: str = ""
    """The path of the program that the user has; empty where the suite needs none."""
    program_sha256: str = ""
    installed: str = ""
    """The folder of what hosts have in place of Debian's, absolute; empty where the user has none."""
    installed_sha256: str = ""
    options: SuiteOptions = SuiteOptions()
    longest_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """How long a case may take, by the lab's clock."""
    plan: Plan
    provider: str


class SuiteRun(BaseModel):
    """suite.json: what is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    minigts: str
    commit: str = ""
    settings: SuiteSettings
    tests: tuple[SuiteTest, ...]
    times: Annotated[int, Field(ge=1, le=MOST_TIMES)]
    """How often each test runs beside each load."""
    loads: Annotated[tuple[Annotated[int, Field(ge=0, le=MOST_LOAD)], ...], Field(min_length=1)] = (0,)
    """How many programs keep this machine's processors busy meanwhile."""
    in_a_lab: Annotated[int, Field(ge=1, le=MOST_IN_A_LAB)] = 1
    """How many tests each lab has, one after the other."""
    parts: dict[str, str] = {}
    """The digests of image, kernel and clock."""
    started: str

    def jobs(self) -> list[SuiteJob]:
        """Every test as often as it runs; all of the first time come first."""
        turns = [
            (load, load_number * self.times + time)
            for load_number, load in enumerate(self.loads)
            for time in range(1, self.times + 1)
        ]
        groups = [self.tests[at : at + self.in_a_lab] for at in range(0, len(self.tests), self.in_a_lab)]
        every = [(load, turn, group) for load, turn in turns for group in groups]
        return [
            SuiteJob(number=number, settings=self.settings, tests=group, turn=turn, load=load)
            for number, (load, turn, group) in enumerate(every)
        ]


class SuiteJob(BaseModel):
    """One test of a run, or several for one lab, one time; see `cluster.dispatch.Work`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    performed_by: ClassVar[str] = "minigts.suites.on_worker:perform"

    number: int
    settings: SuiteSettings
    tests: Annotated[tuple[SuiteTest, ...], Field(min_length=1)]
    turn: int
    """Which time it is, from 1 on, counted through all loads."""
    load: int = 0
    """How many programs keep this machine's processors busy meanwhile."""

    @property
    def name(self) -> str:
        more = f" and {len(self.tests) - 1} more" if len(self.tests) > 1 else ""
        return f"{self.tests[0].name}{more}, time {self.turn}"

    @property
    def cases(self) -> list[tuple[SuiteTest, Case]]:
        return [(test, case) for test in self.tests for case in test.cases]

    @property
    def size(self) -> int:
        return len(self.cases)

    @property
    def seconds(self) -> float:
        return float(self.size)

    @property
    def provider(self) -> str:
        return self.settings.provider

    @property
    def time(self) -> Time:
        return self.settings.plan.time

    @property
    def place(self) -> Path:
        return Path(self.settings.directory)
