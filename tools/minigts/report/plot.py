"""Figures of finished results, as a file of figures asks for them: of one experiment, or of several together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from minigts import paths
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.experiment_language import figures as figure_language
from minigts.experiment_language.claims import word
from minigts.experiment_language.figures import EXPERIMENT, PLACES, TIME, Figure, Known, X, unknown_words
from minigts.language.fields import unknown
from minigts.language.problems import Finding, list_names, quote, require_none
from minigts.report import chart_choice, over_time, style
from minigts.report.axis_places import path, text_at
from minigts.report.page import Drawing
from minigts.report.points import latency_points
from minigts.report.read import ReportResults, is_sweep, numbered_name, read, read_sweep, runs, together
from minigts.report.render import draw_chart, draw_over_time
from minigts.results.store import is_cell
from minigts.results.tables import SummaryRow
from minigts.tools import COLUMNS

Named = Mapping[str, ReportResults]
"""Results by the names of their experiments; a second run of the same experiment has a number."""


@dataclass(frozen=True)
class _Content:
    """A figure that can be drawn: its declaration, and the results of the experiments that it shows, as one."""

    figure: Figure
    results: ReportResults


def plot(directories: Sequence[Path], file: Path, target: Path) -> Iterator[Drawing]:
    """Draw the file's figures from the results in the directories: of runs, sweeps or campaigns. Each is written into
    the folder `target` as SVG, PNG and PDF, and is then yielded.

    Before the first is drawn, everything in the file is checked against the results. Raises InputError with every
    problem and its line, EnvironmentLacks without matplotlib, MinigtsError when a file cannot be written.
    """
    if lacking := style.missing():
        raise EnvironmentLacks("\n".join(lacking))
    declared, tree = figure_language.load(file)
    named = _read(directories)
    contents: list[_Content] = []
    findings: list[Finding] = []
    for index, figure in enumerate(declared.styled):
        content, wrong = _content(figure, named)
        findings += (((("figures", index, *where), message)) for where, message in wrong)
        contents += [content] if content else []
    require_none([tree.problem(str(file), finding) for finding in findings], str(file))
    try:
        paths.users_folder(target, exist_ok=True)
        taken: list[str] = []
        for content in contents:
            drawing = _draw(content, target, taken)
            taken.append(drawing.name)
            yield drawing
    except OSError as error:
        raise MinigtsError(f"{target}: figures cannot be written: {error}") from error


def _read(directories: Sequence[Path]) -> Named:
    """The results of every experiment in the directories."""
    named: dict[str, ReportResults] = {}
    for directory in directories:
        for each in dict.fromkeys(_whole(run, directory) for run in runs(directory).values()):
            results = read_sweep(each) if is_sweep(each) else read(each)
            named[numbered_name(results.name or each.name, named)] = results
    return named


def _whole(run: Path, directory: Path) -> Path:
    """The run, or the sweep around it, unless the directory is that one lab."""
    return run.parent if is_cell(run) and run != directory else run


def _content(figure: Figure, named: Named) -> tuple[_Content | None, list[Finding]]:
    """The figure with its results, or what is wrong with it, each at its place in the figure."""
    measured = list(dict.fromkeys(row.measurement for each in named.values() for row in each.summary))
    wrong: list[Finding] = [
        (
            ("of",) if isinstance(figure.of, str) else ("of", index),
            unknown("measurement", "measurements", name, measured),
        )
        for index, name in enumerate(figure.measurements)
        if name not in measured
    ]
    if wrong:
        return None, wrong
    of = {name: each for name, each in named.items() if _has(each, figure)}
    only = figure.where.get(EXPERIMENT)
    if only is not None:
        chosen = {name: each for name, each in of.items() if word(name) == only}
        if not chosen:
            return None, [(("where", EXPERIMENT), unknown("experiment", "experiments", only, list(of)))]
        of = chosen
    several = len(of) > 1 or EXPERIMENT in (figure.x, *figure.where)
    results = together(of) if several else next(iter(of.values()))
    wrong = list(_wrong(figure, results, list(of))) or list(_wrong_as_drawn(figure, results))
    return (None, wrong) if wrong else (_Content(figure, results), [])


def _has(results: ReportResults, figure: Figure) -> bool:
    return any(row.measurement in figure.measurements for row in results.summary)


def _wrong(figure: Figure, results: ReportResults, experiments: Sequence[str]) -> Iterator[Finding]:
    """What the figure asks for, and these results do not have."""
    rows = [row for row in results.summary if row.measurement in figure.measurements]
    found = list(unknown_words(figure, _known(figure, results, rows, experiments)))
    yield from found
    if found:
        return
    units = list(dict.fromkeys(row.unit for row in rows))
    if len(units) > 1:
        yield ("of",), f"measurements in {list_names(units)} have no axis in common: give each unit a figure"
    for setting, value in figure.where.items():
        values = list(dict.fromkeys(_value(row, setting) for row in rows))
        if value not in values:
            yield ("where", setting), unknown("value", f"values of {setting}", value, values)
    moments = {each.column for each in results.series if each.measurement in figure.measurements}
    if (figure.cdf == "moments" or figure.x == TIME) and not moments:
        key = "cdf" if figure.cdf else "x"
        yield (key,), f"{list_names(figure.measurements)} keeps no moments here: measurements with `series: true` do"
    yield from _without_figures(figure, rows, moments)
    if (lacking := style.lacks_font(figure.style)) != "":
        yield ("style", "font"), lacking


def _without_figures(figure: Figure, rows: Sequence[SummaryRow], moments: set[str]) -> Iterator[Finding]:
    measured = {column for row in rows for column in row.cell.columns} | {"value"}
    there = sorted(moments if figure.cdf == "moments" or figure.x == TIME else measured)
    for index, column in enumerate(figure.y):
        if there and column not in there:
            yield ("y", index), f"{quote(column)} was not measured here; there are {list_names(there)}"


def _wrong_as_drawn(figure: Figure, results: ReportResults) -> Iterator[Finding]:
    """What only shows once the values have their places: ends of an axis of names, and shares of nothing."""
    if figure.x == TIME or figure.cdf:
        return
    chart = chart_choice.chart_of(results, figure)
    along = figure.axis(X)
    if chart.bars and (along.limited or along.scale == "log"):
        yield ("axes", X), f"x is {chart.x} here, which has names and no numbers: only `label` is possible"
    if figure.relative_to is None:
        return
    rows = chart_choice.rows_of(results, figure)
    bases = list(dict.fromkeys((*(row.overlay for row in rows), *(text_at(row, chart.x) for row in rows))))
    if figure.relative_to not in bases:
        yield ("relative_to",), unknown("value", "overlays and places here", figure.relative_to, bases)
    elif chart.relative_to is None:
        yield ("relative_to",), f"{quote(figure.relative_to)} has several paths: `where: {{path: …}}` holds one fixed"


def _known(figure: Figure, results: ReportResults, rows: Sequence[SummaryRow], experiments: Sequence[str]) -> Known:
    settings = dict.fromkeys(name for row in rows for name, _ in row.settings)
    columns = dict.fromkeys(("value", *(column for row in rows for column in row.cell.columns)))
    columns |= dict.fromkeys(each.column for each in results.series if each.measurement in figure.measurements)
    return Known(
        axes=(*PLACES, TIME, *settings),
        columns=(*columns, *(name for name in COLUMNS if name not in columns)),
        overlays=list(dict.fromkeys(row.overlay for row in rows)),
        settings=("path", *settings),
        words=list(
            dict.fromkeys(
                (
                    *(row.overlay for row in rows),
                    *figure.measurements,
                    *experiments,
                    *(value for row in rows for _, value in row.settings),
                    *(path(row) for row in rows),
                )
            )
        ),
    )


def _value(row: SummaryRow, setting: str) -> str:
    return word({"path": path(row), **dict(row.settings)}.get(setting, ""))


def _draw(content: _Content, target: Path, taken: Sequence[str]) -> Drawing:
    figure, results = content.figure, content.results
    if figure.x == TIME:
        (measurement,) = figure.measurements
        tool = next(row.tool for row in results.summary if row.measurement == measurement)
        own = [row for row in results.series if row.measurement == measurement]
        made = over_time.figure_of(figure, measurement, own, tool.value)
        return draw_over_time(made, target, chart_choice.free_name(made.name, taken))
    chart = chart_choice.chart_of(results, figure)
    chart = replace(chart, name=chart_choice.free_name(chart.name, taken))
    stacked = chart.x == "hops" and not results.several
    summary = [row for row in results.summary if not row.settings] if stacked else []
    points = [point for name in chart.measurements for point in latency_points(summary, name, results.plan)]
    return draw_chart(results, chart, points, target)
