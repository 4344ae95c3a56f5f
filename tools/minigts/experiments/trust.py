"""What a lab uses of this machine beyond its own processes: what a folder or a bundle from elsewhere asks for.

`results.gate` decides whether it gets that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from minigts.experiments.prepare import Prepared
from minigts.language.problems import list_names
from minigts.providers import registry
from minigts.providers.base import OnThisMachine
from minigts.results import gate
from minigts.results.gate import Examined
from minigts.tools.command import CommandOptions
from minigts.topology.containers import is_file, is_path
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan


def wants(prepared: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """What their labs would use of this machine, a line each: files, images, packages, ways out, commands on it."""
    return tuple(dict.fromkeys(line for each in prepared for line in _wants(each, provider)))


def signed_content(prepared: Prepared, provider: str) -> bytes:
    """All of a run that would make this machine do something, as its folder's signature has it."""
    parts = (provider, prepared.plan.model_dump_json(), prepared.experiment.model_dump_json(by_alias=True))
    return "\n".join(("run", *parts)).encode("utf-8", "backslashreplace")


def reopen_runs(
    place: Path, directories: Sequence[Path], prepared: Sequence[Prepared], provider: str
) -> Examined[tuple[Prepared, ...]]:
    """The runs of the results folder `place`, to be continued: it is the user's own if each of them is."""
    is_own = all(
        gate.is_signed(directory, signed_content(each, provider))
        for directory, each in zip(directories, prepared, strict=True)
    )
    return Examined(place, tuple(prepared), is_own)


def _wants(prepared: Prepared, provider: str) -> Iterator[str]:
    yield from lab_uses(prepared.plan, provider)
    if _is_on_this_machine(prepared.plan, provider):
        yield from map(_as_root, _measuring(prepared))


def lab_uses(plan: Plan, provider: str) -> Iterator[str]:
    """As `of_plan`, with the commands that a lab of this provider would run on this machine itself."""
    yield from plan_uses(plan)
    if _is_on_this_machine(plan, provider):
        yield from (_as_root(command.text) for host in plan.hosts if host.software for command in host.software.run)


def _is_on_this_machine(plan: Plan, provider: str) -> bool:
    """Whether hosts are namespaces of this machine, so that their commands run on it."""
    made = registry.make(provider, Path("/nonexistent"), plan.time)
    return isinstance(made, OnThisMachine) and made.on_this_machine


def _as_root(line: str) -> str:
    return f"the command `{line}`, as this machine's own root"


def plan_uses(plan: Plan) -> Iterator[str]:
    """What a lab of the plan would use of this machine, a line each: files, images, packages, ways out."""
    for host in plan.hosts:
        yield from (f"{what}, for host {host.name}" for what in (*_of_software(host), *_of_containers(host)))
    if plan.ways_out:
        yield f"a way out to the networks of this machine, for {list_names([host.name for host in plan.ways_out])}"


def _of_software(host: Host) -> Iterator[str]:
    if (software := host.software) is None:
        return
    if software.root is not None:
        yield _image(software.root.image)
    yield from (f"the file or directory {file.source}" for file in software.files)
    if software.packages:
        yield f"the Debian packages {list_names([package.name for package in software.packages])} from your mirror"


def _of_containers(host: Host) -> Iterator[str]:
    for container in host.containers:
        yield _image(container.image)
        yield from (f"the file or directory {volume.source}" for volume in container.volumes if is_path(volume.source))


def _image(image: str) -> str:
    return f"the image {image}" if is_file(image) else f"the image {image}, of your engine or from its registry"


def _measuring(prepared: Prepared) -> Iterator[str]:
    """The commands that the experiment has hosts run."""
    for measurement in prepared.experiment.measurements:
        options = measurement.options
        if isinstance(options, CommandOptions):
            for line in (options.run, options.serve):
                if line is not None:
                    yield line if isinstance(line, str) else " ".join(line)
