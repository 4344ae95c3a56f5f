"""Repeats a run: the same experiment, plan, seed and time. The plan is made again from the topology."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import minigts
from minigts.errors import InputError, Problem
from minigts.experiments import derivation, provenance, run_folders, time_limits
from minigts.experiments.prepare import Prepared
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import Prepares
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.folder import OF_A_FILE, inside, plain, read_bytes
from minigts.results.schema import BESIDE, EXPERIMENT, TOPOLOGY, Labs, Manifest, OverlayFacts, PartFacts

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


@dataclass(frozen=True)
class Original:
    """The manifests of the runs, and what is measured again."""

    manifests: tuple[Manifest, ...]
    prepared: tuple[Prepared, ...]

    @property
    def provider(self) -> str:
        return self.manifests[0].provider


def read(directory: Path, files: Path | None = None) -> Original:
    """The run, or the campaign, in `directory`, prepared to be measured from its first sample. The directory `files`
    has the files that hosts need. Raises InputError, also for a plan that is not its topology's.
    """
    runs = store.runs_in(directory)
    if not runs:
        raise InputError(f"{directory}: holds no run; a run's folder has a {manifests.FILE}")
    found = tuple(manifests.read(each, OF_A_FILE) for each in runs)
    if len({each.provider for each in found}) > 1:
        raise InputError(f"{directory}: its runs have several providers; reproduce each by itself")
    return Original(found, tuple(_prepared(*each, files) for each in zip(runs, found, strict=True)))


def _prepared(directory: Path, found: Manifest, files: Path | None) -> Prepared:
    run_folders.require_known(directory, found)
    samples = time_limits.samples(found)
    names = [name for name in (EXPERIMENT, TOPOLOGY) if (directory / name).exists()]
    if (beside := inside(directory, BESIDE)).is_dir():
        names += [f"{BESIDE}/{path.name}" for path in beside.iterdir()]
    sources = {name: read_bytes(inside(directory, *name.split("/"))) for name in names}
    made = Prepared(found.experiment, found.topology_sha256, found.plan, samples, found.left_out, sources=sources)
    if TOPOLOGY not in sources:
        why = f"holds no {TOPOLOGY}, so nothing shows that its plan is that of a topology"
        raise InputError([Problem(str(directory), 0, why)])
    if hashlib.sha256(sources[TOPOLOGY]).hexdigest() != found.topology_sha256:
        raise InputError([Problem(str(directory / TOPOLOGY), 0, "its SHA-256 is not the one that the manifest names")])
    return replace(made, plan=derivation.derive_plan(directory, found, files))


def differences(original: Original, say: Progress, *, build: bool) -> tuple[str, ...]:
    """What differs here from where it was measured, a line each: program, image, kernel, clock, packages.

    With `build`, missing parts are built first. Raises EnvironmentLacks.
    """
    first = original.manifests[0]
    lines = []
    commit = run_folders.commit()
    if first.minigts != minigts.__version__:
        lines.append(f"it was made by minigts {first.minigts}; this is {minigts.__version__}")
    elif first.commit and commit and first.commit != commit:
        lines.append(f"it was made by minigts at commit {_short(first.commit)}; this is commit {_short(commit)}")
    here: dict[str, tuple[dict[str, PartFacts], dict[str, str]]] = {}
    for each in original.manifests:
        time = each.plan.time
        if time not in here:
            provider = registry.make(each.provider, Path("/nonexistent"), time)
            if build and isinstance(provider, Prepares):
                provider.prepare(say)
            here[time] = provenance.parts(provider, say), provenance.packages(provider)
        parts, packages = here[time]
        lines += provenance.differences(each.parts, parts, each.packages, packages)
    return tuple(dict.fromkeys(lines))


def _short(commit: str) -> str:
    """`0123456789abcdef-dirty` → `0123456789ab with changes`"""
    digits, _, dirty = plain(commit).partition("-")
    return f"{digits[:12]} with changes" if dirty else digits[:12]


def explanations(first: Path, second: Path) -> tuple[str, ...]:
    """Why the runs of `first` may have other bytes than in `second`, where they were done again in virtual time: a line
    for each run that lacks samples, had other labs, or whose claims were changed."""
    lines = []
    for directory in store.runs_in(first):
        original, here = manifests.read(directory), manifests.read(second / directory.relative_to(first))
        name, samples = original.experiment.name, time_limits.samples(original)
        pending = store.pending(samples, directory)
        if missing := sum(sample.overlay not in original.skipped for sample in pending):
            lines.append(f"{name}: {missing} of its {len(samples)} samples have no result there")
        if original.claims_sha256 not in ((), tuple(claim.digest for claim in original.experiment.claims)):
            lines.append(f"{name}: its claims were changed after the run")
        for overlay, there in original.overlays.items():
            lines += [f"{name}: {line}" for line in _laid_otherwise(overlay, there, here.overlays.get(overlay))]
        if original.labs != here.labs:
            lines.append(f"{name}: it was measured {_labs_in_words(original.labs)}; here {_labs_in_words(here.labs)}")
    return tuple(lines)


def _laid_otherwise(overlay: str, there: OverlayFacts, here: OverlayFacts | None) -> Iterator[str]:
    """What an overlay was laid with there, and was not here."""
    if here is None:
        return
    if there.programs is not None and not there.programs.is_same_as(here.programs):
        yield provenance.difference(f"set of programs for overlay {overlay}", there.programs, here.programs)
    if there.policy != here.policy:
        first, second = (plain(str(each.policy.get("name", "none"))) for each in (there, here))
        yield f"the policy in force on overlay {overlay} was {first}; here it is {second}"


def _labs_in_words(labs: Labs | None) -> str:
    found = labs or Labs()
    words = []
    if found.jobs:
        words.append(f"in {found.jobs} jobs of --on, each in a lab of its own")
    if found.runs:
        words.append(f"in one lab with the runs {plain(', '.join(found.runs))[:200]}, in this order")
    if found.resumed:
        words.append("in several labs, since it was interrupted and resumed")
    if found.lent:
        words.append("in a lab that was up before")
    return " and ".join(words) or "in one new lab of its own"
