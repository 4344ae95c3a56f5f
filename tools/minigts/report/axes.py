"""What stands along a figure's axis, and where on it a row of the summary has its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from minigts.report import phrasing
from minigts.results.tables import SummaryRow

MOST_PLACES = 24
"""So many names fit along an axis."""
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
FACTORS = {"kbit": 0.001, "mbit": 1.0, "gbit": 1000.0, "ms": 0.001, "s": 1.0, "min": 60.0}
UNITS = {
    "kbit": "Mbit/s",
    "mbit": "Mbit/s",
    "gbit": "Mbit/s",
    "ms": "s",
    "s": "s",
    "min": "s",
    "%": "%",
    "B": "bytes",
    "packet": "packets",
    "packets": "packets",
}


def possible(varied: Sequence[str]) -> tuple[str, ...]:
    """What a figure may have along its axis where these settings are varied."""
    return ("hops", "path", "overlay", *varied)


def chosen(settings: Sequence[str], rows: Sequence[SummaryRow]) -> str:
    """What stands along the axis when the file does not say: see docs/results.md."""
    varied = [name for name in settings if len({dict(row.settings).get(name) for row in rows}) > 1]
    numeric = [name for name in varied if all(number(dict(row.settings).get(name, "")) for row in rows)]
    if varied:
        return (numeric or varied)[0]
    first = [row for row in rows if row.source == rows[0].source]
    if len({row.hops for row in first}) > 1:
        return "hops"
    paths = {(row.source, row.target) for row in rows}
    return "path" if 1 < len(paths) <= MOST_PLACES else "overlay"


def text_at(row: SummaryRow, axis: str) -> str:
    """Where a row stands on an axis, as text."""
    if axis == "path":
        return f"{row.source} → {row.target}"
    return {"hops": str(row.hops), "overlay": row.overlay}.get(axis) or dict(row.settings).get(axis, "")


def places(
    axis: str, rows: Sequence[SummaryRow]
) -> tuple[Callable[[SummaryRow], float], tuple[tuple[float, str], ...], str]:
    """Where a row stands, the axis's ticks, and its unit; names stand 1 apart from 0 on."""
    texts = list(dict.fromkeys(text_at(row, axis) for row in rows))
    numbers = {text: number(text) for text in texts}
    if axis != "overlay" and all(numbers.values()):
        values = {text: number[0] for text, number in numbers.items() if number}
        hosts = _hosts(rows) if axis == "hops" else {}
        ticks = tuple(sorted((value, text + hosts.get(text, "")) for text, value in values.items()))
        unit = next((number[1] for number in numbers.values() if number), "")
        return (lambda row: values[text_at(row, axis)]), ticks, unit
    order = {text: float(index) for index, text in enumerate(texts)}
    name = phrasing.label if axis == "overlay" else str
    return (lambda row: order[text_at(row, axis)]), tuple((at, name(text)) for text, at in order.items()), ""


def _hosts(rows: Sequence[SummaryRow]) -> dict[str, str]:
    """Which host lies so many hops away, for the line under the number."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(str(row.hops), {})[row.target] = None
    return {
        hops: f"\n{phrasing.short(next(iter(names)))}" if len(names) == 1 else f"\n{len(names)} hosts"
        for hops, names in found.items()
    }


def number(text: str) -> tuple[float, str] | None:
    """`1400B` → 1400 bytes, `1gbit` → 1000 Mbit/s, `5` → 5 of nothing; None for a word."""
    found = _NUMBER.fullmatch(text)
    if not found or (found[2] and found[2] not in UNITS):
        return None
    return float(found[1]) * FACTORS.get(found[2], 1.0), UNITS.get(found[2], "")


def label(axis: str, unit: str, rows: Sequence[SummaryRow]) -> str:
    if axis == "hops":
        return f"hops from {phrasing.short(rows[0].source)}, and the host there"
    name = phrasing.axis(axis)
    return f"{name} in {unit}" if unit else "" if axis in ("path", "overlay") else name


def place_label(axis: str, place: str, rows: Sequence[SummaryRow]) -> str:
    """The name of what values are shares of: a place of the axis, or else an overlay."""
    if axis == "overlay" or all(text_at(row, axis) != place for row in rows):
        return phrasing.label(place)
    return phrasing.counted(int(place), "hop") if axis == "hops" else place
