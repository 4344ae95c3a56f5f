"""How long work took on this machine: a line for each piece of it, in `<state root>/times.jsonl`.

What minigts says of the time that something will take is corrected by what was seen. No result depends on it, so a file
that cannot be read or written, or is damaged, is as good as none.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from minigts import paths
from minigts.language import documents

MOST_BYTES = 2_000_000
"""A longer file is halved: its older half goes."""
A_LINE = documents.Bounds(elements=10, bytes=1000)
LATEST = 20
"""How many of the latest times of a kind count, and of a single piece of work a quarter of that."""


@dataclass(frozen=True)
class TimesSeen:
    """What was seen so far. A *kind* of work has an estimate of its own, as `traffic`; a *key* is one piece of it."""

    ratios: dict[str, list[float]]
    """By kind: how many times as long as estimated it took, the latest last."""
    seconds: dict[tuple[str, str], list[float]]
    """By kind and key, in seconds of real time, the latest last."""

    def ratio(self, kind: str) -> float | None:
        """How many times as long as estimated work of this kind takes here, the median; None where none was seen."""
        seen = self.ratios.get(kind, [])[-LATEST:]
        return statistics.median(seen) if seen else None

    def took_s(self, kind: str, key: str) -> float | None:
        """How many seconds that piece of work took here, the median; None where it was not seen."""
        seen = self.seconds.get((kind, key), [])[-LATEST // 4 :]
        return statistics.median(seen) if seen else None


def add(kind: str, key: str, seconds: float, estimated_s: float = 0.0) -> None:
    """Note that a piece of work took so many seconds, where `estimated_s` were estimated; 0: none were."""
    line = json.dumps({"kind": kind, "key": key, "seconds": round(seconds, 2), "estimated": round(estimated_s, 2)})
    with suppress(OSError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(opened, f"{line}\n".encode())
            too_long = os.fstat(opened).st_size > MOST_BYTES
        finally:
            os.close(opened)
        if too_long:
            latest = paths.read_whole(file, 2 * MOST_BYTES)[-MOST_BYTES // 2 :]
            paths.write_whole(file, latest.partition(b"\n")[2])


def known_times() -> TimesSeen:
    """What was seen on this machine until now."""
    file = _file()
    try:
        return _read(file, file.stat().st_size)
    except OSError:
        return TimesSeen({}, {})


@lru_cache(maxsize=4)
def _read(file: Path, _size: int) -> TimesSeen:
    """What the file says while it has that size. Raises OSError."""
    found = TimesSeen({}, {})
    for line in paths.read_whole(file, 2 * MOST_BYTES).splitlines():
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            entry = documents.document(line, bounds=A_LINE)
            kind, key = str(entry["kind"]), str(entry["key"])
            seconds, estimated_s = float(entry["seconds"]), float(entry["estimated"])
            if not (math.isfinite(seconds) and math.isfinite(estimated_s) and seconds >= 0):
                continue
            found.seconds.setdefault((kind, key), []).append(seconds)
            if estimated_s > 0:
                found.ratios.setdefault(kind, []).append(seconds / estimated_s)
    return found


def _file() -> Path:
    return paths.state_root() / "times.jsonl"
