"""The raw outputs of a results directory, which are written before anything is derived from them.

Every file is written under a temporary name, flushed to the disk and renamed: a file that exists is complete, even if
the writer was killed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from minigts import paths
from minigts.errors import InputError, MinigtsError, Problem
from minigts.results.folder import disk_error, inside, read_model, require_plain_name, write
from minigts.results.schema import MANIFEST, RAW, SAMPLES, RawSample


class Planned(Protocol):
    """A sample that is to be taken."""

    @property
    def id(self) -> str:
        """The name of its file, without the ending."""
        ...


_S = TypeVar("_S", bound=Planned)


def create(results: Path, experiment: str, now: datetime) -> Path:
    """Make a directory `results/<experiment>-<YYYYmmdd-HHMMSS>/`, with a number at the end if that one exists."""
    stem = f"{experiment}-{now:%Y%m%d-%H%M%S}"
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        directory = inside(results, f"{stem}{suffix}")
        try:
            paths.users_folder(directory)
        except FileExistsError:
            continue
        except OSError as error:
            raise disk_error(directory, error) from error
        return directory
    raise MinigtsError(f"{results}: a thousand runs of {experiment} in one second")


def is_run(directory: Path) -> bool:
    """Whether it is the directory of a run: it has samples, or at least a manifest."""
    return any((directory / name).is_file() for name in (SAMPLES, MANIFEST))


def runs_in(directory: Path) -> tuple[Path, ...]:
    """The directory itself if it is a run's, otherwise the runs of the campaign or sweep in it; a campaign may have
    sweeps. Raises InputError where there is no such directory."""
    try:
        if is_run(directory):
            return (directory,)
        return tuple(
            inside(run.parent, run.name)
            for each in _folders(directory)
            for run in ([each] if is_run(each) else filter(is_cell, _folders(each)))
            if is_run(run)
        )
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise InputError(f"{directory}: no such results directory") from error
    except OSError as error:
        raise InputError(f"{directory}: cannot be read: {error.strerror}") from error


def runs_without_tables(directory: Path) -> tuple[Path, ...]:
    """The runs there that have taken samples and ended before the tables of these were written. Raises InputError where
    there is no such directory."""
    return tuple(
        each
        for each in runs_in(directory)
        if (each / MANIFEST).is_file() and not (each / SAMPLES).exists() and any((each / RAW).glob("*.json"))
    )


def is_cell(directory: Path) -> bool:
    """Whether its name is that of one lab of a sweep, which has the lab's values: `chain.hosts=3`."""
    return "=" in directory.name


def _folders(directory: Path) -> list[Path]:
    return [directory / name for name in sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())]


def is_campaign(directory: Path) -> bool:
    """Whether it has runs inside, and is no run itself."""
    return directory.is_dir() and not is_run(directory) and bool(runs_in(directory))


def save(directory: Path, raw: RawSample, *, repeated: bool = False) -> None:
    """Store one attempt: as `raw/<id>.json` when it is the result, as `raw/<id>.failed-<attempt>.json` when it failed,
    and as `raw/<id>.tainted-<attempt>.json` when it is to be `repeated` because the machine was starved."""
    kind = "" if raw.error is None and not repeated else ".tainted" if raw.error is None else ".failed"
    name = f"{raw.sample}{kind}-{raw.attempt}.json" if kind else f"{raw.sample}.json"
    write(inside(directory, RAW, name), raw.model_dump_json(indent=1))


def discard(directory: Path, sample: str, reason: str) -> None:
    """Mark the good attempt at `sample` as failed, and keep it as such."""
    raw = good(directory, sample)
    if raw is not None:
        save(directory, raw.model_copy(update={"error": reason, "attempt": attempts(directory).get(sample, 0) + 1}))
        inside(directory, RAW, f"{sample}.json").unlink()


def remove(directory: Path, sample: str) -> None:
    """Remove every attempt at `sample`."""
    for path in inside(directory, RAW).glob("*.json"):
        if path.name == f"{sample}.json" or path.name.startswith((f"{sample}.failed-", f"{sample}.tainted-")):
            path.unlink()


def good(directory: Path, sample: str) -> RawSample | None:
    """The good attempt at `sample`, or None. Raises InputError for a broken file."""
    path = inside(directory, RAW, f"{sample}.json")
    return _read(path, sample) if os.path.lexists(path) else None


def earlier(directory: Path, sample: str) -> tuple[RawSample, ...]:
    """The failed and tainted attempts at `sample`, in order."""
    places = [path for kind in ("failed", "tainted") for path in _numbered(directory, kind).get(sample, ())]
    return tuple(_read(inside(directory, RAW, path.name), sample) for path in sorted(places, key=_number))


def attempts(directory: Path) -> dict[str, int]:
    """The highest number of a failed or tainted attempt, for each sample that has one."""
    found: dict[str, int] = {}
    for kind in ("failed", "tainted"):
        for sample, places in _numbered(directory, kind).items():
            found[sample] = max(found.get(sample, 0), *map(_number, places))
    return found


def repeats(directory: Path) -> dict[str, int]:
    """How often each sample was taken again because it was tainted."""
    return {sample: len(places) for sample, places in _numbered(directory, "tainted").items()}


def pending(samples: Sequence[_S], directory: Path) -> tuple[_S, ...]:
    """The samples without a good result, in order. Raises InputError for a sample whose id cannot be a file's name."""
    folder = inside(directory, RAW)
    for sample in samples:
        require_plain_name(folder, f"{sample.id}.failed-999999.json")
    there = {path.name for path in folder.glob("*.json")}
    return tuple(sample for sample in samples if f"{sample.id}.json" not in there)


def _numbered(directory: Path, kind: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in inside(directory, RAW).glob(f"*.{kind}-*.json"):
        if _number(path):
            found.setdefault(path.name.rpartition(f".{kind}-")[0], []).append(path)
    return {sample: sorted(places, key=_number) for sample, places in found.items()}


def _number(path: Path) -> int:
    found = re.search(r"\.(?:failed|tainted)-(\d{1,6})\.json$", path.name, re.ASCII)
    return int(found[1]) if found else 0


def _read(path: Path, sample: str) -> RawSample:
    try:
        raw = read_model(path, RawSample, raw=True)
    except InputError as error:
        first = error.problems[0] if error.problems else Problem(str(path), 0, str(error))
        message = f"is no raw sample; remove it and the run repeats it ({first.message})"
        raise InputError([Problem(str(path), first.line, message)]) from error
    if raw.sample != sample:
        message = f"is no raw sample; remove it and the run repeats it (it is {raw.sample[:200]!r}, by another name)"
        raise InputError([Problem(str(path), 0, message)])
    return raw
