"""Claims about a lab's figures, and whether they hold. The words are those of a topology's `expect:`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from minigts.experiments.cells import Cell, Judgement, Verdict, Word, plural
from minigts.experiments.comparisons import bounded, changes, compared, drops_past_mtu, fits_mtu
from minigts.experiments.tested import direction, in_words
from minigts.experiments.vocabulary import Claim
from minigts.statistics import change, within
from minigts.topology.plan import Plan
from minigts.topology.tolerance import tolerance_ms

CEILING_SHARE = 0.85
"""TCP keeps within 15 % below the ceiling…"""
ABOVE_CEILING = 1.02
"""…and 2 % above it, since what a queue held back at the end counts too."""
HARDLY = 0.10
"""A fall of up to a tenth from the first hop to the last is slight."""


def evaluate(claims: Sequence[Claim], cells: Sequence[Cell], plan: Plan) -> tuple[Verdict, ...]:
    """A verdict for each claim, overlay and measurement that it speaks of. `undecided` without the figures."""
    return tuple(verdict for claim in claims for verdict in _verdicts(claim, cells, plan))


def from_expect(entries: Sequence[Mapping[str, str]]) -> tuple[Claim, ...]:
    """A plan's `expect:` as claims; there `throughput` means TCP, the measurement called `tcp`.

    Raises pydantic's ValidationError for words outside the vocabulary.
    """
    return tuple(Claim.model_validate({"of": "tcp", **entry} if "throughput" in entry else entry) for entry in entries)


def _verdicts(claim: Claim, cells: Sequence[Cell], plan: Plan) -> Iterator[Verdict]:
    spoken_of = [cell for cell in cells if _is_of(claim, cell)]
    series = dict.fromkeys((cell.overlay, cell.measurement) for cell in spoken_of)
    if not series:
        yield _verdict(claim, claim.overlay or "", ("undecided", "nothing of it was measured"))
    for overlay, measurement in series:
        own = [cell for cell in spoken_of if (cell.overlay, cell.measurement) == (overlay, measurement)]
        if claim.than.get("overlay") == overlay:
            continue
        word, detail = _judgement(claim, own, cells, plan)
        yield _verdict(claim, overlay, (word, f"{measurement}: {detail}"))


def _verdict(claim: Claim, overlay: str, judgement: Judgement) -> Verdict:
    return Verdict(claim.words, overlay, judgement[0], claim.text, judgement[1], claim.why)


def _is_of(claim: Claim, cell: Cell) -> bool:
    own_value = cell.metric == "" and cell.quantity == claim.quantity
    return (
        (own_value or cell.metric == claim.metric)
        and claim.of in (None, cell.measurement)
        and claim.overlay in (None, cell.overlay)
        and claim.where.items() <= cell.words.items()
        and (claim.below != "mtu" or fits_mtu(cell))
    )


def _judgement(claim: Claim, own: Sequence[Cell], cells: Sequence[Cell], plan: Plan) -> Judgement:
    general = _GENERAL.get(claim.word)
    return general(claim, own, cells, plan) if general else _JUDGES[claim.word](own, plan)


def _sum_of_segments(cells: Sequence[Cell], plan: Plan) -> Judgement:
    """Each path of several hops against the sum of its segments' own medians."""
    segments = {frozenset((cell.source, cell.target)): cell.middle.median for cell in cells if cell.hops == 1}
    ends = {link.name: frozenset(link.ends) for link in plan.links}
    pairs = []
    for cell in cells:
        parts = [segments.get(ends[name]) for name in plan.path(cell.source, cell.target).links]
        known = [part for part in parts if part is not None]
        if cell.hops > 1 and len(known) == len(parts):
            pairs.append((cell, sum(known)))
    return _judged_sums(pairs, "the sum of its segments")


def _as_declared(cells: Sequence[Cell], _plan: Plan) -> Judgement:
    """Each path against the round trip that the topology declares."""
    pairs = [(cell, cell.predicted) for cell in cells if cell.predicted is not None]
    return _judged_sums(pairs, "what the topology declares")


def _judged_sums(pairs: Sequence[tuple[Cell, float]], reference: str) -> Judgement:
    if not pairs:
        return "undecided", f"no path could be held against {reference}"
    misses = [(cell.middle.median - total, tolerance_ms(total), cell) for cell, total in pairs]
    miss, allowed, cell = max(misses, key=lambda entry: abs(entry[0]) / entry[1])
    held = abs(miss) <= allowed
    outside = sum(abs(each) > limit for each, limit, _ in misses)
    which = f"all {len(pairs)} paths agree with" if held else f"{outside} of {len(pairs)} paths miss"
    return "held" if held else "did not", (
        f"{which} {reference}; the furthest, {cell.source} to {cell.target} over {plural(cell.hops, 'hop')}, lies "
        f"{abs(miss):.2f} ms {'above' if miss >= 0 else 'below'} ({allowed:.2f} ms allowed)"
    )


