"""The hosts' files (`files:` of a topology) as an exploration keeps them, so that a replay elsewhere has them.

Plain files are kept. A directory stays where it is, as do images and volumes of containers.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts import paths
from minigts.errors import InputError
from minigts.topology.plan.plan import Plan
from minigts.topology.software import File

LARGEST_BYTES, MOST_BYTES = 4 << 20, 16 << 20
"""The largest size of a file that is kept, and of all of them."""
MOMENT_S = 1_767_225_600
"""When a file that is laid was changed: always the same, since hosts get it with that time."""


class HostFile(BaseModel):
    """A file for hosts: its content in base64, and its mode."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    mode: int


def kept_files(plan: Plan) -> dict[str, HostFile]:
    """The files of a plan that are kept, by their digests."""
    found: dict[str, HostFile] = {}
    left = MOST_BYTES
    for file in _files(plan):
        source = Path(file.source)
        if file.sha256 in found or source.is_dir():
            continue
        with suppress(OSError):
            data, mode = paths.read_whole(source, LARGEST_BYTES), stat.S_IMODE(source.stat().st_mode)
            if hashlib.sha256(data).hexdigest() == file.sha256 and len(data) <= left:
                left -= len(data)
                found[file.sha256] = HostFile(content=base64.b64encode(data).decode(), mode=mode)
    return found


def elsewhere(plan: Plan, files: Mapping[str, HostFile]) -> list[str]:
    """What hosts take of this machine that is not kept: directories, large files, images and volumes of containers."""
    of_containers = (
        what
        for host in plan.hosts
        for container in host.containers
        for what in (container.image, *(volume.source for volume in container.volumes if "/" in volume.source))
    )
    left = (file.source for file in _files(plan) if file.sha256 not in files)
    return list(dict.fromkeys([*left, *of_containers]))


def plan_with_files(plan: Plan, files: Mapping[str, HostFile], place: Path) -> Plan:
    """The plan whose hosts take the kept files from the new folder `place`. Raises InputError for a file with another
    digest than its name says."""
    if not files:
        return plan
    place.mkdir(mode=0o700)
    for name, file in files.items():
        try:
            data = base64.b64decode(file.content, validate=True)
        except ValueError as error:
            raise InputError(f"a file for hosts is no base64: {error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise InputError(f"a file for hosts is not what its digest says: {name[:80]!r}")
        (place / name).write_bytes(data)
        (place / name).chmod(stat.S_IMODE(file.mode))
        os.utime(place / name, (MOMENT_S, MOMENT_S))
    hosts = tuple(
        host
        if host.software is None
        else host.model_copy(
            update={
                "software": host.software.model_copy(
                    update={"files": tuple(_from(file, files, place) for file in host.software.files)}
                )
            }
        )
        for host in plan.hosts
    )
    return plan.set_to(hosts, plan.switches, plan.links)


def _from(file: File, files: Mapping[str, HostFile], place: Path) -> File:
    if file.sha256 not in files:
        return file
    return file.model_copy(update={"source": str(place / file.sha256)})


def _files(plan: Plan) -> Iterator[File]:
    for host in plan.hosts:
        if host.software is not None:
            yield from host.software.files
