"""What a suite of tests is: each suite is one file beside this one, with an object of `Suite`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.errors import InputError, Problem

Verdict = Literal["passed", "failed", "skipped", "error"]
"""`error`: the lab could not be run, which says nothing about the test."""
PLACE = "/suite"
"""The folder of a host with the suite's files; programs of the user's are in its folder `bin`."""
LARGEST_FILE_BYTES = 100_000_000


def read_file(path: Path, remedy: str = "") -> bytes:
    """The content of a file of the user's. Raises InputError, with the remedy, if it cannot be read."""
    try:
        return paths.read_whole(path, LARGEST_FILE_BYTES)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise InputError([Problem(str(path), 0, f"{why}; {remedy}" if remedy else why)]) from error


class Case(BaseModel):
    """A command of a test that has a verdict of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Such as ipv4; empty where a test has one case."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)]


class SuiteTest(BaseModel):
    """A test of a suite. Its cases run one after the other on one host."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]
    directory: str = "."
    """Where its commands run, below PLACE."""


class SuiteOptions(BaseModel):
    """What a user may ask of a suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tolerance_us: Annotated[int, Field(gt=0)] | None = None
    """By how much an event may be early or late, in microseconds; None: the suite's own tolerance."""


class Suite(Protocol):
    """A suite: how its tests are found, what runs one on a host, how its end is read."""

    name: str
    about: str
    """What its directory is, in half a line."""
    program: str
    """The program that the user has to have; empty if the suite needs none."""
    has_tolerance: bool
    memory: str
    """The memory of a host, as in a topology."""
    packages: Sequence[str]
    """Debian packages that hosts have besides the image's."""

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        """Every test in the directory, in the order of names. Raises InputError for a directory of another kind."""
        ...

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """The files that a test needs on its host: by their paths below PLACE. Raises InputError."""
        ...

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        """The verdict on a case that has ended with `code`, and the reason in a line; empty for one that passed."""
        ...
