"""A campaign split into jobs: samples of one run over one overlay that are taken in one lab. Pure but for reading runs.

How a run is split follows from its experiment and plan alone. So whatever takes the jobs, one after the other or on a
thousand workers, every sample is taken in the same lab after the same ones, and in virtual time gets the same bytes.

Each lab begins anew with the same state. So a lab of later repetitions has seeds of its own, or its samples would be
those of the lab before it once more. A replicate over one overlay is one lab, whoever takes it: its course is not cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts.experiments import meaning, run
from minigts.experiments.matrix import Sample
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Manifest
from minigts.topology.chance import drawn_anew, replicate
from minigts.topology.plan import Plan

MEASURING_S = 60.0
"""A job measures at least so long, where there is as much: a lab and a join take as long as some samples."""


class Job(BaseModel):
    """What a worker is told. Its lab is of the manifest's plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    run: str
    """The run's directory, from that of the campaign; `.` is that itself."""
    manifest: Manifest
    """The run's, before anything came of it; its plan's seeds are the lab's own."""
    overlay: str
    samples: tuple[str, ...]
    describes: bool
    """Whether it measures its lab for the run's manifest, before the samples: the first of a run does, also when it is
    done again, or its samples would not be taken after the same."""
    seconds: float
    """How long it measures, by the lab's clock."""

    @property
    def name(self) -> str:
        course = f"replicate {self.manifest.plan.replicate}" if self.manifest.plan.replicate else ""
        run = self.run if self.run != "." else ""
        return " ".join(filter(None, (run, self.overlay, course, f"({self.number})")))


def split(top: Path, directories: Sequence[Path]) -> Iterator[Job]:
    """The jobs for what the directories lack. One that was broken off is done again as a whole: its samples are taken
    after the same ones as they would have been."""
    number = 0
    for directory in directories:
        manifest = manifests.read(directory)
        lacking = {sample.id for sample in store.pending(meaning.samples(manifest), directory)}
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


def _blocks(manifest: Manifest) -> Iterator[tuple[str, list[Sample]]]:
    """Repetitions one after the other over one overlay, as many as make a job long enough; of a replicate all."""
    for (number, overlay), own in groupby(meaning.samples(manifest), key=lambda each: (each.replicate, each.overlay)):
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
    """Without what has come of it: the same job, whatever was done before. `first` is the job's first sample."""
    kept = ("minigts", "commit", "experiment", "topology_sha256", "provider", "machine", "left_out")
    return Manifest(
        **{name: getattr(manifest, name) for name in kept},
        plan=_plan_of_lab(manifest.plan, first),
        samples_planned=manifest.samples_planned,
        started="",
    )


def _plan_of_lab(plan: Plan, first: Sample) -> Plan:
    if first.replicate:
        return replicate(plan, first.replicate)
    return plan if first.repetition == 1 else drawn_anew(plan, first.repetition)
