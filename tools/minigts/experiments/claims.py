"""Claims about a lab's figures, and whether they hold: which cells a claim speaks of, and what is held against what.
minigts.judge decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeVar

from minigts.experiment_language.claims import ALONG_PATHS, Claim, formula_name, is_of_the_value
from minigts.experiment_language.model import Experiment, settings
from minigts.experiments import construction
from minigts.experiments.matrix import path_between
from minigts.experiments.summary import Cell, Verdict
from minigts.judge import curves, ranges
from minigts.judge.registry import WORDS
from minigts.judge.samples import (
    ENOUGH,
    PathSamples,
    chance_in_words,
    evidence,
    interval_in_words,
    plural,
    ratio_percent,
)
from minigts.judge.statistics import change, estimate, holm, significant
from minigts.judge.verdicts import Judgement, Tested, Word, all_of, combine
from minigts.language.figures import digits
from minigts.language.formula import formula
from minigts.language.quantities import magnitude
from minigts.language.units import convert, number_of
from minigts.tools.payload import datagram_bytes
from minigts.topology.plan.plan import Plan

T = TypeVar("T")


def judge_ratio(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell]) -> Judgement:
    """Whether the ratio of each cell to its counterpart by `than`, in per cent, lies within the range."""
    assert claim.range is not None
    pairs = [(cell, other) for cell in cells for other in _counterparts(cell, claim, everything)]
    if not pairs:
        return Judgement("undecided", "what to compare it with was not measured")
    tested = [ranges.compare_ratio(cell, other, claim.range) for cell, other in pairs]
    words = [each.word for each in tested]
    cell, other = _telling(pairs, words)
    low, ratio, high = ratio_percent(cell, other)
    digits = claim.range.decimals
    share = f"{ratio:.{digits}f} %{_interval_percent(low, high, digits, None, cell, other)}"
    which = f"of {plural(len(pairs), 'comparison')} {_counted(words)}; " if len(pairs) > 1 else ""
    figures = f"{_named(cell)} {_figure(cell, digits)} against {_figure(other, digits)} {_named(other)}"
    expected = f"{claim.range.written} was expected"
    word, p = all_of(tested)
    used = max(claim.range.share(ratio_percent(*pair)[1]) for pair in pairs)
    return Judgement(word, f"{which}{figures}: {share}, where {expected}{evidence(other, cell)}", p, used)


def judge_side(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell]) -> Judgement:
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


def judge_bounds(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether every cell lies within the range."""
    assert claim.range is not None
    tested = [ranges.compare_with_range(cell, claim.range) for cell in cells]
    words = [each.word for each in tested]
    cell = _telling(cells, words)
    which = f"of {plural(len(cells), 'figure')} {_counted(words)}; " if len(cells) > 1 else ""
    word, p = all_of(tested)
    return Judgement(
        word,
        f"{which}{_named(cell)} {_figure(cell)}{_interval(cell)}, where {claim.range.written} was expected",
        p,
        max(claim.range.share(cell.estimate.median) for cell in cells),
    )


