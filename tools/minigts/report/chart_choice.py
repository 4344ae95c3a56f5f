"""Which figures an experiment has, from what its file declares: what is varied, what is measured. Pure.

docs/results.md says the rules in words. Nothing here knows an experiment by its name.
"""

from __future__ import annotations

import re
import statistics
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from minigts.experiments.vocabulary import Figure, Published
from minigts.judge.statistics import Middle, middle
from minigts.report import axes, phrasing
from minigts.report.chart_model import Chart, Mark, Panel, Point, Series
from minigts.report.read import Results
from minigts.results.schema import Manifest
from minigts.results.tables import SummaryRow
from minigts.tools import COLUMNS

PANELS = frozenset(name for name, column in COLUMNS.items() if column.panel)
"""Columns that get a panel of their own without being asked for."""
FAR = 2.0
"""A prediction so many times higher than everything measured is told instead of drawn."""
HEADERS_BYTES = 28
"""IP and UDP headers: an MTU less these is the largest datagram in one packet."""


def charts(results: Results) -> tuple[Chart, ...]:
    """The figures that the experiment's file asks for, and for every other measurement the one that follows."""
    declared = {measurement.name: tuple(measurement.vary) for measurement in results.measurements}
    made: list[Chart] = []
    for name in dict.fromkeys(row.measurement for row in results.summary):
        asked = [figure for figure in results.figures if name in figure.measurements]
        for figure in (
            [figure for figure in asked if figure.measurements[0] == name] if asked else [_plain_figure(name)]
        ):
            rows = [row for each in figure.measurements for row in _rows(results, each, len(figure.measurements) > 1)]
            varied = dict.fromkeys(name for each in figure.measurements for name in declared.get(each, ()))
            settings = ("measurement", *varied) if len(figure.measurements) > 1 else tuple(varied)
            chart = _chart(results, settings, figure, [row for row in rows if row.unit == rows[0].unit])
            made.append(replace(chart, name=_free(chart.name, made)))
    return tuple(made)


def _rows(results: Results, measurement: str, among_others: bool) -> list[SummaryRow]:
    """A measurement's rows; in a figure of several, its name is a setting like others."""
    rows = _shown([row for row in results.summary if row.measurement == measurement])
    if not among_others:
        return rows
    return [replace(row, settings=(("measurement", measurement), *row.settings)) for row in rows]


def _plain_figure(name: str) -> Figure:
    """The figure of a measurement for which the file asks none; its name is the summary's own."""
    return Figure.model_construct(of=name)


