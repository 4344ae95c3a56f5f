"""within-ceiling, and the shapes that a throughput has over the hops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from minigts.judge.samples import (
    PathSamples,
    directed_trend,
    ends,
    evidence,
    interval_in_words,
    interval_within,
    median_within,
    paths_by_hops,
    plural,
    ratio_within,
)
from minigts.judge.statistics import change
from minigts.judge.tolerances import CEILING, SLIGHT
from minigts.judge.verdicts import Judgement, Tested, Word, all_of
from minigts.language.figures import digits, span
from minigts.topology.plan.plan import Plan
from minigts.topology.tcp_and_loss import tcp_by_loss

_ONE_HOP_COUNT = Judgement("undecided", "only one hop count was measured")


def within_ceiling(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether each path's median lies at 85 % to 102 % of the ceiling that the plan predicts. Where the hosts' buffers
    are the ceiling, it may lie from 85 % of the least to 102 % of the most that they carry."""
    shares = [(cell.estimate.median / cell.predicted, cell) for cell in paths_by_hops(cells) if cell.predicted]
    if not shares:
        why = "the links have no rate, or acknowledgements may be the limit"
        return Judgement("undecided", f"the plan predicts no ceiling: {why}")
    tested = [
        median_within(cell, CEILING.low * _least(cell), CEILING.high * cell.predicted)
        if cell.values
        else Tested("held" if reaches_ceiling(cell) else "failed")
        for _, cell in shares
        if cell.predicted
    ]
    outside = [(share, cell) for share, cell in shares if not reaches_ceiling(cell)]
    share, cell = max(outside or shares, key=lambda entry: abs(1 - entry[0]))
    which = f"{len(outside)} of {len(shares)} paths lie outside" if outside else f"all {len(shares)} paths lie within"
    word, p = all_of(tested)
    return Judgement(
        word,
        f"{which} {CEILING.in_words} of the ceiling; the furthest, {cell.source} to {cell.target}, reaches "
        f"{cell.estimate.median:.1f} of {cell.predicted:.1f} {cell.unit} ({share:.0%})"
        f"{_by_buffers(cell)}{_by_loss(cell, plan)}",
        p,
    )


def reaches_ceiling(cell: PathSamples) -> bool:
    """Whether the path's median lies within the band around its ceiling; False without a ceiling."""
    return cell.predicted is not None and CEILING.allows_between(cell.estimate.median, _least(cell), cell.predicted)


def ceiling_in_words(predicted: float, least: float | None) -> str:
    """`47.82 Mbit/s`, or `168 to 336 Mbit/s, as the hosts' TCP buffers have it`."""
    if least is None:
        return f"{digits(predicted, 4)} Mbit/s"
    return f"{span(digits(least, 4), digits(predicted, 4))} Mbit/s, as the hosts' TCP buffers have it"


def _least(cell: PathSamples) -> float:
    return cell.predicted or 0.0 if cell.predicted_least is None else cell.predicted_least


def _by_loss(cell: PathSamples, plan: Plan) -> str:
    path = plan.path(cell.source, cell.target)
    lossy_mbit = tcp_by_loss(plan, path, path)
    if lossy_mbit >= (cell.predicted or 0.0):
        return ""
    return f", where losses of {path.loss_percent:g} % let some {lossy_mbit:.1f} Mbit/s through in the mean"


def _by_buffers(cell: PathSamples) -> str:
    if cell.predicted_least is None:
        return ""
    return f", where the hosts' TCP buffers carry {cell.predicted_least:.1f} at the least"


def falls_with_hops(cells: Sequence[PathSamples], _plan: Plan) -> Judgement:
    """Whether the longest path's throughput lies clearly below the shortest's, by any amount."""
    both = ends(cells)
    if both is None:
        return _ONE_HOP_COUNT
    words: dict[str, Word] = {"falls": "held", "unclear": "undecided", "level": "failed", "rises": "failed"}
    trend, p = directed_trend(*both)
    return Judgement(words[trend], _change_in_words(*both) + _steepest(cells) + evidence(*both), p)


