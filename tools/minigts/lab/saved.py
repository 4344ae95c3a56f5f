"""Saved labs: copies of everything that makes a lab, under names of their own. They outlive the lab, and `down`.

`<state root>/saved/<name>` holds saved.json and what a kept lab's run directory holds (docs/decisions/0027). It is made
in the run directory of the lab that is saved, and moved when it is whole. So what is there is whole, and what a killed
`save` leaves goes with the lab.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

import minigts
from minigts import paths
from minigts.errors import EnvironmentLacks, InputError, noting_failures
from minigts.lab import life
from minigts.lab.kept import CERTIFICATE, as_kept, keeping
from minigts.lab.record import (
    KEPT,
    LIMIT_BYTES,
    PLAN_LIMIT_BYTES,
    RECORD,
    Lab,
    Progress,
    Record,
    checked_name,
    exclusive,
    lab_named,
    require_own,
)
from minigts.language import documents
from minigts.language.problems import did_you_mean, listed, shown
from minigts.machine import sparse
from minigts.providers.base import Keeps
from minigts.topology.time import Time

FILE = "saved.json"
HALF = "saving"
"""What is being saved, in the lab's run directory."""
GOING = ".going-"
"""What is being deleted begins with it."""
LEFT_OUT = (RECORD, FILE, paths.LAUNCH, paths.SUPERVISOR, paths.CLOCK, CERTIFICATE)
"""What is written at the end; records of what runs, and of what was measured on it."""


class Saved(BaseModel):
    """saved.json: what was saved, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    name: Annotated[str, Field(max_length=64)]
    lab: Annotated[str, Field(max_length=64)]
    """The lab's name, under which it is restored unless another is chosen."""
    topology: str
    provider: str
    time: Time
    overlay: str | None
    """What is joined again when it is restored; None for nothing."""
    hosts: tuple[str, ...]
    at: datetime
    lab_time: datetime | None
    """The time of day in the lab, where it is not this machine's."""
    minigts: str
    """The version that saved it."""


def directory() -> Path:
    return paths.state_root() / "saved"


def save(lab: Lab, name: str, overlay: str | None, progress: Progress) -> Saved:
    """Save a lab that is up, or kept, as `name`; it goes on as it was. All disks are of one moment.

    `overlay` is what is joined on it. Raises InputError when the name is none, or taken, EnvironmentLacks when the
    provider cannot or the disk is full.
    """
    place = _place(name)
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        record, half = lab.read_record(), lab.rundir / HALF
        provider = keeping(lab, record)
        _refuse_taken(place)
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        try:
            progress("copying the hosts' disks")
            with _enough_room(half), _unchanging(lab, record, provider):
                lab_time = provider.note(half)
                _copy(lab.rundir, half, provider.disks())
            Lab(half).write(as_kept(lab.plan, record))
            saved = Saved(
                name=name,
                lab=lab.name,
                topology=lab.plan.name,
                provider=record.provider,
                time=lab.time,
                overlay=overlay,
                hosts=tuple(host.name for host in lab.plan.hosts),
                at=datetime.now(UTC),
                lab_time=lab_time,
                minigts=minigts.__version__,
            )
            paths.write_whole(half / FILE, saved.model_dump_json(indent=1) + "\n")
            directory().mkdir(parents=True, exist_ok=True, mode=0o700)
            _refuse_taken(place)
            half.rename(place)
        except BaseException as error:
            with noting_failures(error):
                shutil.rmtree(half)
            raise
    return saved


def all_saved() -> list[Saved]:
    """By name. What is no saved lab is left out."""
    found = sorted(directory().glob(f"*/{FILE}")) if directory().is_dir() else []
    return [saved for file in found if (saved := _read(file.parent)) is not None]


