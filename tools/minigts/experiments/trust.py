"""What a lab uses of this machine beyond its own processes, and whether its user is known to have intended that.

A plan in a file from elsewhere may contain anything. Plans that were begun here are remembered by their digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from minigts import paths
from minigts.errors import InputError
from minigts.experiments.prepare import Prepared
from minigts.language.problems import listed
from minigts.providers import registry
from minigts.providers.base import OnThisMachine
from minigts.tools.command import CommandOptions
from minigts.topology.containers import is_file, is_path
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

BEGUN = "begun"
"""The folder of the state directory with an empty file for each plan that was begun here, named by its digest."""


def wants(prepared: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """What their labs would use of this machine, a line each: files, images, packages, ways out, commands on it."""
    return tuple(dict.fromkeys(line for each in prepared for line in _wants(each, provider)))


def require(prepared: Sequence[Prepared], provider: str, *, trusted: bool, whose: str) -> None:
    """Raise InputError unless they use nothing of this machine, or are `trusted`. `whose` says where they come from."""
    if not trusted and (lines := wants(prepared, provider)):
        raise InputError("\n  ".join((f"{whose} would use, on this machine:", *lines)) + f"\n{REMEDY}")


REMEDY = "nothing was done; if you trust its author with that, add --trust"


def remember(prepared: Sequence[Prepared], provider: str) -> None:
    """Remember that they were begun here, if they use anything of this machine."""
    for each in prepared:
        if any(_wants(each, provider)):
            _note(each.plan).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _note(each.plan).touch()


def foreign(prepared: Sequence[Prepared]) -> tuple[Prepared, ...]:
    """The experiments that were not begun here."""
    return tuple(each for each in prepared if not _note(each.plan).exists())


def _note(plan: Plan) -> Path:
    return paths.state_root() / BEGUN / hashlib.sha256(plan.model_dump_json().encode()).hexdigest()


def _wants(prepared: Prepared, provider: str) -> Iterator[str]:
    yield from of_plan(prepared.plan)
    made = registry.make(provider, Path("/nonexistent"), prepared.plan.time)
    if isinstance(made, OnThisMachine) and made.on_this_machine:
        yield from (f"the command `{line}`, as this machine's own root" for line in _commands(prepared))


def of_plan(plan: Plan) -> Iterator[str]:
    """What a lab of the plan would use of this machine, a line each: files, images, packages, ways out."""
    for host in plan.hosts:
        yield from (f"{what}, for host {host.name}" for what in (*_of_software(host), *_of_containers(host)))
    if plan.ways_out:
        yield f"a way out to the networks of this machine, for {listed([host.name for host in plan.ways_out])}"


def _of_software(host: Host) -> Iterator[str]:
    if (software := host.software) is None:
        return
    if software.root is not None:
        yield _image(software.root.image)
    yield from (f"the file or directory {file.source}" for file in software.files)
    if software.packages:
        yield f"the Debian packages {listed([package.name for package in software.packages])} from your mirror"


def _of_containers(host: Host) -> Iterator[str]:
    for container in host.containers:
        yield _image(container.image)
        yield from (f"the file or directory {volume.source}" for volume in container.volumes if is_path(volume.source))


def _image(image: str) -> str:
    return f"the image {image}" if is_file(image) else f"the image {image}, of your engine or from its registry"


def _commands(prepared: Prepared) -> Iterator[str]:
    """The user's commands; where hosts are namespaces of this machine, they run on it."""
    for host in prepared.plan.hosts:
        if host.software is not None:
            yield from (command.text for command in host.software.run)
    for measurement in prepared.experiment.measurements:
        options = measurement.options
        if isinstance(options, CommandOptions):
            for line in (options.run, options.serve):
                if line is not None:
                    yield line if isinstance(line, str) else " ".join(line)
