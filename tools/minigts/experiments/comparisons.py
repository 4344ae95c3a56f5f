"""Claims that compare one condition, overlay or measurement with another, or with a range: finds what to compare, and
writes the sentence. minigts.judge.ranges decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from minigts.experiments.cells import Cell
from minigts.experiments.model import settings
from minigts.experiments.vocabulary import Claim
from minigts.judge import ranges
from minigts.judge.cells import PathCell, evidence, have_interval, interval_in_words, plural, ratio_percent
from minigts.judge.statistics import change
from minigts.judge.verdicts import Judgement, Word, all_of, together
from minigts.language.figures import digits, span
from minigts.language.quantities import magnitude
from minigts.tools.datagrams import datagram_bytes

T = TypeVar("T")


def compared(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell]) -> Judgement:
    """Whether the ratio of each cell to its counterpart by `than`, in per cent, lies within the range."""
    assert claim.range is not None
    pairs = [(cell, other) for cell in cells for other in _counterparts(cell, claim, everything)]
    if not pairs:
        return Judgement("undecided", "what to compare it with was not measured")
    tested = [ranges.compared(cell, other, claim.range) for cell, other in pairs]
    words = [each.word for each in tested]
    cell, other = _telling(pairs, words)
    low, ratio, high = ratio_percent(cell, other)
    digits = claim.range.decimals
    share = f"{ratio:.{digits}f} %{_interval_percent(low, high, digits, cell, other)}"
    which = f"of {plural(len(pairs), 'comparison')} {_counted(words)}; " if len(pairs) > 1 else ""
    figures = f"{_named(cell)} {_figure(cell, digits)} against {_figure(other, digits)} {_named(other)}"
    expected = f"{claim.range.written} was expected"
    word, p = all_of(tested)
    return Judgement(word, f"{which}{figures}: {share}, where {expected}{evidence(other, cell)}", p)


def on_one_side(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell]) -> Judgement:
    """Whether each cell is better, or worse, than its counterpart by `than`, in the measurement's own direction."""
    pairs = [(cell, other) for cell in cells for other in _counterparts(cell, claim, everything)]
    if not pairs:
        return Judgement("undecided", "what to compare it with was not measured")
    tested = [ranges.goes(_way(claim, cell), other, cell) for cell, other in pairs]
    words = [each.word for each in tested]
    cell, other = _telling(pairs, words)
    which = f"of {plural(len(pairs), 'comparison')} {_counted(words)}; " if len(pairs) > 1 else ""
    relative = change(other.estimate.median, cell.estimate.median)
    figures = f"{_named(cell)} {_figure(cell)} against {_figure(other)} {_named(other)}"
    shown = f": {relative:+.1%}" if other.estimate.median else ""
    word, p = all_of(tested)
    return Judgement(word, f"{which}{figures}{shown}, where {cell.better} is better{evidence(other, cell)}", p)


def _way(claim: Claim, cell: Cell) -> Literal["falls", "rises"]:
    return "falls" if (claim.word == "better") == (cell.better == "lower") else "rises"


