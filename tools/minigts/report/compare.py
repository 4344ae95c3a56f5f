"""Compares two runs, or two campaigns: which settings and figures differ, and whether the difference matters.

It is pure except for reading files. docs/decisions/samples.md says what is tested, and how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import JsonValue

from minigts.errors import InputError
from minigts.judge.statistics import NOTICEABLE, SIGNIFICANCE, SampleDifference, difference, holm, least_p, significant
from minigts.language.figures import digits, signed_figure, span
from minigts.report import chart_choice, phrasing
from minigts.report.read import ReportResults, provenance, read, runs, wholly_left_out
from minigts.results import course_difference
from minigts.results.schema import Manifest
from minigts.results.tables import SummaryRow

Word = Literal["identical", "differs", "differs too little to matter", "same", "unclear", "too few samples"]
MATTERS_POINTS = 1.0
"""The smallest change of a percentage that matters, in percentage points."""
GROUPS = ("topology", "experiment", "lab", "version", "machine")
_VERSIONS = ("minigts", "commit", "tools", "parts")
_PROVEN = ".proven"
"""Of a part its bytes are compared, and not whether a version of minigts expected them."""
_LINK = ("rtt_ms", "rate_mbit", "loss_percent")
_BACK = ("delay_ms", "rate_mbit", "loss_percent")
_NOT_COMPARED = frozenset(
    {"noise_before", "noise_after", "certificate", "readback", "guard", "overlays", "emulator", "claims_sha256"}
)
"""Keys of the manifest that differ between any two runs, or follow from other keys."""
_WORDS = frozenset({"title", "description", "text", "claims", "published", "figures", "quick", "paper"})
"""Keys of an experiment that do not change the measurements."""
Series = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class ComparedFigure:
    """One quantity in both runs, over all paths and settings of a network together, or in a single cell.

    `a` and `b` are medians, None for several cells together. `p` is corrected for all figures that are tested.
    """

    experiment: str
    measurement: str
    column: str
    overlay: str
    where: str
    unit: str
    cells: int
    a: float | None
    b: float | None
    difference: SampleDifference
    p: float
    word: Word
    of_courses: bool = False
    """Whether it is one course of events in virtual time on both sides: there is no chance in it, and no test."""

    @property
    def name(self) -> str:
        return (
            f"{self.measurement}, {phrasing.column(self.column, self.unit)}"
            if self.column != "value"
            else self.measurement
        )


@dataclass(frozen=True)
class SettingChange:
    """One setting that differs; a value that only one run has is empty in the other."""

    group: str
    what: str
    a: str
    b: str


@dataclass(frozen=True)
class RunPair:
    """The same experiment in two runs."""

    experiment: str
    a: ReportResults
    b: ReportResults
    changes: tuple[SettingChange, ...]
    only_a: int
    only_b: int
    courses: tuple[str, ...] = ()
    """In virtual time whether the labs' courses are the same, or where they part, in lines."""

    @property
    def of_two_times(self) -> bool:
        """Whether the runs have different times, real or virtual, or differently modelled processors."""
        both = [phrasing.clock(results.plan) for results in (self.a, self.b) if results.plan]
        return len(both) == 2 and both[0] != both[1]


