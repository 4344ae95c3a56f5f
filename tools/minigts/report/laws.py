"""The page of validation: the laws that a lab was held against, what came out, and how far from the law it lies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiment_language.claims import Claim, Kind
from minigts.judge.verdicts import EXPLAINED, SHOWN, Word, combine, verdict_line
from minigts.report import phrasing, style
from minigts.report.read import ReportResults, is_sweep, labs_of, read, read_sweep, runs
from minigts.report.render import write
from minigts.results import schema
from minigts.results.folder import read_text
from minigts.results.store import is_campaign, is_cell
from minigts.results.tables import NothingYet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, FIGURE = "validation.md", "figures/validation.svg"
"""The page's usual name, and the figure's place beside any page."""
_SECTION = "validation-group.md"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (\d+ %|) \| ([^|]*) \| \[([^]|]+)\]\(#[^)]*\) \|$", re.MULTILINE)
KINDS: Mapping[Kind | None, str] = {
    "emerges": "What emerges",
    "constant": "Constants of kernels, programs and documents",
    "clock": "The clock against its own settings",
    None: "Laws that name no kind",
}
"""The heading of each kind of law, as they stand on the page."""
_WHEN = {
    "before": "before its figures",
    "after": "after its figures",
    "unknown": "with its figures, in one commit",
}


@dataclass(frozen=True)
class HeldLaw:
    """One claim on a law, and its outcome over each network and measurement."""

    claim: Claim
    outcomes: tuple[schema.ClaimVerdict, ...]
    """At least one, as claims.json has them."""

    @property
    def verdict(self) -> Word:
        return combine([each.verdict for each in self.outcomes])

    @property
    def used(self) -> float | None:
        """The largest share of the range that a figure uses, as `Range.share`; None where no figure says so."""
        return max((each.used for each in self.outcomes if each.used is not None), default=None)

    @property
    def explained(self) -> bool:
        """Whether it holds, or failed for a reason that the experiment's file gives."""
        return self.verdict == "held" or (self.verdict == "failed" and bool(self.claim.why))

    @property
    def shown(self) -> str:
        """The verdict in words; `failed, explained` where the file says why."""
        return verdict_line(self.verdict, self.claim.why)

    @property
    def written(self) -> str:
        """When the range was written, and those that it had before: `2026-11-27, after its figures; formerly under
        5 ms (came out: 7 ms)`. Empty where the file does not say."""
        return "; ".join([each for each in (self.last_written, *self.formerly) if each])

    @property
    def last_written(self) -> str:
        """When the present range was written: `2026-11-27, after its figures`. Empty where the file does not say."""
        return f"{last.since}, {_WHEN[last.figures]}" if (last := next(iter(self.claim.history[::-1]), None)) else ""

    @property
    def formerly(self) -> tuple[str, ...]:
        """The ranges that were given up, each with what came out."""
        return tuple(f"formerly {each.range} (came out: {each.came_out})" for each in self.claim.history[:-1])

    @property
    def why_rewritten(self) -> tuple[str, ...]:
        """The reasons why former ranges were given up."""
        return tuple(
            f"{each.range}, {each.since}, {_WHEN[each.figures]}: {each.why}" for each in self.claim.history[:-1]
        )

    @property
    def expected(self) -> str:
        """What is held against what: `throughput: follows 1.22 * mss / (rtt * sqrt(p)) B/s, 85 to 115 %`."""
        return self.claim.words


