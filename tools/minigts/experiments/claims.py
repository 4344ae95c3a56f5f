"""Finds the cells to which each claim refers, and has minigts.judge decide whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from minigts.experiments import construction
from minigts.experiments.cells import Cell, Verdict
from minigts.experiments.comparisons import bounded, changes, compared, drops_past_mtu, fits_mtu, on_one_side
from minigts.experiments.model import Experiment
from minigts.experiments.vocabulary import Claim, is_of_the_value
from minigts.judge.cells import ENOUGH, chance_in_words, plural
from minigts.judge.statistics import holm, significant
from minigts.judge.verdicts import Judgement
from minigts.judge.words import WORDS
from minigts.topology.plan import Plan


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
