"""Puts the shares of a campaign together, in a new results folder: what was measured is copied, and the tables are
derived anew. So they have the same bytes as those of one machine that did all jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.cluster import merge_results
from minigts.cluster.jobs import Job, record_jobs, split
from minigts.cluster.merge_results import sample_of
from minigts.errors import InputError, Problem
from minigts.experiments import run, run_folders
from minigts.experiments.run import RunOutcome
from minigts.results import courses, store
from minigts.results import manifest as manifests
from minigts.results.folder import inside, read_text, write
from minigts.results.schema import BESIDE, CERTIFICATE, EXPERIMENT, LOG, RAW, TOPOLOGY, Manifest

SAME = (
    "minigts",
    "commit",
    "experiment",
    "quick",
    "topology_sha256",
    "plan",
    "provider",
    "left_out",
    "samples_planned",
)
"""The fields of a manifest that all shares of a run have in common."""


@dataclass(frozen=True)
class MergedRuns:
    """A new results folder with what its shares have measured."""

    folder: Path
    outcomes: Mapping[Path, RunOutcome]
    """What came of each run, by its directory."""

    @property
    def lacking(self) -> int:
        """How many samples no share has."""
        return sum(len(each.failed) for each in self.outcomes.values())


def merge_runs(shares: Sequence[Path], results: Path) -> MergedRuns:
    """A new folder below `results` from the folders of shares. Raises InputError, with nothing written, for folders
    that are not of the same campaign, of the same minigts, or of the same parts of labs."""
    found = {share: _runs(share) for share in shares}
    first, names = shares[0], _names(shares[0], found[shares[0]])
    for share in shares[1:]:
        _require_same(first, share, found, names)
    known = [manifests.read(each) for each in found[first]]
    folder = run_folders.create_folder(results, [each.experiment.name for each in known])
    directories = [folder if name == "." else inside(folder, *name.split("/")) for name in names]
    for directory, source, manifest in zip(directories, found[first], known, strict=True):
        _begin(directory, source, manifest)
    jobs = tuple(split(folder, directories))
    for share in shares:
        _take(folder, jobs, share)
    record_jobs(folder, directories, jobs)
    return MergedRuns(folder, {directory: run.finish(directory) for directory in directories})


def _runs(share: Path) -> tuple[Path, ...]:
    directories = store.runs_in(share)
    if not directories:
        raise InputError([Problem(str(share), 0, "holds no run; name the results folders of shares")])
    return directories


def _names(share: Path, directories: Sequence[Path]) -> list[str]:
    return [each.relative_to(share).as_posix() for each in directories]


def _require_same(first: Path, share: Path, found: Mapping[Path, Sequence[Path]], names: Sequence[str]) -> None:
    if _names(share, found[share]) != names:
        raise InputError([Problem(str(share), 0, f"holds other runs than {first}; merge shares of one campaign")])
    for one, other in zip(found[first], found[share], strict=True):
        a, b = manifests.read(one), manifests.read(other)
        as_here = b.experiment.model_copy(update={"topology": a.experiment.topology})  # its digest is compared
        b = b.model_copy(update={"experiment": as_here})
        wrong = [name for name in SAME if getattr(a, name) != getattr(b, name)]
        wrong += [word for word in a.parts.keys() & b.parts.keys() if a.parts[word].sha256 != b.parts[word].sha256]
        if wrong:
            path = str(other / manifests.FILE)
            raise InputError(
                [Problem(path, 0, f"differs from {one} in {', '.join(wrong)}; a share is of the same files")]
            )


def _begin(directory: Path, source: Path, manifest: Manifest) -> None:
    """Make a run's directory with its files, and the manifest of a run that has measured nothing."""
    for name in (EXPERIMENT, TOPOLOGY):
        write(inside(directory, name), read_text(inside(source, name)))
    if (source / BESIDE).is_dir():
        for path in sorted((source / BESIDE).iterdir()):
            write(inside(directory, BESIDE, path.name), read_text(inside(source, BESIDE, path.name)))
    kept = {name: getattr(manifest, name) for name in (*SAME, "machine", "claims_sha256", "parts", "started")}
    manifests.write(directory, Manifest(**kept))


def _take(folder: Path, jobs: Sequence[Job], share: Path) -> None:
    """Copy what a share has of the jobs that it has done; a job that it has begun only in part is left out."""
    logged = set[str]()
    for job in jobs:
        source = inside(share, *Path(job.run).parts)
        raw = _raw_files(source, job)
        if raw is None:
            continue
        names = [manifests.FILE, *([CERTIFICATE] if job.describes else [])]
        files = {name: read_text(inside(source, name)) for name in names}
        files |= {**raw, **courses.files_of(source)}
        files[LOG] = "" if job.run in logged else read_text(inside(source, LOG))
        logged.add(job.run)
        merge_results.keep(folder, job, files)


def _raw_files(source: Path, job: Job) -> dict[str, str] | None:
    """The raw files of a job's samples, of all attempts; None where a sample has no result."""
    here = sorted(path.name for path in (source / RAW).glob("*.json"))
    if not {f"{sample}.json" for sample in job.samples}.issubset(here):
        return None
    return {f"{RAW}/{name}": read_text(inside(source, RAW, name)) for name in here if sample_of(name) in job.samples}
