"""Where chance has a part in what was, or will be, measured in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from minigts.experiment_language.model import AnyMeasurement
from minigts.topology.plan.link_names import link_named_if_any
from minigts.topology.plan.plan import Plan


def random_links(plan: Plan, measurements: Iterable[AnyMeasurement]) -> tuple[str, ...]:
    """The names of the links that lose, delay, duplicate, corrupt or reorder frames at random, as the topology declares
    them or as these measurements set them; in the topology's order."""
    found = {link.name for link in plan.links if any(way.by_chance for way in plan.directions(link))}
    found |= {name for measurement in measurements for name in _set_at_random(plan, measurement)}
    return tuple(link.name for link in plan.links if link.name in found)


def _set_at_random(plan: Plan, measurement: AnyMeasurement) -> Iterator[str]:
    for moment in measurement.moments(plan):
        link = link_named_if_any(plan, moment.link)
        given = {key: value for key, value in moment.update.items() if value is not None}
        if link is not None and any(way.model_copy(update=given).by_chance for way in plan.directions(link)):
            yield link.name
