"""Chooses the figures of an experiment and their axes, from what its file varies and measures. Pure.

docs/results.md has the rules in words. No rule depends on an experiment's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from minigts.experiment_language.claims import Published, word
from minigts.experiment_language.figures import EXPERIMENT, MEASUREMENT, TIME, Figure
from minigts.judge.statistics import Middle, middle
from minigts.report import distributions, phrasing
from minigts.report.axis_places import (
    axis_label,
    chosen_axis,
    path,
    place_label,
    places,
    possible_axes,
    text_at,
    value_label,
    variant,
)
from minigts.report.chart_model import Chart, Panel, Point, Series, VerticalLine, number_of
from minigts.report.read import ReportResults
from minigts.results.schema import Manifest
from minigts.results.tables import SummaryRow
from minigts.tools import COLUMNS
from minigts.tools.ping import GAP

PANELS = frozenset(name for name, column in COLUMNS.items() if column.panel)
"""The columns that get a panel of their own by default."""
FAR = 2.0
"""A prediction more than this many times above everything measured is given in the caption and not drawn."""
MOST_PATHS = 6
"""The most paths at one place of the axis that are separate series; more paths become markers."""
HEADERS_BYTES = 28
"""The size of IP and UDP headers; the MTU less these is the largest datagram in one packet."""


def charts(results: ReportResults) -> tuple[Chart, ...]:
    """The figures that the experiment's file asks for, and a default figure for every other measurement. Figures over
    time are in `over_time`."""
    made: list[Chart] = []
    for name in dict.fromkeys(row.measurement for row in results.summary):
        asked = [figure for figure in results.figures if name in figure.measurements]
        own = [figure for figure in asked if figure.measurements[0] == name and figure.x != TIME]
        for figure in own if any(each.x != TIME for each in asked) else [_plain_figure(name)]:
            chart = chart_of(results, figure)
            made.append(replace(chart, name=free_name(chart.name, [each.name for each in made])))
    return tuple(made)


def chart_of(results: ReportResults, figure: Figure) -> Chart:
    """The figure that is asked for. Its measurements have rows in the summary."""
    declared = {measurement.name: tuple(measurement.vary) for measurement in results.measurements}
    rows = rows_of(results, figure)
    rows = [row for row in rows if row.unit == rows[0].unit]
    varied = dict.fromkeys(name for each in figure.measurements for name in declared.get(each, ()))
    several = (MEASUREMENT,) if len(figure.measurements) > 1 else ()
    settings = (*several, *(name for name in varied if name not in figure.where))
    if figure.cdf:
        return distributions.chart(results, figure, rows)
    return _chart(results, settings, figure, rows)


def rows_of(results: ReportResults, figure: Figure) -> list[SummaryRow]:
    """The rows that a figure shows; in a figure of several measurements their names become a setting."""
    among_others = len(figure.measurements) > 1
    found = []
    for measurement in figure.measurements:
        shown = _shown([row for row in results.summary if row.measurement == measurement])
        name = ((MEASUREMENT, measurement),) if among_others else ()
        for row in shown:
            place = {"path": path(row), **dict(row.settings)}
            if all(word(place.get(key, "")) == value for key, value in figure.where.items()):
                found.append(replace(row, settings=(*name, *row.settings)))
    return [row for row in found if not figure.overlays or row.overlay in figure.overlays] or found


def _plain_figure(name: str) -> Figure:
    """The default figure of a measurement, by its name in the summary."""
    return Figure.model_construct(of=name)


def _shown(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """The rows of whole paths; those of single segments only where there are no others."""
    return [row for row in rows if row.kind == "path"] or list(rows)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 1000))) if each not in taken)


def _chart(results: ReportResults, settings: Sequence[str], figure: Figure, rows: Sequence[SummaryRow]) -> Chart:
    axis = figure.x if figure.x in possible_axes(settings) else chosen_axis(settings, rows)
    if results.several:  # what only some experiments vary is an axis of these
        rows = [row for row in rows if text_at(row, axis)] or rows
    given = rows
    if axis == "hops":
        rows = list(_from_first(rows))
    place, ticks, unit = places(axis, rows, figure)
    paths = _sharing(rows, axis, place)
    by_path = 1 < paths <= MOST_PATHS and axis != "hops"
    whole = place_label(axis, figure.relative_to, rows) if figure.relative_to else None
    printed = [each for each in results.published if each.measurement in figure.measurements]
    cut = any(each.cut is not None for each in results.measurements if each.name in figure.measurements)
    columns = figure.y or (("value",) if figure.relative_to else ("value", *_columns(rows, cut=cut)))
    panels = [
        Panel(
            column,
            _y_label(column, rows[0], whole),
            _series(rows, axis, place, column, figure, printed, by_path=by_path),
            tuple(line for line in figure.lines if (line.y or columns[0]) == column),
        )
        for column in columns
    ]
    panels = [panel for panel in panels if any(series.points for series in panel.series)] or panels[:1]
    if (
        whole and paths > 1 and not any(series.points for series in panels[0].series)
    ):  # several paths could be the whole
        return _chart(results, settings, figure.model_copy(update={"relative_to": None}), given)
    beyond = _beyond(panels[0])
    if beyond is not None:
        panels[0] = _without_predictions(panels[0])
    numeric = axis == "hops" or (axis in settings and axis != EXPERIMENT and all(number_of(text) for _, text in ticks))
    return Chart(
        name=figure.name or _slug(f"{figure.measurements[0]}-by-{axis}"),
        title=figure.title or _title(figure, axis, rows),
        measurements=figure.measurements,
        tool=rows[0].tool,
        x=axis,
        x_label=axis_label(axis, unit, rows),
        ticks=ticks,
        bars=not numeric,
        panels=tuple(panels),
        marks=_marks(results, axis, unit, rows),
        relative_to=whole,
        beyond=beyond,
        scattered=paths > 1 and not by_path,
        by_column=bool(figure.y) or cut,
        elsewhere=len({path(row) for row in given} - {path(row) for row in rows}),
        asked=figure,
    )


def _from_first(rows: Sequence[SummaryRow]) -> Iterator[SummaryRow]:
    """The rows of paths from one host, the first; of several experiments from the first host of each."""
    first: dict[str, str] = {}
    for row in rows:
        if first.setdefault(dict(row.settings).get(EXPERIMENT, ""), row.source) == row.source:
            yield row


def _title(figure: Figure, axis: str, rows: Sequence[SummaryRow]) -> str:
    several = len(figure.measurements) > 1
    return (
        f"{rows[0].tool.value.label if several else phrasing.measurement(rows[0].measurement)} by {phrasing.axis(axis)}"
    )


def _beyond(panel: Panel) -> float | None:
    """The lowest prediction, if drawing it would leave less than half of the figure for what was measured."""
    points = [point for series in panel.series for point in series.points]
    predicted = [point.predicted for point in points if point.predicted is not None]
    highest = max((end for p in points for end in (p.high, p.published or 0.0)), default=0.0)
    return min(predicted) if predicted and max(predicted) > FAR * highest else None


def _without_predictions(panel: Panel) -> Panel:
    series = [
        replace(each, points=tuple(replace(point, predicted=None) for point in each.points)) for each in panel.series
    ]
    return replace(panel, series=tuple(series))


def _columns(rows: Sequence[SummaryRow], *, cut: bool) -> list[str]:
    """The measured columns that get a panel, except those that are 0 throughout. Where a link is `cut` meanwhile, the
    longest time without a reply is one of them."""
    own = {column.name for row in rows for column in row.tool.columns if column.panel}
    wanted = PANELS | own | ({GAP.name} if cut else set())
    found = dict.fromkeys(name for row in rows for name in row.cell.columns if name in wanted)
    return [name for name in found if any(value for row in rows for value in row.cell.columns.get(name, ()))]


def _sharing(rows: Sequence[SummaryRow], axis: str, place: Callable[[SummaryRow], float]) -> int:
    """The number of paths if several would share a place of the axis in one series, otherwise 1."""
    found: dict[tuple[object, ...], set[str]] = {}
    for row in rows:
        settings = tuple(each for each in row.settings if each[0] != axis)
        found.setdefault((row.overlay, settings, place(row)), set()).add(path(row))
    alone = max(map(len, found.values())) == 1
    return 1 if alone else len(set().union(*found.values()))


def _series(
    rows: Sequence[SummaryRow],
    axis: str,
    place: Callable[[SummaryRow], float],
    column: str,
    figure: Figure,
    printed: Sequence[Published],
    *,
    by_path: bool,
) -> tuple[Series, ...]:
    """The series of a panel, with a point for each row. Settings that are not on the axis separate series; with
    `by_path` the path does, too."""
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        own = groups.setdefault((row.overlay, variant(row, figure, axis), path(row) if by_path else ""), [])
        if point := _point(place(row), row, column, printed):
            own.append(point)
    made = [
        Series(overlay, words, tuple(sorted(points, key=lambda point: point.x)), figure.word_name(way))
        for (overlay, words, way), points in groups.items()
    ]
    relative_to = figure.relative_to
    at = next((place(row) for row in rows if text_at(row, axis) == relative_to and axis != "overlay"), None)
    return _relative(made, relative_to, at) if relative_to else tuple(made)


def _point(x: float, row: SummaryRow, column: str, printed: Sequence[Published]) -> Point | None:
    """The row's point: from its summary, or for a further column from its samples. None without figures."""
    if column == "value":
        found = Middle(row.n, row.median, row.low, row.high)
    elif values := row.cell.columns.get(column):
        found = middle(values)
    else:
        return None
    return Point(
        x,
        found.median,
        found.median if found.low is None else found.low,
        found.median if found.high is None else found.high,
        found.n,
        _printed(row, column, printed),
        row.predicted if column == "value" else None,
        tuple(row.cell.excluded) if column == "value" else (),
        row.doubtful,
        path(row),
    )


