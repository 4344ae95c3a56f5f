"""Makes an ordered list of samples from an experiment and a plan. Pure: the order is the same on any machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Literal

from minigts.errors import InputError
from minigts.experiment_language.model import MOST_SAMPLES, AnyMeasurement, Experiment, HostPair, Paths, too_many
from minigts.experiments.commands import estimate_s
from minigts.experiments.link_changes import require_sense, wrong_changes
from minigts.experiments.queue_watch import ends_of
from minigts.language.problems import Finding, list_names, quote
from minigts.overlays.teams import UNDERLAYS
from minigts.tools.flows import FlowsOptions
from minigts.topology.plan.elements import Path
from minigts.topology.plan.link_names import link_named
from minigts.topology.plan.plan import Plan

Kind = Literal["path", "segment"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample to take. `id` is a file name, and the same in every run of the same experiment."""

    id: str
    overlay: str
    measurement: str
    tool: str
    source: str
    target: str
    hops: int
    kind: Kind
    repetition: int
    """The number of the repetition, from 1."""
    condition: str = ""
    """The values of what varies, as `datagram=1400B offload=on`."""
    replicate: int = 0
    """The number of the replicate, from 1; 0 where there is one course of events."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """One measurement between two hosts, under one condition; its repetitions are samples."""

    measurement: str
    tool: str
    source: str
    target: str
    hops: int
    kind: Kind
    condition: str = ""


def matrix(experiment: Experiment, plan: Plan) -> tuple[Sample, ...]:
    """Every sample in the order in which it is taken: by replicate, within it by overlay, within it by repetition, and
    in each repetition every cell once, shuffled by the seed. Samples that are taken together are adjacent.

    Raises InputError for a path with an unknown host, or between hosts that are not connected or that no network joins;
    for a host in two paths that are measured together; and for more than MOST_SAMPLES samples.
    """
    if (count := sample_count(experiment, plan)) > MOST_SAMPLES:
        raise InputError(f"experiment {experiment.name} {too_many(count)}")
    for measurement in experiment.measurements:
        _require_cut_within(measurement, plan)
        _require_crossing(measurement, plan)
        _require_flows(measurement, plan)
        require_sense(measurement, plan)
        _require_queues(measurement, plan)
    of_one_repetition = {overlay: _batches_of_cells(experiment, plan, overlay) for overlay in experiment.overlays}
    samples = tuple(
        _sample(cell, overlay, repetition, replicate)
        for replicate in experiment.courses
        for overlay in experiment.overlays
        for repetition in range(1, experiment.repetitions + 1)
        for batch in _shuffled(
            of_one_repetition[overlay],
            f"{experiment.seed}/{overlay}/{repetition}" + (f"/{replicate}" if replicate else ""),
        )
        for cell in batch
    )
    if len({sample.id for sample in samples}) != len(samples):
        raise InputError(f"experiment {experiment.name}: host names of {plan.name} give two samples the same name")
    return samples


def wrong_places(measurement: AnyMeasurement, plan: Plan) -> Iterator[Finding]:
    """Unknown hosts and links of a measurement, each with its place: those of its paths, or, where these are right, of
    `cut`, `cross` and `schedule`."""
    wrong = [
        (("paths", number), said.removeprefix(f"{measurement.name}: paths[{number}]: "))
        for number in range(len(measurement.paths))
        if (said := _refusal(partial(_require_pairs, measurement, plan, number)))
    ]
    yield from wrong
    if wrong or measurement.condition_count * sum(1 for _ in pairs(measurement, plan)) > MOST_SAMPLES:
        return
    for where, require in (
        (("cut",), _require_cut_within),
        (("cross",), _require_crossing),
        (("options", "flows"), _require_flows),
        (("queues",), _require_queues),
    ):
        if said := _refusal(partial(require, measurement, plan)):
            yield where, said.removeprefix(f"{measurement.name}: ")
    yield from wrong_changes(measurement, plan)


def _require_queues(measurement: AnyMeasurement, plan: Plan) -> None:
    if measurement.queues is not None:
        for _, source, target, _ in pairs(measurement, plan):
            ends_of(measurement, plan, [(source, target)])


def _require_pairs(measurement: AnyMeasurement, plan: Plan, index: int) -> None:
    for _ in _pairs_of(measurement, plan, index):
        pass


def _refusal(look: Callable[[], object]) -> str:
    try:
        look()
    except InputError as error:
        return str(error)
    return ""


def batches(experiment: Experiment, samples: Iterable[Sample]) -> Iterator[tuple[Sample, ...]]:
    """The samples in batches, in the order of `matrix`; a batch is taken at the same time, and most have one sample."""
    together = {measurement.name for measurement in experiment.measurements if measurement.together}

    def batch(sample: Sample) -> tuple[object, ...]:
        own = () if sample.measurement in together else (sample.id,)
        return (sample.replicate, sample.overlay, sample.measurement, sample.condition, sample.repetition, *own)

    for _, several in groupby(samples, batch):
        yield tuple(several)


def _batches_of_cells(experiment: Experiment, plan: Plan, overlay: str) -> list[tuple[Repeated, ...]]:
    found: dict[tuple[object, ...], list[Repeated]] = {}
    together = {measurement.name for measurement in experiment.measurements if measurement.together}
    for number, cell in enumerate(cells(experiment, plan, overlay)):
        own = () if cell.measurement in together else (number,)
        found.setdefault((cell.measurement, cell.condition, *own), []).append(cell)
    for batch in found.values():
        _require_apart(batch)
    return [tuple(batch) for batch in found.values()]


def _require_apart(batch: Sequence[Repeated]) -> None:
    first: dict[str, Repeated] = {}
    for cell in batch:
        for host in dict.fromkeys((cell.source, cell.target)):
            if host in first:
                ways = f"{first[host].source} to {first[host].target} and {cell.source} to {cell.target}"
                raise InputError(
                    f"{cell.measurement}: together: {host} is an end of two paths, {ways}; of paths that are measured "
                    "together no two share a host"
                )
            first[host] = cell


def _require_cut_within(measurement: AnyMeasurement, plan: Plan) -> None:
    """Raises InputError unless `cut` names a link, and restores it before the shortest sample ends."""
    if (cut := measurement.cut) is None:
        return
    try:
        link_named(plan, cut.link)
    except InputError as error:
        raise InputError(f"{measurement.name}: cut.link: {error}") from error
    lengths_s = (
        estimate_s(measurement.under(condition), path)
        for path, *_ in pairs(measurement, plan)
        for condition in measurement.conditions
    )
    if (shortest_s := min(lengths_s)) <= cut.at_s + cut.for_s:
        raise InputError(
            f"{measurement.name}: cut: the link is restored after {cut.at_s + cut.for_s:g} s, when a sample of "
            f"{shortest_s:.1f} s has ended: let the tool run longer, or write a smaller `at:` or `for:`"
        )


def _require_crossing(measurement: AnyMeasurement, plan: Plan) -> None:
    """Raises InputError unless the hosts of cross traffic exist and have a path."""
    for index, flow in enumerate(measurement.cross):
        where = f"{measurement.name}: cross[{index}]"
        if not _named_path(flow, plan, where).links:
            raise InputError(f"{where}: {flow.source} to itself crosses no link")
        if flow.between == "containers":
            continue
        if not plan.is_routed:
            raise InputError(
                f"{where}: cross traffic uses the hosts' own routes, and in routing mode {plan.routing} they have none"
            )


def _require_flows(measurement: AnyMeasurement, plan: Plan) -> None:
    """Raises InputError unless the hosts of all flows exist and have a path, under every condition."""
    if not isinstance(measurement.options, FlowsOptions):
        return
    conditions = measurement.conditions if measurement.vary else ("",)
    for condition in conditions:
        options = measurement.under(condition).options
        assert isinstance(options, FlowsOptions)
        for _, source, target, _ in pairs(measurement, plan):
            for member in options.members(source, target):
                where = f"{measurement.name}: {member.flow.name}"
                ends = HostPair.model_validate({"from": member.source, "to": member.target})
                if not _named_path(ends, plan, where).links:
                    raise InputError(f"{where}: {member.source} to itself crosses no link")


def sample_count(experiment: Experiment, plan: Plan) -> int:
    """How many samples `matrix` would return, computed without making any. Raises InputError as `matrix` does."""
    of_one_repetition = (
        measurement.condition_count * sum(1 for _ in _paths(measurement, plan, overlay))
        for overlay in experiment.overlays
        for measurement in experiment.measurements
        if _is_over(measurement, overlay)
    )
    return experiment.replicates * experiment.repetitions * sum(of_one_repetition)


def cells(experiment: Experiment, plan: Plan, overlay: str) -> Iterator[Repeated]:
    """The cells of one repetition over `overlay`, in the file's order; each pair of hosts once in a measurement.

    Without an overlay (`none`), paths that the underlay does not route are left out; over one, paths between different
    groups of the topology. Raises InputError for a named pair in different groups.
    """
    for measurement in experiment.measurements:
        for path, source, target, kind in _paths(measurement, plan, overlay) if _is_over(measurement, overlay) else ():
            for condition in measurement.conditions:
                yield Repeated(measurement.name, measurement.tool, source, target, path.hops, kind, condition)


def _is_over(measurement: AnyMeasurement, overlay: str) -> bool:
    return not measurement.over or overlay in measurement.over


def _paths(measurement: AnyMeasurement, plan: Plan, overlay: str) -> Iterator[tuple[Path, str, str, Kind]]:
    """The plan's path, the two ends of its measurement, and its kind."""
    seen: set[tuple[str, str]] = set()
    for path, source, target, kind in pairs(measurement, plan):
        if (source, target) not in seen and _is_joined(measurement, plan, overlay, path, (source, target)):
            seen.add((source, target))
            yield path, source, target, kind


