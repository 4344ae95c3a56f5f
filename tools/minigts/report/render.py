"""A results directory in, its figures and its report out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.errors import MinigtsError
from minigts.report import captions, derive, figures, grammar, style, topology_figure, words
from minigts.report.chart import draw
from minigts.report.derive import LatencyPoint, ThroughputPoint
from minigts.report.page import Drawing, page
from minigts.report.read import Results, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render(results: Path) -> Path:
    """Writes `results`/figures/*.svg, *.png and report.html, and returns the page's path.

    The same files give the same bytes. Raises InputError when there are no samples or a file is broken, and
    MinigtsError when nothing can be written.
    """
    data = read(results)
    plan = data.manifest.plan
    names = derive.measurements(data.summary, "latency")
    latency = [point for name in names for point in derive.latency_points(data.summary, name, plan)]
    throughput = derive.throughput_points(data.summary, plan)
    target = results / "report.html"
    try:
        drawings = _drawings(data, latency)
        text = page(data, drawings, _paragraphs(data, latency, throughput), latency)
        part = target.with_suffix(".html.part")
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise MinigtsError(f"{target}: cannot be written: {error}") from error
    return target


def _paragraphs(data: Results, latency: Sequence[LatencyPoint], throughput: Sequence[ThroughputPoint]) -> list[str]:
    told = [*words.latency(latency), *words.throughput(throughput)]
    if not data.summary:
        told.append("There are no medians to draw: summary.csv is absent or empty.")
    return [*told, words.counts(data)]


def _drawings(data: Results, latency: Sequence[LatencyPoint]) -> list[Drawing]:
    """Draws what the results hold, and writes it under figures/."""
    folder = data.directory / "figures"
    folder.mkdir(exist_ok=True)
    made = []

    def add(figure: Figure, name: str, heading: str, caption: Sequence[str]) -> None:
        made.append(Drawing(name, style.save(figure, folder, name), heading, caption))

    for chart in grammar.charts(data):
        points = derive.from_first([point for point in latency if point.measurement == chart.measurement])
        if chart.x == "hops" and chart.quantity == "latency" and not chart.relative_to and points:
            add(figures.latency_by_hops(points), chart.name, chart.title, captions.latency(data, chart, points))
        else:
            add(draw(chart), chart.name, chart.title, captions.chart(data, chart))
    if data.manifest.plan:
        heading = "The topology"
        caption = ["Hosts with their locations, and links with round-trip time and rate, as the plan declares them."]
        add(topology_figure.topology(data.manifest.plan), "topology", heading, caption)
    return made