def _printed(row: SummaryRow, column: str, entries: Sequence[Published]) -> float | None:
    """The published value of a cell: from its summary, or for a further column from the experiment's file."""
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
    """Each point in per cent of its base: the point over `overlay` at the same x, or, given a place `at`, the point of
    its own series there, of the same path or the only one. Published values become shares of published ones. A point
    without a base is dropped."""

    lone = all(len(each.points) == 1 for each in made)  # as when the overlays themselves stand along the axis

    def base(series: Series, point: Point) -> Point | None:
        x = point.x if at is None else at
        others = [each for each in made if each.overlay == overlay and each.condition == series.condition]
        for owner in others[:1] if at is None else [series, *made]:
            there = [each for each in owner.points if each.value and (each.x == x or (lone and at is None))]
            own = [each for each in there if each.path == point.path]
            if not own and at is not None and len(there) == 1:
                own = there
            if own:
                return own[0]
        return None

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


def _marks(results: ReportResults, axis: str, unit: str, rows: Sequence[SummaryRow]) -> tuple[VerticalLine, ...]:
    """Marks at the largest datagram that each overlay carries in one packet, where the size of datagrams varies."""
    if axis != "datagram" or unit != "bytes":
        return ()
    fits: dict[int, list[str]] = {}
    for overlay in dict.fromkeys(row.overlay for row in rows):
        if mtu := _mtu(results.manifest, overlay):
            fits.setdefault(mtu, []).append(overlay)
    return tuple(VerticalLine(mtu - HEADERS_BYTES, f"MTU {mtu}", tuple(names)) for mtu, names in sorted(fits.items()))


def _mtu(manifest: Manifest | None, overlay: str) -> int | None:
    """The smallest MTU among an overlay's endpoints; None when the manifest does not have it."""
    facts = manifest.overlays.get(overlay) if manifest else None
    return min((endpoint.mtu for endpoint in facts.endpoints.values()), default=None) if facts else None


def _y_label(column: str, row: SummaryRow, whole: str | None) -> str:
    name = value_label(row, column)
    return f"{name.rpartition(' in ')[0] or name}\nin % of {whole}" if whole else name


def _slug(text: str) -> str:
    """The text as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "figure"
