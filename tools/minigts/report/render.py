"""A results directory in, its figures and its report out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.errors import MinigtsError
from minigts.report import derive, figures, style, topology_figure, words
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
        drawings = _drawings(data, latency, throughput)
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


def _drawings(data: Results, latency: Sequence[LatencyPoint], throughput: Sequence[ThroughputPoint]) -> list[Drawing]:
    """Draws what the results hold, and writes it under figures/."""
    folder = data.directory / "figures"
    folder.mkdir(exist_ok=True)
    made = []

    def add(figure: Figure, name: str, heading: str, caption: Sequence[str]) -> None:
        made.append(Drawing(name, style.save(figure, folder, name), heading, caption))

    for measurement in dict.fromkeys(point.measurement for point in latency):
        points = derive.from_first([point for point in latency if point.measurement == measurement])
        heading = "Latency by hops" if measurement == "latency" else f"{measurement} by hops"
        caption = _latency_caption(data, points)
        add(figures.latency_by_hops(points), f"{_file(measurement)}-by-hops", heading, caption)
    if throughput:
        shown = derive.from_first(throughput)
        caption = _throughput_caption(data, shown)
        add(figures.throughput_by_hops(shown), "throughput-by-hops", "Throughput by hops", caption)
    if data.manifest.plan:
        heading = "The topology"
        caption = ["Hosts with their locations, and links with round-trip time and rate, as the plan declares them."]
        add(topology_figure.topology(data.manifest.plan), "topology", heading, caption)
    return made


def _file(measurement: str) -> str:
    """The measurement's name, fit to be part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", measurement.casefold()).strip("-") or "latency"


def _latency_caption(data: Results, points: Sequence[LatencyPoint]) -> list[str]:
    caption = [
        "Markers are the median RTT of the repetitions, "
        f"whiskers its 95 % interval ({words.repetitions(p.n for p in points)})."
    ]
    if any(point.segments_ms for point in points):
        caption.append("Bars stack the medians of the single segments, measured one by one over the same network.")
    if any(point.residual_ms is not None for point in points):
        caption.append(
            "Below: how far the RTT lies from the top of its bar; whiskers join the intervals of path and "
            "segments, shaded boxes are the tolerance."
        )
    if any(point.segments_ms and point.residual_ms is None for point in points):
        caption.append("Where a path is its own only segment there is nothing to compare.")
    if any(point.published_ms is not None for point in points):
        caption.append(f"Open diamonds are the published values{_sources(data, points)}.")
    return [*caption, *_made_with(data)]


def _throughput_caption(data: Results, points: Sequence[ThroughputPoint]) -> list[str]:
    caption = [f"Markers are the median, whiskers its 95 % interval ({words.repetitions(p.n for p in points)})."]
    if any(point.bound_mbit for point in points):
        caption.append(
            "Lines without markers: the highest TCP goodput that the plan allows, and the UDP that should arrive."
        )
    if any(point.published_mbit for point in points):
        caption.append(f"Open diamonds are the published values{_sources(data, points)}.")
    return [*caption, *_trends(data, points), *_made_with(data)]


def _sources(data: Results, points: Sequence[LatencyPoint] | Sequence[ThroughputPoint]) -> str:
    """Where the points' published values were printed, in brackets."""
    names = {point.measurement for point in points}
    sources = dict.fromkeys(e.source for e in data.manifest.experiment.published if e.measurement in names and e.source)
    return f" ({'; '.join(sources)})" if sources else ""


def _trends(data: Results, points: Sequence[ThroughputPoint]) -> list[str]:
    """The published trends, in the experiment's own words; they have no numbers that could be drawn."""
    names = {point.measurement for point in points}
    told = [entry for entry in data.manifest.experiment.published if entry.measurement in names and entry.trend]
    return [
        f"Published for {words.measurement(e.measurement)}: {e.trend.rstrip('.')}"
        f"{f' ({e.source})' if e.source else ''}."
        for e in told
    ]


def _made_with(data: Results) -> list[str]:
    """The provider, and the command that makes the figure again."""
    manifest = data.manifest
    told = [f"Provider: {manifest.provider}."] if manifest.provider else []
    if manifest.experiment.name:
        told.append(f"Made by minigts run experiments/{manifest.experiment.name}.yaml.")
    return told
