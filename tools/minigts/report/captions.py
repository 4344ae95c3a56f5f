"""What stands under a figure: how to read it, what is published, and the command that makes it again. Plain text."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.report import phrasing
from minigts.report.chart_model import Chart
from minigts.report.derive import LatencyPoint
from minigts.report.read import Results


def latency(data: Results, chart: Chart, points: Sequence[LatencyPoint]) -> list[str]:
    """For a latency by hops beside the sum of its segments."""
    caption = [phrasing.middles("Markers", [point.n for point in points], data)]
    if any(point.segments_ms for point in points):
        caption.append("Bars stack the medians of the single segments, measured one by one over the same network.")
    if any(point.residual_ms is not None for point in points):
        caption.append(
            "Below: how far the RTT lies from the top of its bar; whiskers join the intervals of path and "
            "segments, shaded boxes are the tolerance."
        )
    if any(point.segments_ms and point.residual_ms is None for point in points):
        caption.append("Where a path is its own only segment there is nothing to compare.")
    if any(point.excluded for point in points):
        caption.append("Grey crosses are samples taken while the machine was too busy.")
    if any(point.doubtful for point in points):
        caption.append("Ringed points rest on samples that were all taken while the machine was too busy.")
    if any(point.published_ms is not None for point in points):
        caption.append(f"Open diamonds are the published values{_sources(data, chart)}.")
    return [*caption, *_elsewhere(chart), *_trends(data, chart), *_made_with(data)]


def chart(data: Results, chart: Chart) -> list[str]:
    """For any other figure."""
    points = [point for panel in chart.panels for series in panel.series for point in series.points]
    first = [point for series in chart.panels[0].series for point in series.points]
    caption = [
        phrasing.middles(
            "Bars" if chart.bars and not chart.scattered else "Markers", [point.n for point in points], data
        )
    ]
    if (better := chart.tool.value.better) is not None:
        caption.append(f"{better.capitalize()} is better.")
    if chart.relative_to:
        caption.append(f"Each value is a share of that of {chart.relative_to}.")
    if chart.scattered:
        caption.append("Each marker is one path; the numbers below name them.")
    caption += _elsewhere(chart)
    if any(point.predicted is not None for point in first):
        caption.append(f"Lines without markers: {chart.tool.prediction.sentence}.")
    if chart.beyond is not None:
        caption.append(f"The plan predicts {phrasing.figure(chart.beyond)} or more, far above what is drawn.")
    if chart.marks:
        caption.append("Dotted uprights: the largest datagram that an overlay's MTU holds in one packet.")
    if any(point.excluded for point in first):
        caption.append("Grey crosses are samples taken while the machine was too busy.")
    if any(point.doubtful for point in points):
        caption.append("Ringed points rest on samples that were all taken while the machine was too busy.")
    if any(point.published is not None for point in first):
        caption.append(f"Open diamonds are the published values{_sources(data, chart)}.")
    return [*caption, *_trends(data, chart), *_made_with(data)]


def heat(data: Results, chart: Chart) -> list[str]:
    """For a field of colours."""
    points = [point for panel in chart.panels for series in panel.series for point in series.points]
    return [
        phrasing.middles("Places", [point.n for point in points], data),
        *_trends(data, chart),
        *_made_with(data),
    ]


def _elsewhere(chart: Chart) -> list[str]:
    """A figure by hops counts them from one host."""
    if not chart.elsewhere:
        return []
    verb = "begins" if chart.elsewhere == 1 else "begin"
    return [f"{phrasing.counted(chart.elsewhere, 'further path')} {verb} at another host: see the numbers below."]


def _sources(data: Results, chart: Chart) -> str:
    """Where the measurement's published values were printed, in brackets."""
    sources = dict.fromkeys(entry.source for entry in data.published if entry.measurement in chart.measurements)
    return f" ({'; '.join(filter(None, sources))})" if any(sources) else ""


def _trends(data: Results, chart: Chart) -> list[str]:
    """The published trends, in the experiment's own words; they have no numbers that could be drawn."""
    told = [e for e in data.published if e.measurement in chart.measurements and e.trend]
    return [f"Published: {e.trend.rstrip('.')}{f' ({e.source})' if e.source else ''}." for e in told]


def _made_with(data: Results) -> list[str]:
    """The provider, what its certificate says of the lab, and the command that makes the figure again."""
    told = [f"Provider: {data.provider}, in {phrasing.clock(data.plan)}."] if data.plan else []
    told += [f"Tuned kernels: {words}." for words in data.plan.tuning_in_words] if data.plan else []
    verdict = data.manifest.certificate.get("verdict") if data.manifest else None
    if verdict:
        told.append(f"The lab's certificate (certificate.json): {verdict}.")
    if data.name:
        told.append(f"Made by {phrasing.command(data)}.")
    return told
