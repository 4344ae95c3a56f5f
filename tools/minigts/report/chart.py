"""Draws any chart: lines over numbers, bars over names, panels below each other. With more series than lines can show
it draws a heat map over two numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from minigts.experiment_language.figures import X
from minigts.language.figures import digits
from minigts.report import distributions, phrasing, style
from minigts.report.chart_model import Chart, Panel, Point, Series, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VARIANT_DASHES: tuple[style.Dashes, ...] = ("-", "--", ":", "-.")
MOST_NUMBERED = 12
"""The most bars whose values are written above them."""
LOGARITHMIC_FROM = 30
"""The ratio of the largest to the smallest place from which an axis is logarithmic."""
MOST_VARIANTS = 8
"""The most variants that are drawn as lines; with more a heat map is drawn."""
MOST_TICKS = 10
COLOURS = "cividis"
"""A colour map that is readable without colour vision, and in grey."""


@dataclass(frozen=True)
class _Drawn:
    """A series with its look, its label, its offset from the place on the x axis, and its width."""

    series: Series
    look: style.Look
    label: str
    offset: float
    width: float


def draw(chart: Chart) -> Figure:
    """A figure with a panel for each quantity and one legend above."""
    if chart.asked.cdf:
        return _draw_distributions(chart)
    heights = [2.5, *(1.35 for _ in chart.panels[1:])]
    names = [each.label for panel in chart.panels for each in _drawn(chart, panel)]
    rows = -(-len(set(names)) // style.MOST_COLUMNS)
    whole = sum(heights) + 0.75 + style.LEGEND_ROW_INCH * rows
    with style.sheet(whole, chart.asked.style) as figure:
        grid = figure.subplots(len(chart.panels), 1, sharex=True, squeeze=False, height_ratios=heights)
        panels = list(grid[:, 0])
        for axes, panel, height in zip(panels, chart.panels, heights, strict=True):
            _panel(axes, chart, panel)
            _name_y_axis(axes, chart, panel, style.letters_up(figure, height / whole))
        _x_axis(panels[-1], chart, style.letters_across(figure))
        _marks(panels, chart)
        style.legend(figure, panels, names, rows if chart.asked.style.height_inch is None else None)
    return figure


def _draw_distributions(chart: Chart) -> Figure:
    """A figure with a panel for each column, whose x axes differ."""
    with style.sheet(2.6 * len(chart.panels) + 0.5, chart.asked.style) as figure:
        panels = list(figure.subplots(len(chart.panels), 1, squeeze=False)[:, 0])
        for axes, panel in zip(panels, chart.panels, strict=True):
            looks = [(each.series, each.look, each.label) for each in _drawn(chart, panel)]
            distributions.draw_panel(axes, chart, panel, looks)
        style.legend(figure, panels, [each.label for panel in chart.panels for each in _drawn(chart, panel)])
    return figure


def _panel(axes: Axes, chart: Chart, panel: Panel) -> None:
    drawn = list(_drawn(chart, panel))
    for each in drawn:
        if chart.bars and not chart.scattered:
            _bars(axes, each)
        else:
            _line(axes, each, joined=len(chart.ticks) > 1 and not chart.scattered)
        points = each.series.points
        style.mark_excluded(axes, [(point.x + each.offset, value) for point in points for value in point.excluded])
        style.mark_doubtful(axes, [(point.x + each.offset, point.value) for point in points if point.doubtful])
        style.mark_published(axes, [(p.x + each.offset, p.published) for p in points if p.published is not None])
    _predicted(axes, chart, drawn)
    _references(axes, panel)
    if chart.bars and not chart.scattered:
        _numbers(axes, drawn)
    _y_axis(axes, chart, panel)


def _drawn(chart: Chart, panel: Panel) -> Iterator[_Drawn]:
    """The series of a panel: side by side at discrete places, without offset along numbers."""
    single = (chart.x == "overlay" and len(chart.variants) == 1) or _one_each(chart, panel)
    beside = 1 if single or not (chart.bars or chart.x == "hops") else len(panel.series)
    room = 0.8 / beside
    labelled = chart.x != "overlay"
    for index, series in enumerate(panel.series):
        look = _look(chart, series)
        overlay = phrasing.label(series.overlay, chart.asked)
        parts = [overlay if len(chart.overlays) > 1 else "", series.condition]
        name = " · ".join(filter(None, parts)) if labelled or len(chart.variants) > 1 else ""
        offset = 0.0 if beside == 1 else room * (index - (beside - 1) / 2) * (1.0 if chart.bars else 0.4)
        yield _Drawn(
            series,
            look,
            name or (overlay if labelled else ""),
            offset,
            0.62 if single else room * 0.9,
        )


def _one_each(chart: Chart, panel: Panel) -> bool:
    """Whether no place has more than one bar, so that each bar is centred."""
    places = [point.x for series in panel.series for point in series.points]
    return chart.bars and len(places) == len(set(places))


def _look(chart: Chart, series: Series) -> style.Look:
    """Colour and marker show the overlay, dashes and fill the variant; the other way about if there are more variants
    than overlays."""
    overlays, variants = chart.overlays, chart.variants
    overlay, variant = overlays.index(series.overlay), variants.index(series.condition)
    if len(variants) == 1:
        return style.looks(overlays)[series.overlay]
    if len(variants) > max(len(VARIANT_DASHES) // 2, len(overlays)):
        look = list(style.looks(["none", *variants]).values())[variant + 1]
        return _of_variant(look, overlay) if len(overlays) > 1 else look
    return _of_variant(style.looks(overlays)[series.overlay], variant)


def _of_variant(look: style.Look, index: int) -> style.Look:
    """The overlay's colour and marker, with the variant's fill and dashes."""
    hatch = look.hatch if index == 0 else ("", "xx", "..")[(index - 1) % 3]
    return replace(look, dashes=VARIANT_DASHES[index % 4], filled=index == 0, hatch=hatch)


def _line(axes: Axes, drawn: _Drawn, *, joined: bool) -> None:
    """Medians with their intervals, joined by the series' line style."""
    points, look = drawn.series.points, drawn.look
    axes.errorbar(
        [point.x + drawn.offset for point in points],
        [point.value for point in points],
        yerr=_reach(points),
        label=drawn.label,
        **style.markers(look, joined=joined),
    )