def bounded(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether every cell lies within the range."""
    assert claim.range is not None
    tested = [ranges.bounded(cell, claim.range) for cell in cells]
    words = [each.word for each in tested]
    cell = _telling(cells, words)
    low, high = cell.estimate.bounds
    which = f"of {plural(len(cells), 'figure')} {_counted(words)}; " if len(cells) > 1 else ""
    word, p = all_of(tested)
    return Judgement(
        word,
        f"{which}{_named(cell)} {_figure(cell)}{_interval(low, high, cell)}, where {claim.range.written} was expected",
        p,
    )


def changes(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether every series with several values falls, or rises, from the first value of `by` to the last."""
    series: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in cells:
        if claim.by in cell.words:
            along = {claim.by, "hops"} | ({"to"} if claim.by == "hops" else set())
            rest = tuple((key, value) for key, value in cell.words.items() if key not in along)
            series.setdefault(rest, []).append(cell)
    ordered = [sorted(each, key=lambda cell: magnitude(cell.words[claim.by or ""])) for each in series.values()]
    ends = [(each[0], each[-1]) for each in ordered if len(each) > 1]
    if not ends:
        return Judgement("undecided", f"no two values of {claim.by} were measured")
    word: Literal["falls", "rises"] = "falls" if claim.word == "falls" else "rises"
    tested = [ranges.goes(word, first, last) for first, last in ends]
    words = [each.word for each in tested]
    first, last = _telling(ends, words)
    low, high = last.estimate.bounds
    relative = change(first.estimate.median, last.estimate.median)
    at_first, at_last = (cell.words[claim.by or ""] for cell in (first, last))
    found, p = all_of(tested)
    return Judgement(
        found,
        f"{_figure(first)} at {claim.by} {at_first}, {_figure(last)} at {at_last}{_interval(low, high, first, last)}"
        + (f": {relative:+.0%}" if first.estimate.median else "")
        + evidence(first, last),
        p,
    )


def drops_past_mtu(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether the ratio of the smallest datagram that needs fragments to the largest that needs none is in range."""
    assert claim.range is not None
    sized = [cell for cell in cells if "datagram" in cell.words]
    sized.sort(key=lambda cell: datagram_bytes(cell.words["datagram"], cell.mtu))
    whole = [cell for cell in sized if fits_mtu(cell)]
    cut = [cell for cell in sized if not fits_mtu(cell)]
    if not whole or not cut:
        return Judgement("undecided", "no datagrams on both sides of the MTU were measured")
    low, ratio, high = ratio_percent(cut[0], whole[-1])
    word, p = ranges.compared(cut[0], whole[-1], claim.range)
    return Judgement(
        word,
        f"{_figure(cut[0])} with datagrams of {cut[0].words['datagram']}, which the MTU of {cut[0].mtu} cuts in two, "
        f"against {_figure(whole[-1])} with {whole[-1].words['datagram']}: {ratio:.0f} %"
        f"{_interval_percent(low, high, 0, cut[0], whole[-1])}, where {claim.range.written} was expected",
        p,
    )


def fits_mtu(cell: Cell) -> bool:
    """Whether the cell's datagrams need no fragments."""
    return datagram_bytes(cell.words.get("datagram", "fit"), cell.mtu) + 28 <= cell.mtu


def _counterparts(cell: Cell, claim: Claim, everything: Iterable[Cell]) -> list[Cell]:
    wanted = {**cell.words, **claim.than}
    if claim.than.keys() & {"from", "to", "of"}:
        wanted.pop("hops")
    if "of" in claim.than:
        # Another measurement need not vary the same.
        wanted = {key: value for key, value in wanted.items() if key not in settings(cell.condition)} | claim.than
    if cell.words.items() >= claim.than.items():
        return []
    return [other for other in everything if other.metric == cell.metric and wanted.items() <= other.words.items()]


def _interval(low: float, high: float, *cells: PathCell) -> str:
    return f" (95 % interval {span(_short(low), _short(high))})" if have_interval(*cells) else ""


def _interval_percent(low: float, high: float, digits: int, *cells: PathCell) -> str:
    return interval_in_words(low, high, f".{digits}f", *cells).replace(")", " %)")


def _telling(entries: Sequence[T], words: Sequence[Word]) -> T:
    """The entry to show: the first that decides."""
    return entries[words.index(together(words))]


def _counted(words: Sequence[Word]) -> str:
    held = words.count("held")
    return "all hold" if held == len(words) else f"{held} hold, {words.count('failed')} do not"


def _figure(cell: Cell, decimals: int = 0) -> str:
    return f"{_short(cell.estimate.median, decimals)} {cell.unit}"


def _short(value: float, decimals: int = 0) -> str:
    """The value with three digits, more where a range has `decimals`, without exponent: 0.206, 47.6, 2710."""
    return digits(value, 3 + decimals) if abs(value) < 1000 else f"{value:.0f}"


def _named(cell: Cell) -> str:
    condition = f", {cell.condition}" if cell.condition else ""
    return f"({cell.measurement} {cell.source} to {cell.target} over {cell.overlay}{condition})"