@dataclass(frozen=True)
class Comparison:
    """`figures` are those of whole networks, `cells` of single cells; `alone` are experiments of only one campaign."""

    a: Path
    b: Path
    pairs: tuple[RunPair, ...]
    figures: tuple[ComparedFigure, ...]
    cells: tuple[ComparedFigure, ...]
    alone: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether any figure differs by enough to matter."""
        return any(figure.word == "differs" for figure in (*self.figures, *self.cells))


def compare(a: Path, b: Path) -> Comparison:
    """Compare the run or campaign `b` with `a`. Raises InputError when they have nothing in common."""
    first, second = ({name: run for name, run in runs(each).items() if not wholly_left_out(run)} for each in (a, b))
    names = [name for name in first if name in second]
    if first and second and not names:
        one, other = (", ".join(sorted(each)) for each in (first, second))
        raise InputError(f"{a} and {b} have no experiment in common: the one has {one}, the other {other}")
    pairs = tuple(
        replace(
            _pair(name, read(first[name]), read(second[name])),
            courses=course_difference.run_differences(first[name], second[name]),
        )
        for name in names
    )
    figures, cells = _figures(pairs)
    if not figures:
        raise InputError(f"{a} and {b} have no measurement in common")
    return Comparison(a, b, pairs, figures, cells, tuple(sorted(first.keys() ^ second.keys())))


def _pair(name: str, a: ReportResults, b: ReportResults) -> RunPair:
    keys_a, keys_b = {_key(row) for row in a.summary}, {_key(row) for row in b.summary}
    return RunPair(name, a, b, changed_settings(a.manifest, b.manifest), len(keys_a - keys_b), len(keys_b - keys_a))


def _key(row: SummaryRow) -> tuple[object, ...]:
    return (row.measurement, row.overlay, row.source, row.target, row.kind, row.settings)


def _figures(pairs: Sequence[RunPair]) -> tuple[tuple[ComparedFigure, ...], tuple[ComparedFigure, ...]]:
    """Every figure by network, and every cell of figures with several; each of the two families is corrected alone."""
    wholes, singles = [], []
    for pair in pairs:
        for cells in _groups(pair).values():
            wholes.append(_figure(pair, cells))
            if len(cells) > 1:
                singles += [_figure(pair, [cell]) for cell in cells]
    order = list(dict.fromkeys((figure.experiment, figure.measurement, figure.column) for figure in wholes))
    wholes.sort(key=lambda figure: order.index((figure.experiment, figure.measurement, figure.column)))
    return _judged(wholes), _judged(singles)


@dataclass(frozen=True)
class _Cell:
    row: SummaryRow
    column: str
    series: Series


def _groups(pair: RunPair) -> dict[tuple[str, str, str], list[_Cell]]:
    """The cells that both runs have, by measurement, column and overlay."""
    others = {_key(row): row for row in pair.b.summary}
    found: dict[tuple[str, str, str], list[_Cell]] = {}
    for row in pair.a.summary:
        other = others.get(_key(row))
        for column in _columns(row, other) if other else ():
            assert other is not None
            series = (_values(pair.a, row, column), _values(pair.b, other, column))
            if all(series):
                found.setdefault((row.measurement, column, row.overlay), []).append(_Cell(row, column, series))
    return found


def _columns(row: SummaryRow, other: SummaryRow | None) -> Iterator[str]:
    yield "value"
    if other is not None:
        yield from (name for name in row.cell.columns if name in chart_choice.PANELS and name in other.cell.columns)


def _values(results: ReportResults, row: SummaryRow, column: str) -> Sequence[float]:
    """The numbers of a cell that are independent: its samples in real time, in virtual time a median of each course."""
    return row.cell.course_medians(column) if _virtual(results) else row.cell.columns.get(column, ())


def _virtual(results: ReportResults) -> bool:
    return results.plan is not None and results.plan.time == "virtual"


def _figure(pair: RunPair, cells: Sequence[_Cell]) -> ComparedFigure:
    """One test with the cells as strata; `word` is preliminary until the correction."""
    row, column = cells[0].row, cells[0].column
    strata = [(list(cell.series[0]), list(cell.series[1])) for cell in cells]
    alone = len(cells) == 1
    found = difference(strata, seed=1)
    settings = [f"{name} {value}" for name, value in row.settings]
    return ComparedFigure(
        experiment=pair.experiment,
        measurement=phrasing.measurement(row.measurement),
        column=column,
        overlay=row.overlay,
        where=", ".join([f"{row.source} → {row.target}", *settings]) if alone else f"{len(cells)} cells",
        unit=row.unit,
        cells=len(cells),
        a=median(strata[0][0]) if alone else None,
        b=median(strata[0][1]) if alone else None,
        difference=found,
        p=found.p,
        word=_first_word(strata),
        of_courses=_virtual(pair.a) and _virtual(pair.b) and all(len(a) == len(b) == 1 for a, b in strata),
    )


def _first_word(strata: Sequence[tuple[list[float], list[float]]]) -> Word:
    if all(sorted(a) == sorted(b) for a, b in strata):
        return "identical"
    return "too few samples" if least_p(strata) > SIGNIFICANCE else "unclear"


def _judged(figures: Sequence[ComparedFigure]) -> tuple[ComparedFigure, ...]:
    tested = [figure for figure in figures if not figure.of_courses]
    chances = iter(holm([figure.p for figure in tested]))
    return tuple(
        replace(figure, word=_word_of_courses(figure))
        if figure.of_courses
        else replace(figure, p=(p := next(chances)), word=_word(figure, p, len(tested)))
        for figure in figures
    )


def _word_of_courses(figure: ComparedFigure) -> Word:
    if figure.word == "identical":
        return "identical"
    change, *_, enough = _extent(figure)
    return "differs" if abs(change) >= enough else "differs too little to matter"


def _word(figure: ComparedFigure, p: float, family: int) -> Word:
    """`differs` if the corrected test is significant and the change is large enough to matter; `same` if the whole
    interval of the change is too small to matter."""
    if figure.word == "identical":
        return "identical"
    change, low, high, enough = _extent(figure)
    if significant(p):
        return "differs" if abs(change) >= enough else "differs too little to matter"
    n = min(figure.difference.n_a, figure.difference.n_b)
    if n > figure.cells and -enough < low <= high < enough:
        return "same"
    return "too few samples" if figure.word == "too few samples" or _hopeless(figure, family) else "unclear"


def _hopeless(figure: ComparedFigure, family: int) -> bool:
    """Whether even the clearest difference between so few samples could not pass the correction."""
    per_cell = [[0.0] * max(1, n // figure.cells) for n in (figure.difference.n_a, figure.difference.n_b)]
    return not significant(family * least_p([(per_cell[0], per_cell[1])] * figure.cells))


def _extent(figure: ComparedFigure) -> tuple[float, float, float, float]:
    """The change, the ends of its interval, and the smallest change that matters: in points for percentages, otherwise
    in shares."""
    found = figure.difference
    if figure.column.endswith("percent") or found.ratio is None:
        shift = found.shift
        return shift.value, shift.low, shift.high, MATTERS_POINTS if figure.column.endswith("percent") else 0.0
    return found.ratio.value - 1, found.ratio.low - 1, found.ratio.high - 1, NOTICEABLE


def headline(comparison: Comparison) -> list[str]:
    """The result in sentences."""
    figures, remarks = comparison.figures, [_two_times(pair) for pair in comparison.pairs if pair.of_two_times]
    if any(figure.of_courses and figure.word != "identical" for figure in figures):
        remarks.append(
            "Each figure is of one course of events in virtual time, so nothing is tested; how far courses differ by "
            "chance, `replicates` tell."
        )
    if all(figure.word == "identical" for figure in figures):
        return [*remarks, "No difference: every sample is the same in both."]
    told = remarks
    counts: Mapping[str, int] = {
        word: sum(f.word == word for f in figures) for word in dict.fromkeys(f.word for f in figures)
    }
    if counts.get("differs"):
        which = [f"{f.name} over {phrasing.label(f.overlay)} ({extent(f)})" for f in figures if f.word == "differs"]
        verb = "differs" if len(which) == 1 else "differ"
        shown = [*which[:4], *([f"{len(which) - 4} more"] if len(which) > 4 else [])]
        told.append(
            f"{len(which)} of {phrasing.count_phrase(len(figures), 'figure')} {verb} by what matters: "
            f"{phrasing.enumeration(shown)}."
        )
    else:
        told.append(f"None of {phrasing.count_phrase(len(figures), 'figure')} differs by what matters.")
    rest = [f"{count} {word}" for word, count in counts.items() if word != "differs"]
    return [*told, *([f"The others: {phrasing.enumeration(rest)}."] if rest else [])]


def courses(comparison: Comparison) -> list[str]:
    """What became of the labs' courses, in lines."""
    lines = []
    for pair in comparison.pairs:
        whose = f"{pair.experiment}: " if len(comparison.pairs) > 1 else ""
        lines += [f"{'' if number else f'{whose}course: '}{line}" for number, line in enumerate(pair.courses)]
    return lines


