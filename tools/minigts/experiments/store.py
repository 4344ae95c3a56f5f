"""A results directory's raw part: what each sample's command printed, on the disk before anything is derived.

Every file is written beside its place, flushed to the disk and renamed into it: a file that is there is whole, at
whatever moment the writer was killed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from minigts.errors import InputError, MinigtsError, Problem
from minigts.experiments.matrix import Sample
from minigts.watch import Readings


class Side(BaseModel):
    """What another command said that belongs to an attempt: a setting read back, one more session, a counter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    host: str
    argv: tuple[str, ...] = ()
    code: int = 0
    stdout: str
    stderr: str = ""


class RawSample(BaseModel):
    """One attempt at one sample. `started` is UTC, ISO 8601; `attempt` begins at 1; `error` is None if good.

    `machine` is what the outer machine did meanwhile, `tainted` why that makes the result doubtful.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample: str
    host: str
    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    started: str
    seconds: float
    attempt: int
    error: str | None = None
    machine: Readings | None = None
    tainted: tuple[str, ...] = ()
    around: tuple[Side, ...] = ()
    """What other commands said that belong to it."""


def create(results: Path, experiment: str, now: datetime) -> Path:
    """A new directory `results/<experiment>-<YYYYmmdd-HHMMSS>/`, with a number behind it if that one is taken."""
    stem = f"{experiment}-{now:%Y%m%d-%H%M%S}"
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        directory = results / f"{stem}{suffix}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refused(directory, error) from error
        return directory
    raise MinigtsError(f"{results}: a thousand runs of {experiment} in one second")


def write(path: Path, text: str) -> None:
    """Put `text` into `path`, whole or not at all. Raises MinigtsError when the disk is full or refuses."""
    waiting = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with waiting.open("w", encoding="utf-8", newline="", errors="backslashreplace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        waiting.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            waiting.unlink(missing_ok=True)
        raise _refused(path, error) from error


def save(directory: Path, raw: RawSample, *, repeated: bool = False) -> None:
    """Keep one attempt: `raw/<id>.json` when it is the result, `raw/<id>.failed-<attempt>.json` when it has none, and
    `raw/<id>.tainted-<attempt>.json` when it has one but is to be `repeated`, since the machine was starved."""
    kind = "" if raw.error is None and not repeated else ".tainted" if raw.error is None else ".failed"
    name = f"{raw.sample}{kind}-{raw.attempt}.json" if kind else f"{raw.sample}.json"
    write(directory / "raw" / name, raw.model_dump_json(indent=1))


def discard(directory: Path, sample: str, reason: str) -> None:
    """Count the good attempt at `sample` as failed after all, and keep it."""
    raw = good(directory, sample)
    if raw is not None:
        save(directory, raw.model_copy(update={"error": reason, "attempt": attempts(directory).get(sample, 0) + 1}))
        (directory / "raw" / f"{sample}.json").unlink()


def good(directory: Path, sample: str) -> RawSample | None:
    """The good attempt at `sample`, if there is one. Raises InputError for a file that somebody broke."""
    path = directory / "raw" / f"{sample}.json"
    return _read(path) if path.exists() else None


def earlier(directory: Path, sample: str) -> tuple[RawSample, ...]:
    """The attempts at `sample` that are not its result, failed or tainted, in order."""
    paths = [path for kind in ("failed", "tainted") for path in _numbered(directory, kind).get(sample, ())]
    return tuple(_read(path) for path in sorted(paths, key=_number))


def attempts(directory: Path) -> dict[str, int]:
    """The highest number of an attempt that is not the result, for each sample that has one."""
    found: dict[str, int] = {}
    for kind in ("failed", "tainted"):
        for sample, paths in _numbered(directory, kind).items():
            found[sample] = max(found.get(sample, 0), *map(_number, paths))
    return found


def repeats(directory: Path) -> dict[str, int]:
    """How often each sample was taken again because it was tainted."""
    return {sample: len(paths) for sample, paths in _numbered(directory, "tainted").items()}


def pending(samples: Sequence[Sample], directory: Path) -> tuple[Sample, ...]:
    """The samples that have no good result yet, in their order."""
    there = {path.name for path in (directory / "raw").glob("*.json")}
    return tuple(sample for sample in samples if f"{sample.id}.json" not in there)


def _numbered(directory: Path, kind: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in (directory / "raw").glob(f"*.{kind}-*.json"):
        if _number(path):
            found.setdefault(path.name.rpartition(f".{kind}-")[0], []).append(path)
    return {sample: sorted(paths, key=_number) for sample, paths in found.items()}


def _number(path: Path) -> int:
    found = re.search(r"\.(?:failed|tainted)-(\d{1,6})\.json$", path.name)
    return int(found[1]) if found else 0


def _read(path: Path) -> RawSample:
    try:
        return RawSample.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise InputError([Problem(str(path), 0, "is no raw sample; remove it and the run repeats it")]) from error


def _refused(path: Path, error: OSError) -> MinigtsError:
    return MinigtsError(f"{path}: cannot be written: {error.strerror or error}; what was measured before is kept")
