"""The pages and their tables: single files that open from disk, with inlined figures, relative links to raw data, and
no scripts.

Everything from results is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import JsonValue

from minigts.judge.verdicts import SHOWN
from minigts.report import phrasing, style
from minigts.report.points import LatencyPoint
from minigts.report.read import ReportResults, provenance
from minigts.results.schema import ClaimVerdict
from minigts.results.tables import SummaryRow
from minigts.tools import COLUMNS

TRUST = ("noise_before", "noise_after", "guard", "emulator", "certificate", "readback", "overlays")
"""The manifest's keys about how far the lab can be trusted, in the order in which they are shown."""
TITLES = {
    "noise_before": "The machine's own noise, before",
    "noise_after": "The machine's own noise, after",
    "guard": "The guard over the samples",
    "emulator": "The emulator's own latency",
    "certificate": "The lab, measured before the experiment",
    "readback": "Queues and offloads, as read back from each host",
    "overlays": "The overlays",
}
UNWATCHED = (
    "In virtual time nothing that the machine does beside the lab changes a figure: its load is not recorded, no "
    "sample is marked for it, and none is taken again."
)
"""The text in place of the guard's figures."""
VARIABLES = {style.INK: "currentColor", style.PAPER: "var(--paper)", style.SHADE: "var(--shade)"} | {
    colour.lower(): f"var(--series-{number})" for number, (colour, *_) in enumerate(style.OTHERS, 1)
}
"""The colours of a figure that the page's style sheet replaces, for light and dark screens."""
MANY_ROWS = 60
"""A table with more rows is collapsed."""
FURTHER = frozenset(name for name, column in COLUMNS.items() if column.tabled)
"""The columns of samples.csv whose medians are in the tables, too."""


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: its name under figures/, its SVG's text, its heading, and captions in plain text."""

    name: str
    svg: str
    heading: str
    caption: Sequence[str]
    id: str = ""
    """Its id on the page; empty for its name."""


@dataclass(frozen=True)
class Story:
    """The content of a run's page; `paragraphs` begin it."""

    results: ReportResults
    paragraphs: Sequence[str]
    drawings: Sequence[Drawing]
    points: Sequence[LatencyPoint]

    @property
    def title(self) -> str:
        return self.results.title

    @property
    def anchor(self) -> str:
        return re.sub(r"[^A-Za-z0-9]+", "-", self.results.directory.name)

    @property
    def left_out(self) -> list[str]:
        """The parts of the experiment that were left out, and why."""
        return phrasing.left_out(self.results.left_out)

    @property
    def absent(self) -> str:
        return phrasing.absent(self.results.left_out)

    @property
    def claims(self) -> list[list[ClaimVerdict]]:
        """The verdicts, grouped by claim."""
        return [list(group) for _, group in groupby(self.results.claims, key=lambda claim: (claim.claim, claim.text))]

    def verdict_count(self, verdict: str) -> str:
        """The number of such verdicts on claims of documents, and on the experiment's own: `4 + 2`."""
        theirs, own = (
            sum(claim.verdict == verdict and bool(claim.source) == sourced for claim in self.results.claims)
            for sourced in (True, False)
        )
        return f"{theirs} + {own}" if theirs or own else "–"


@dataclass(frozen=True)
class Table:
    """`columns` whose heading starts with `>` have numbers. A row may be `strong`: it sums up the rows below it."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[int] = frozenset()

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column has numbers."""
        return tuple(column.startswith(">") for column in self.columns)

    @property
    def folded(self) -> bool:
        return len(self.rows) > MANY_ROWS


def run_page(story: Story) -> str:
    """The page of one run."""
    results = story.results
    extra = provenance(results.manifest)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=story.title,
            story=story,
            results=results,
            samples=results.samples,
            state=phrasing.state(results),
            tables=result_tables(results.summary, story.points),
            interval=phrasing.interval(row.n for row in results.summary),
            command=phrasing.command(results),
            clock=phrasing.clock(results.plan) if results.plan else "",
            trust=_trust(results, extra),
            provenance=_provenance(results, extra),
            files=results.files,
        )
    )