def step_after_first_hop(cells: Sequence[PathSamples], _plan: Plan) -> Judgement:
    """Whether the second hop costs more than a tenth, and more than all further hops together."""
    ordered = paths_by_hops(cells)
    second = next((cell for cell in ordered if cell.hops > ordered[0].hops), None)
    if second is None or second.hops == ordered[-1].hops:
        return Judgement("undecided", "fewer than three hop counts were measured")
    first, last = ordered[0], ordered[-1]
    step_low, step_high = _change_bounds(first, second)
    (first_low, first_high), (last_low, last_high) = first.estimate.bounds, last.estimate.bounds
    second_low, second_high = second.estimate.bounds
    # first - second > second - last, by the ends of their intervals
    surely_most, perhaps_most = first_low + last_low > 2 * second_high, first_high + last_high > 2 * second_low
    word: Word = (
        "held"
        if step_high < -SLIGHT.share and surely_most
        else "undecided"
        if step_low < -SLIGHT.share and perhaps_most
        else "failed"
    )
    step = change(first.estimate.median, second.estimate.median)
    rest = (last.estimate.median - second.estimate.median) / (first.estimate.median or 1.0)
    return Judgement(
        word,
        f"{_change_in_words(first, last)}; of the first path's throughput the step to {plural(second.hops, 'hop')} "
        f"makes {step:+.1%}, all further ones {rest:+.1%}",
    )


def falls_slightly(cells: Sequence[PathSamples], _plan: Plan) -> Judgement:
    """Whether the longest path's throughput lies clearly below the shortest's, by at most a tenth."""
    both = ends(cells)
    if both is None:
        return _ONE_HOP_COUNT
    trend, p = directed_trend(*both)
    tenth = _at_least_nine_tenths(*both)
    word: Word = (
        "failed"
        if trend in ("level", "rises") or tenth.word == "failed"
        else "held"
        if trend == "falls" and tenth.word == "held"
        else "undecided"
    )
    chances = [each for each in (p, tenth.p) if each is not None]
    chance = (tenth.p if trend == "falls" else p) if word == "failed" else max(chances, default=None)
    return Judgement(word, f"{_change_in_words(*both)}{_ALLOWED}{evidence(*both)}", chance)


def level(cells: Sequence[PathSamples], _plan: Plan) -> Judgement:
    """Whether the longest path's throughput is within a tenth of the shortest's, above or below."""
    both = ends(cells)
    if both is None:
        return _ONE_HOP_COUNT
    first, last = both
    if first.values and last.values:
        word, p = ratio_within(last, first, 1 - SLIGHT.share, 1 + SLIGHT.share)
    else:
        word, p = interval_within(*_change_bounds(first, last), -SLIGHT.share, SLIGHT.share)
    return Judgement(word, f"{_change_in_words(*both)}{_ALLOWED}", p)


def _at_least_nine_tenths(first: PathSamples, last: PathSamples) -> Tested:
    if first.values and last.values:
        return ratio_within(last, first, 1 - SLIGHT.share, math.inf)
    return interval_within(*_change_bounds(first, last), -SLIGHT.share, math.inf)


_ALLOWED = f" ({SLIGHT.in_words} allowed)"


def _change_bounds(first: PathSamples, last: PathSamples) -> tuple[float, float]:
    """The least and the most that the relative change can be, by both intervals."""
    (first_low, first_high), (last_low, last_high) = first.estimate.bounds, last.estimate.bounds
    return change(first_high, last_low), change(first_low, last_high)


def _change_in_words(first: PathSamples, last: PathSamples) -> str:
    (low, high), relative = last.estimate.bounds, change(first.estimate.median, last.estimate.median)
    interval = interval_in_words(f"{low:.1f}", f"{high:.1f}", "", len(last.values) or None, first, last)
    return (
        f"{first.estimate.median:.1f} {first.unit} over {plural(first.hops, 'hop')}, {last.estimate.median:.1f} over "
        f"{plural(last.hops, 'hop')}{interval}: {relative:+.1%}"
    )


def _steepest(cells: Sequence[PathSamples]) -> str:
    """The end of a sentence that names the largest step; empty for a single step or a rise."""
    pairs = list(pairwise(paths_by_hops(cells)))
    step, after = min((change(a.estimate.median, b.estimate.median), a.hops) for a, b in pairs)
    return f"; the largest step, {step:+.1%}, lies after {plural(after, 'hop')}" if len(pairs) > 1 and step < 0 else ""