def _bars(axes: Axes, drawn: _Drawn) -> None:
    """Hatched bars with whiskers; a first variant is tinted, further ones are not."""
    points, look = drawn.series.points, drawn.look
    axes.bar(
        [point.x + drawn.offset for point in points],
        [point.value for point in points],
        width=drawn.width,
        yerr=_reach(points),
        facecolor=style.SHADE if look.filled else style.PAPER,
        edgecolor=look.colour,
        hatch=look.hatch,
        linewidth=1.1,
        error_kw={"ecolor": style.INK, "elinewidth": 0.9, "capsize": 2.5, "capthick": 0.9},
        label=drawn.label or None,
        zorder=2,
    )


def _reach(points: Sequence[Point]) -> list[list[float]]:
    """How far the intervals reach below and above the medians, at least 0."""
    return [[max(0.0, p.value - p.low) for p in points], [max(0.0, p.high - p.value) for p in points]]


MOST_PREDICTIONS_NAMED = 4
"""More predictions than that are told apart by their colours and dashes alone, which are those of their series."""


def _predicted(axes: Axes, chart: Chart, drawn: Sequence[_Drawn]) -> None:
    """The plan's predictions. Series with the same prediction share one mark, and so do in the legend all that have no
    name there, since the axis names them."""
    what = chart.tool.prediction.legend
    sharing: dict[tuple[tuple[float, float], ...], list[_Drawn]] = {}
    for each in drawn:
        at = tuple((p.x, round(p.predicted, 6)) for p in each.series.points if p.predicted is not None)
        sharing.setdefault(at, []).append(each)
    sharing.pop((), None)
    several = sum(len(owners) == 1 and bool(owners[0].label) for owners in sharing.values()) > MOST_PREDICTIONS_NAMED
    for at, owners in sharing.items():
        alone = len(owners) == 1 and len(drawn) > 1
        named = alone and bool(owners[0].label)
        colour, dashes = (owners[0].look.colour, owners[0].look.dashes) if named else (style.FAINT, style.SOLID)
        label = f"{what}, {owners[0].label}" if named and not several else what
        if chart.scattered:
            axes.scatter(*zip(*sorted(set(at)), strict=True), marker="_", color=colour, linewidths=1.0, label=label)
        elif chart.bars or chart.x == "hops":
            middle, half = (owners[0].offset, owners[0].width / 2) if chart.bars and alone else (0.0, 0.505)
            starts, ends = [x + middle - half for x, _ in at], [x + middle + half for x, _ in at]
            axes.hlines([y for _, y in at], starts, ends, color=colour, linestyles=dashes, linewidth=1.0, label=label)
        else:
            axes.plot(
                [x for x, _ in at],
                [y for _, y in at],
                color=colour,
                linestyle=dashes,
                linewidth=0.7,
                label=label,
                zorder=1,
            )


