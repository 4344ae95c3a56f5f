"""The results folder of a bisection, which is written as commits are tried.

    bisect.json           what is bisected: repository, ends, question, the kernels' options
    steps.jsonl           a line for each commit that was tried; one that a crash has cut short is ignored
    steps/02-6d1f0a3b9c27/  what the labs of a commit have measured
    history/              the bare repository in which git bisects; it is made anew each time
    bisect.md             the page

A commit's line is written last. So a commit counts as tried only when all of it is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minigts.bisection.history import Commit, Mark
from minigts.bisection.question import KernelAnswer
from minigts.errors import InputError, Problem
from minigts.language import documents
from minigts.results import store
from minigts.results.folder import append, inside, read_bytes, read_model, write

REQUEST, STEPS, FOLDERS, HISTORY, PAGE = "bisect.json", "steps.jsonl", "steps", "history", "bisect.md"


class CommitFacts(BaseModel):
    """A commit, as it is written down."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]
    subject: str

    @property
    def commit(self) -> Commit:
        return Commit(self.id, self.subject)

    @classmethod
    def of(cls, commit: Commit) -> CommitFacts:
        return cls(id=commit.id, subject=commit.subject)


class BisectRequest(BaseModel):
    """bisect.json: what is bisected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    minigts: str
    repository: str
    """Its path on this machine."""
    holds: CommitFacts
    """The good commit: there it holds."""
    fails: CommitFacts
    """The bad commit: there it fails."""
    paths: tuple[str, ...] = ()
    """Only commits that change something there; empty: all."""
    question: Annotated[dict[str, str], Field(min_length=1)]
    """What is asked of each commit, with the digests of files."""
    kernel: str
    """The name of the kernels that are built."""
    config: dict[str, str] = {}
    """Their options, without CONFIG_."""
    patches: dict[str, str] = {}
    """The user's patches for each, by their paths, with their digests."""


class TriedCommit(BaseModel):
    """A commit that was tried."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    commit: CommitFacts
    builds: bool
    """Whether it could be built."""
    answer: KernelAnswer
    kernel_sha256: str = ""
    """The digest of the kernel's program; empty where none was built."""
    build_s: float
    ask_s: float
    """How long build and labs took, by this machine's clock."""

    @property
    def mark(self) -> Mark:
        return "skip" if self.answer.verdict == "undecided" else self.answer.verdict

    @property
    def verdict(self) -> str:
        return self.answer.verdict if self.builds else "not built"


def create(results: Path, request: BisectRequest, now: datetime) -> Path:
    """A new folder below `results`. Raises MinigtsError when it cannot be written."""
    folder = store.create(results, "bisect", now)
    write(inside(folder, REQUEST), request.model_dump_json(indent=1) + "\n")
    return folder


def read(folder: Path) -> BisectRequest:
    """What is bisected there. Raises InputError for another folder."""
    path = inside(folder, REQUEST)
    if not path.is_file():
        raise InputError([Problem(str(folder), 0, f"is no folder of `minigts bisect`: it has no {REQUEST}")])
    return read_model(path, BisectRequest)


def require_equal(folder: Path, asked: BisectRequest) -> None:
    """Raise InputError where a bisection that is continued would differ from what its folder has."""
    earlier, now = read(folder).model_dump(), asked.model_dump()
    for key, value in now.items():
        if earlier[key] != value:
            raise InputError(
                f"--resume: the folder's bisection has another {key}: {_shown(earlier[key])}, and now it is "
                f"{_shown(value)}; give the same options, or begin a new one"
            )


def _shown(value: object) -> str:
    return str(value)[:200]


def keep(folder: Path, step: TriedCommit) -> None:
    """Write what came of a commit. Raises MinigtsError when the disk is full or refuses."""
    append(inside(folder, STEPS), step.model_dump_json() + "\n")


def steps(folder: Path) -> Mapping[str, TriedCommit]:
    """What came of each commit that was tried, by the commits' ids, in the order in which they were."""
    path = inside(folder, STEPS)
    found: dict[str, TriedCommit] = {}
    for line in read_bytes(path).splitlines() if path.exists() else []:
        with suppress(ValueError):
            step = documents.model(line, TriedCommit)
            found[step.commit.id] = step
    return found


def step_folder(folder: Path, number: int, commit: Commit) -> Path:
    """The folder of what a commit's labs measure."""
    return inside(folder, FOLDERS, f"{number:02}-{commit.short}")
