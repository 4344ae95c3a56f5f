"""Finds the claims that the plan alone decides in virtual time, so that they cannot come out otherwise. Pure.

Where processors take no time and chance has no part in a path, a round trip is what the links declare, and a stream of
UDP arrives as the lowest rate carries it. A claim about such figures repeats the topology file. So it is judged on the
plan's figures, too: where these give the same verdict as the measured ones, the claim is vacuous under these settings.
Otherwise the measured verdict stands: then something is wrong with the lab, or with this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from minigts.experiment_language.claims import Claim
from minigts.experiment_language.model import AnyMeasurement, Experiment, Links
from minigts.experiments.matrix import Repeated as Row
from minigts.experiments.matrix import cells as planned_cells
from minigts.experiments.matrix import path_between
from minigts.experiments.summary import Cell
from minigts.judge.statistics import estimate
from minigts.judge.tolerances import longest_call_ns
from minigts.judge.verdicts import Judgement
from minigts.tools.columns import JITTER, LOSS, MIDDLES
from minigts.tools.iperf3_udp import UdpOptions, offered_mbit
from minigts.topology.fields import EXPECTATIONS
from minigts.topology.plan.plan import Plan

OVER_HOPS = frozenset({*EXPECTATIONS["throughput"], "sum-of-segments"}) - {"within-ceiling"}
"""The words about paths of different lengths."""
Judge = Callable[[Sequence[Cell], Sequence[Cell]], Judgement]
"""Judges the cells of a claim, given all cells."""


def judge_claim(
    claim: Claim, own: Sequence[Cell], everything: Sequence[Cell], experiment: Experiment, plan: Plan, judge: Judge
) -> Judgement:
    """The verdict; `vacuous` where it could not have been otherwise."""
    measured = judge(own, everything)
    foreseen = foreseeable(claim, own, everything, experiment, plan, judge)
    if foreseen is None or (foreseen.word not in ("vacuous", measured.word) and measured.word != "undecided"):
        return measured
    return Judgement("vacuous", f"{foreseen.detail}; {measured.detail}")


def foreseeable(
    claim: Claim, own: Sequence[Cell], everything: Sequence[Cell], experiment: Experiment, plan: Plan, judge: Judge
) -> Judgement | None:
    """The verdict that follows without measuring, with the reason; `vacuous` where the file says so, or where the
    measurements cannot decide the claim. None where no verdict follows. The cells' figures are not used.
    """
    if why := claim.vacuous or _planned_so(claim, own, experiment, plan):
        return Judgement("vacuous", why)
    concerned = [cell for cell in everything if _may_be_compared(claim, cell, own)]
    declared = {
        id(cell): figure for cell in (*own, *concerned) if (figure := _declared(cell, experiment, plan)) is not None
    }
    if not own or any(id(cell) not in declared for cell in (*own, *concerned)):
        return None

    def as_declared(cells: Sequence[Cell]) -> list[Cell]:
        return [_with_figure(cell, declared[id(cell)]) for cell in cells if id(cell) in declared]

    by_plan = judge(as_declared(own), as_declared(everything))
    if by_plan.word not in ("held", "failed"):
        return None
    cannot = "fail" if by_plan.word == "held" else "hold"
    return Judgement(by_plan.word, f"it cannot {cannot} where processors are free: the plan alone decides it")


def _planned_so(claim: Claim, own: Sequence[Cell], experiment: Experiment, plan: Plan) -> str:
    """Why the planned measurements cannot decide the claim, whatever they give; empty where they can."""
    if not own:
        return ""
    if claim.word in OVER_HOPS:
        overlay, measurement = own[0].overlay, own[0].measurement
        hops = {row.hops for row in planned_cells(experiment, plan, overlay) if _is_planned(claim, row, measurement)}
        if len(hops) == 1:
            return "all its paths have one length"
    if claim.word == "sum-of-segments":
        paths = (path_between(plan, cell.source, cell.target) for cell in own if cell.hops > 1)
        if call_ns := max((longest_call_ns(plan, path) for path in paths), default=0):
            return (
                f"a system call takes {call_ns / 1000:g} µs, and those of the program that measures are in each "
                "segment's figure but once in the path's: by what the clock resolves it cannot hold, and by more it "
                "says nothing"
            )
    if claim.word == "within-ceiling" and all(cell.predicted is None for cell in own):
        return "the plan predicts no ceiling of its paths"
    return ""


def _is_planned(claim: Claim, row: Row, measurement: str) -> bool:
    words = {"from": row.source, "to": row.target, "hops": str(row.hops)}
    asked = {key: value for key, value in claim.where.items() if key in words}
    return row.measurement == measurement and asked.items() <= words.items()


def _may_be_compared(claim: Claim, cell: Cell, own: Sequence[Cell]) -> bool:
    """Whether a cell may be the counterpart by `than`."""
    if not claim.than or not own or cell.metric != own[0].metric:
        return False
    there = {key: value for key, value in claim.than.items() if key in cell.words}
    return there.items() <= cell.words.items() and (
        "of" in claim.than or cell.measurement in {each.measurement for each in own}
    )


def _with_figure(cell: Cell, figure: float) -> Cell:
    return replace(cell, estimate=estimate([figure]), values=(figure,), every=(), basis="course")


def _declared(cell: Cell, experiment: Experiment, plan: Plan) -> float | None:
    """The figure by the plan, where nothing else influences it; None otherwise."""
    measurement = experiment.measurement(cell.measurement).under(cell.condition)
    if plan.time == "real" or not _is_plain(measurement) or not _is_free(cell, plan):
        return None
    if cell.quantity == "latency" and (not cell.metric or cell.metric in MIDDLES):
        path = path_between(plan, cell.source, cell.target)
        return path.rtt_ms if path.rtt_most_ms is None else None
    options = measurement.options
    if not isinstance(options, UdpOptions):
        return None
    if not cell.metric:
        return cell.predicted
    path = path_between(plan, cell.source, cell.target)
    fits = path.rate_mbit is None or offered_mbit(options.rate, path) <= 0.9 * path.rate_mbit
    return 0.0 if fits and cell.metric in (LOSS.name, JITTER.name) else None


def _is_plain(measurement: AnyMeasurement) -> bool:
    """Whether only its one client sends, over links as declared."""
    options = measurement.options
    several = isinstance(options, UdpOptions) and (options.sessions or 1) > 1
    changed = measurement.cut or measurement.schedule or measurement.play or measurement.links != Links()
    return not (several or changed or measurement.cross or measurement.together)


def _is_free(cell: Cell, plan: Plan) -> bool:
    """Whether neither chance nor a modelled processor influences traffic over the path."""
    path = path_between(plan, cell.source, cell.target)
    ends = {end for link in plan.links if link.name in path.crossed for end in link.ends} | {cell.source, cell.target}
    modelled = any(host.name in ends and host.processor is not None for host in plan.hosts)
    ways = [way for end in plan.ends_on(path) for way in (end.outgoing, end.incoming)]
    return not modelled and not any(way.by_chance or not way.in_order or way.why_not_filled for way in ways)
