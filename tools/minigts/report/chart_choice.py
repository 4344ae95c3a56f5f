"""Chooses the figures of an experiment and their axes, from what its file varies and measures. Pure.

docs/results.md has the rules in words. No rule depends on an experiment's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from minigts.experiments.claim_language import Figure, Published
from minigts.judge.statistics import Middle, middle
from minigts.report import phrasing
from minigts.report.chart_model import Chart, Mark, Panel, Point, Series, number_of
from minigts.report.read import Results
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
MOST_PLACES = 24
"""The most names that fit along an axis."""


def charts(results: Results) -> tuple[Chart, ...]:
    """The figures that the experiment's file asks for, and a default figure for every other measurement."""
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
    """A measurement's rows; in a figure of several measurements its name becomes a setting."""
    rows = _shown([row for row in results.summary if row.measurement == measurement])
    if not among_others:
        return rows
    return [replace(row, settings=(("measurement", measurement), *row.settings)) for row in rows]


def _plain_figure(name: str) -> Figure:
    """The default figure of a measurement, by its name in the summary."""
    return Figure.model_construct(of=name)


def _shown(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """The rows of whole paths; those of single segments only where there are no others."""
    return [row for row in rows if row.kind == "path"] or list(rows)


def _free(name: str, taken: Sequence[Chart]) -> str:
    used = {chart.name for chart in taken}
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 1000))) if each not in used)


def _chart(results: Results, settings: Sequence[str], figure: Figure, rows: Sequence[SummaryRow]) -> Chart:
    axis = figure.x if figure.x in possible_axes(settings) else chosen_axis(settings, rows)
    rows = [row for row in rows if not figure.overlays or row.overlay in figure.overlays] or rows
    given = rows
    if axis == "hops":
        rows = [row for row in rows if row.source == rows[0].source]
    place, ticks, unit = places(axis, rows)
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
            _series(rows, axis, place, column, figure.relative_to, printed, by_path=by_path),
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
    numeric = axis == "hops" or (axis in settings and all(number_of(text) for _, text in ticks))
    return Chart(
        name=_slug(f"{figure.measurements[0]}-by-{axis}"),
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
        elsewhere=len({_path(row) for row in given} - {_path(row) for row in rows}),
    )


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
    wanted = PANELS | ({GAP.name} if cut else set())
    found = dict.fromkeys(name for row in rows for name in row.cell.columns if name in wanted)
    return [name for name in found if any(value for row in rows for value in row.cell.columns.get(name, ()))]


def _path(row: SummaryRow) -> str:
    return f"{row.source} → {row.target}"


def _sharing(rows: Sequence[SummaryRow], axis: str, place: Callable[[SummaryRow], float]) -> int:
    """The number of paths if several would share a place of the axis in one series, otherwise 1."""
    found: dict[tuple[object, ...], set[str]] = {}
    for row in rows:
        settings = tuple(each for each in row.settings if each[0] != axis)
        found.setdefault((row.overlay, settings, place(row)), set()).add(_path(row))
    alone = max(map(len, found.values())) == 1
    return 1 if alone else len(set().union(*found.values()))


def _series(
    rows: Sequence[SummaryRow],
    axis: str,
    place: Callable[[SummaryRow], float],
    column: str,
    relative_to: str | None,
    printed: Sequence[Published],
    *,
    by_path: bool,
) -> tuple[Series, ...]:
    """The series of a panel, with a point for each row. Settings that are not on the axis separate series; with
    `by_path` the path does, too."""
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        words_ = (value if name == "measurement" else f"{name} {value}" for name, value in row.settings if name != axis)
        own = groups.setdefault((row.overlay, ", ".join(words_), _path(row) if by_path else ""), [])
        if point := _point(place(row), row, column, printed):
            own.append(point)
    made = [
        Series(overlay, variant, tuple(sorted(points, key=lambda point: point.x)), path)
        for (overlay, variant, path), points in groups.items()
    ]
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
        _path(row),
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


def _marks(results: Results, axis: str, unit: str, rows: Sequence[SummaryRow]) -> tuple[Mark, ...]:
    """Marks at the largest datagram that each overlay carries in one packet, where the size of datagrams varies."""
    if axis != "datagram" or unit != "bytes":
        return ()
    fits: dict[int, list[str]] = {}
    for overlay in dict.fromkeys(row.overlay for row in rows):
        if mtu := _mtu(results.manifest, overlay):
            fits.setdefault(mtu, []).append(overlay)
    return tuple(Mark(mtu - HEADERS_BYTES, f"MTU {mtu}", tuple(names)) for mtu, names in sorted(fits.items()))


def _mtu(manifest: Manifest | None, overlay: str) -> int | None:
    """The smallest MTU among an overlay's endpoints; None when the manifest does not have it."""
    facts = manifest.overlays.get(overlay) if manifest else None
    return min((endpoint.mtu for endpoint in facts.endpoints.values()), default=None) if facts else None


def _y_label(column: str, row: SummaryRow, whole: str | None) -> str:
    own = f"{row.tool.value.label} in {row.unit}"
    name = own if column == "value" else phrasing.column(column, row.unit)
    return f"{name.rpartition(' in ')[0] or name}\nin % of {whole}" if whole else name


def _slug(text: str) -> str:
    """The text as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "figure"


def possible_axes(varied: Sequence[str]) -> tuple[str, ...]:
    """The possible x axes of a figure where these settings are varied."""
    return ("hops", "path", "overlay", *varied)


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
        return f"{row.source} → {row.target}"
    return {"hops": str(row.hops), "overlay": row.overlay}.get(axis) or dict(row.settings).get(axis, "")


def places(
    axis: str, rows: Sequence[SummaryRow]
) -> tuple[Callable[[SummaryRow], float], tuple[tuple[float, str], ...], str]:
    """A function from a row to its place, the axis's ticks, and its unit; names have the places 0, 1, 2, …"""
    texts = list(dict.fromkeys(text_at(row, axis) for row in rows))
    numbers = {text: number_of(text) for text in texts}
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
    name = phrasing.axis(axis)
    return f"{name} in {unit}" if unit else "" if axis in ("path", "overlay") else name


def place_label(axis: str, place: str, rows: Sequence[SummaryRow]) -> str:
    """The name of the base of shares: a place of the axis, or an overlay."""
    if axis == "overlay" or all(text_at(row, axis) != place for row in rows):
        return phrasing.label(place)
    return phrasing.counted(int(place), "hop") if axis == "hops" else place
