"""Results directories of a run: begun with their manifests, opened again, and what is written into them of the lab."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

import minigts
from minigts import overlays, paths
from minigts.errors import EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.experiments import lab_course, provenance, run, time_limits, trust
from minigts.experiments.lab_control import RealLabControl, overlay_kept
from minigts.experiments.prepare import Prepared
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.measure import certify
from minigts.foreign import one_line, screen_text
from minigts.lab import Lab, current, shown_links
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import HasConditions
from minigts.results import courses, gate, store
from minigts.results import manifest as manifests
from minigts.results.folder import exclusive, inside, write
from minigts.results.schema import CERTIFICATE, Labs, Manifest
from minigts.tools import TOOLS

PACKAGES = ("docker.io", "iproute2", "openvswitch-switch", *(tool.package for tool in TOOLS.values()))
"""The packages whose programs carry or measure traffic; the manifest has their versions."""
ASKING_TIMEOUT_S = 60.0


def begin(results: Path, prepared: Sequence[Prepared], provider: str) -> tuple[Path, ...]:
    """Make a results directory for each experiment, with its manifest; several lie in the campaign's folder.

    All that will be measured is written before anything is started, so that the run can be resumed. The folders are
    signed as the user's own; the manifest, which makes a folder a run's, is written last.
    """
    names = {each.experiment.name for each in prepared}
    folder = create_folder(results, names)
    directories = [_directory(folder, each, alone=len(names) == 1) for each in prepared]
    for directory, each in zip(directories, prepared, strict=True):
        gate.sign(directory, trust.signed_content(each, provider))
        for name, content in each.sources.items():
            write(inside(directory, *name.split("/")), content)
        manifests.write(directory, manifest_of(each, provider))
    return tuple(directories)


def create_folder(results: Path, names: Collection[str]) -> Path:
    """A new folder below `results` for runs of these experiments: of the one, or of a campaign."""
    one, *others = dict.fromkeys(names)
    return store.create(results, "campaign" if others else one, datetime.now(UTC))


def _directory(folder: Path, prepared: Prepared, *, alone: bool) -> Path:
    """A run's directory: within `folder` one of the experiment's name unless it is `alone`, and of a sweep's cell."""
    experiment = prepared.experiment
    words = ["" if alone else experiment.name, experiment.variant]
    return inside(folder, *filter(None, words))


@contextmanager
def lock_folder(directory: Path) -> Iterator[None]:
    """Keep every other run out of a results directory, or of a campaign's folder with all its runs; the labs of a sweep
    share the lock of their common folder.

    Raises InputError, with nothing changed, when another run is in one of them.
    """
    with ExitStack() as stack:
        for each in dict.fromkeys(map(_kept_by, (directory, *(store.runs_in(directory))))):
            stack.enter_context(exclusive(each))
        yield


def _kept_by(directory: Path) -> Path:
    return directory.parent if store.is_cell(directory) else directory


def reopen(directory: Path) -> tuple[tuple[Path, ...], tuple[Prepared, ...]]:
    """The results directories below `directory`, or itself, and the samples that they still lack. Raises InputError."""
    directories = store.runs_in(directory)
    if not directories:
        raise InputError(f"{directory}: holds no run to resume; a run's folder has a {manifests.FILE}")
    return directories, tuple(_prepared_again(each) for each in directories)


def adopt(directories: Sequence[Path], prepared: Sequence[Prepared], provider: str) -> None:
    """Sign the folders of runs that the user trusts."""
    for directory, each in zip(directories, prepared, strict=True):
        if not gate.is_signed(directory, content := trust.signed_content(each, provider)):
            gate.sign(directory, content)


def _prepared_again(directory: Path) -> Prepared:
    manifest = manifests.read(directory)
    require_known(directory, manifest)
    left = run.pending(manifest.experiment, time_limits.samples(manifest), directory)
    return Prepared(manifest.experiment, manifest.topology_sha256, manifest.plan, left, manifest.left_out)


def require_known(directory: Path, manifest: Manifest) -> None:
    """Raises InputError where this minigts lacks the provider or an overlay of the run in `directory`."""
    _known(directory / manifests.FILE, "provider", manifest.provider, registry.names())
    for overlay in manifest.experiment.overlays:
        _known(directory / manifests.FILE, "overlay", overlay, overlays.known_names())


