"""Takes one seed, in a process of a cluster's worker on any machine; see `cluster.worker`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from minigts.cluster import worker
from minigts.explore import course
from minigts.explore.work import SeedOfWork
from minigts.language import documents
from minigts.results.folder import OF_A_FILE

OUTCOME = "outcome.json"
"""The file of an answer with the outcome."""


def perform(seed: str, wanted: str, campaign_id: str) -> str:
    """Take a seed, if `wanted` is the identity of this minigts; return the answer as JSON."""

    def do(job: SeedOfWork) -> Mapping[str, str]:
        worker.remove_labs(campaign_id, True)
        taken = course.take(job, lab_name(campaign_id, job.number), lambda _: None, worker.saying(campaign_id))
        kept = taken.files if taken.outcome.is_bad else {}
        return {OUTCOME: taken.outcome.model_dump_json(), **kept}

    return worker.answer(wanted, lambda: documents.model(seed, SeedOfWork, OF_A_FILE), do).model_dump_json()


def lab_name(campaign_id: str, seed: int) -> str:
    """The name of a seed's lab, which `cluster.worker.remove_labs` knows. It is always as long, since commands on hosts
    may have it in their arguments, and a host whose programs start with other arguments is another one."""
    return worker.lab_name(campaign_id, f"{seed:06d}", f"{os.getpid():07d}")