@dataclass(frozen=True)
class Law:
    """One law, the experiment that holds a lab against it, and its claims."""

    name: str
    experiment: str
    claims: tuple[HeldLaw, ...]

    @property
    def verdict(self) -> Word:
        return combine([each.verdict for each in self.claims])

    @property
    def explained(self) -> bool:
        """Whether each of its claims holds, or failed for a reason that the experiment's file gives."""
        return all(each.explained for each in self.claims)

    @property
    def shown(self) -> str:
        """The verdict in words; `failed, explained` where the file says why."""
        return EXPLAINED if self.verdict == "failed" and self.explained else SHOWN[self.verdict]

    @property
    def kind(self) -> Kind | None:
        """What its first claim says that it tests."""
        return self.claims[0].claim.kind

    @property
    def written(self) -> str:
        """When its claims' ranges were written, as `Held.written`; with the number of claims where these differ."""
        counted = Counter(each.last_written for each in self.claims)
        of = f" of {len(self.claims)} claims"
        when = [f"{words or 'not said'} ({number}{of})" for words, number in counted.items()]
        former = dict.fromkeys(words for each in self.claims for words in each.formerly)
        return "; ".join([*(when if len(counted) > 1 else [each for each in counted if each]), *former])

    @property
    def used(self) -> float | None:
        """The largest share of a range that any of its claims uses."""
        return max((each.used for each in self.claims if each.used is not None), default=None)

    @property
    def share(self) -> str:
        """`used` in words."""
        return "" if self.used is None else f"{100 * self.used:.0f} %"

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.claim.source for each in self.claims if each.claim.source))


@dataclass(frozen=True)
class LawGroup:
    """The laws of one experiment's file."""

    results: ReportResults
    laws: tuple[Law, ...]

    @property
    def title(self) -> str:
        return self.results.title

    @property
    def command(self) -> str:
        """Measures the group again."""
        return f"minigts validate {self.results.name}{' --quick' if self.quick else ''}"

    @property
    def quick(self) -> bool:
        """Whether the experiment was measured in its quick form."""
        return self.results.manifest is not None and self.results.manifest.quick


def groups(directory: Path) -> tuple[LawGroup, ...]:
    """The laws of a run, of a sweep, or of each experiment of a campaign, in the files' order. Raises InputError where
    there are none."""
    folders = runs(directory).values() if is_campaign(directory) and not is_sweep(directory) else (directory,)
    found: list[LawGroup] = []
    for each in dict.fromkeys(run.parent if is_cell(run) else run for run in folders):
        try:
            results = read_sweep(each) if is_sweep(each) else read(each)
        except NothingYet:
            continue
        labs = [read(lab) for lab in labs_of(each)] if is_sweep(each) else [results]
        outcomes = [claim for lab in labs for claim in lab.claims]
        if laws := tuple(_laws(results, outcomes)):
            found.append(LawGroup(results, laws))
    if not found:
        raise InputError(f"{directory}: no claim of it that was judged has a `law:`")
    return tuple(found)


def _laws(results: ReportResults, outcomes: Sequence[schema.ClaimVerdict]) -> Iterator[Law]:
    assert results.manifest is not None
    named: dict[str, list[HeldLaw]] = {}
    for claim in results.manifest.experiment.claims:
        own = tuple(each for each in outcomes if each.claim == claim.words and each.text == claim.text)
        if claim.law and own:
            named.setdefault(claim.law, []).append(HeldLaw(claim, own))
    for name, claims in named.items():
        yield Law(name, results.name, tuple(claims))


@dataclass(frozen=True)
class Row:
    """A line of the page's tables: a law, its verdict in words, the share of its range in words, when its range was
    written, its experiment, and its kind, which is its table."""

    law: str
    shown: str
    share: str
    written: str
    experiment: str
    kind: Kind | None

    @property
    def word(self) -> str:
        """The verdict alone, as SHOWN has it."""
        return self.shown.partition(",")[0]

    @property
    def used(self) -> float | None:
        return float(self.share.removesuffix(" %")) / 100 if self.share else None


@dataclass(frozen=True)
class Section:
    """What a page has of one experiment: its lines of the table, and its section in Markdown."""

    rows: tuple[Row, ...]
    text: str


