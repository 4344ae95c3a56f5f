"""Shows a comparison: its tables for screen and page, and the figure of all changes with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.errors import MinigtsError
from minigts.judge.statistics import NOTICEABLE, SIGNIFICANCE
from minigts.report import compare, phrasing, style
from minigts.report.compare import ComparedFigure, Comparison
from minigts.report.page import Drawing, Table, compare_page, number_text
from minigts.report.render import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

COLUMNS = ("figure", "network", "where", ">n", ">A", ">B", ">change", ">95 % interval", ">Cliff's δ", ">p", "")
MOST_DRAWN = 40
"""The most lines of the figure; with more, those that differ are drawn first."""
MARKS = {"differs": "s", "differs too little to matter": "D", "same": "o", "identical": "o"}


def page(comparison: Comparison, target: Path) -> Path:
    """Write the page and return its path. Raises MinigtsError when it cannot be written."""
    title = f"{comparison.b.name} against {comparison.a.name}"
    try:
        svg = style.svg(_changes(_drawn(comparison)), "changes")
    except OSError as error:
        raise MinigtsError(f"{target}: cannot be written: {error}") from error
    caption = [
        "The change from A to B of each figure over all its paths and settings, and its 95 % interval.",
        f"Inside the shaded band, ±{NOTICEABLE:.0%}, a change does not matter.".replace("%", " %"),
        "Squares differ, circles are the same, open marks are undecided; an interval may go on outside.",
    ]
    drawing = Drawing("changes", svg, "What changed", caption)
    paragraphs = [*compare.headline(comparison), *compare.courses(comparison)]
    return write(target, compare_page(title, paragraphs, tables(comparison), drawing, notes(comparison)))


def tables(comparison: Comparison) -> list[Table]:
    """The tables of settings that differ, of figures by network, and of single cells that differ."""
    made = [Table("A and B", ("", "folder", "begun", ">samples"), tuple(_sides(comparison)))]
    changed = [(pair.experiment, change) for pair in comparison.pairs for change in pair.changes]
    several = len(comparison.pairs) > 1
    rows = tuple(
        (*((name,) if several else ()), change.group, change.what, _cut(change.a), _cut(change.b))
        for name, change in changed
    )
    made.append(Table("Settings that differ", (*(("experiment",) if several else ()), "of", "what", "A", "B"), rows))
    made.append(_table("Figures, over all paths and settings of a network", comparison.figures, several))
    differing = [cell for cell in comparison.cells if cell.word == "differs"]
    made.append(_table("Single cells that differ", differing, several))
    return [table for table in made if table.rows]


def notes(comparison: Comparison) -> list[str]:
    """Notes on the tests, and on what was left out."""
    told = [
        f"Figures by network: the Wilcoxon–Mann–Whitney test, exact, stratified by path and setting; p is corrected by "
        f"Holm's procedure for the {len(comparison.figures)} figures tested, so that the chance of one wrong "
        f"'differs' among them is {SIGNIFICANCE:.0%} at the most; δ runs from −1 (all of B below all of A) to 1. "
        f"A difference matters from {NOTICEABLE:.0%} on (percentages: from 1 point on).".replace("%", " %")
    ]
    if comparison.cells:
        count = len(comparison.cells)
        told.append(f"Single cells are {count} tests more, corrected for {count}.")
        short = sum(cell.word == "too few samples" for cell in comparison.cells)
        if short:
            told.append(f"For {short} of them no difference could have shown: they have too few repetitions.")
    for pair in comparison.pairs:
        for count, side in ((pair.only_a, "A"), (pair.only_b, "B")):
            if count:
                told.append(f"{pair.experiment}: {phrasing.count_phrase(count, 'cell')} only in {side}.")
    return [*told, *(f"{name} is in only one of them." for name in comparison.alone)]


def _sides(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    for side, path in (("A", comparison.a), ("B", comparison.b)):
        results = [getattr(pair, side.lower()) for pair in comparison.pairs]
        started = min((each.started for each in results if each.started), default="")
        yield side, path.name or str(path), phrasing.moment(started), str(sum(each.samples.total for each in results))


def _cut(text: str, most: int = 30) -> str:
    return "–" if not text else text if len(text) <= most else f"{text[: most - 1]}…"


def _table(heading: str, figures: Sequence[ComparedFigure], several: bool) -> Table:
    rows = [_row(figure, several) for figure in figures]
    shown = [place for place, name in enumerate(COLUMNS) if not name or any(row[place] for row in rows)]
    return Table(heading, tuple(COLUMNS[at] for at in shown), tuple(tuple(row[at] for at in shown) for row in rows))


def _row(figure: ComparedFigure, several: bool) -> tuple[str, ...]:
    n_a, n_b = figure.difference.n_a, figure.difference.n_b
    digits = 3 if figure.unit == "ms" else 2
    return (
        f"{figure.experiment}: {figure.name}" if several else figure.name,
        phrasing.label(figure.overlay),
        figure.where,
        str(n_a) if n_a == n_b else f"{n_a}, {n_b}",
        number_text(figure.a, digits),
        number_text(figure.b, digits),
        compare.extent(figure),
        *(("", "", "one course") if figure.of_courses else _tested(figure)),
        figure.word,
    )


def _tested(figure: ComparedFigure) -> tuple[str, str, str]:
    """The interval of the change, Cliff's delta, and p."""
    delta = number_text(figure.difference.delta, 2, sign=True)
    return compare.interval(figure), delta, f"{figure.p:.3f}" if figure.p >= 0.001 else "<0.001"


