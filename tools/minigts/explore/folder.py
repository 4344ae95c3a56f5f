"""The results folder of an exploration, which is written as seeds end.

    explore.json          what is explored: plan, test and its files, plan of faults, seeds; nothing else is needed
    signature             that this user has made it on this machine (results/gate.py)
    faults.yaml, test/    the same for people
    seeds.jsonl           a line for each seed that has ended; a line that a crash has cut short is ignored
    failed/000417-02/     the same of a tail of a seed
    failed/000417/        of a seed that did not pass: time line, output, files of the test, the hosts' logs

A seed's folder is written before its line. So a seed counts as taken only when all of it is here.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.explore import host_logs, timeline
from minigts.explore.outcome import Outcome
from minigts.explore.work import Exploration, Reduced
from minigts.language import documents
from minigts.results import gate, store
from minigts.results.folder import append, inside, read_bytes, read_json, read_model, read_text, validate_value, write
from minigts.results.gate import Examined

EXPLORATION, SEEDS, FAILED, FAULTS, TEST, SHRUNK = (
    "explore.json",
    "seeds.jsonl",
    "failed",
    "faults.yaml",
    "test",
    "shrunk.json",
)
TIMELINE_TEXT = "timeline.txt"


def create(results: Path, exploration: Exploration, now: datetime, *, is_own: bool = True) -> Path:
    """A new folder below `results`, signed as this user's unless somebody else has made what is in it. Raises
    MinigtsError when it cannot be written."""
    folder = store.create(results, f"explore-{exploration.topology}", now)
    for name, file in exploration.test.files.items():
        write(inside(folder, TEST, name), file.data)
    if exploration.faults:
        write(inside(folder, FAULTS), exploration.faults)
    text = exploration.model_dump_json(indent=1) + "\n"
    if is_own:
        gate.sign(folder, signed_content(text))
    write(inside(folder, EXPLORATION), text)
    return folder


def merge(shares: Sequence[Path], results: Path, now: datetime) -> Path:
    """A new folder below `results` with the seeds of all these. It is this user's own if all of them are. Raises
    InputError, with nothing written, for folders of different explorations."""
    found = [examine(each) for each in shares]
    first = found[0].content
    for each in found[1:]:
        compared = [name for name in Exploration.model_fields if name != "started"]
        differs = [name for name in compared if getattr(first, name) != getattr(each.content, name)]
        if differs:
            path = str(each.place / EXPLORATION)
            message = f"differs from {found[0].place} in {', '.join(differs)}; a share is of the same files and seeds"
            raise InputError([Problem(path, 0, message)])
    made = create(results, first, now, is_own=all(each.is_own for each in found))
    for share in shares:
        for outcome in [*tail_outcomes(share).values(), *outcomes(share).values()]:
            keep(made, outcome, _all_files(share, outcome))
    return made


def _all_files(folder: Path, outcome: Outcome) -> Mapping[str, str]:
    """The files of a seed or tail that did not pass, with logs; empty for one that passed."""
    place = seed_folder(folder, outcome.seed, outcome.tail)
    names = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    return {
        name: read_text(inside(folder, FAILED, place.name, *name.split("/"))) for name in names if name != TIMELINE_TEXT
    }


def signed_content(text: str) -> bytes:
    """What the signature is of: all of explore.json, which never changes."""
    return f"explore\n{text}".encode()


def read(folder: Path) -> Exploration:
    """What is explored there, to be shown. Raises InputError for a folder that is no exploration's."""
    return _read(folder)[0]


def examine(folder: Path) -> Examined[Exploration]:
    """What is explored there, and whether it is the user's own. Raises as `read`."""
    exploration, text = _read(folder)
    return gate.examine(folder, exploration, signed_content(text))


def adopt(folder: Path, exploration: Exploration) -> None:
    """Sign a folder that the user trusts, unless it was exchanged meanwhile. Raises MinigtsError."""
    found, text = _read(folder)
    if found == exploration:
        gate.sign(folder, signed_content(text))


def _read(folder: Path) -> tuple[Exploration, str]:
    path = inside(folder, EXPLORATION)
    if not path.is_file():
        raise InputError([Problem(str(folder), 0, f"is no folder of `minigts explore`: it has no {EXPLORATION}")])
    value, text = read_json(path, raw=True)
    return validate_value(path, Exploration, value, text), text


def keep(folder: Path, outcome: Outcome, files: Mapping[str, str]) -> None:
    """Write what came of a seed. Raises MinigtsError when the disk is full or refuses."""
    if outcome.is_bad:
        place = seed_folder(folder, outcome.seed, outcome.tail)
        with suppress(FileNotFoundError):
            shutil.rmtree(place)
        for name, text in files.items():
            write(inside(folder, FAILED, place.name, *name.split("/")), text)
        entries = timeline.merge_entries(
            *(timeline.read(files.get(name, "")) for name in (timeline.FILE, host_logs.FILE))
        )
        text = "".join(f"{line}\n" for line in timeline.entry_lines(entries))
        write(inside(folder, FAILED, place.name, TIMELINE_TEXT), text)
    append(inside(folder, SEEDS), outcome.model_dump_json() + "\n")


def seed_folder(folder: Path, seed: int, tail: int = 0) -> Path:
    """The folder of a seed that did not pass, or of such a tail of it."""
    return inside(folder, FAILED, f"{seed:06d}-{tail:02d}" if tail else f"{seed:06d}")


def outcomes(folder: Path) -> dict[int, Outcome]:
    """The outcome of each seed that has ended; the last one of a seed that was taken again."""
    return {seed: each for (seed, tail), each in _all_outcomes(folder).items() if not tail}


def tail_outcomes(folder: Path) -> dict[tuple[int, int], Outcome]:
    """The outcome of each tail, by its seed and its number."""
    return {(seed, tail): each for (seed, tail), each in _all_outcomes(folder).items() if tail}


def _all_outcomes(folder: Path) -> dict[tuple[int, int], Outcome]:
    path = inside(folder, SEEDS)
    if not path.exists():
        return {}
    found = {}
    for line in read_bytes(path).splitlines():
        with suppress(ValueError):
            outcome = documents.model(line, Outcome)
            found[outcome.seed, outcome.tail] = outcome
    return dict(sorted(found.items()))


def missing(folder: Path, exploration: Exploration) -> list[int]:
    """The seeds that have no result yet, or whose lab could not be run."""
    done = {seed for seed, outcome in outcomes(folder).items() if outcome.verdict != "error"}
    return [seed for seed in range(exploration.first, exploration.last + 1) if seed not in done]


def recorded_files(folder: Path, seed: int, tail: int = 0) -> Mapping[str, str]:
    """The files of a seed that did not pass, or of such a tail, without logs; empty for one that passed."""
    place = seed_folder(folder, seed, tail)
    if not place.is_dir():
        return {}
    names = sorted(path.name for path in place.iterdir() if path.is_file() and path.name not in (TIMELINE_TEXT, SHRUNK))
    return {name: read_text(inside(folder, FAILED, place.name, name)) for name in names}


def keep_shrunk(folder: Path, seed: int, left: Reduced) -> None:
    """Write what of a seed suffices for its failure."""
    write(inside(folder, FAILED, seed_folder(folder, seed).name, SHRUNK), left.model_dump_json() + "\n")


def shrunk(folder: Path, seed: int) -> Reduced | None:
    """What of a seed suffices for its failure; None if it was not shrunk."""
    path = inside(folder, FAILED, seed_folder(folder, seed).name, SHRUNK)
    return read_model(path, Reduced) if path.exists() else None
