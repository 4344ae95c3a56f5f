"""Claims about a lab's figures, and whether they hold: which cells a claim speaks of. minigts.judge decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from minigts.experiments.cells import Cell, Verdict
from minigts.experiments.comparisons import bounded, changes, compared, drops_past_mtu, fits_mtu, on_one_side
from minigts.experiments.vocabulary import Claim, is_of_the_value
from minigts.judge.verdicts import Judgement
from minigts.judge.words import WORDS
from minigts.topology.plan import Plan


def evaluate(claims: Sequence[Claim], cells: Sequence[Cell], plan: Plan) -> tuple[Verdict, ...]:
    """A verdict for each claim, overlay and measurement that it speaks of. `undecided` without the figures."""
    return tuple(verdict for claim in claims for verdict in _verdicts(claim, cells, plan))


def _verdicts(claim: Claim, cells: Sequence[Cell], plan: Plan) -> Iterator[Verdict]:
    spoken_of = [cell for cell in cells if _is_of(claim, cell)]
    series = dict.fromkeys((cell.overlay, cell.measurement) for cell in spoken_of)
    if not series:
        yield _verdict(claim, claim.overlay or "", Judgement("undecided", "nothing of it was measured"))
    for overlay, measurement in series:
        its_cells = [cell for cell in spoken_of if (cell.overlay, cell.measurement) == (overlay, measurement)]
        if claim.than.get("overlay") == overlay:
            continue
        judgement = _judgement(claim, its_cells, cells, plan)
        yield _verdict(claim, overlay, Judgement(judgement.word, f"{measurement}: {judgement.detail}"))


def _verdict(claim: Claim, overlay: str, judgement: Judgement) -> Verdict:
    return Verdict(claim.words, overlay, judgement.word, claim.text, judgement.detail, claim.why, claim.source)


def _is_of(claim: Claim, cell: Cell) -> bool:
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
