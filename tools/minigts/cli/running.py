"""An experiment from its file to its results directory: plan, lab, manifest, samples. Prints nothing."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from minigts import fidelity, overlays, paths, shell
from minigts import lab as labs
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiments import manifest as manifests
from minigts.experiments import run, store
from minigts.experiments.load import load, topology_file
from minigts.experiments.manifest import Manifest, OverlayFacts
from minigts.experiments.matrix import Sample, matrix
from minigts.experiments.model import Experiment
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.topology.load import load as load_topology
from minigts.topology.plan import Plan
from minigts.watch import watching

Say = Callable[[str], None]
TOOLS = ("docker.io", "iperf3", "iproute2", "iputils-ping", "netperf", "openvswitch-switch")
"""The packages whose programs carry or measure traffic; the manifest has their versions."""
ASKING_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Prepared:
    """An experiment, all of whose input has been checked; nothing has been started."""

    experiment: Experiment
    topology_sha256: str
    plan: Plan
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """How long measuring takes, without set-up."""
        return run.total_s(self.experiment, self.plan, self.samples)


def prepare(file: Path, *, paper: bool, quick: bool, only: Sequence[str]) -> Prepared:
    """Read an experiment and its topology. Raises InputError."""
    experiment = load(file)
    unknown = [name for name in experiment.overlays if name not in overlays.known()]
    if unknown:
        raise InputError(f"{file}: overlays: no overlay {unknown[0]!r}; there are {', '.join(overlays.known())}")
    topology = topology_file(experiment, file)
    if paper:
        experiment = experiment.for_paper()
    if quick:
        experiment = experiment.model_copy(update={"repetitions": 1})
    if only:
        experiment = experiment.only(only)
    plan = load_topology(topology, known_overlays=overlays.known())
    digest = hashlib.sha256(topology.read_bytes()).hexdigest()
    return Prepared(experiment, digest, plan, matrix(experiment, plan))


def reopen(directory: Path) -> Prepared:
    """What a results directory was made for. Raises InputError when it is none."""
    manifest = manifests.read(directory)
    samples = matrix(manifest.experiment, manifest.plan)
    left = store.pending(samples, directory)
    return Prepared(manifest.experiment, manifest.topology_sha256, manifest.plan, left)


@contextmanager
def lab_for(prepared: Prepared, provider: str, named: str | None, *, keep: bool, say: Say) -> Iterator[Lab]:
    """A lab for the experiment: the one that is up as `named`, or a new one, taken down at the end unless kept.

    Raises InputError when the one that is up has other hosts or links.
    """
    plan = prepared.plan
    if named is not None:
        found = labs.open_lab(named)
        if found.plan.hosts != plan.hosts or found.plan.links != plan.links:
            raise InputError(f"lab {named} is {found.plan.name}; the experiment is made for {plan.name}")
        yield found
        return
    made = labs.up(plan, provider, f"{prepared.experiment.name}-{os.getpid()}", say)
    try:
        yield made
    finally:
        if not keep:
            labs.down(made)


def begin(results: Path, prepared: Prepared, lab: Lab, say: Say) -> Path:
    """A new results directory, with the manifest that says later where the figures come from.

    The lab is measured first: its certificate lies beside the manifest.
    """
    certificate = fidelity.check(lab, say, expectations=False)
    manifest = Manifest(
        minigts=_version(),
        commit=_commit(),
        experiment=prepared.experiment,
        topology_sha256=prepared.topology_sha256,
        plan=prepared.plan,
        provider=lab.provider.name,
        machine=manifests.machine(),
        tools=_tools(lab),
        emulator={"its own latency, taken off each delay": f"{certificate.own_latency_ms:g} ms a link and way"},
        certificate=certificate.in_words(),
        readback=_readback(lab),
        noise_before=manifests.noise(),
        samples_planned=len(prepared.samples),
        started=manifests.now(),
    )
    directory = store.create(results, prepared.experiment.name, datetime.now(UTC))
    manifests.write(directory, manifest)
    certificate.write(directory / "certificate.json")
    return directory


def take(directory: Path, lab: Lab, say: Say, on_progress: run.OnProgress) -> run.Outcome:
    """Take every sample that the directory lacks on this lab."""
    return run.run(
        directory,
        lab.provider,
        join=lambda name: _join(directory, lab, name, say),
        leave=lambda _name: overlays.leave(lab, say),
        on_progress=on_progress,
        watch=lambda: watching(lab.provider.processes()),
    )


def _join(directory: Path, lab: Lab, name: str, say: Say) -> dict[str, Endpoint]:
    """Join an overlay and prove its data path; the manifest keeps what its verify script said."""
    endpoints = overlays.join(lab, name, say)
    said = json.dumps(overlays.verify(lab, say), sort_keys=True)
    manifest = manifests.read(directory)
    known = manifest.overlays.get(name, OverlayFacts())
    changed = {**manifest.overlays, name: known.model_copy(update={"verify": said})}
    manifests.write(directory, manifest.model_copy(update={"overlays": changed}))
    return endpoints


def _version() -> str:
    text = (paths.project_root() / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def _commit() -> str:
    """The checkout's commit, `-dirty` behind it when files differ; empty outside git."""
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
    """Versions on the first host, for all have one image: the kernel's, and of `TOOLS` those that are there."""
    host = lab.plan.hosts[0].name
    kernel = lab.provider.run(host, ["uname", "-r"], timeout_s=ASKING_TIMEOUT_S).stdout.strip()
    argv = ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *TOOLS]
    listed = lab.provider.run(host, argv, timeout_s=ASKING_TIMEOUT_S, check=False).stdout
    return {"kernel": kernel} | dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)


def _readback(lab: Lab) -> dict[str, JsonValue]:
    """Each host's queueing disciplines as its kernel has them (tc(8), -json)."""
    return {host.name: _qdiscs(lab, host.name) for host in lab.plan.hosts}


def _qdiscs(lab: Lab, host: str) -> JsonValue:
    argv = ["tc", "-json", "qdisc", "show"]
    text = lab.provider.run(host, argv, timeout_s=ASKING_TIMEOUT_S).stdout
    try:
        document: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        raise MinigtsError(f"{host}: `tc -json qdisc show` gave no JSON: {text[:200]}") from error
    return document