def _references(axes: Axes, panel: Panel) -> None:
    """The lines that the experiment's file draws across a panel, with their texts."""
    for line in panel.lines:
        axes.axhline(line.at, color=style.INK, linewidth=0.9, linestyle=(0, (6, 3)), zorder=1)
        axes.annotate(
            line.text,
            (0.995, line.at),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=style.note_size(),
        )


def _numbers(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    points = [(each, point) for each in drawn for point in each.series.points]
    if len(points) > MOST_NUMBERED:
        return
    for each, point in points:
        axes.annotate(
            phrasing.figure(point.value),
            (point.x + each.offset, max(point.high, point.value)),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=style.note_size(),
        )


def _marks(panels: Sequence[Axes], chart: Chart) -> None:
    """A line through all panels for each mark, with its text."""
    looks = style.looks(chart.overlays)
    for index, mark in enumerate(chart.marks):
        alone = len(mark.overlays) == 1 and len(chart.overlays) > 1
        colour = looks[mark.overlays[0]].colour if alone else style.INK
        for axes in panels:
            axes.axvline(mark.x, color=colour, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        last = index == len(chart.marks) - 1
        panels[0].annotate(
            mark.text,
            (mark.x, 0.0),
            xycoords=("data", "axes fraction"),
            xytext=(3 if last else -2, 4),
            textcoords="offset points",
            rotation=90,
            ha="left" if last else "right",
            va="bottom",
            fontsize=style.note_size(),
            color=colour,
        )


def _x_axis(axes: Axes, chart: Chart, letters: int) -> None:
    places = [at for at, _ in chart.ticks]
    asked = chart.asked.axis(X)
    if chart.x == "hops":
        axes.set_xlim(min(places) - 0.55, max(places) + 0.55)
        axes.set_xticks(places, [name for _, name in chart.ticks])
    elif chart.bars:
        axes.set_xlim(min(places) - 0.55, max(places) + 0.55)
        names = [name for _, name in chart.ticks]
        steep = len(names) > 9
        across = max(9, letters // len(names))
        wrapped = [name if steep else textwrap.fill(name, across) for name in names]
        axes.set_xticks(places, wrapped, rotation=40 if steep else 0, ha="right" if steep else "center")
        axes.tick_params(axis="x", length=0)
    else:
        if asked.scale == "log" or (asked.scale is None and _spans_tens(places)):
            axes.set_xscale("log")
        shown = [at for at in places if not asked.beyond(at)]
        axes.set_xticks(shown, [digits(at, 6) for at in shown], minor=False)
        axes.xaxis.minorticks_off()
        style.set_ends(axes, x=asked)
    axes.set_xlabel(asked.label or chart.x_label)


def _name_y_axis(axes: Axes, chart: Chart, panel: Panel, letters: int) -> None:
    axes.set_ylabel(textwrap.fill(chart.asked.axis(panel.column).label or panel.label, letters))


def _y_axis(axes: Axes, chart: Chart, panel: Panel) -> None:
    asked = chart.asked.axis(panel.column)
    axes.grid(axis="y")
    axes.tick_params(length=3)
    points = [point for series in panel.series for point in series.points]
    known = [v for p in points for v in (p.high, p.value, p.published, p.predicted, *p.excluded) if v is not None]
    known += [line.at for line in panel.lines]
    top = max(known, default=1.0)
    if asked.scale == "log" or (asked.scale is None and _is_wide(chart, points)):
        axes.set_yscale("log")
        style.plain_numbers(axes.yaxis)
        if chart.bars and not chart.scattered:
            lowest = min((point.low for point in points if point.low > 0), default=top / 10)
            axes.set_ylim(10 ** math.floor(math.log10(lowest / 1.5)), 1.5 * top)
    else:
        axes.set_ylim(0, 1.14 * top or 1)
        axes.locator_params(axis="y", nbins=6 if panel is chart.panels[0] else 4, steps=[1, 2, 5, 10])
    style.set_ends(axes, y=asked)


def _is_wide(chart: Chart, points: Sequence[Point]) -> bool:
    """Whether both axes span powers of ten."""
    places, values = [at for at, _ in chart.ticks], [point.low for point in points]
    return (
        not chart.bars
        and _spans_tens(places)
        and min(values, default=0) > 0
        and max(values) / min(values) >= LOGARITHMIC_FROM
    )


def _spans_tens(places: Sequence[float]) -> bool:
    return min(places) > 0 and max(places) / min(places) >= LOGARITHMIC_FROM


def is_heatmap(chart: Chart) -> bool:
    """Whether there are too many variants for lines, and all are numeric values of one setting."""
    variants = {series.variant for series in chart.panels[0].series}
    if chart.asked.cdf or chart.bars or chart.scattered or len(variants) <= MOST_VARIANTS:
        return False
    names = {variant.rpartition(" ")[0] for variant in variants}
    return len(names) == 1 and all(number_of(_varied(variant)) for variant in variants)


def draw_heatmap(chart: Chart) -> Figure:
    """A figure with a heat map for each overlay, path and quantity; each field is a median."""
    parts = dict.fromkeys((series.overlay, series.path) for series in chart.panels[0].series)
    fields = [(panel, *part) for panel in chart.panels for part in parts]
    with style.sheet(3.0 * len(fields) + 0.5, chart.asked.style) as figure:
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
    with rc_context(style.rc(chart.asked.style)):
        shown = place.imshow(values, aspect="auto", origin="lower", cmap=COLOURS, interpolation="none")
        place.figure.colorbar(shown, ax=place, label=chart.asked.axis(panel.column).label or panel.label)
    _some_ticks(place.xaxis.set_ticks, [text.partition("\n")[0] for _, text in chart.ticks])
    _some_ticks(place.yaxis.set_ticks, [_varied(each.variant) for each in series])
    place.set_xlabel(chart.asked.axis(X).label or chart.x_label)
    place.set_ylabel(series[0].variant.rpartition(" ")[0] if series else "")
    title = [phrasing.label(overlay, chart.asked)] if len(chart.overlays) > 1 else []
    if title or path:
        place.set_title(" · ".join(filter(None, (*title, path))), loc="left")


def _some_ticks(set_ticks, texts: list[str]) -> None:  # type: ignore[no-untyped-def] # matplotlib's has no one signature
    step = -(-len(texts) // MOST_TICKS)
    set_ticks(range(0, len(texts), step), texts[::step])


def _height(series: Series) -> float:
    found = number_of(_varied(series.variant))
    return found[0] if found else 0.0


def _varied(variant: str) -> str:
    return variant.rpartition(" ")[2]
