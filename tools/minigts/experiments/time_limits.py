"""Finds the parts of an experiment that say nothing in virtual time, where processors take no time. Pure.

Each column and option says whether it depends on the processor (`tools.cpu_bound`); this module applies that to
measurements and claims. Where the plan models the processor, parts that depend on it have a meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from minigts.experiment_language.claims import Claim
from minigts.experiment_language.model import AnyMeasurement, Experiment
from minigts.experiments.matrix import Sample, matrix, pairs
from minigts.language.problems import Location
from minigts.results.schema import LeftOut, Manifest
from minigts.tools import QUANTITIES
from minigts.tools.columns import Column
from minigts.tools.cpu_bound import calls_are_free, is_modelled, is_the_processors, processor_options, unlimited_tcp
from minigts.tools.flows import FlowsOptions
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan


@dataclass(frozen=True)
class Unanswerable:
    """A part that says nothing. `modelled`: a `processor:` in the topology would give it a meaning."""

    where: Location
    part: LeftOut
    modelled: bool = False


def unanswerable(experiment: Experiment, plan: Plan) -> tuple[Unanswerable, ...]:
    """The measurements, then the claims, then the watched counters that say nothing on a lab of `plan`; empty in real
    time. Raises InputError for a path that the plan does not have."""
    if plan.time == "real":
        return ()
    measurements = {
        measurement.name: found
        for index, measurement in enumerate(experiment.measurements)
        if (found := _measurement(measurement, plan, ("measurements", index))) is not None
    }
    claims = (
        found
        for index, claim in enumerate(experiment.claims)
        if (found := _claim(claim, experiment, measurements, plan, ("claims", index))) is not None
    )
    return (*measurements.values(), *claims, *_watched(experiment, measurements))


def samples(manifest: Manifest) -> tuple[Sample, ...]:
    """The samples of the manifest's run, in order."""
    return remaining_samples(matrix(manifest.experiment, manifest.plan), manifest.left_out)


def remaining_samples(every: Sequence[Sample], left_out: Sequence[LeftOut]) -> tuple[Sample, ...]:
    """The samples of `every` whose measurement and overlay are not left out, in the same order."""
    without = {(part.kind, part.name) for part in left_out}
    return tuple(
        sample
        for sample in every
        if without.isdisjoint({("measurement", sample.measurement), ("overlay", sample.overlay)})
    )


def claims(manifest: Manifest) -> tuple[Claim, ...]:
    """The claims about what the run measures."""
    without = {(part.kind, part.name) for part in manifest.left_out}
    return tuple(
        claim
        for claim in manifest.experiment.claims
        if ("claim", claim.words) not in without and without.isdisjoint(("overlay", name) for name in claim.overlays)
    )


def _measurement(measurement: AnyMeasurement, plan: Plan, where: Location) -> Unanswerable | None:
    own = [*processor_options(measurement.options, measurement.vary), *processor_options(measurement.links, {})]
    if own:
        why = f"`{own[0]}` changes only what the processor has to do"
        return Unanswerable(where, LeftOut(kind="measurement", name=measurement.name, why=why))
    senders = [source for _, source, *_ in pairs(measurement, plan)]
    if measurement.instrument.endless(measurement.options) and any(calls_are_free(plan, each) for each in senders):
        why = f"nothing limits the sender of {measurement.tool}, where calls of the system take no time"
        return Unanswerable(where, LeftOut(kind="measurement", name=measurement.name, why=why))
    reason = _free(measurement.instrument.value, measurement, plan) or _unlimited(measurement, plan)
    if reason is None:
        return None
    part = LeftOut(kind="measurement", name=measurement.name, why=reason)
    return Unanswerable(where, part, modelled=any(path.links for path in _paths(measurement, plan)))


