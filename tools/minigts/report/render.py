"""Makes the figures and the report of a results directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from minigts import paths
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.report import chart_choice, over_time, phrasing, style, topology_figure
from minigts.report.chart import draw, draw_heatmap, is_heatmap
from minigts.report.chart_choice import free_name
from minigts.report.chart_model import Chart
from minigts.report.latency_figure import latency_by_hops
from minigts.report.page import Drawing, Story, campaign_page, run_page
from minigts.report.points import LatencyPoint, latency_points, measurements, points_from_first, throughput_points
from minigts.report.read import ReportResults, is_sweep, left_out, read, read_sweep, runs, wholly_left_out
from minigts.results import folder, schema
from minigts.results.store import is_campaign, is_cell, is_run
from minigts.results.tables import NothingYet

PAGE = schema.REPORT


def render(results: Path) -> Path:
    """Writes the figures and report.html of a run, of a sweep as one run, or of a campaign and each of its runs and
    sweeps; returns the page's path.

    The same files give the same bytes. Raises EnvironmentLacks without matplotlib, InputError when there are no samples
    or a file is broken, and MinigtsError when a file cannot be written.
    """
    lacking = style.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    if is_campaign(results) and not is_sweep(results):
        return _campaign(results)
    story = _story(results)
    return write(folder.inside(results, PAGE), run_page(story))


def write(target: Path, text: str) -> Path:
    """Write a page, whole or not at all, and return its path. Raises MinigtsError."""
    try:
        paths.write_for_user(target, text)
    except OSError as error:
        raise MinigtsError(f"{target}: cannot be written: {error}") from error
    return target


def _campaign(directory: Path) -> Path:
    """Write each run's page, and one of all runs, whose path is returned."""
    stories, empty, whole = [], [], {}
    for each in dict.fromkeys(run.parent if is_cell(run) else run for run in runs(directory).values()):
        try:
            story = _story(each)
        except NothingYet:
            if is_run(each) and wholly_left_out(each):
                whole[each.name] = phrasing.left_out(left_out(each))
            else:
                empty.append(each.name)
            continue
        write(folder.inside(each, PAGE), run_page(story))
        renamed = [replace(drawing, id=f"{story.anchor}-{drawing.name}") for drawing in story.drawings]
        stories.append(replace(story, drawings=renamed))
    if not stories:
        raise NothingYet(f"{directory}: holds no samples yet in {phrasing.enumeration([*empty, *whole])}")
    return write(folder.inside(directory, PAGE), campaign_page(directory.name, stories, empty, whole))


def _story(directory: Path) -> Story:
    """Read a run or sweep, and draw its figures."""
    data = read_sweep(directory) if is_sweep(directory) else read(directory)
    charts, latency, told = contents(data)
    try:
        drawings = _drawings(data, charts, latency)
    except OSError as error:
        raise MinigtsError(f"{directory}: figures cannot be written: {error}") from error
    return Story(data, told, drawings, latency)


def contents(data: ReportResults) -> tuple[Sequence[Chart], Sequence[LatencyPoint], Sequence[str]]:
    """A run's charts and points of latency, and the page's first paragraphs. Pure."""
    plan = data.plan
    charts = chart_choice.charts(data)
    by_hops = {name for chart in charts if chart.x == "hops" for name in chart.measurements}
    summary = [row for row in data.summary if row.measurement in by_hops and not row.settings]
    names = measurements(summary, "latency")
    latency = [point for name in names for point in latency_points(summary, name, plan)]
    throughput = throughput_points(summary, plan)
    told = [*phrasing.latency(latency), *phrasing.throughput(throughput)]
    told += [
        sentence for chart in charts if not by_hops.issuperset(chart.measurements) for sentence in phrasing.ends(chart)
    ]
    if not data.summary:
        told.append("There are no medians to draw: summary.csv is absent or empty.")
    if data.claims:
        told.insert(0, phrasing.verdicts(data.claims))
    return charts, latency, [*told, phrasing.counts(data)]


def _drawings(data: ReportResults, charts: Sequence[Chart], latency: Sequence[LatencyPoint]) -> list[Drawing]:
    """Draws the figures of the results, and writes them to figures/."""
    place = folder.inside(data.directory, "figures")
    paths.users_folder(place, exist_ok=True)
    made = [draw_chart(data, chart, latency, place) for chart in charts]
    tools = {measurement.name: measurement.instrument for measurement in data.measurements}
    taken = [each.name for each in made]
    for content in over_time.figures(data.series, tools, data.figures):
        made.append(draw_over_time(content, place, free_name(content.name, taken)))
        taken.append(made[-1].name)
    if data.plan:
        heading = "The topology"
        caption = ["Hosts with their locations, and links with round-trip time and rate, as the plan declares them."]
        caption += [data.plan.description] if data.plan.description else []
        name = free_name("topology", taken)
        made.append(Drawing(name, style.save(topology_figure.topology(data.plan), place, name), heading, caption))
    return made


def draw_chart(data: ReportResults, chart: Chart, latency: Sequence[LatencyPoint], place: Path) -> Drawing:
    """Draw a chart, and write its files into the folder `place`. Raises OSError."""
    points = points_from_first([point for point in latency if (point.measurement,) == chart.measurements])
    points = [point for point in points if not chart.asked.overlays or point.overlay in chart.asked.overlays]
    stacked = chart.tool.quantity == "latency" and not (chart.relative_to or chart.by_column)
    if chart.x == "hops" and stacked and points:
        figure, caption = latency_by_hops(points, chart.asked), phrasing.latency_caption(data, chart, points)
    elif chart.asked.cdf:
        figure, caption = draw(chart), phrasing.distribution_caption(data, chart)
    elif is_heatmap(chart):
        figure, caption = draw_heatmap(chart), phrasing.heatmap_caption(data, chart)
    else:
        figure, caption = draw(chart), phrasing.chart_caption(data, chart)
    return Drawing(chart.name, style.save(figure, place, chart.name, chart.asked.style), chart.title, caption)


def draw_over_time(content: over_time.OverTime, place: Path, name: str) -> Drawing:
    """Draw a figure over time, and write its files into the folder `place`. Raises OSError."""
    figure = over_time.draw(content)
    return Drawing(name, style.save(figure, place, name, content.asked.style), content.title, [content.caption])
