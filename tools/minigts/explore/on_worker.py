"""Takes one seed, in a process of a cluster's worker on any machine; see `cluster.worker`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from minigts.cluster import worker
from minigts.explore import course
from minigts.explore.attempt import SeedResult
from minigts.explore.work import SeedOfWork
from minigts.language import documents
from minigts.results.folder import OF_A_FILE

OUTCOME, TAIL = "outcome.json", "tail-"
"""The file of an answer with the outcome, and how the folders of tails begin."""


def perform(seed: str, wanted: str, campaign_id: str) -> str:
    """Take a seed, if `wanted` is the identity of this minigts; return the answer as JSON."""

    def do(job: SeedOfWork) -> Mapping[str, str]:
        worker.remove_labs(campaign_id, True)
        taken = course.take(job, lab_name(campaign_id, job.number), lambda _: None, worker.saying(campaign_id))
        return {name: text for each in (*taken.tails, taken) for name, text in answer_files(each).items()}

    return worker.answer(wanted, lambda: documents.model(seed, SeedOfWork, OF_A_FILE), do).model_dump_json()


def answer_files(taken: SeedResult) -> Mapping[str, str]:
    """What is answered of a seed, or of a tail of it, whose files are below `tail-2/`."""
    below = f"{TAIL}{taken.outcome.tail}/" if taken.outcome.tail else ""
    kept = taken.files if taken.outcome.is_bad else {}
    return {f"{below}{name}": text for name, text in {OUTCOME: taken.outcome.model_dump_json(), **kept}.items()}


def split_answer(files: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The files of each tail of an answer, and of the seed, which comes last."""
    places = {name.partition("/")[0]: None for name in files if name.startswith(TAIL) and "/" in name}
    for place in places:
        yield {name.removeprefix(f"{place}/"): text for name, text in files.items() if name.startswith(f"{place}/")}
    yield {name: text for name, text in files.items() if name.partition("/")[0] not in places}


def lab_name(campaign_id: str, seed: int) -> str:
    """The name of a seed's lab, which `cluster.worker.remove_labs` knows. It is always as long, since commands on hosts
    may have it in their arguments, and a host whose programs start with other arguments is another one."""
    return worker.lab_name(campaign_id, f"{seed:06d}", f"{os.getpid():07d}")