def _is_joined(measurement: AnyMeasurement, plan: Plan, overlay: str, path: Path, ends: tuple[str, str]) -> bool:
    """Whether the network joins the path's ends. Raises InputError for a named path between different groups."""
    plain = measurement.ends.client == measurement.ends.server == "host"
    if overlay in UNDERLAYS or plain or not plan.groups:
        return overlay not in UNDERLAYS or path.reachable
    groups = [plan.group_of(name) for name in ends]
    if groups[0] is not None and groups[0] == groups[1]:
        return True
    for index, named in enumerate(measurement.paths):
        if isinstance(named, HostPair) and (named.source, named.target) == ends:
            where = " and ".join(
                f"{name} is in {f'group {group.name}' if group else 'no group'}"
                for name, group in zip(ends, groups, strict=True)
            )
            raise InputError(
                f"{measurement.name}: paths[{index}]: in {plan.name} {where}, and overlay {overlay} joins only hosts "
                "of the same group: name two of one group, or write `over: [none]`"
            )
    return False


def path_between(plan: Plan, source: str, target: str) -> Path:
    """The plan's path; from a host to itself one without hops, which takes no time. Raises KeyError."""
    if source != target:
        return plan.path(source, target)
    return Path(
        source=source,
        target=target,
        links=(),
        reachable=True,
        rtt_ms=0.0,
        rate_mbit=None,
        tcp_ceiling_mbit=None,
        loss_percent=0.0,
    )