def campaign_page(
    name: str, stories: Sequence[Story], empty: Sequence[str], left_out: Mapping[str, Sequence[str]]
) -> str:
    """The page of several runs: all verdicts, then each run with its figures and a link to its own page.

    `empty` are the folders without samples yet, `left_out` those that will have none, with the reasons.
    """
    claims = [claim for story in stories for claim in story.results.claims]
    return (
        _environment()
        .get_template("campaign.html.j2")
        .render(
            title=f"{phrasing.count_phrase(len(stories), 'experiment')}, "
            f"{phrasing.count_phrase(len(claims), 'verdict')}",
            name=name,
            stories=stories,
            empty=empty,
            left_out=left_out,
            lead=phrasing.verdicts(claims),
            facts=_campaign_facts(stories),
        )
    )


def compare_page(
    title: str, paragraphs: Sequence[str], made: Sequence[Table], drawing: Drawing, notes: Sequence[str]
) -> str:
    """The page of a comparison of two runs."""
    return (
        _environment()
        .get_template("compare.html.j2")
        .render(title=title, paragraphs=paragraphs, tables=made, drawing=drawing, notes=notes)
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("minigts.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "label": phrasing.label,
        "moment": phrasing.moment,
        "tight": phrasing.tight,
        "inlined": inline_svg,
        "in_a_line": tree_line,
    }
    environment.globals |= {"zip": zip, "verdicts": SHOWN}
    environment.tests["plain"] = _is_plain
    return environment


def tree_line(entry: Mapping[str, JsonValue]) -> str:
    """A small tree as text, `kind tbf, dev eth1, rate 6250000`; empty values are left out."""
    told = []
    for key, value in entry.items():
        if isinstance(value, Mapping):
            told.append(tree_line(value))
        elif value not in (None, "", [], {}):
            shown = "yes" if value is True else "no" if value is False else str(value)
            told.append(f"{key.replace('_', ' ')} {shown}")
    return ", ".join(filter(None, told))


def _campaign_facts(stories: Sequence[Story]) -> list[str]:
    started = sorted(story.results.started for story in stories if story.results.started)
    providers = dict.fromkeys(story.results.provider for story in stories if story.results.provider)
    samples = sum(story.results.samples.total for story in stories)
    told = [phrasing.count_phrase(samples, "sample")]
    clocks = dict.fromkeys(phrasing.clock(story.results.plan) for story in stories if story.results.plan)
    if clocks:
        told.insert(0, "; ".join(clocks))
    if providers:
        told.insert(0, f"provider {phrasing.enumeration(providers)}")
    return [*told, f"begun {phrasing.moment(started[0])}"] if started else told


def _trust(results: ReportResults, extra: Mapping[str, JsonValue]) -> list[tuple[str, JsonValue]]:
    shown = dict(extra)
    if results.plan and results.plan.time == "virtual":
        shown["guard"] = UNWATCHED
    return [(TITLES[key], shown[key]) for key in TRUST if shown.get(key)]


def _is_plain(value: object) -> bool:
    """Whether a value fits into a line with others: a number or a short word."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 40 and "\n" not in value)


def _provenance(results: ReportResults, extra: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The parts of the manifest that are shown nowhere else on the page."""
    manifest = results.manifest
    if manifest is None:
        return {}
    known: dict[str, JsonValue] = {
        "experiment": manifest.experiment.name,
        "topology": manifest.experiment.topology or manifest.plan.name,
        "seed": manifest.experiment.seed,
        "repetitions": manifest.experiment.repetitions,
        "replicates": manifest.experiment.replicates if manifest.experiment.replicates > 1 else None,
        "provider": manifest.provider or None,
        "started": manifest.started,
        "ended": manifest.ended,
        "took": phrasing.duration(manifest.started, manifest.ended),
    }
    rest = {key: value for key, value in extra.items() if key not in TRUST}
    return {key.replace("_", " "): value for key, value in (known | rest).items() if value not in (None, "", {}, [])}


def inline_svg(drawing: Drawing) -> Markup:
    """The drawing's SVG for use in the page, with unique ids, the page's text colour, and no fixed size.

    matplotlib escapes the text that it writes; its comments, which repeat labels, are dropped.
    """
    svg = drawing.svg[drawing.svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    prefix = f"{drawing.id or drawing.name}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg).replace("url(#", f"url(#{prefix}")
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", svg, count=1)
    svg = re.sub(r'<svg([^>]*?) height="[^"]*"', r"<svg\1", svg, count=1)
    label = Markup.escape(drawing.heading)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return Markup(re.sub(r"\n\s*\n+", "\n", svg))


def result_tables(summary: Sequence[SummaryRow], points: Sequence[LatencyPoint]) -> list[Table]:
    """One table for each measurement over paths, and one for its single segments, in the order of the summary;
    measurements of a single row share one."""
    sums = {(point.measurement, point.overlay, point.source, point.target): point for point in points}
    sizes = Counter((row.measurement, row.kind) for row in summary)
    groups: dict[tuple[str, str, str], list[SummaryRow]] = {}
    for row in summary:
        name = row.measurement if sizes[row.measurement, row.kind] > 1 else ""
        groups.setdefault((name, row.kind, row.unit), []).append(row)
    made = []
    for (_, kind, _), rows in groups.items():
        keys = [(row.measurement, row.overlay, row.source, row.target) for row in rows]
        made.append(_table(rows, [sums.get(key) if kind == "path" else None for key in keys]))
    return made


def number_text(value: float | None, digits: int, *, sign: bool = False) -> str:
    """The number with a true minus sign; empty for None."""
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def _table(rows: Sequence[SummaryRow], points: Sequence[LatencyPoint | None]) -> Table:
    single = " over single segments" if rows[0].kind == "segment" else ""
    columns = [column for column in _columns(rows, points) if any(column[1])]
    return Table(
        heading=f"{_one_name(rows)}{single}, in {rows[0].unit}{_everywhere(rows)}",
        columns=tuple(heading for heading, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
    )


def _one_name(rows: Sequence[SummaryRow]) -> str:
    """The measurement's name, or for several the label of what they measure."""
    several = len({row.measurement for row in rows}) > 1
    return rows[0].tool.value.label if several else phrasing.measurement(rows[0].measurement)


def _everywhere(rows: Sequence[SummaryRow]) -> str:
    """The path, if it is the only one; otherwise empty."""
    return f", {rows[0].source} → {rows[0].target}" if _one_path(rows) else ""


def _one_path(rows: Sequence[SummaryRow]) -> bool:
    return len({(row.source, row.target) for row in rows}) == 1


def _columns(
    rows: Sequence[SummaryRow], points: Sequence[LatencyPoint | None]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The heading and cells of each possible column; the caller leaves out empty ones."""
    digits = 3 if rows[0].unit == "ms" else 2
    residuals = any(point and point.residual_ms is not None for point in points)

    def numbers(values: Sequence[float | None], *, sign: bool = False) -> tuple[str, ...]:
        return tuple(number_text(value, digits, sign=sign) for value in values)

    if len({row.measurement for row in rows}) > 1:
        yield "measurement", tuple(row.measurement for row in rows)
    yield "network", tuple(phrasing.label(row.overlay) for row in rows)
    if not _one_path(rows):
        yield "from → to", tuple(f"{row.source} → {row.target}" for row in rows)
        yield ">hops", tuple(str(row.hops) for row in rows) if any(row.hops > 1 for row in rows) else ()
    for name in dict.fromkeys(name for row in rows for name, _ in row.settings):
        yield f">{phrasing.axis(name)}", tuple(dict(row.settings).get(name, "") for row in rows)
    yield ">n", tuple(str(row.n) for row in rows)
    yield ">median", numbers([row.median for row in rows])
    yield ">low", numbers([row.low for row in rows])
    yield ">high", numbers([row.high for row in rows])
    yield ">mean", numbers([row.mean for row in rows])
    yield ">sd", numbers([row.stdev for row in rows])
    if residuals:
        yield ">sum of segments", numbers([point.sum_ms if point else None for point in points])
        yield ">residual", numbers([point.residual_ms if point else None for point in points], sign=True)
    yield f">{rows[0].tool.prediction.heading}", numbers([row.predicted for row in rows])
    yield ">published", numbers([row.published for row in rows])
    own = {column.name: column for row in rows for column in row.tool.columns if column.tabled}
    for name in dict.fromkeys(name for row in rows for name in row.cell.columns if name in FURTHER or name in own):
        medians = [median(row.cell.columns[name]) if row.cell.columns.get(name) else None for row in rows]
        own_digits = digits if (own.get(name) or COLUMNS[name]).unit is None else 2
        heading = phrasing.column(name, rows[0].unit, rows[0].tool)
        yield f">{heading}", tuple(number_text(value, own_digits) for value in medians)