def _known(path: Path, kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InputError(
            [Problem(str(path), 0, f"no {kind} {name[:60]!r} in this minigts; there are {', '.join(known)}")]
        )


def manifest_of(prepared: Prepared, provider: str) -> Manifest:
    """The manifest of a run that has not begun."""
    return Manifest(
        minigts=minigts.__version__,
        commit=commit(),
        experiment=prepared.experiment,
        quick=prepared.quick,
        topology_sha256=prepared.topology_sha256,
        plan=prepared.plan,
        provider=provider,
        machine=manifests.machine(),
        left_out=prepared.left_out,
        noise_before=manifests.noise() if prepared.plan.time == "real" else None,
        claims_sha256=tuple(claim.digest for claim in prepared.experiment.claims),
        samples_planned=len(prepared.samples),
        started=manifests.now(),
    )


def record_labs(directories: Sequence[Path], *, lent: bool) -> None:
    """Write into the manifests of runs in virtual time that they are now measured in one lab together, continued, or
    measured in a `lent` lab. A single new run in a new lab of its own gets no such entry."""
    found = {directory: manifests.read(directory) for directory in directories}
    runs = tuple(f"{each.experiment.name} {each.experiment.variant}".strip() for each in found.values())
    resumed = any(each.certificate for each in found.values())
    entry: dict[str, object] = {"runs": runs} if len(runs) > 1 else {}
    entry |= {name: True for name, is_so in (("resumed", resumed), ("lent", lent)) if is_so}
    for directory, each in found.items():
        if entry and each.plan.time == "virtual":
            labs = (each.labs or Labs()).model_copy(update=entry)
            manifests.write(directory, each.model_copy(update={"labs": labs}))


def describe_lab(directories: Sequence[Path], lab: Lab, say: Progress, *, fresh: bool) -> None:
    """Measure the lab, and write its facts into manifests that lack them, and its certificate beside these.

    `fresh`: the lab was brought up for this run, so it may be calibrated again.
    """
    new = [directory for directory in directories if not manifests.read(directory).certificate]
    if not new:
        return
    certificate = certify(lab, say, bringing_up=fresh)
    facts = {
        "provider": lab.provider.name,
        "tools": _tools(lab),
        "parts": provenance.parts(lab.provider, say),
        "conditions": lab.provider.conditions() if isinstance(lab.provider, HasConditions) else {},
        "packages": provenance.packages(lab.provider),
        "emulator": {} if current.link_carrier(lab) else _taken_off(certificate),
        "certificate": certificate.summary(),
        "readback": _readback(lab),
    }
    for directory in new:
        manifests.write(directory, manifests.read(directory).model_copy(update=facts))
        certificate.write(inside(directory, CERTIFICATE))


def note_parts(directories: Sequence[Path], say: Progress) -> None:
    """Write into manifests that lack them the parts of which labs are made here, before any lab is."""
    for directory in directories:
        known = manifests.read(directory)
        if not known.parts:
            provider = registry.make(known.provider, Path("/nonexistent"), known.plan.time)
            parts = provenance.parts(provider, say, known.plan)
            manifests.write(directory, known.model_copy(update={"parts": parts}))


def _taken_off(certificate: Certificate) -> dict[str, str]:
    return {"its own latency, taken off each delay": f"{certificate.emulator_overhead_ms:g} ms a link and way"}


def take(
    directories: Sequence[Path], lab: Lab, say: Progress, on_progress: run.OnProgress
) -> tuple[run.RunOutcome, ...]:
    """Take every sample that the directories lack on this lab. Afterwards it has the overlay and the policy that it had
    before."""
    names = [each.name for each in directories]
    lab.note({"event": "run begun", "results": names})
    watched = lab_course.Watched(lab, on_progress)
    try:
        with overlay_kept(lab, say) as kept:
            outcomes = run.run_together(directories, lab.provider, RealLabControl(lab, say, kept), watched)
    except Exception:
        with suppress(MinigtsError):  # the first error is the one to be told
            _keep_course(directories, watched)
        raise
    finally:
        lab.note({"event": "run ended", "results": names})
    _keep_course(directories, watched)
    return outcomes


def _keep_course(directories: Sequence[Path], watched: lab_course.Watched) -> None:
    for directory in directories:
        watched.keep(directory, courses.next_name(directory))


def commit() -> str:
    """The checkout's commit, with `-dirty` when files differ; empty outside git and for an installed package."""
    if paths.is_installed():  # a repository around it would be another project's
        return ""
    argv = [
        "git",
        "-C",
        str(paths.project_root()),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        return shell.run(argv, timeout_s=ASKING_TIMEOUT_S, check=False).stdout.strip()
    except EnvironmentLacks:
        return ""


def _tools(lab: Lab) -> dict[str, str]:
    """Versions of the kernel and of `PACKAGES` on the first host, as all hosts have one image."""
    host = lab.plan.hosts[0].name
    kernel = lab.provider.run(host, ["uname", "-r"], timeout_s=ASKING_TIMEOUT_S).stdout
    argv = ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *sorted(set(PACKAGES))]
    listed = lab.provider.run(host, argv, timeout_s=ASKING_TIMEOUT_S, check=False).stdout
    versions = (each.partition(" ") for each in listed.splitlines() if " " in each)
    return {"kernel": one_line(kernel)} | {one_line(name): one_line(version) for name, _, version in versions}


def _readback(lab: Lab) -> dict[str, JsonValue]:
    """Each host's and switch's queueing disciplines as its kernel shows them (tc(8), -json), and the wires of its ports
    where there are any.
    """
    qdiscs = {machine.name: _qdiscs(lab, machine.name) for machine in lab.plan.machines}
    wires = (shown_links.read_wires(lab) or {}).items()
    return qdiscs | {f"{name} {port}": each.wire.numbers for name, own in wires for port, each in own.items()}


def _qdiscs(lab: Lab, host: str) -> JsonValue:
    argv = ["tc", "-json", "qdisc", "show"]
    text = lab.provider.run(host, argv, timeout_s=ASKING_TIMEOUT_S).stdout
    try:
        document: JsonValue = documents.document(text)
    except documents.Unreadable as error:
        raise MinigtsError(f"{host}: `tc -json qdisc show` gave no JSON: {screen_text(text, 200)}") from error
    return document
