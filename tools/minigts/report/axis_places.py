"""The x axis of a figure: which one is chosen, where each row stands on it, and what is written at it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minigts.experiment_language.figures import EXPERIMENT, MEASUREMENT, PLACES, Figure
from minigts.report import phrasing
from minigts.report.chart_model import number_of, numbers_of
from minigts.results.tables import SeriesRow, SummaryRow
from minigts.tools.columns import VALUE

IN_FULL = {
    "TCP": "TCP throughput",
    "UDP": "UDP throughput",
    "stream": "throughput of the stream",
    "cwnd": "congestion window",
    "lost": "lost packets",
    "sent": "sent by the client",
    "offered": "offered by the client",
    "longest gap": "longest time without a reply",
    "p99": "99th percentile of a sample",
    "median": "median of a sample",
    "max": "highest of a sample",
    "stdev": "standard deviation of a sample",
    "CPU a byte": "processor time a byte",
    "CPU source": "sender's CPU",
    "CPU target": "receiver's CPU",
    "cross": "cross traffic",
    "cross loss": "loss of the cross traffic",
    "congestion": "congestion control",
    "datagram": "size of a datagram",
}
"""What axes write in full, by the words of tables, which have less room."""
MOST_PLACES = 24
"""The most names that fit along an axis."""


def possible_axes(varied: Sequence[str]) -> tuple[str, ...]:
    """The possible x axes of a figure where these settings are varied."""
    return (*PLACES, *varied)


def chosen_axis(settings: Sequence[str], rows: Sequence[SummaryRow]) -> str:
    """The x axis when the file does not choose one; docs/results.md has the rules."""
    varied = [name for name in settings if len({dict(row.settings).get(name) for row in rows}) > 1]
    numeric = [name for name in varied if all(number_of(dict(row.settings).get(name, "")) for row in rows)]
    if varied:
        return (numeric or varied)[0]
    first = [row for row in rows if row.source == rows[0].source]
    if len({row.hops for row in first}) > 1:
        return "hops"
    paths = {(row.source, row.target) for row in rows}
    return "path" if 1 < len(paths) <= MOST_PLACES else "overlay"


def text_at(row: SummaryRow, axis: str) -> str:
    """The row's place on an axis, as text."""
    if axis == "path":
        return path(row)
    return {"hops": str(row.hops), "overlay": row.overlay}.get(axis) or dict(row.settings).get(axis, "")


def places(
    axis: str, rows: Sequence[SummaryRow], asked: Figure
) -> tuple[Callable[[SummaryRow], float], tuple[tuple[float, str], ...], str]:
    """A function from a row to its place, the axis's ticks, and its unit; names have the places 0, 1, 2, …"""
    texts = list(dict.fromkeys(text_at(row, axis) for row in rows))
    numbers = numbers_of(texts)
    if axis not in ("overlay", EXPERIMENT) and numbers is not None:
        values, unit = numbers
        hosts = _hosts(rows) if axis == "hops" else {}
        ticks = tuple(sorted((value, text + hosts.get(text, "")) for text, value in values.items()))
        return (lambda row: values[text_at(row, axis)]), ticks, unit
    order = {text: float(index) for index, text in enumerate(texts)}
    name = phrasing.label if axis == "overlay" else _named
    ticks = tuple((at, name(text, asked)) for text, at in order.items())
    return (lambda row: order[text_at(row, axis)]), ticks, ""


def _named(text: str, asked: Figure) -> str:
    return asked.word_name(text)


def _hosts(rows: Sequence[SummaryRow]) -> dict[str, str]:
    """The host at each number of hops, or how many there are, for the line under the number."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(str(row.hops), {})[row.target] = None
    return {
        hops: f"\n{phrasing.short(next(iter(names)))}" if len(names) == 1 else f"\n{len(names)} hosts"
        for hops, names in found.items()
    }


def axis_label(axis: str, unit: str, rows: Sequence[SummaryRow]) -> str:
    if axis == "hops":
        return f"hops from {phrasing.short(rows[0].source)}, and the host there"
    name = full_label(phrasing.axis(axis))
    return f"{name} in {unit}" if unit else "" if axis in ("path", "overlay", EXPERIMENT) else name


def value_label(row: SummaryRow, column: str) -> str:
    """What a column shows, with its unit: `TCP throughput in Mbit/s`."""
    own = f"{row.tool.value.label} in {row.unit}"
    return full_label(own if column == VALUE else phrasing.column(column, row.unit, row.tool))


def full_label(label: str) -> str:
    """The label of an axis, with or without a unit, without abbreviations that only tables need."""
    name, said, unit = label.rpartition(" in ")
    return f"{IN_FULL.get(name, name)} in {unit}" if said else IN_FULL.get(label, label)


def place_label(axis: str, place: str, rows: Sequence[SummaryRow]) -> str:
    """The name of the base of shares: a place of the axis, or an overlay."""
    if axis == "overlay" or all(text_at(row, axis) != place for row in rows):
        return phrasing.label(place)
    return phrasing.count_phrase(int(place), "hop") if axis == "hops" else place


def path(row: SummaryRow | SeriesRow) -> str:
    """`ams → bra`"""
    return f"{row.source} → {row.target}"


def variant(row: SummaryRow | SeriesRow, figure: Figure, axis: str = "") -> str:
    """The values of the settings that are neither on the axis nor held fixed, in words: `offload on, sessions 9`."""
    told = []
    for name, value in row.settings:
        if name != axis and name not in figure.where:
            alone = name in (MEASUREMENT, EXPERIMENT)
            told.append(figure.word_name(value, value if alone else f"{phrasing.axis(name)} {value}"))
    return ", ".join(told)