def _drawn(comparison: Comparison) -> list[ComparedFigure]:
    """The figures whose change is a share; if there are too many, those that differ first."""
    found = [figure for figure in comparison.figures if figure.difference.ratio is not None]
    if len(found) > MOST_DRAWN:
        found.sort(key=lambda figure: figure.word != "differs")
    return found[:MOST_DRAWN]


def _changes(figures: Sequence[ComparedFigure]) -> Sheet:
    """A line for each figure: its change in per cent with the interval, and the band of changes that do not matter."""
    looks = style.looks(dict.fromkeys(figure.overlay for figure in figures))
    with style.sheet(0.7 + 0.27 * max(1, len(figures))) as sheet:
        axes = sheet.subplots()
        axes.axvspan(-100 * NOTICEABLE, 100 * NOTICEABLE, facecolor=style.SHADE, zorder=0)
        axes.axvline(0, color=style.INK, linewidth=0.7)
        for place, figure in enumerate(figures):
            ratio, look = figure.difference.ratio, looks[figure.overlay]
            assert ratio is not None
            value, low, high = (100 * (end - 1) for end in (ratio.value, ratio.low, ratio.high))
            axes.errorbar(
                [value],
                [place],
                xerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
                color=look.colour,
                marker=MARKS.get(figure.word, "o"),
                markerfacecolor=look.colour if figure.word in MARKS else style.PAPER,
                markersize=5,
                capsize=2.5,
                linestyle="none",
            )
        several = len({figure.experiment for figure in figures}) > 1
        names = [
            f"{f'{figure.experiment}: ' if several else ''}{figure.name}, {phrasing.label(figure.overlay)}"
            for figure in figures
        ]
        axes.set_yticks(range(len(figures)), names)
        axes.set_ylim(len(figures) - 0.5, -0.5)
        axes.set_xlim(*_limits(figures))
        axes.set_xlabel("change from A to B in %")
        axes.grid(axis="x")
    return sheet


def _limits(figures: Sequence[ComparedFigure]) -> tuple[float, float]:
    """Both ends of the axis, wide enough for the measured values and all figures that differ. Others may be outside:
    the jitter of an idle link may change by hundreds of per cent without meaning."""
    telling = [figure for figure in figures if figure.column == "value" or figure.word == "differs"] or list(figures)
    ratios = [figure.difference.ratio for figure in telling if figure.difference.ratio]
    least = min((100 * (ratio.low - 1) for ratio in ratios), default=0.0)
    most = max((100 * (ratio.high - 1) for ratio in ratios), default=0.0)
    room = max(2.0, 0.08 * (most - least))
    return least - room, most + room
