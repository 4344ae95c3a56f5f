"""What a suite of tests is: each suite is one file beside this one, with an object of `Suite`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol

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


def files_below(directory: Path, tops: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The files in the folders `tops` and below, each with its path below `directory` and where it is; without what
    Python compiles. Links to what is below `directory` are followed; one that leads out of it stays a link, which
    `read_file` refuses."""
    inside = directory.resolve()
    for top in tops:
        for path, file in sorted(_files(top, inside, frozenset({top.resolve()}))) if top.is_dir() else ():
            yield path.relative_to(directory).as_posix(), file


def _files(folder: Path, inside: Path, above: frozenset[Path]) -> Iterator[tuple[Path, Path]]:
    """The files below a folder, each as it is named and where it is; `above` are the folders that lead here."""
    for path in folder.iterdir():
        found = path.resolve() if path.is_symlink() or path.is_dir() else path
        leads_out = path.is_symlink() and not found.is_relative_to(inside)
        if found.is_file():
            yield path, path if leads_out else found
        elif found.is_dir() and not leads_out and path.name != "__pycache__" and found not in above:
            yield from _files(path, inside, above | {found})


class Case(BaseModel):
    """A command of a test that has a verdict of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Such as ipv4; empty where a test has one case."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    own_namespace: bool = False
    """Whether it runs in a network namespace of its own."""


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
    capture: bool = False
    """Whether the frames of the network namespace in which a case begins are captured."""
    environment: dict[str, str] = {}
    """Variables of a case."""


class CasePart(NamedTuple):
    """A test within a case: what the case itself has said of it."""

    name: str
    verdict: Verdict
    reason: str = ""


class Suite(Protocol):
    """A suite: how its tests are found, what runs one on a host, how its end is read."""

    name: str
    about: str
    """What its directory is, in half a line."""
    program: str
    """The program that the user has to have; empty if the suite needs none."""
    has_tolerance: bool
    longest_s: float
    """How long a case may take by the lab's clock, unless the user says it."""
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

    def parts(self, output: str) -> Sequence[CasePart]:
        """The tests within a case, as its output names them; none where a case is one test."""
        ...

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        """The verdict on a case that has ended with `code`, and the reason in a line; empty for one that passed."""
        ...