def _two_times(pair: RunPair) -> str:
    clocks = [phrasing.clock(results.plan) for results in (pair.a, pair.b) if results.plan]
    return (
        f"{pair.experiment}: A was measured in {clocks[0]}, B in {clocks[1]}; what takes processor time differs for "
        f"that alone."
    )


def extent(figure: ComparedFigure) -> str:
    """The change in words: `−3.1 %`, or `+0.40 points` for a percentage."""
    change, *_ = _extent(figure)
    return _signed(figure, change)


def interval(figure: ComparedFigure) -> str:
    """The 95 % interval of the change, `−3.5 to −2.8 %`."""
    _, low, high, _ = _extent(figure)
    *_, unit = _signed(figure, high).partition(" ")
    return f"{span(*(_signed(figure, end).partition(' ')[0] for end in (low, high)))} {unit}"


def _signed(figure: ComparedFigure, change: float) -> str:
    if figure.column.endswith("percent"):
        text = f"{change:+.2f} points"
    elif figure.difference.ratio is None:
        unit = (
            figure.unit if figure.column == "value" else phrasing.column(figure.column, figure.unit).rpartition(" ")[2]
        )
        text = f"{signed_figure(change)} {unit}"
    else:
        text = f"{change:+.1%}".replace("%", " %")
    return text.replace("-", "−")


