"""Makes the plan of a run again from its topology, as a manifest's hosts, links and files are not trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from minigts import overlays
from minigts.errors import InputError, Problem
from minigts.language.problems import list_names, path_of
from minigts.results.folder import inside, read_text
from minigts.results.schema import BESIDE, MANIFEST, TOPOLOGY, Manifest
from minigts.topology.containers import PlannedContainer, is_file, is_path
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.software import Place, Software
from minigts.topology.user_files import UserFiles

NOWHERE = "/nowhere"
"""Replaces paths on the machine on which a plan was made."""
MOST_TEXTS = 1000


def derive_plan(directory: Path, found: Manifest, files: Path | None) -> Plan:
    """The plan of the run in `directory`. `files` is the directory with the files that its hosts need, in paths
    relative to the topology's. Raises InputError where the manifest has another plan, or files are missing.
    """
    plan = _planned(directory, found, files)
    differs = _first_difference(_comparable(found.plan, files), _comparable(plan, files))
    if differs is not None:
        why = (
            f"plan: {differs} is not what its {TOPOLOGY} says: somebody has changed one of them, or minigts "
            f"{found.minigts}, which made it, plans otherwise"
        )
        raise InputError([Problem(str(directory / MANIFEST), 0, why)])
    if files is None and (wanted := dict.fromkeys(_paths(plan))):
        why = (
            f"its hosts need files that are not here: {list_names([*wanted])}; name the directory that has them, with "
            "the paths that they had from the topology's directory: --files DIR"
        )
        raise InputError([Problem(str(directory / TOPOLOGY), 0, why)])
    return plan


def _planned(directory: Path, found: Manifest, files: Path | None) -> Plan:
    text = read_text(inside(directory, TOPOLOGY))
    beside = UserFiles(files or Path(NOWHERE), further=(), contents=files is not None, given=_texts(directory))
    place = str((files or Path(NOWHERE)).absolute() / TOPOLOGY)
    try:
        return parse(text, place, known_overlays=overlays.known_names(), time=found.plan.time, beside=beside)
    except InputError as error:
        told = [Problem(str(directory / TOPOLOGY), each.line, each.message) for each in error.problems]
        raise InputError(told or str(error)) from error


def _texts(directory: Path) -> Mapping[str, str]:
    """The further files from which the plan is made, by their path relative to the topology."""
    folder = inside(directory, BESIDE)
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if len(names) > MOST_TEXTS:
        raise InputError([Problem(str(folder), 0, f"holds more than {MOST_TEXTS} files")])
    return {unquote(name): read_text(inside(folder, name)) for name in names}


def _paths(plan: Plan) -> Iterator[str]:
    """The files that the plan needs, by their path relative to NOWHERE or to the root."""
    for host in plan.hosts:
        if host.software is not None:
            yield from (file.source.removeprefix("/") for file in host.software.files)
            if host.software.root is not None and is_file(host.software.root.image):
                yield host.software.root.image.removeprefix(f"{NOWHERE}/")
        for container in host.containers:
            for path in (container.image, *(volume.source for volume in container.volumes)):
                if path.startswith("/"):
                    yield path.removeprefix(f"{NOWHERE}/")


def _comparable(plan: Plan, files: Path | None) -> Any:
    """The plan as data, without paths that differ between machines, and without notes on files of other languages.
    Digests of files are compared where `files` is given. The block of subnets and the seed are left out;
    their consequences are compared.
    """
    hosts = tuple(_without_paths(host, digests=files is not None) for host in plan.hosts)
    comparable = plan.model_copy(update={"hosts": hosts, "notes": ()})
    return comparable.model_dump(mode="json", exclude={"version", "subnets", "seed"})


def _without_paths(host: Host, *, digests: bool) -> Host:
    update: dict[str, object] = {"containers": tuple(map(_container_without_paths, host.containers))}
    if (software := host.software) is not None:
        update["software"] = _software_without_paths(software, digests=digests)
    return host.model_copy(update=update)


def _software_without_paths(software: Software, *, digests: bool) -> Software:
    somewhere = {"place": Place(file="", line=0, path="")}
    files = (
        each.model_copy(update={**somewhere, "source": NOWHERE, "sha256": each.sha256 if digests else ""})
        for each in software.files
    )
    root = software.root and software.root.model_copy(update={**somewhere, "image": _image(software.root.image)})
    return software.model_copy(
        update={
            "root": root,
            "files": tuple(files),
            "packages": tuple(each.model_copy(update=somewhere) for each in software.packages),
            "run": tuple(each.model_copy(update=somewhere) for each in software.run),
        }
    )


def _container_without_paths(container: PlannedContainer) -> PlannedContainer:
    volumes = (
        each.model_copy(update={"source": NOWHERE}) if is_path(each.source) else each for each in container.volumes
    )
    return container.model_copy(update={"image": _image(container.image), "volumes": tuple(volumes)})


def _image(image: str) -> str:
    return f"{NOWHERE}/image.tar" if is_file(image) else image


def _first_difference(theirs: Any, ours: Any, where: tuple[str | int, ...] = ()) -> str | None:
    """The place of the first difference, as in `hosts[1].gateway`; None without one."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        steps: Any = [*theirs, *(key for key in ours if key not in theirs)]
        found = ((theirs.get(key), ours.get(key), (*where, key)) for key in steps)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        found = ((*both, (*where, index)) for index, both in enumerate(zip(theirs, ours, strict=True)))
    else:
        return None if theirs == ours else path_of(where)
    return next((each for each in (_first_difference(*one) for one in found) if each is not None), None)