def changes(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether every series with several values falls, or rises, from the first value of `by` to the last."""
    ends = [(each[0], each[-1]) for each in _series(claim, cells) if len(each) > 1]
    if not ends:
        return Judgement("undecided", f"no two values of {claim.by} were measured")
    word: Literal["falls", "rises"] = "falls" if claim.word == "falls" else "rises"
    tested = [ranges.trend_is(word, first, last) for first, last in ends]
    words = [each.word for each in tested]
    first, last = _telling(ends, words)
    relative = change(first.estimate.median, last.estimate.median)
    at_first, at_last = (cell.words[claim.by or ""] for cell in (first, last))
    found, p = all_of(tested)
    return Judgement(
        found,
        f"{_figure(first)} at {claim.by} {at_first}, {_figure(last)} at {at_last}{_interval(last, first)}"
        + (f": {relative:+.0%}" if first.estimate.median else "")
        + evidence(first, last),
        p,
    )


def judge_order(claim: Claim, cells: Sequence[Cell], _everything: Sequence[Cell]) -> Judgement:
    """Whether every series rises from each value of `order` to the next."""
    pairs = [
        (at[first], at[then])
        for each in _series(claim, cells)
        for at in [{cell.words[claim.by or ""]: cell for cell in each}]
        for first, then in pairwise(claim.order or ())
        if first in at and then in at
    ]
    if not pairs:
        return Judgement("undecided", f"no two of {', '.join(claim.order or ())} were measured")
    tested = [ranges.trend_is("rises", first, then) for first, then in pairs]
    words = [each.word for each in tested]
    first, then = _telling(pairs, words)
    which = f"of {plural(len(pairs), 'step')} {_counted(words)}; " if len(pairs) > 1 else ""
    at_first, at_then = (cell.words[claim.by or ""] for cell in (first, then))
    word, p = all_of(tested)
    said = f"{which}{_figure(first)} at {claim.by} {at_first}, {_figure(then)} at {at_then}{evidence(first, then)}"
    return Judgement(word, said, p)


def slope(claim: Claim, cells: Sequence[Cell], plan: Plan) -> Judgement:
    """Whether the exponent of every series over the values of `by` is within the range."""
    assert claim.range is not None and claim.by is not None
    if claim.by in ALONG_PATHS:
        along = [[(_of_the_path(cell, plan)[claim.by], cell) for cell in each] for each in _alike(claim, cells, plan)]
    else:
        along = [[(magnitude(cell.words[claim.by]), cell) for cell in each] for each in _series(claim, cells)]
    found = [curves.slope([place for place, _ in each], [cell for _, cell in each]) for each in along]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        few = f"a slope needs figures above 0 at {curves.FEWEST_PLACES} values of {claim.by}, which are numbers above 0"
        return Judgement("undecided", few)
    tested = [ranges.compare_with_range(each, claim.range) if each.enough else Tested("undecided") for each in known]
    words = [each.word for each in tested]
    told = _telling(known, words)
    which = f"of {plural(len(known), 'series')} {_counted(words)}; " if len(known) > 1 else ""
    expected = f"{claim.range.written} was expected"
    said = f"{which}an exponent of {_short(told.estimate.median)}{_interval(told)}, where {expected}"
    word, p = all_of(tested)
    return Judgement(word, said, p, max(claim.range.share(each.estimate.median) for each in known))


def share(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell]) -> Judgement:
    """Whether of each cell and its counterpart by `than` together the cell's share, in per cent, is within the range.

    A share s is a ratio of s/(1-s), which is tested.
    """
    assert claim.range is not None
    pairs = [(cell, other) for cell in cells for other in _counterparts(cell, claim, everything)]
    if not pairs:
        return Judgement("undecided", "what it shares with was not measured")
    low, high = (min(max(end / 100, 0.0), 1.0) for end in (claim.range.low, claim.range.high))
    as_ratio = replace(
        claim.range,
        low=-math.inf if low <= 0 else 100 * low / (1 - low) if low < 1 else math.inf,
        high=math.inf if high >= 1 else 100 * high / (1 - high),
    )
    tested = [ranges.compare_ratio(cell, other, as_ratio) for cell, other in pairs]
    words = [each.word for each in tested]
    cell, other = _telling(pairs, words)
    which = f"of {plural(len(pairs), 'comparison')} {_counted(words)}; " if len(pairs) > 1 else ""
    part = _share_percent(cell, other)
    shown = "no share" if part is None else f"{part:.1f} %"
    figures = f"{_named(cell)} {_figure(cell)} beside {_figure(other)} {_named(other)}"
    word, p = all_of(tested)
    used = max(
        (claim.range.share(each) for pair in pairs if (each := _share_percent(*pair)) is not None), default=math.inf
    )
    return Judgement(word, f"{which}{figures}: {shown}, where {claim.range.written} was expected", p, used)


def _share_percent(cell: Cell, other: Cell) -> float | None:
    """The cell's share of both figures together, in per cent; None where they add up to nothing."""
    total = cell.estimate.median + other.estimate.median
    return 100 * cell.estimate.median / total if total > 0 else None


def follows(claim: Claim, cells: Sequence[Cell], everything: Sequence[Cell], plan: Plan) -> Judgement:
    """Whether each cell is within the range of what the formula gives for it: each sample of the cell beside the
    formula of its own measured numbers, where the formula names such."""
    assert claim.range is not None and claim.formula is not None
    held: list[tuple[Cell, float, Cell]] = []
    for cell in cells:
        try:
            known = _of_the_formula(cell, everything, plan)
            given = _by_formula(claim, cell, known)
            held.append((cell, given, _in_per_cent(claim, cell, given, known, everything)))
        except KeyError as error:
            return Judgement("undecided", f"{_named(cell)} has no number for {error.args[0]}")
        except ValueError as error:
            return Judgement("undecided", f"{_named(cell)}: {error}")
    tested = [ranges.compare_with_range(share, claim.range) for _, _, share in held]
    words = [each.word for each in tested]
    cell, given, share = _telling(held, words)
    which = f"of {plural(len(held), 'figure')} {_counted(words)}; " if len(held) > 1 else ""
    decimals = claim.range.decimals
    interval = _interval_percent(*share.estimate.bounds, decimals, len(share.values) or None, share)
    ratio = f"{share.estimate.median:.{decimals}f} %{interval}"
    word, p = all_of(tested)
    figure = f"{_named(cell)} {_figure(cell)}, {ratio} of {_short(given)} {cell.unit} by the formula"
    used = max(claim.range.share(share.estimate.median) for _, _, share in held)
    return Judgement(word, f"{which}{figure}, where {claim.range.written} was expected", p, used)


def _by_formula(claim: Claim, cell: Cell, known: Mapping[str, float]) -> float:
    """What the formula gives, in the cell's unit. Raises KeyError for a name without a number, and ValueError where
    nothing above 0 comes out."""
    given = formula(claim.formula).value(known)
    in_its_unit = convert(given, claim.unit or "1", cell.unit)
    if in_its_unit is None or in_its_unit <= 0:
        raise ValueError(f"the formula gives {_short(given)} {claim.unit}")
    return in_its_unit


def _in_per_cent(
    claim: Claim, cell: Cell, given: float, known: Mapping[str, float], everything: Sequence[Cell]
) -> Cell:
    """The cell in per cent of what the formula gives: of `given`, which `known` numbers give, or, where the formula
    names measured columns, each sample of what it gives for that sample."""
    names = formula(claim.formula).names
    beside = {each.metric: _by_key(each) for each in everything if each.metric in names and each.words == cell.words}
    own = _by_key(cell)
    if not own or not beside:
        return replace(
            cell,
            estimate=cell.estimate.times(100 / given),
            values=tuple(value * 100 / given for value in cell.values),
        )
    shares = {
        key: 100 * value / _by_formula(claim, cell, {**known, **{name: at[key] for name, at in beside.items()}})
        for key, value in own.items()
        if all(key in at for at in beside.values())
    }
    if not shares:
        raise KeyError(*beside)
    values = tuple(shares.values())
    return replace(cell, estimate=estimate(values), values=values, keys=tuple(shares))


def _by_key(cell: PathSamples) -> Mapping[int, float]:
    return dict(zip(cell.keys, cell.values, strict=True)) if len(cell.keys) == len(cell.values) else {}


def _of_the_formula(cell: Cell, everything: Sequence[Cell], plan: Plan) -> Mapping[str, float]:
    """The numbers that a formula may name for a cell: of its path, of what varies, and of its further columns. What has
    no number there is missing."""
    beside = {each.metric: each.estimate.median for each in everything if each.metric and each.words == cell.words}
    found = {
        **beside,
        **_of_the_path(cell, plan),
        **{formula_name(key): number_of(value) for key, value in settings(cell.condition).items()},
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _of_the_path(cell: Cell, plan: Plan) -> dict[str, float]:
    """OF_THE_PATH by name; not a number for the rate of a path without one."""
    path = path_between(plan, cell.source, cell.target)
    return {
        "mss": float(cell.mss),
        "mtu": float(cell.mtu),
        "rtt": path.rtt_ms / 1000,
        "rate": math.nan if path.rate_mbit is None else path.rate_mbit * 1e6 / 8,
        "p": path.loss_percent / 100,
        "hops": float(path.hops),
    }


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
    word, p = ranges.compare_ratio(cut[0], whole[-1], claim.range)
    return Judgement(
        word,
        f"{_figure(cut[0])} with datagrams of {cut[0].words['datagram']}, which the MTU of {cut[0].mtu} cuts in two, "
        f"against {_figure(whole[-1])} with {whole[-1].words['datagram']}: {ratio:.0f} %"
        f"{_interval_percent(low, high, 0, None, cut[0], whole[-1])}, where {claim.range.written} was expected",
        p,
    )


def fits_mtu(cell: Cell) -> bool:
    """Whether the cell's datagrams need no fragments."""
    return datagram_bytes(cell.words.get("datagram", "fit"), cell.mtu) + 28 <= cell.mtu


def _series(claim: Claim, cells: Iterable[Cell]) -> list[list[Cell]]:
    """The cells that differ only in the value of `by`, the smallest value first."""
    series: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in cells:
        if claim.by in cell.words:
            along = {claim.by, "hops"} | ({"to"} if claim.by == "hops" else set())
            rest = tuple((key, value) for key, value in cell.words.items() if key not in along)
            series.setdefault(rest, []).append(cell)
    return [sorted(each, key=lambda cell: magnitude(cell.words[claim.by or ""])) for each in series.values()]


def _alike(claim: Claim, cells: Iterable[Cell], plan: Plan) -> list[list[Cell]]:
    """The cells of paths that differ only in the plan's figure `by`, the path with the smallest first, under one value
    of all that varies. A path whose like has no other value of `by` is in no series."""
    series: dict[tuple[object, ...], list[tuple[float, Cell]]] = {}
    for cell in cells:
        figures = {name: value for name, value in _of_the_path(cell, plan).items() if not math.isnan(value)}
        place = figures.pop(claim.by or "", math.nan)
        series.setdefault((cell.overlay, cell.condition, *figures.items()), []).append((place, cell))
    return [
        [cell for _, cell in sorted(each, key=lambda entry: entry[0])]
        for each in series.values()
        if len({place for place, _ in each}) > 1
    ]


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


def _interval(cell: PathSamples, *beside: PathSamples) -> str:
    """The cell's interval in words; empty where it, or one of those beside which it is shown, has none."""
    low, high = cell.estimate.bounds
    return interval_in_words(_short(low), _short(high), "", len(cell.values) or None, cell, *beside)


def _interval_percent(low: float, high: float, digits: int, of: int | None, *cells: PathSamples) -> str:
    return interval_in_words(f"{low:.{digits}f}", f"{high:.{digits}f}", " %", of, *cells)


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
            construction.judge_claim(claim, its_cells, cells, experiment, plan, judge)
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
    if cells and all(cell.basis in ("course", "draw") for cell in cells):
        return "; one course, and chance decides"
    if cells and all(cell.basis == "replicates" for cell in cells):
        several = f"{min(len(cell.values) for cell in cells)} replicates"
        alike = sum(cell.exact for cell in cells)
        if alike == len(cells):
            return f"; exact, one course: {several}, all alike"
        return f"; {several}" + (f", all alike in {alike} of {plural(len(cells), 'figure')}" if alike else "")
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
            said = f"{each.detail}; by itself it would have {each.verdict}, but {together}"
            yield replace(each, p=p, verdict="undecided", detail=said)


def _saying_so_if_changed(verdict: Verdict) -> Verdict:
    if not verdict.changed:
        return verdict
    return replace(verdict, detail=f"{verdict.detail}; the claim was changed after the run")


def _verdict(claim: Claim, overlay: str, judgement: Judgement) -> Verdict:
    return Verdict(
        claim.words,
        overlay,
        judgement.word,
        claim.text,
        judgement.detail,
        claim.why,
        claim.source,
        judgement.p,
        used=None if judgement.used is None or math.isinf(judgement.used) else judgement.used,
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
    if claim.word == "follows":
        return follows(claim, its_cells, everything, plan)
    if claim.word == "slope":
        return slope(claim, its_cells, plan)
    return _COMPARISONS[claim.word](claim, its_cells, everything)


_COMPARISONS: Mapping[str, Callable[[Claim, Sequence[Cell], Sequence[Cell]], Judgement]] = {
    "compared": judge_ratio,
    "better": judge_side,
    "worse": judge_side,
    "bounded": judge_bounds,
    "falls": changes,
    "rises": changes,
    "drops-past-mtu": drops_past_mtu,
    "share": share,
    "ordered": judge_order,
}
