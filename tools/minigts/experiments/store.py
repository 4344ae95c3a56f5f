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


class RawSample(BaseModel):
    """One attempt at one sample. `started` is UTC, ISO 8601; `attempt` begins at 1; `error` is None if good."""

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


def save(directory: Path, raw: RawSample) -> None:
    """Keep one attempt: `raw/<id>.json` when it is good, `raw/<id>.failed-<attempt>.json` when it is not."""
    name = f"{raw.sample}.json" if raw.error is None else f"{raw.sample}.failed-{raw.attempt}.json"
    write(directory / "raw" / name, raw.model_dump_json(indent=1))


def good(directory: Path, sample: str) -> RawSample | None:
    """The good attempt at `sample`, if there is one. Raises InputError for a file that somebody broke."""
    path = directory / "raw" / f"{sample}.json"
    return _read(path) if path.exists() else None


def failures(directory: Path, sample: str) -> tuple[RawSample, ...]:
    """The failed attempts at `sample`, in order."""
    return tuple(_read(path) for path in _failed(directory).get(sample, ()))


def attempts(directory: Path) -> dict[str, int]:
    """The highest number of a failed attempt, for each sample that has one."""
    return {sample: max(map(_number, paths)) for sample, paths in _failed(directory).items()}


def pending(samples: Sequence[Sample], directory: Path) -> tuple[Sample, ...]:
    """The samples that have no good result yet, in their order."""
    there = {path.name for path in (directory / "raw").glob("*.json")}
    return tuple(sample for sample in samples if f"{sample.id}.json" not in there)


def _failed(directory: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in (directory / "raw").glob("*.failed-*.json"):
        if _number(path):
            found.setdefault(path.name.rpartition(".failed-")[0], []).append(path)
    return {sample: sorted(paths, key=_number) for sample, paths in found.items()}


def _number(path: Path) -> int:
    found = re.search(r"\.failed-(\d{1,6})\.json$", path.name)
    return int(found[1]) if found else 0


def _read(path: Path) -> RawSample:
    try:
        return RawSample.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise InputError([Problem(str(path), 0, "is no raw sample; remove it and the run repeats it")]) from error


def _refused(path: Path, error: OSError) -> MinigtsError:
    return MinigtsError(f"{path}: cannot be written: {error.strerror or error}; what was measured before is kept")
