"""Saved labs: copies of everything that makes a lab, under names of their own. They outlive the lab, and `down`.

`<state root>/saved/<name>` holds saved.json and what a kept lab's run directory holds (docs/decisions/changed-labs.md).
`save` makes it in the run directory of the lab, and moves it when it is complete. So every saved lab is complete, and
what a killed `save` leaves behind is removed with the lab.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

import minigts
from minigts import paths
from minigts.errors import EnvironmentLacks, InputError, noting_failures
from minigts.lab import lifecycle
from minigts.lab.keep import CERTIFICATE, keeping, kept_record
from minigts.lab.lab import LIMIT_BYTES, PLAN_LIMIT_BYTES, Lab
from minigts.lab.record import KEPT, RECORD, Record
from minigts.lab.rundir import checked_name, exclusive, lab_named, require_own
from minigts.language import documents
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.machine import sparse
from minigts.machine.progress import Progress
from minigts.providers.base import KeepsDisks
from minigts.topology.time import Time

FILE = "saved.json"
HALF = "saving"
"""The folder in the lab's run directory in which `save` makes the copy."""
GOING = ".going-"
"""The prefix of a saved lab's folder while it is being deleted."""
LEFT_OUT = (RECORD, FILE, paths.LAUNCH, paths.SUPERVISOR, paths.CLOCK, CERTIFICATE)
"""Files that are not copied: RECORD and FILE are written last; the others are of processes that run, and of
measurements on them."""


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
    """The overlay that is joined when the lab is restored; None: no overlay."""
    hosts: tuple[str, ...]
    at: datetime
    lab_time: datetime | None
    """The time of day in the lab; None: this machine's."""
    minigts: str
    """The version of minigts that saved the lab."""


def directory() -> Path:
    return paths.state_root() / "saved"


def save(lab: Lab, name: str, overlay: str | None, progress: Progress) -> Saved:
    """Save a lab that is up, or kept, as `name`; the lab itself runs on. All disks are copied as of one moment.

    `overlay` is the overlay that is joined on it. Raises InputError when `name` is no valid name, or is taken;
    EnvironmentLacks when the provider cannot save labs, or the disk is full.
    """
    place = _place(name)
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        record, half = lab.read_record(), lab.rundir / HALF
        provider = keeping(lab, record)
        _refuse_taken(place)
        paths.remove_tree(half)
        half.mkdir(mode=0o700)
        try:
            progress("copying the hosts' disks")
            with _enough_room(half), _unchanging(lab, record, provider):
                lab_time = provider.note(half)
                _copy(lab.rundir, half, provider.disks().values())
            Lab(half).write(kept_record(lab.plan, record))
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
                paths.remove_tree(half)
            raise
    return saved


def all_saved() -> list[Saved]:
    """All saved labs, in the order of their names. Folders that are no saved lab are left out."""
    found = sorted(directory().glob(f"*/{FILE}")) if directory().is_dir() else []
    return [saved for file in found if (saved := _read(file.parent)) is not None]


def saved_named(name: str) -> Saved:
    """The saved lab called `name`. Raises InputError, which lists the saved labs, when there is none."""
    place = _place(name)
    saved = _read(place)
    if saved is not None:
        return saved
    if (place / FILE).exists():
        raise InputError(f"saved lab {name}: its {FILE} is damaged; delete it with: minigts saved --delete {name}")
    known = [each.name for each in all_saved()]
    if not known:
        raise InputError(f"no saved lab {name!r}; none is saved: minigts save NAME")
    raise InputError(f"no saved lab {quote(name)}; saved are {list_names(known)}{did_you_mean(name, known)}")


def disk_bytes(saved: Saved) -> int:
    """The size of a saved lab's disks in bytes, without holes. Blocks that it shares with a lab are counted."""
    return sum(map(sparse.occupied_bytes, _disks(directory() / saved.name)))


def delete(name: str) -> None:
    """Remove a saved lab. Raises InputError when there is none of that name."""
    place = _place(name)
    if not os.path.lexists(place / FILE):
        saved_named(name)
    for left in directory().glob(f"{GOING}*"):  # of a delete that was killed
        paths.remove_tree(left)
    going = place.with_name(f"{GOING}{name}")
    place.rename(going)  # so that a half-deleted folder is never read as a saved lab
    paths.remove_tree(going)


def restore(name: str, lab_name: str | None, progress: Progress) -> Lab:
    """Copy a saved lab into a kept lab, which `up` brings up. Its name is `lab_name`; None: the name it had.

    The saved lab stays as it is. Raises InputError when there is no such saved lab, or a lab has that name already;
    EnvironmentLacks when the disk is full.
    """
    saved = saved_named(name)
    place, lab = _place(name), lab_named(lab_name or saved.lab)
    require_own(lab.rundir)
    lifecycle.refuse_long_path(lab.rundir)
    with exclusive(lab.rundir):
        if lab.read_state() in ("up", KEPT):
            raise InputError(
                f"there is a lab {lab.name}: take it down with minigts down {lab.name}, or choose another name with "
                f"--lab NAME"
            )
        lifecycle.begin_anew(lab)
        try:
            progress("copying the hosts' disks")
            with _enough_room(lab.rundir):
                _copy(place, lab.rundir, _disks(place))
            content = paths.read_whole(place / RECORD, LIMIT_BYTES)
            paths.write_whole(lab.rundir / RECORD, content)  # last, since the record makes the lab complete
            return Lab(lab.rundir)
        except BaseException as error:
            with noting_failures(error):
                paths.remove_tree(lab.rundir)
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
def _unchanging(lab: Lab, record: Record, provider: KeepsDisks) -> Iterator[None]:
    """Within this context nothing is written to the lab's disks."""
    if record.state == KEPT:
        lab.provider.down()  # ends what a killed `down --keep` has left running
        yield
        return
    with provider.frozen():
        yield


@contextmanager
def _enough_room(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free_mb = shutil.disk_usage(place).free >> 20
        raise EnvironmentLacks(f"no room for the disks in {paths.state_root()}: {free_mb} MB are free") from error


def _disks(place: Path) -> list[Path]:
    """The disks of a saved lab, which lie where they lay in its run directory."""
    return sorted(path for path in (place / "hosts").rglob("*") if path.is_file() and not path.is_symlink())


def _copy(source: Path, target: Path, disks: Iterable[Path]) -> None:
    """Copy a lab's disks and JSON files, except LEFT_OUT."""
    for disk in disks:
        copy = target / disk.relative_to(source)
        copy.parent.mkdir(parents=True, mode=0o700)
        sparse.copy(disk, copy)
    for file in sorted(source.glob("*.json")):
        if file.name not in LEFT_OUT and not (target / file.name).exists():
            paths.write_whole(target / file.name, paths.read_whole(file, PLAN_LIMIT_BYTES))