def saved_named(name: str) -> Saved:
    """Raises InputError that says which there are."""
    place = _place(name)
    saved = _read(place)
    if saved is not None:
        return saved
    if (place / FILE).exists():
        raise InputError(f"saved lab {name}: its {FILE} is damaged; delete it with: minigts saved --delete {name}")
    known = [each.name for each in all_saved()]
    if not known:
        raise InputError(f"no saved lab {name!r}; none is saved: minigts save NAME")
    raise InputError(f"no saved lab {shown(name)}; saved are {listed(known)}{did_you_mean(name, known)}")


def disk_bytes(saved: Saved) -> int:
    """What its disks take, holes not counted. Blocks that it shares with a lab count as its own."""
    return sum(map(sparse.occupied_bytes, (directory() / saved.name).glob("hosts/*/*")))


def delete(name: str) -> None:
    """Remove a saved lab. Raises InputError for one that there is not."""
    place = _place(name)
    if not os.path.lexists(place / FILE):
        saved_named(name)
    for left in directory().glob(f"{GOING}*"):  # of a delete that was killed
        shutil.rmtree(left)
    going = place.with_name(f"{GOING}{name}")
    place.rename(going)  # so that nothing half is ever taken for a saved lab
    shutil.rmtree(going)


def restore(name: str, lab_name: str | None, progress: Progress) -> Lab:
    """Make a lab of what was saved, called as it was or `lab_name`: a kept one, which `up` brings up.

    What is saved stays as it is. Raises InputError when there is no such saved lab, or a lab of that name;
    EnvironmentLacks when the disk is full.
    """
    saved = saved_named(name)
    place, lab = _place(name), lab_named(lab_name or saved.lab)
    require_own(lab.rundir)
    life.refuse_long_path(lab.rundir)
    with exclusive(lab.rundir):
        if lab.read_state() in ("up", KEPT):
            raise InputError(
                f"there is a lab {lab.name}: take it down with minigts down {lab.name}, or choose another name with "
                f"--lab NAME"
            )
        life.begin_anew(lab)
        try:
            progress("copying the hosts' disks")
            with _enough_room(lab.rundir):
                _copy(place, lab.rundir, {path.parent.name: path for path in place.glob("hosts/*/*")})
            content = paths.read_whole(place / RECORD, LIMIT_BYTES)
            paths.write_whole(lab.rundir / RECORD, content)  # last, since with it the lab is whole
            return Lab(lab.rundir)
        except BaseException as error:
            with noting_failures(error):
                shutil.rmtree(lab.rundir)
            raise


def _place(name: str) -> Path:
    return directory() / checked_name(name)


def _read(place: Path) -> Saved | None:
    try:
        saved = documents.model(paths.read_whole(place / FILE, LIMIT_BYTES), Saved)
    except (OSError, ValueError):
        return None
    return saved if saved.name == place.name else None


def _refuse_taken(place: Path) -> None:
    if os.path.lexists(place):
        raise InputError(
            f"there is a saved lab {place.name}: choose another name, or delete it with: "
            f"minigts saved --delete {place.name}"
        )


@contextmanager
def _unchanging(lab: Lab, record: Record, provider: Keeps) -> Iterator[None]:
    """Within it nothing is written to the lab's disks."""
    if record.state == KEPT:
        lab.provider.down()  # what a `down --keep` that was killed has left
        yield
        return
    with provider.standstill():
        yield


@contextmanager
def _enough_room(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free_mb = shutil.disk_usage(place).free >> 20
        raise EnvironmentLacks(
            f"there is not the room for the disks in {paths.state_root()}: {free_mb} MB are free"
        ) from error


def _copy(source: Path, target: Path, disks: Mapping[str, Path]) -> None:
    """All of a lab but lab.json, which says that it is one."""
    for host, disk in disks.items():
        copy = target / "hosts" / host / disk.name
        copy.parent.mkdir(parents=True, mode=0o700)
        sparse.copy(disk, copy)
    for file in sorted(source.glob("*.json")):
        if file.name not in LEFT_OUT and not (target / file.name).exists():
            paths.write_whole(target / file.name, paths.read_whole(file, PLAN_LIMIT_BYTES))
