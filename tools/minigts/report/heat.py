"""A chart of more series than lines can be told apart: a field of colours over two numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigts.report import axes, phrasing, style
from minigts.report.chart_model import Chart, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 8
"""From so many variants on lines are no longer told apart."""
MOST_TICKS = 10
COLOURS = "cividis"
"""Told apart without colour vision, and in grey."""


def fits(chart: Chart) -> bool:
    """Whether its variants are too many for lines, and are values of one thing that is a number."""
    variants = {series.variant for series in chart.panels[0].series}
    if chart.bars or chart.scattered or len(variants) <= MOST_LINES:
        return False
    names = {variant.rpartition(" ")[0] for variant in variants}
    return len(names) == 1 and all(axes.number(_value(variant)) for variant in variants)


def draw(chart: Chart) -> Figure:
    """A field for each overlay, path and quantity; each place is a median."""
    parts = dict.fromkeys((series.overlay, series.path) for series in chart.panels[0].series)
    fields = [(panel, *part) for panel in chart.panels for part in parts]
    with style.sheet(3.0 * len(fields) + 0.5) as figure:
        grid = figure.subplots(len(fields), 1, squeeze=False)
        for place, (panel, overlay, path) in zip(grid[:, 0], fields, strict=True):
            _field(place, chart, panel, overlay, path)
    return figure


def _field(place: Axes, chart: Chart, panel: Panel, overlay: str, path: str) -> None:
    from matplotlib import rc_context  # noqa: PLC0415

    series = sorted((each for each in panel.series if (each.overlay, each.path) == (overlay, path)), key=_height)
    columns = {at: index for index, (at, _) in enumerate(chart.ticks)}
    values = [[float("nan")] * len(columns) for _ in series]
    for row, each in zip(values, series, strict=True):
        for point in each.points:
            row[columns[point.x]] = point.value
    with rc_context(style.RC):
        shown = place.imshow(values, aspect="auto", origin="lower", cmap=COLOURS, interpolation="none")
        place.figure.colorbar(shown, ax=place, label=panel.label)
    _ticks(place.xaxis.set_ticks, [text.partition("\n")[0] for _, text in chart.ticks])
    _ticks(place.yaxis.set_ticks, [_value(each.variant) for each in series])
    place.set_xlabel(chart.x_label)
    place.set_ylabel(series[0].variant.rpartition(" ")[0] if series else "")
    title = [phrasing.label(overlay)] if len(chart.overlays) > 1 else []
    if title or path:
        place.set_title(" · ".join(filter(None, (*title, path))), loc="left", fontsize=9)


def _ticks(set_ticks, texts: list[str]) -> None:  # type: ignore[no-untyped-def] # matplotlib's has no one signature
    step = -(-len(texts) // MOST_TICKS)
    set_ticks(range(0, len(texts), step), texts[::step])


def _height(series: Series) -> float:
    found = axes.number(_value(series.variant))
    return found[0] if found else 0.0


def _value(variant: str) -> str:
    return variant.rpartition(" ")[2]