@dataclass(frozen=True)
class Page:
    """The sections of a page by the experiments' names."""

    sections: Mapping[str, Section]

    def renew(self, by: Page) -> Page:
        """This page with all that the other one has in place of its own, in the order of the experiments' names."""
        return Page(dict(sorted({**self.sections, **by.sections}.items())))

    @property
    def table(self) -> tuple[Row, ...]:
        return tuple(row for section in self.sections.values() for row in section.rows)

    def __str__(self) -> str:
        """The page as Markdown. It embeds FIGURE, and the same results give the same bytes."""
        words = [
            word for each in SHOWN.values() for word in ((each, EXPLAINED) if each == SHOWN["failed"] else (each,))
        ]
        counted = [(word, sum(row.shown == word for row in self.table)) for word in words]
        tables = [(heading, [row for row in self.table if row.kind == kind]) for kind, heading in KINDS.items()]
        return _template(PAGE).render(
            number=len(self.table),
            tables=[(heading, rows) for heading, rows in tables if rows],
            sections=[section.text for section in self.sections.values()],
            counted=[(word, number) for word, number in counted if number],
            figure=FIGURE,
        )


def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("minigts.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(f"{name}.j2")


def page(found: Sequence[LawGroup]) -> Page:
    """The page of what was measured."""
    return Page({group.results.name: _section(group) for group in found})


def _section(group: LawGroup) -> Section:
    rows = tuple(Row(law.name, law.shown, law.share, law.written, law.experiment, law.kind) for law in group.laws)
    return Section(rows, _template(_SECTION).render(group=group, shown=verdict_line))


def read_page(file: Path) -> Page:
    """What a page has that `write_page` has written. Raises InputError where it is none."""
    text = read_text(file)
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    named = {section.partition("\n")[0].removeprefix("## "): section.rstrip("\n") + "\n" for section in sections}
    rows: dict[str, tuple[Row, ...]] = dict.fromkeys(named, ())
    for kind, heading in KINDS.items():
        _, _, table = head.partition(f"### {heading}\n")
        for law, verdict, share, written, name in _ROW.findall(re.split(r"^###? ", table, flags=re.MULTILINE)[0]):
            rows[name] = (*rows.get(name, ()), Row(law, verdict, share, written, name, kind))
    if not named or rows.keys() != named.keys() or not all(rows.values()):
        raise InputError(f"{file}: is no page of `minigts validate`, which has a line of its table for each section")
    return Page({name: Section(rows[name], each) for name, each in named.items()})


def draw_laws(rows: Sequence[Row]) -> Figure:
    """A line for each law, with the share of its range that its figures use: 0 is the middle of the range, or far from
    a one-sided limit; at 1 a claim fails."""
    shares = [(row, row.used) for row in rows if row.used is not None]
    with style.sheet(0.8 + 0.19 * len(shares)) as figure:
        axes = figure.subplots()
        most = max([1.15, *(min(used, 2.0) for _, used in shares)])
        axes.axvline(1, color=style.FAINT, linewidth=0.9)
        for place, (row, used) in enumerate(shares):
            share = min(used, most)
            axes.plot([0, share], [place, place], color=style.SHADE, linewidth=3, solid_capstyle="butt")
            look = {SHOWN["held"]: "o", SHOWN["failed"]: "X"}.get(row.word, "D")
            filled = "full" if row.word == SHOWN["failed"] else "none"
            axes.plot(share, place, look, color=style.INK, markersize=4, fillstyle=filled, clip_on=False)
        axes.set_yticks(range(len(shares)), [phrasing.short(row.law, 44) for row, _ in shares])
        axes.set_ylim(len(shares) - 0.4, -0.6)
        axes.set_xlim(0, most)
        axes.set_xlabel("share of the range that is used\no held, x failed, ◇ undecided")
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
    return figure


def write_page(made: Page, target: Path) -> Path:
    """Write the page, and its figure to FIGURE beside it; return the page's path. Raises EnvironmentLacks without
    matplotlib, MinigtsError when a file cannot be written."""
    if lacking := style.missing():
        raise EnvironmentLacks("\n".join(lacking))
    figure = target.parent / FIGURE
    try:
        figure.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise MinigtsError(f"{figure.parent}: cannot be made: {error}") from error
    write(figure, style.svg(draw_laws(made.table), figure.stem))
    return write(target, str(made))
