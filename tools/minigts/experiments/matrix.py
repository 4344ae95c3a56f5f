"""An experiment over a plan becomes an ordered list of samples. Pure: same input, same order, on any machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from minigts.errors import InputError
from minigts.experiments.model import AnyMeasurement, Experiment, Pair, Paths
from minigts.topology.plan import Path, Plan

Kind = Literal["path", "segment"]


@dataclass(frozen=True)
class Sample:
    """One measurement to take once. `id` is a file name, and the same in every run of the same experiment."""

    id: str
    overlay: str
    measurement: str
    tool: str
    source: str
    target: str
    hops: int
    kind: Kind
    repetition: int
    """From 1."""
    condition: str = ""
    """What varies, as `datagram=1400B offload=on`."""


@dataclass(frozen=True)
class Cell:
    """What is repeated: one measurement between two hosts, under one condition."""

    measurement: str
    tool: str
    source: str
    target: str
    hops: int
    kind: Kind
    condition: str = ""


def matrix(experiment: Experiment, plan: Plan) -> tuple[Sample, ...]:
    """Every sample in the order in which it is taken: overlays in turn, in each the repetitions in turn, and in
    each repetition every cell once, shuffled by the seed.

    Raises InputError when a path names a host that the plan does not have, or two hosts that are not connected.
    """
    samples = tuple(
        _sample(cell, overlay, repetition)
        for overlay in experiment.overlays
        for repetition in range(1, experiment.repetitions + 1)
        for cell in _shuffled(list(cells(experiment, plan, overlay)), f"{experiment.seed}/{overlay}/{repetition}")
    )
    if len({sample.id for sample in samples}) != len(samples):
        raise InputError(f"experiment {experiment.name}: host names of {plan.name} give two samples the same name")
    return samples


def cells(experiment: Experiment, plan: Plan, overlay: str) -> Iterator[Cell]:
    """What one repetition over `overlay` takes, in the file's order, no pair of hosts twice in a measurement.

    Without an overlay (`none`) a path that the underlay does not route is left out.
    """
    for measurement in experiment.measurements:
        if measurement.over and overlay not in measurement.over:
            continue
        seen: set[tuple[str, str]] = set()
        for source, target, kind in _pairs(measurement, plan):
            path = path_between(plan, source, target)
            if (source, target) in seen or (overlay == "none" and not path.reachable):
                continue
            seen.add((source, target))
            for condition in measurement.conditions:
                yield Cell(measurement.name, measurement.tool, source, target, path.hops, kind, condition)


def path_between(plan: Plan, source: str, target: str) -> Path:
    """The plan's path; from a host to itself one of no hops, which takes no time. Raises KeyError."""
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


def _pairs(measurement: AnyMeasurement, plan: Plan) -> Iterator[tuple[str, str, Kind]]:
    for index, paths in enumerate(measurement.paths):
        if isinstance(paths, Pair):
            yield _named_pair(paths, plan, f"{measurement.name}: paths[{index}]")
        else:
            yield from _chosen_pairs(paths, plan)


def _chosen_pairs(paths: Paths, plan: Plan) -> Iterator[tuple[str, str, Kind]]:
    if paths == "each-segment":
        yield from ((link.ends[0], link.ends[1], "segment") for link in plan.links)
    elif paths == "every-pair":
        yield from ((path.source, path.target, "path") for path in plan.paths)
    else:
        first = plan.hosts[0].name
        own = [path for path in plan.paths if first in (path.source, path.target)]
        yield from ((first, _other(path, first), "path") for path in sorted(own, key=lambda path: path.hops))


def _other(path: Path, host: str) -> str:
    return path.target if path.source == host else path.source


def _named_pair(pair: Pair, plan: Plan, where: str) -> tuple[str, str, Kind]:
    names = [host.name for host in plan.hosts]
    for name in (pair.source, pair.target):
        if name not in names:
            raise InputError(f"{where}: no host {name!r}; hosts are {', '.join(names)}")
    try:
        path_between(plan, pair.source, pair.target)
    except KeyError as error:
        raise InputError(f"{where}: {pair.source} and {pair.target} are not connected") from error
    return pair.source, pair.target, "path"


def _shuffled(cells_: list[Cell], seed: str) -> list[Cell]:
    random.Random(seed).shuffle(cells_)
    return cells_


def _sample(cell: Cell, overlay: str, repetition: int) -> Sample:
    # A host's name may hold a hyphen; then two of them part the names, so that a-b to c is not a to b-c.
    dash = "--" if "-" in cell.source + cell.target else "-"
    condition = f".{cell.condition.replace(' ', ',')}" if cell.condition else ""
    return Sample(
        id=f"{overlay}.{cell.measurement}.{cell.source}{dash}{cell.target}{condition}.r{repetition}",
        overlay=overlay,
        measurement=cell.measurement,
        tool=cell.tool,
        source=cell.source,
        target=cell.target,
        hops=cell.hops,
        kind=cell.kind,
        repetition=repetition,
        condition=cell.condition,
    )