def pairs(measurement: AnyMeasurement, plan: Plan) -> Iterator[tuple[Path, str, str, Kind]]:
    """The plan's paths of a measurement, each with its two ends and its kind. Raises InputError."""
    seen: set[Paths] = set()
    for index, paths in enumerate(measurement.paths):
        if paths in seen:
            continue
        seen.add(paths)
        yield from _pairs_of(measurement, plan, index)


def _pairs_of(measurement: AnyMeasurement, plan: Plan, index: int) -> Iterator[tuple[Path, str, str, Kind]]:
    """The paths of one entry of its `paths:`."""
    paths, where = measurement.paths[index], f"{measurement.name}: paths[{index}]"
    if isinstance(paths, HostPair):
        yield _named_path(paths, plan, where), paths.source, paths.target, "path"
    else:
        yield from _chosen_pairs(paths, plan, where)


def _chosen_pairs(paths: Paths, plan: Plan, where: str) -> Iterator[tuple[Path, str, str, Kind]]:
    if paths == "each-segment":
        between = {frozenset((path.source, path.target)): path for path in plan.paths}
        for link in plan.links:
            if frozenset(link.ends) not in between:
                raise InputError(f"{where}: link {link.name} ends on a switch, and each-segment measures between hosts")
            path = between[frozenset(link.ends)]
            alone = not path.ways_there or path.crossed == {link.name}
            yield path, *link.ends, "segment" if alone else "path"
    elif paths == "every-pair":
        yield from ((path, path.source, path.target, "path") for path in plan.paths)
    elif paths == "first-to-last":
        ends = HostPair.model_validate({"from": plan.hosts[0].name, "to": plan.hosts[-1].name})
        yield _named_path(ends, plan, where), ends.source, ends.target, "path"
    else:
        first = plan.hosts[0].name
        own = [path for path in plan.paths if first in (path.source, path.target)]
        yield from ((path, first, _other(path, first), "path") for path in sorted(own, key=lambda path: path.hops))


def _other(path: Path, host: str) -> str:
    return path.target if path.source == host else path.source


def _named_path(pair: HostPair, plan: Plan, where: str) -> Path:
    names = [host.name for host in plan.hosts]
    for name in (pair.source, pair.target):
        if name not in names:
            raise InputError(f"{where}: no host {quote(name)}; hosts are {list_names(names)}")
    try:
        return path_between(plan, pair.source, pair.target)
    except KeyError as error:
        raise InputError(f"{where}: {pair.source} and {pair.target} are not connected") from error


def _shuffled(batches_: Sequence[tuple[Repeated, ...]], seed: str) -> list[tuple[Repeated, ...]]:
    shuffled = list(batches_)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def _sample(cell: Repeated, overlay: str, repetition: int, replicate: int) -> Sample:
    # Two hyphens separate names with a hyphen, so that a-b to c is not a to b-c.
    dash = "--" if "-" in cell.source + cell.target else "-"
    condition = f".{cell.condition.replace(' ', ',')}" if cell.condition else ""
    course = f".replicate-{replicate}" if replicate else ""
    return Sample(
        id=f"{overlay}.{cell.measurement}.{cell.source}{dash}{cell.target}{condition}{course}.r{repetition}",
        overlay=overlay,
        measurement=cell.measurement,
        tool=cell.tool,
        source=cell.source,
        target=cell.target,
        hops=cell.hops,
        kind=cell.kind,
        repetition=repetition,
        condition=cell.condition,
        replicate=replicate,
    )
