"""The changes of links while a sample is taken: the measurement's schedule, or that of its topology."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from minigts.errors import InputError
from minigts.experiment_language.model import AnyMeasurement, Cut
from minigts.language import documents
from minigts.language.problems import Finding, path_of
from minigts.topology import link_rules
from minigts.topology.plan.link_names import link_named
from minigts.topology.plan.plan import Plan
from minigts.topology.schedule import Moment, moments_by_step

SCHEDULE = "schedule"
"""The name of the part of a raw file that says what was changed when."""
CHANGED = "set "
"""The prefix of columns of series.csv that have the settings of a link."""


def moments_of(measurement: AnyMeasurement, plan: Plan, length_s: float) -> tuple[Moment, ...]:
    """The changes within a sample of that length, in virtual time those of its `cut` among them."""
    every = measurement.moments(plan)
    if measurement.cut is not None and plan.time == "virtual":
        every = tuple(sorted((*every, *_moments_of_cut(measurement.cut)), key=lambda moment: moment.at_s))
    return tuple(moment for moment in every if moment.at_s < length_s)


def _moments_of_cut(cut: Cut) -> tuple[Moment, Moment]:
    down = Moment(at_s=cut.at_s, link=cut.link, up=False, carrier_lost=cut.carrier == "lost")
    return down, Moment(at_s=cut.at_s + cut.for_s, link=cut.link, up=True)


def wrong_changes(measurement: AnyMeasurement, plan: Plan) -> Iterator[Finding]:
    """What is wrong with a measurement's schedule in a lab of this plan, each with its place in the measurement."""
    if measurement.play and not plan.schedule:
        yield ("play",), f"topology {plan.name} has no `schedule:`"
    unknown = False
    for index, step in enumerate(measurement.schedule):
        try:
            link = link_named(plan, step.link)
        except InputError as error:
            unknown = True
            yield ("schedule", index, "link"), str(error)
            continue
        if strange := link_rules.strange_end(step.sender, link.name, link.ends):
            unknown = True
            yield ("schedule", index, "from"), strange
    if not unknown:
        changes = [
            (index, moment.model_copy(update={"link": link_named(plan, moment.link).name}))
            for index, moment in moments_by_step(measurement.schedule, {})
        ]
        known = (link_rules.RuledLink.of_plan(plan, link) for link in plan.links)
        refused = link_rules.schedule_problems(known, changes, plan.time)
        yield from ((("schedule", index), wrong) for index, wrong in refused)


def require_sense(measurement: AnyMeasurement, plan: Plan) -> None:
    """Raises InputError with the first of `wrong_changes`."""
    for where, wrong in wrong_changes(measurement, plan):
        raise InputError(f"{measurement.name}: {path_of(where)}: {wrong}")


def line(at_s: float, amounts: Mapping[str, float]) -> str:
    """One line of a raw file for a change: the settings from then on, by link and quantity."""
    return json.dumps({"at_s": at_s, "set": dict(amounts)}) + "\n"


def time_series(text: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """The settings over time, by column of series.csv. Raises ValueError for text that `line` has not written."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in text.splitlines():
        told = documents.document(each)
        try:
            for name, value in told["set"].items():
                found.setdefault(f"{CHANGED}{name}", []).append((float(told["at_s"]), float(value)))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no line of a schedule: {each[:80]!r}") from error
    return found
