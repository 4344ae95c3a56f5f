"""Claims about a lab's figures, and whether they hold: which cells a claim speaks of, and what is held against what.
minigts.judge decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from minigts.experiments import construction
from minigts.experiments.claim_language import Claim, is_of_the_value
from minigts.experiments.model import Experiment, settings
from minigts.experiments.summary import Cell, Verdict
from minigts.judge import ranges
from minigts.judge.registry import WORDS
from minigts.judge.samples import (
    ENOUGH,
    PathSamples,
    chance_in_words,
    evidence,
    have_interval,
    interval_in_words,
    plural,
    ratio_percent,
)
from minigts.judge.statistics import change, holm, significant
from minigts.judge.verdicts import Judgement, Word, all_of, combine
from minigts.language.figures import digits, span
from minigts.language.quantities import magnitude
from minigts.tools.payload import datagram_bytes
from minigts.topology.plan.plan import Plan

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
    tested = [ranges.trend_is(_way(claim, cell), other, cell) for cell, other in pairs]
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
    tested = [ranges.trend_is(word, first, last) for first, last in ends]
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


def _interval(low: float, high: float, *cells: PathSamples) -> str:
    return f" (95 % interval {span(_short(low), _short(high))})" if have_interval(*cells) else ""


def _interval_percent(low: float, high: float, digits: int, *cells: PathSamples) -> str:
    return interval_in_words(low, high, f".{digits}f", *cells).replace(")", " %)")


def _telling(entries: Sequence[T], words: Sequence[Word]) -> T:
    """The entry to show: the first that decides."""
    return entries[words.index(combine(words))]


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


def evaluate(
    claims: Sequence[Claim],
    cells: Sequence[Cell],
    plan: Plan,
    experiment: Experiment | None = None,
    fixed: Collection[str] = (),
) -> tuple[Verdict, ...]:
    """A verdict for each claim, and each overlay and measurement to which it refers; `undecided` without figures.

    With the `experiment`, claims that could not come out otherwise are vacuous (construction.py). `fixed` are the
    digests of the claims before the run; empty where they were not kept.
    """
    found = [
        replace(verdict, changed=bool(fixed) and claim.digest not in fixed)
        for claim in claims
        for verdict in _verdicts(claim, cells, plan, experiment)
    ]
    return tuple(map(_saying_so_if_changed, _corrected(found)))


def _verdicts(claim: Claim, cells: Sequence[Cell], plan: Plan, experiment: Experiment | None) -> Iterator[Verdict]:
    series = spoken_of(claim, cells)
    if not any(speaks_of(claim, cell) for cell in cells):
        yield _verdict(claim, claim.overlay or "", Judgement("undecided", "nothing of it was measured"))
    judge = _judge(claim, plan)
    for (overlay, measurement), its_cells in series.items():
        judgement = (
            construction.judged(claim, its_cells, cells, experiment, plan, judge)
            if experiment is not None
            else judge(its_cells, cells)
        )
        detail = f"{measurement}: {judgement.detail}{_basis(its_cells)}"
        yield _verdict(claim, overlay, replace(judgement, detail=detail))


def foreseen(
    claim: Claim, cells: Sequence[Cell], plan: Plan, experiment: Experiment
) -> Mapping[tuple[str, str], Judgement | None]:
    """The verdicts that follow without measuring (construction.py), by overlay and measurement of the claim; None for
    those that do not follow."""
    judge = _judge(claim, plan)
    return {
        where: construction.foreseeable(claim, own, cells, experiment, plan, judge)
        for where, own in spoken_of(claim, cells).items()
    }


def spoken_of(claim: Claim, cells: Sequence[Cell]) -> Mapping[tuple[str, str], list[Cell]]:
    """The cells of a claim by overlay and measurement; it has a verdict for each of these groups."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if speaks_of(claim, cell) and claim.than.get("overlay") != cell.overlay:
            found.setdefault((cell.overlay, cell.measurement), []).append(cell)
    return found


def _judge(claim: Claim, plan: Plan) -> construction.Judge:
    return lambda own, everything: _of_enough(own, _judgement(claim, own, everything, plan))


def _of_enough(cells: Sequence[Cell], judgement: Judgement) -> Judgement:
    """The judgement; undecided where a cell has too few samples."""
    fewest = min((len(cell.values) for cell in cells if not cell.enough), default=None)
    if fewest is None:
        return judgement
    few = f"{plural(fewest, 'sample')}, and fewer than {ENOUGH} decide nothing"
    return Judgement("undecided", f"{few}; {judgement.detail}")


def _basis(cells: Sequence[Cell]) -> str:
    """The end of a sentence that says what the figures are based on; empty for samples in real time."""
    if cells and all(cell.basis == "course" for cell in cells):
        return "; exact, one course"
    if cells and all(cell.basis == "replicates" for cell in cells):
        several = f"; {min(len(cell.values) for cell in cells)} replicates"
        return f"{several}, all alike" if all(cell.exact for cell in cells) else several
    return ""


def _corrected(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """The verdicts, after Holm's procedure has raised the p values of all claims with a source, which are tested
    together; a verdict that is no longer significant becomes undecided."""
    tested = [index for index, each in enumerate(verdicts) if each.source and each.p is not None]
    raised = dict(zip(tested, holm([verdicts[index].p or 0.0 for index in tested]), strict=True))
    for index, each in enumerate(verdicts):
        p = raised.get(index)
        if p is None or each.verdict == "vacuous":
            yield each
        elif each.verdict == "undecided" or significant(p):
            yield replace(each, p=p)
        else:
            together = f"of {len(tested)} sourced claims tested together, p {chance_in_words(p)} by Holm's procedure"
            yield replace(each, p=p, verdict="undecided", detail=f"{each.detail}; {together}")


def _saying_so_if_changed(verdict: Verdict) -> Verdict:
    if not verdict.changed:
        return verdict
    return replace(verdict, detail=f"{verdict.detail}; the claim was changed after the run")


def _verdict(claim: Claim, overlay: str, judgement: Judgement) -> Verdict:
    return Verdict(
        claim.words, overlay, judgement.word, claim.text, judgement.detail, claim.why, claim.source, judgement.p
    )


def speaks_of(claim: Claim, cell: Cell) -> bool:
    """Whether the claim is about the cell."""
    return (
        cell.metric == claim.column
        and (cell.quantity == claim.quantity or not is_of_the_value(claim.quantity))
        and claim.of in (None, cell.measurement)
        and claim.overlay in (None, cell.overlay)
        and claim.where.items() <= cell.words.items()
        and (claim.below != "mtu" or fits_mtu(cell))
    )


def _judgement(claim: Claim, its_cells: Sequence[Cell], everything: Sequence[Cell], plan: Plan) -> Judgement:
    if claim.word in WORDS:
        return WORDS[claim.word](its_cells, plan)
    return _COMPARISONS[claim.word](claim, its_cells, everything)


_COMPARISONS: Mapping[str, Callable[[Claim, Sequence[Cell], Sequence[Cell]], Judgement]] = {
    "compared": compared,
    "better": on_one_side,
    "worse": on_one_side,
    "bounded": bounded,
    "falls": changes,
    "rises": changes,
    "drops-past-mtu": drops_past_mtu,
}
