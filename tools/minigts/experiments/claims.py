"""Claims about a lab's figures, and whether they hold. The words are those of a topology's `expect:`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from minigts.experiments.model import Claim
from minigts.statistics import Middle, change, trend, within
from minigts.topology.plan import Plan
from minigts.topology.tolerance import tolerance_ms

CEILING_SHARE = 0.85
"""TCP keeps within 15 % below the ceiling…"""
ABOVE_CEILING = 1.02
"""…and 2 % above it, since what a queue held back at the end counts too."""
HARDLY = 0.10
"""A fall of up to a tenth from the first hop to the last is slight."""

Word = Literal["held", "did not", "undecided"]


@dataclass(frozen=True)
class Cell:
    """One line of the summary: all good samples of one measurement between two hosts over one overlay."""

    overlay: str
    measurement: str
    quantity: Literal["latency", "throughput"]
    source: str
    target: str
    hops: int
    kind: Literal["path", "segment"]
    unit: str
    middle: Middle
    predicted: float | None
    published: float | None
    tainted: int = 0
    """How many samples were taken while the machine was starved. They count only where there are no others."""


@dataclass(frozen=True)
class Verdict:
    """What became of one claim over one overlay; `detail` is a sentence with the numbers."""

    claim: str
    overlay: str
    verdict: Word
    text: str
    detail: str


_Judgement = tuple[Word, str]


def evaluate(claims: Sequence[Claim], cells: Sequence[Cell], plan: Plan) -> tuple[Verdict, ...]:
    """A verdict for each claim, overlay and measurement that it speaks of. `undecided` without the figures."""
    return tuple(verdict for claim in claims for verdict in _verdicts(claim, cells, plan))


def from_expect(entries: Sequence[Mapping[str, str]]) -> tuple[Claim, ...]:
    """A plan's `expect:` as claims; there `throughput` means TCP, the measurement called `tcp`.

    Raises pydantic's ValidationError for words outside the vocabulary.
    """
    return tuple(Claim.model_validate({"of": "tcp", **entry} if "throughput" in entry else entry) for entry in entries)


def _verdicts(claim: Claim, cells: Sequence[Cell], plan: Plan) -> Iterator[Verdict]:
    quantity = "latency" if claim.latency else "throughput"
    judge = _JUDGES[claim.latency or claim.throughput or ""]
    spoken_of = [
        cell
        for cell in cells
        if cell.quantity == quantity and claim.of in (None, cell.measurement) and claim.overlay in (None, cell.overlay)
    ]
    series = dict.fromkeys((cell.overlay, cell.measurement) for cell in spoken_of)
    if not series:
        yield Verdict(claim.words, claim.overlay or "", "undecided", claim.text, "nothing of it was measured")
    for overlay, measurement in series:
        own = [cell for cell in spoken_of if (cell.overlay, cell.measurement) == (overlay, measurement)]
        word, detail = judge(own, plan)
        yield Verdict(claim.words, overlay, word, claim.text, f"{measurement}: {detail}")


def _sum_of_segments(cells: Sequence[Cell], plan: Plan) -> _Judgement:
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


def _as_declared(cells: Sequence[Cell], _plan: Plan) -> _Judgement:
    """Each path against the round trip that the topology declares."""
    pairs = [(cell, cell.predicted) for cell in cells if cell.predicted is not None]
    return _judged_sums(pairs, "what the topology declares")


def _judged_sums(pairs: Sequence[tuple[Cell, float]], reference: str) -> _Judgement:
    if not pairs:
        return "undecided", f"no path could be held against {reference}"
    misses = [(cell.middle.median - total, tolerance_ms(total), cell) for cell, total in pairs]
    miss, allowed, cell = max(misses, key=lambda entry: abs(entry[0]) / entry[1])
    held = abs(miss) <= allowed
    outside = sum(abs(each) > limit for each, limit, _ in misses)
    which = f"all {len(pairs)} paths agree with" if held else f"{outside} of {len(pairs)} paths miss"
    return "held" if held else "did not", (
        f"{which} {reference}; the furthest, {cell.source} to {cell.target} over {_hops(cell.hops)}, lies "
        f"{abs(miss):.2f} ms {'above' if miss >= 0 else 'below'} ({allowed:.2f} ms allowed)"
    )


def _within_ceiling(cells: Sequence[Cell], _plan: Plan) -> _Judgement:
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


def _falls_with_hops(cells: Sequence[Cell], _plan: Plan) -> _Judgement:
    """The longest path clearly below the single hop."""
    ends = _ends(cells)
    if ends is None:
        return "undecided", "only one hop count was measured"
    words: dict[str, Word] = {"falls": "held", "unclear": "undecided", "level": "did not", "rises": "did not"}
    return words[trend(ends[0].middle, ends[1].middle)], _change_in_words(*ends) + _steepest(_by_hops(cells))


def _hardly_falls(cells: Sequence[Cell], _plan: Plan) -> _Judgement:
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
        f"{first.middle.median:.1f} {first.unit} over {_hops(first.hops)}, {last.middle.median:.1f} over "
        f"{_hops(last.hops)} (95 % interval {low:.1f} to {high:.1f}): {relative:+.1%}"
    )


def _steepest(ordered: Sequence[Cell]) -> str:
    """Where the largest step lies, since the study saw it after the first hop."""
    pairs = list(pairwise(ordered))
    step, after = min((change(a.middle.median, b.middle.median), a.hops) for a, b in pairs)
    return f"; the largest step, {step:+.1%}, lies after {_hops(after)}" if len(pairs) > 1 and step < 0 else ""


def _hops(count: int) -> str:
    return f"{count} hop" if count == 1 else f"{count} hops"


_JUDGES: Mapping[str, Callable[[Sequence[Cell], Plan], _Judgement]] = {
    "sum-of-segments": _sum_of_segments,
    "as-declared": _as_declared,
    "within-ceiling": _within_ceiling,
    "falls-with-hops": _falls_with_hops,
    "hardly-falls": _hardly_falls,
}