def changed_settings(a: Manifest | None, b: Manifest | None) -> tuple[SettingChange, ...]:
    """Every setting in which the two differ, topology first."""
    first, second = dict(_settings(a)), dict(_settings(b))
    found = [
        SettingChange(*key, first.get(key, ""), second.get(key, ""))
        for key in dict.fromkeys((*first, *second))
        if first.get(key, "") != second.get(key, "")
    ]
    return tuple(sorted(found, key=lambda change: GROUPS.index(change.group)))


def _settings(manifest: Manifest | None) -> Iterator[tuple[tuple[str, str], str]]:
    if manifest is None:
        return
    yield from _topology(manifest)
    experiment = manifest.experiment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for name, value in experiment.items():
        if name not in _WORDS:
            yield from ((("experiment", what.removeprefix("measurements.")), text) for what, text in _flat(name, value))
    yield ("lab", "provider"), manifest.provider
    yield ("lab", "time"), phrasing.clock(manifest.plan)
    for name, value in provenance(manifest).items():
        if name in _NOT_COMPARED:
            continue
        group = "version" if name in _VERSIONS else "machine" if name in ("machine", "conditions") else "lab"
        yield from (
            ((group, what.removeprefix(f"{group}.")), text)
            for what, text in _flat(name, value)
            if not (name == "parts" and what.endswith(_PROVEN))
        )
    yield from ((("version", f"package {name}"), version) for name, version in manifest.packages.items())
    for overlay, facts in manifest.overlays.items():
        mtus = {str(endpoint.mtu) for endpoint in facts.endpoints.values()}
        yield ("lab", f"MTU of {overlay}"), ", ".join(sorted(mtus))
        if facts.programs is not None:
            yield ("version", f"programs of {overlay}"), facts.programs.sha256[:16]
        if facts.policy:
            yield ("lab", f"policy on {overlay}"), str(facts.policy.get("name"))


def _topology(manifest: Manifest) -> Iterator[tuple[tuple[str, str], str]]:
    plan = manifest.plan
    yield ("topology", "name"), plan.name
    yield ("topology", "hosts"), ", ".join(host.name for host in plan.hosts)
    for host in plan.hosts:
        yield ("topology", f"{host.name}: cpus, memory"), f"{host.cpus}, {host.memory_mb} MB"
        for each in host.sysctls:
            yield ("topology", f"{host.name}: {each.name}"), each.value
    for name, hosts in plan.kernels.items():
        yield ("topology", f"kernel {name}"), ", ".join(hosts)
    for group in plan.groups:
        yield ("topology", f"group {group.name}"), ", ".join(group.hosts)
    for link in plan.links:
        for name in _LINK:
            if (value := getattr(link, name, None)) is not None:
                yield ("topology", f"{' – '.join(link.ends)}: {name.replace('_', ' ')}"), digits(value, 9)
        for name in _BACK if link.back is not None else ():
            if (value := getattr(link.back, name, None)) is not None:
                yield ("topology", f"{' – '.join(link.ends)}: {name.replace('_', ' ')}, back"), digits(value, 9)


def _flat(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """A tree's leaves by their dotted names; the entries of a list by their `name`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif (
        isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value)
    ):
        for index, each in enumerate(value):
            label = each.get("name", index) if isinstance(each, Mapping) else index
            yield from _flat(f"{name}.{label}", each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
