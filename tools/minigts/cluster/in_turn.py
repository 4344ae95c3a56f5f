"""Does jobs one after the other in this process: a run of replicates without an engine, or a share of a campaign."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from minigts.cluster import merge_results, worker
from minigts.cluster.jobs import Job
from minigts.experiments import real_seconds, time_limits
from minigts.experiments.run import OnProgress, RunProgress
from minigts.machine.progress import Progress


def run_in_turn(top: Path, jobs: Sequence[Job], say: Progress, on_progress: OnProgress) -> None:
    """Do these jobs of the runs below `top`. However it ends, the results of completed jobs are kept. Raises what a lab
    raises, and MinigtsError."""
    campaign_id = secrets.token_hex(4)
    seconds = {job.number: _real_s(job) for job in jobs}
    total, left_s, done = sum(len(job.samples) for job in jobs), sum(seconds.values()), 0

    for job in jobs:
        left_s -= seconds[job.number]

        def tell(at: RunProgress, done: int = done, later_s: float = left_s) -> None:
            on_progress(RunProgress(done + at.done, total, at.seconds_left + later_s, at.doing))

        say(job.name)
        merge_results.keep(top, job, worker.measure_job(job, campaign_id, say, tell))
        done += len(job.samples)


def _real_s(job: Job) -> float:
    own = set(job.samples)
    samples = [each for each in time_limits.samples(job.manifest) if each.id in own]
    return real_seconds.real_s(job.manifest.experiment, job.manifest.plan, samples)
