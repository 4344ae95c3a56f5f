"""Splits a campaign into jobs: samples of one run over one overlay, taken in one lab. Pure but for runs' manifests.

How a run is split follows from its experiment and plan alone. So every sample is taken in the same lab after the same
samples, in one process or on a thousand workers, and in virtual time has the same bytes.

Each lab begins with the same state. So a lab of later repetitions has seeds of its own: otherwise it would repeat the
samples of the first lab. A replicate over one overlay is one lab, and is never split.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from minigts.experiments import run, time_limits
from minigts.experiments.matrix import Sample
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Labs, Manifest
from minigts.topology.plan.plan import Plan
from minigts.topology.plan.reseed import beginning_with, replicate
from minigts.topology.time import Time

MEASURING_S = 60.0
"""How long a job measures at least, if its run is that long: a lab's start and join take as long as some samples."""


class Job(BaseModel):
    """The samples that a worker takes, in a lab of the manifest's plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    run: str
    """The run's directory, relative to the campaign's; `.` is the campaign's itself."""
    manifest: Manifest
    """The run's manifest without results; its plan has the seeds of this job's lab."""
    overlay: str
    samples: tuple[str, ...]
    describes: bool
    """Whether it first measures its lab for the run's manifest. The first job of a run does, also when it is repeated,
    so that its samples always follow the same measurements."""
    seconds: float
    """How long it measures, in seconds of the lab's clock."""

    performed_by: ClassVar[str] = "perform"

    @property
    def size(self) -> int:
        return len(self.samples)

    @property
    def provider(self) -> str:
        return self.manifest.provider

    @property
    def time(self) -> Time:
        return self.manifest.plan.time

    @property
    def name(self) -> str:
        course = f"replicate {self.manifest.plan.replicate}" if self.manifest.plan.replicate else ""
        run = self.run if self.run != "." else ""
        return " ".join(filter(None, (run, self.overlay, course, f"({self.number})")))


def split(top: Path, directories: Sequence[Path]) -> Iterator[Job]:
    """The jobs of which samples are missing in the directories. An interrupted job is repeated as a whole, so that its
    samples follow the same samples as always."""
    number = 0
    for directory in directories:
        manifest = manifests.read(directory)
        lacking = {sample.id for sample in store.pending(time_limits.samples(manifest), directory)}
        for place, (overlay, samples) in enumerate(_blocks(manifest)):
            number += 1
            if lacking.isdisjoint(sample.id for sample in samples):
                continue
            yield Job(
                number=number,
                run=directory.relative_to(top).as_posix(),
                manifest=_as_begun(manifest, samples[0]),
                overlay=overlay,
                samples=tuple(sample.id for sample in samples),
                describes=place == 0,
                seconds=run.total_s(manifest.experiment, manifest.plan, samples),
            )


def record_jobs(top: Path, directories: Sequence[Path], jobs: Sequence[Job]) -> None:
    """Write into the manifests of the runs of `jobs` into how many jobs they are split, where a run is more than one
    job. Replicates are split in the same way without an engine, and get no such entry."""
    measured = {top.joinpath(*Path(job.run).parts) for job in jobs}
    for directory in directories:
        manifest = manifests.read(directory)
        number = sum(1 for _ in _blocks(manifest))
        if directory in measured and number > 1 and manifest.experiment.replicates == 1:
            labs = (manifest.labs or Labs()).model_copy(update={"jobs": number})
            manifests.write(directory, manifest.model_copy(update={"labs": labs}))


def _blocks(manifest: Manifest) -> Iterator[tuple[str, list[Sample]]]:
    """The overlay and samples of each job: as many repetitions as take MEASURING_S, or all of a replicate."""
    for (number, overlay), own in groupby(
        time_limits.samples(manifest), key=lambda each: (each.replicate, each.overlay)
    ):
        over_it = list(own)
        if number:
            yield overlay, over_it
            continue
        repetitions = [list(each) for _, each in groupby(over_it, key=lambda sample: sample.repetition)]
        one_s = run.total_s(manifest.experiment, manifest.plan, repetitions[0])
        size = max(1, math.ceil(MEASURING_S / max(one_s, 0.001)))
        for first in range(0, len(repetitions), size):
            yield overlay, [sample for own in repetitions[first : first + size] for sample in own]


def _as_begun(manifest: Manifest, first: Sample) -> Manifest:
    """The manifest without results, so that the job is always the same. `first` is the job's first sample."""
    kept = ("minigts", "commit", "experiment", "quick", "topology_sha256", "provider", "machine", "left_out")
    return Manifest(
        **{name: getattr(manifest, name) for name in kept},
        plan=_plan_of_lab(manifest.plan, first),
        samples_planned=manifest.samples_planned,
        started="",
    )


def _plan_of_lab(plan: Plan, first: Sample) -> Plan:
    if first.replicate:
        return replicate(plan, first.replicate)
    return plan if first.repetition == 1 else beginning_with(plan, first.repetition)