def _claim(
    claim: Claim, experiment: Experiment, without: Collection[str], plan: Plan, where: Location
) -> Unanswerable | None:
    column = QUANTITIES[claim.quantity]
    if not column.follows:
        why = f"it speaks of the processor, and {column.name} is empty in virtual time"
        return Unanswerable(where, LeftOut(kind="claim", name=claim.words, why=why))
    subjects = [each for each in experiment.measurements if claim.of in (None, each.name) and _measures(each, claim)]
    whys = [reason for each in subjects if (reason := _of(each, column, without, plan))]
    reference = claim.than.get("of", "")
    if whys and len(whys) == len(subjects):
        why = f"it speaks of {'; and of '.join(whys)}"
    elif reference in without:
        why = f"it compares with {reference}, which says nothing"
    else:
        return None
    return Unanswerable(where, LeftOut(kind="claim", name=claim.words, why=why))


def _of(measurement: AnyMeasurement, column: Column, without: Collection[str], plan: Plan) -> str | None:
    """Why a claim about this figure of the measurement says nothing; None when it says something."""
    if measurement.name in without:
        return f"{measurement.name}, which says nothing"
    why = _free(column, measurement, plan)
    return why and f"{measurement.name}, where {why}"


def _measures(measurement: AnyMeasurement, claim: Claim) -> bool:
    tool = measurement.instrument
    return claim.quantity in {column.quantity for column in (tool.value, *tool.columns)}


def _free(column: Column, measurement: AnyMeasurement, plan: Plan) -> str | None:
    """Why the figure depends on the processor alone over each path of the measurement; None if it does not."""
    paths = _paths(measurement, plan)
    if not paths or not all(is_the_processors(column, plan, path) and not is_modelled(plan, path) for path in paths):
        return None
    path, lack = paths[0], " or ".join(column.follows)
    if not path.links:
        return f"{path.source} to {path.target} crosses no link, so {column.label} is the processor's"
    if measurement.links.rate == "unlimited" and "rate" in column.follows:
        return f"`rate: unlimited` takes the links' rate away, so {column.label} is the processor's"
    return f"no link from {path.source} to {path.target} declares a {lack}, so {column.label} is the processor's"


def _unlimited(measurement: AnyMeasurement, plan: Plan) -> str | None:
    """Why TCP of the measurement, or beside it, would hardly end over one of its paths; None if it ends over each."""
    over = [path for path, *_ in pairs(measurement, plan)]
    ends = [(flow.source, flow.target) for flow in measurement.cross if flow.protocol == "tcp" and flow.rate is None]
    if isinstance(measurement.options, FlowsOptions):
        for path in over:
            members = measurement.options.members(path.source, path.target)
            filling = [each for each in members if each.flow.instrument.fills(each.flow.options)]
            ends += [(member.source, member.target) for member in filling]
    elif measurement.instrument.fills(measurement.options):
        ends += [(path.source, path.target) for path in over]
    known = {(path.source, path.target) for path in plan.paths}
    found = [plan.path(*each) for each in dict.fromkeys(ends) if not known.isdisjoint((each, each[::-1]))]
    return next(filter(None, (unlimited_tcp(plan, path) for path in _as_set(measurement, found))), None)


def _paths(measurement: AnyMeasurement, plan: Plan) -> list[Path]:
    """The measurement's paths, with the links as it sets them."""
    return _as_set(measurement, (path for path, *_ in pairs(measurement, plan)))


def _as_set(measurement: AnyMeasurement, paths: Iterable[Path]) -> list[Path]:
    """The paths with the links as the measurement sets them."""
    unlimited = {"rate_mbit": None, "back": None} if measurement.links.rate == "unlimited" else {}
    return [path.model_copy(update=unlimited) for path in paths]


def _watched(experiment: Experiment, without: Collection[str]) -> Iterator[Unanswerable]:
    """Counters of measurements that keep their meaning. They cost nothing when they are not read."""
    for index, measurement in enumerate(experiment.measurements):
        if measurement.name not in without and "watch" in processor_options(measurement, {}):
            why = "programs use no processor time on a virtual clock"
            part = LeftOut(kind="watch", name=measurement.name, why=why)
            yield Unanswerable(("measurements", index, "watch"), part)
