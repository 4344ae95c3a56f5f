"""Runs one test of a suite, or those of one lab, in a process of a worker on this machine; see `cluster.worker`."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping

from minigts.cluster import worker
from minigts.language import documents
from minigts.results.folder import OF_A_FILE
from minigts.suites import performance
from minigts.suites.outcome import CaseOutcome
from minigts.suites.performance import CaseReport
from minigts.suites.work import SuiteJob

OUTCOME, OUTPUT, CAPTURE = "outcome.json", "output.txt", "capture.base64"
"""The files of an answer for a case, after the case's number: `0/outcome.json`."""


def perform(job: str, wanted: str, campaign_id: str) -> str:
    """Run the job's tests, if `wanted` is the identity of this minigts; return the answer as JSON."""

    def do(read: SuiteJob) -> Mapping[str, str]:
        worker.remove_labs(campaign_id, True)
        return pack(performance.perform(read, lab_name(campaign_id, read.number), lambda _: None))

    return worker.answer(wanted, lambda: documents.model(job, SuiteJob, OF_A_FILE), do).model_dump_json()


def lab_name(campaign_id: str, number: int) -> str:
    """The name of a test's lab. It is always as long, for equal courses: commands may have it in their arguments."""
    return worker.lab_name(campaign_id, f"{number:06d}", f"{os.getpid():07d}")


def pack(ended: Iterable[CaseReport]) -> dict[str, str]:
    """The files of an answer."""
    files = {}
    for number, each in enumerate(ended):
        files[f"{number}/{OUTCOME}"] = each.outcome.model_dump_json()
        files[f"{number}/{OUTPUT}"] = each.output
        files[f"{number}/{CAPTURE}"] = base64.b64encode(each.capture).decode("ascii")
    return files


def unpack(files: Mapping[str, str]) -> list[CaseReport]:
    """The cases of an answer. Raises ValueError."""
    return [
        CaseReport(
            documents.model(files[f"{number}/{OUTCOME}"], CaseOutcome),
            files[f"{number}/{OUTPUT}"],
            base64.b64decode(files[f"{number}/{CAPTURE}"]),
        )
        for number in range(len(files) // 3)
    ]