def _within_ceiling(cells: Sequence[Cell], _plan: Plan) -> Judgement:
    """Each path's throughput against the ceiling that the plan predicts."""
    shares = [(cell.middle.median / cell.predicted, cell) for cell in _by_hops(cells) if cell.predicted]
    if not shares:
        return "undecided", "the plan predicts no ceiling: the links have no rate"
    outside = [entry for entry in shares if not within(entry[0], CEILING_SHARE, ABOVE_CEILING)]
    share, cell = max(outside or shares, key=lambda entry: abs(1 - entry[0]))
    which = f"{len(outside)} of {len(shares)} paths lie outside" if outside else f"all {len(shares)} paths lie within"
    return "did not" if outside else "held", (
        f"{which} {CEILING_SHARE:.0%} to {ABOVE_CEILING:.0%} of the ceiling; the furthest, {cell.source} to "
        f"{cell.target}, reaches {cell.middle.median:.1f} of {cell.predicted:.1f} {cell.unit} ({share:.0%})"
    )


def _falls_with_hops(cells: Sequence[Cell], _plan: Plan) -> Judgement:
    """The longest path clearly below the single hop."""
    ends = _ends(cells)
    if ends is None:
        return "undecided", "only one hop count was measured"
    words: dict[str, Word] = {"falls": "held", "unclear": "undecided", "level": "did not", "rises": "did not"}
    return words[direction(*ends)], _change_in_words(*ends) + _steepest(_by_hops(cells)) + in_words(*ends)


def _hardly_falls(cells: Sequence[Cell], _plan: Plan) -> Judgement:
    """The longest path at most a tenth below the single hop."""
    ends = _ends(cells)
    if ends is None:
        return "undecided", "only one hop count was measured"
    first, last = ends
    surely = change(first.middle.bounds[1], last.middle.bounds[0]) >= -HARDLY
    surely_not = change(first.middle.bounds[0], last.middle.bounds[1]) < -HARDLY
    word: Word = "held" if surely else "did not" if surely_not else "undecided"
    return word, f"{_change_in_words(first, last)} (a fall of {HARDLY:.0%} allowed)"


def _by_hops(cells: Sequence[Cell]) -> list[Cell]:
    return sorted((cell for cell in cells if cell.kind == "path"), key=lambda cell: cell.hops)


def _ends(cells: Sequence[Cell]) -> tuple[Cell, Cell] | None:
    """The paths with the fewest and the most hops; None when all have the same."""
    ordered = _by_hops(cells)
    return (ordered[0], ordered[-1]) if ordered and ordered[0].hops < ordered[-1].hops else None


def _change_in_words(first: Cell, last: Cell) -> str:
    (low, high), relative = last.middle.bounds, change(first.middle.median, last.middle.median)
    return (
        f"{first.middle.median:.1f} {first.unit} over {plural(first.hops, 'hop')}, {last.middle.median:.1f} over "
        f"{plural(last.hops, 'hop')} (95 % interval {low:.1f} to {high:.1f}): {relative:+.1%}"
    )


def _steepest(ordered: Sequence[Cell]) -> str:
    """Where the largest step lies, since the study saw it after the first hop."""
    pairs = list(pairwise(ordered))
    step, after = min((change(a.middle.median, b.middle.median), a.hops) for a, b in pairs)
    return f"; the largest step, {step:+.1%}, lies after {plural(after, 'hop')}" if len(pairs) > 1 and step < 0 else ""


_JUDGES: Mapping[str, Callable[[Sequence[Cell], Plan], Judgement]] = {
    "sum-of-segments": _sum_of_segments,
    "as-declared": _as_declared,
    "within-ceiling": _within_ceiling,
    "falls-with-hops": _falls_with_hops,
    "hardly-falls": _hardly_falls,
}
_GENERAL: Mapping[str, Callable[[Claim, Sequence[Cell], Sequence[Cell], Plan], Judgement]] = {
    "compared": compared,
    "bounded": bounded,
    "falls": changes,
    "rises": changes,
    "drops-past-mtu": drops_past_mtu,
}