def _shown(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Whole paths; single segments only where nothing else was measured."""
    return [row for row in rows if row.kind == "path"] or list(rows)


def _free(name: str, taken: Sequence[Chart]) -> str:
    used = {chart.name for chart in taken}
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 1000))) if each not in used)


def _chart(results: Results, settings: Sequence[str], figure: Figure, rows: Sequence[SummaryRow]) -> Chart:
    axis = figure.x if figure.x in axes.possible(settings) else axes.chosen(settings, rows)
    rows = [row for row in rows if not figure.overlays or row.overlay in figure.overlays] or rows
    if axis == "hops":
        rows = [row for row in rows if row.source == rows[0].source]
    place, ticks, unit = axes.places(axis, rows)
    whole = axes.place_label(axis, figure.relative_to, rows) if figure.relative_to else None
    printed = [each for each in results.published if each.measurement in figure.measurements]
    columns = figure.y or (("value",) if figure.relative_to else ("value", *_columns(rows)))
    panels = [
        Panel(
            column,
            _y_label(column, rows[0], whole),
            _series(rows, axis, place, column, figure.relative_to, printed),
            tuple(line for line in figure.lines if (line.y or columns[0]) == column),
        )
        for column in columns
    ]
    panels = [panel for panel in panels if any(series.points for series in panel.series)] or panels[:1]
    beyond = _beyond(panels[0])
    if beyond is not None:
        panels[0] = _without_predictions(panels[0])
    numeric = axis == "hops" or (axis in settings and all(axes.number(text) for _, text in ticks))
    return Chart(
        name=_slug(f"{figure.measurements[0]}-by-{axis}"),
        title=figure.title or _title(figure, axis, rows),
        measurements=figure.measurements,
        tool=rows[0].tool,
        x=axis,
        x_label=axes.label(axis, unit, rows),
        ticks=ticks,
        bars=not numeric,
        panels=tuple(panels),
        marks=_marks(results, axis, unit, rows),
        relative_to=whole,
        beyond=beyond,
        pooled=_pooled(rows, axis, place),
    )


def _title(figure: Figure, axis: str, rows: Sequence[SummaryRow]) -> str:
    several = len(figure.measurements) > 1
    return (
        f"{rows[0].tool.value.label if several else phrasing.measurement(rows[0].measurement)} by {phrasing.axis(axis)}"
    )


def _beyond(panel: Panel) -> float | None:
    """The least prediction, when it would squeeze what was measured into the lower half of the figure."""
    points = [point for series in panel.series for point in series.points]
    predicted = [point.predicted for point in points if point.predicted is not None]
    highest = max((end for p in points for end in (p.high, p.published or 0.0)), default=0.0)
    return min(predicted) if predicted and max(predicted) > FAR * highest else None


def _without_predictions(panel: Panel) -> Panel:
    series = [
        replace(each, points=tuple(replace(point, predicted=None) for point in each.points)) for each in panel.series
    ]
    return replace(panel, series=tuple(series))


def _columns(rows: Sequence[SummaryRow]) -> list[str]:
    """Measured columns that deserve a panel: not those that are 0 throughout."""
    found = dict.fromkeys(name for row in rows for name in row.cell.columns if name in PANELS)
    return [name for name in found if any(value for row in rows for value in row.cell.columns.get(name, ()))]


def _series(
    rows: Sequence[SummaryRow],
    axis: str,
    place: Callable[[SummaryRow], float],
    column: str,
    relative_to: str | None,
    printed: Sequence[Published],
) -> tuple[Series, ...]:
    groups: dict[tuple[str, str], dict[float, list[SummaryRow]]] = {}
    for row in rows:
        words_ = (value if name == "measurement" else f"{name} {value}" for name, value in row.settings if name != axis)
        variant = ", ".join(words_)
        groups.setdefault((row.overlay, variant), {}).setdefault(place(row), []).append(row)
    made = [
        Series(overlay, variant, tuple(p for x, own in sorted(at.items()) if (p := _point(x, own, column, printed))))
        for (overlay, variant), at in groups.items()
    ]
    at = next((place(row) for row in rows if axes.text_at(row, axis) == relative_to and axis != "overlay"), None)
    return _relative(made, relative_to, at) if relative_to else tuple(made)


def _point(x: float, rows: Sequence[SummaryRow], column: str, printed: Sequence[Published]) -> Point | None:
    """The rows' samples together; a single row's own figures are those of its summary."""
    excluded = tuple(value for row in rows for value in row.cell.excluded) if column == "value" else ()
    published = [value for row in rows if (value := _printed(row, column, printed)) is not None]
    predicted = [row.predicted for row in rows if row.predicted is not None] if column == "value" else []
    if column == "value" and len(rows) == 1:
        row = rows[0]
        found = Middle(row.n, row.median, row.low, row.high)
    else:
        values = array("d", chain.from_iterable(row.cell.columns.get(column, ()) for row in rows))
        if not values:
            return None
        found = middle(values)
    return Point(
        x,
        found.median,
        found.median if found.low is None else found.low,
        found.median if found.high is None else found.high,
        found.n,
        statistics.median(published) if published else None,
        statistics.median(predicted) if predicted else None,
        excluded,
        all(row.doubtful for row in rows),
    )


def _printed(row: SummaryRow, column: str, entries: Sequence[Published]) -> float | None:
    """The published value of a cell: its summary's, or for a further column what the experiment's file says."""
    if column == "value":
        return row.published
    place = {"overlay": row.overlay, "from": row.source, "to": row.target, **dict(row.settings)}
    found = (
        each.value
        for entry in entries
        for each in entry.values
        if (entry.measurement, entry.metric) == (row.measurement, column) and each.where.items() <= place.items()
    )
    return next(found, None)


def _relative(made: Sequence[Series], overlay: str, at: float | None) -> tuple[Series, ...]:
    """Each point in per cent of the one over `overlay` at the same x, or, given a place `at`, of its own series's one
    there. Published values become shares of published ones. A point without its base is dropped."""

    lone = all(len(each.points) == 1 for each in made)  # as when the overlays themselves stand along the axis

    def base(series: Series, point: Point) -> Point | None:
        x = point.x if at is None else at
        others = [each for each in made if each.overlay == overlay and each.variant == series.variant]
        owners = others[:1] if at is None else [series, *made]
        points = (each for owner in owners for each in owner.points)
        return next((each for each in points if each.value and (each.x == x or (lone and at is None))), None)

    return tuple(
        replace(each, points=tuple(_share(point, whole) for point in each.points if (whole := base(each, point))))
        for each in made
    )


def _share(point: Point, whole: Point) -> Point:
    factor = 100 / whole.value
    published = None
    if point.published is not None and whole.published:
        published = 100 * point.published / whole.published
    return replace(
        point,
        value=point.value * factor,
        low=point.low * factor,
        high=point.high * factor,
        published=published,
        predicted=None,
        excluded=tuple(value * factor for value in point.excluded),
    )


def _pooled(rows: Sequence[SummaryRow], axis: str, place: Callable[[SummaryRow], float]) -> int:
    paths: dict[tuple[object, ...], set[tuple[str, str]]] = {}
    for row in rows:
        settings = tuple(each for each in row.settings if each[0] != axis)
        paths.setdefault((row.overlay, settings, place(row)), set()).add((row.source, row.target))
    return max(map(len, paths.values()))


def _marks(results: Results, axis: str, unit: str, rows: Sequence[SummaryRow]) -> tuple[Mark, ...]:
    """Where datagrams' sizes vary: the largest one that each overlay carries in one packet."""
    if axis != "datagram" or unit != "bytes":
        return ()
    fits: dict[int, list[str]] = {}
    for overlay in dict.fromkeys(row.overlay for row in rows):
        if mtu := _mtu(results.manifest, overlay):
            fits.setdefault(mtu, []).append(overlay)
    return tuple(Mark(mtu - HEADERS_BYTES, f"MTU {mtu}", tuple(names)) for mtu, names in sorted(fits.items()))


def _mtu(manifest: Manifest | None, overlay: str) -> int | None:
    """The smallest MTU among an overlay's endpoints; None when the manifest does not say."""
    facts = manifest.overlays.get(overlay) if manifest else None
    return min((endpoint.mtu for endpoint in facts.endpoints.values()), default=None) if facts else None


def _y_label(column: str, row: SummaryRow, whole: str | None) -> str:
    own = f"{row.tool.value.label} in {row.unit}"
    name = own if column == "value" else phrasing.column(column, row.unit)
    return f"{name.rpartition(' in ')[0] or name}\nin % of {whole}" if whole else name


def _slug(text: str) -> str:
    """Fit to be a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "figure"
