"""Units of figures, and what varies as a number for formulas: bytes, seconds, bytes a second, shares of 1. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from minigts.language.problems import list_names, quote

UNITS: Mapping[str, tuple[str, float]] = {
    **{unit: ("a rate", 1e3**power) for power, unit in enumerate(("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))},
    **{unit: ("a rate", 8 * 1e3**power) for power, unit in enumerate(("B/s", "kB/s", "MB/s", "GB/s"))},
    **{unit: ("a time", 1e-3**power) for power, unit in enumerate(("s", "ms", "us", "ns"))},
    **{unit: ("a size", 1e3**power) for power, unit in enumerate(("bytes", "kB", "MB"))},
    "%": ("a share", 0.01),
    "1": ("a share", 1.0),
}
"""For each unit of a formula what it measures, and its factor to the unit of its kind."""
_WRITTEN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([A-Za-z%]{0,8})")
_OF_SETTINGS: Mapping[str, float] = {
    "": 1.0,
    "packets": 1.0,
    "packet": 1.0,
    "%": 0.01,
    **{unit: 1e-3**power for power, unit in enumerate(("s", "ms", "us", "ns"))},
    **{unit: 1e3**power / 8 for power, unit in enumerate(("bit", "kbit", "mbit", "gbit"))},
    **{unit: 1e3**power for power, unit in enumerate(("B", "kB", "MB"))},
    **{unit: 1024.0**power for power, unit in enumerate(("B", "KiB", "MiB"))},
    "min": 60.0,
    "h": 3600.0,
}


def unit(given: object) -> str:
    """One of UNITS. Raises ValueError."""
    if not isinstance(given, str) or given not in UNITS:
        raise ValueError(f"{quote(given)} is no unit of a formula; units are {list_names([*UNITS])}")
    return given


def convert(value: float, source: str, target: str) -> float | None:
    """A figure in another unit; None between units of different kinds. A figure without a unit counts as a share, and a
    plain number is in whatever unit a program's figure has: `segments`."""
    if source == "1" and target and target not in UNITS:
        return value
    (kind, factor), (other, other_factor) = UNITS[source], UNITS.get(target or "1", ("", 1.0))
    return value * factor / other_factor if kind == other else None


def number_of(written: str) -> float:
    """What varies as a number: `64KiB` → 65536 bytes, `10mbit` → 1.25e6 bytes a second, `20ms` → 0.02 seconds, `1%` →
    0.01; not a number for a word."""
    found = _WRITTEN.fullmatch(written)
    factor = _OF_SETTINGS.get(found[2]) if found else None
    return float(found[1]) * factor if found and factor is not None else math.nan
