"""Writes the results of a job into its run's directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minigts import paths
from minigts.cluster.jobs import Job
from minigts.errors import MinigtsError
from minigts.language import documents
from minigts.results import courses, store
from minigts.results import manifest as manifests
from minigts.results.folder import OF_A_FILE, disk_error, inside, write
from minigts.results.schema import CERTIFICATE, COURSES, LOG, RAW, Manifest

DESCRIBES = ("tools", "parts", "conditions", "packages", "emulator", "certificate", "readback")
"""The fields of a manifest that describe the lab."""


def keep(top: Path, job: Job, files: Mapping[str, str]) -> None:
    """Remove what an interrupted job has left of these samples, then write the job's part of the manifest, and last its
    samples: a job counts as done when all its samples are here. Raises MinigtsError for a file of another job.
    """
    directory = inside(top, *Path(job.run).parts)
    raw = {name.removeprefix(f"{RAW}/"): text for name, text in files.items() if name.startswith(f"{RAW}/")}
    strange = [name for name in raw if sample_of(name) not in job.samples]
    if strange:
        raise MinigtsError(f"{job.name}: {strange[0][:200]!r} belongs to no sample of this job")
    theirs = documents.model(files[manifests.FILE], Manifest, OF_A_FILE)
    for sample in job.samples:
        store.remove(directory, sample)
    ours = manifests.read(directory)
    update: dict[str, object] = {
        "overlays": {**ours.overlays, **theirs.overlays},
        "skipped": {name: why for name, why in ours.skipped.items() if name not in theirs.overlays} | theirs.skipped,
    }
    entries = ours.courses
    for facts in theirs.courses:
        entries = courses.add_course(entries, facts)
    update["courses"] = entries
    if job.describes:
        update |= {name: getattr(theirs, name) for name in DESCRIBES}
        write(inside(directory, CERTIFICATE), files[CERTIFICATE])
    manifests.write(directory, ours.model_copy(update=update))
    for name, text in files.items():
        if name.startswith(f"{COURSES}/"):
            write(inside(directory, *name.split("/")), text)
    for name, text in raw.items():
        write(inside(directory, RAW, name), text)
    try:
        with inside(directory, LOG).open("a", encoding="utf-8") as log:
            if not log.tell():
                paths.users_file(log)
            log.write(files[LOG])
    except OSError as error:
        raise disk_error(directory / LOG, error) from error


def sample_of(name: str) -> str:
    """The sample of which a raw file is, by the file's name: `a.r1.json`, `a.r1.failed-2.json` → `a.r1`."""
    return name.removesuffix(".json").split(".failed-")[0].split(".tainted-")[0]
