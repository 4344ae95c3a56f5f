"""Kept disks of hosts: what is needed to start kernels on them again, and whether they fit the present image.

A disk is a copy-on-write file with the blocks that differ from the image, so it is useless without exactly that image.
User-Mode Linux checks the image's size and time (drivers/block/ubd_kern.c, backing_file_mismatch).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.errors import InputError, MinigtsError
from minigts.language import documents
from minigts.providers.uml.run.supervisor import Launch

KEPT = "kept.json"
_LIMIT_BYTES = 4096
_LATEST_NS = 4102444800 * 10**9
"""The year 2100."""


class Kept(BaseModel):
    """kept.json in a run directory, which means that kernels are to start on the disks there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    image: str
    """The name of the image's directory, a hash of its recipe."""
    image_bytes: int
    image_s: int
    """The time at which the image's file was written, in whole seconds since 1970."""
    programs: str = Field(default="", pattern="^([0-9a-f]{16})?$")
    """The key of the layer with an overlay's programs on which the disks of its hosts are; empty without one."""
    time_ns: int | None = Field(default=None, ge=0, le=_LATEST_NS)
    """The time of day in the lab, in nanoseconds since 1970; None if the lab uses this machine's."""

    @property
    def time_of_day(self) -> datetime | None:
        if self.time_ns is None:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.time_ns // 1000)


def kept_note(launch: Launch, time_ns: int | None) -> Kept:
    """The note about the disks of a lab that was started by `launch`."""
    image = launch.base.stat()
    return Kept(
        image=launch.base.parent.name,
        image_bytes=image.st_size,
        image_s=int(image.st_mtime),
        programs=launch.programs,
        time_ns=time_ns,
    )


def write(kept: Kept, directory: Path) -> None:
    paths.write_whole(directory / KEPT, kept.model_dump_json(indent=1) + "\n")


def read(rundir: Path) -> Kept | None:
    """The note in a run directory; None when hosts are to start on new disks. Raises MinigtsError for a damaged one."""
    try:
        return documents.model(paths.read_whole(rundir / KEPT, _LIMIT_BYTES), Kept)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MinigtsError(
            f"lab {rundir.name}: its {KEPT} is damaged; take it down with: minigts down {rundir.name}"
        ) from error


def require_fit(kept: Kept, launch: Launch, rundir: Path) -> None:
    """Raise InputError unless the disks in the run directory belong to the image and the machines of this launch."""
    now = kept_note(launch, kept.time_ns)
    if now.image != kept.image:
        trouble = f"are of image {kept.image}, and hosts now have image {now.image}"
    elif now != kept:
        trouble = f"are of an image {kept.image} that has been built again since, with other bytes"
    elif gone := [each.name for each in launch.machines if not launch.base_of(each).is_file()]:
        trouble = f"are of a copy of the image that is no longer in the cache: that of {', '.join(gone)}"
    elif lacking := [each.name for each in launch.machines if not (rundir / each.disk).is_file()]:
        trouble = f"are not all there: {', '.join(lacking)} has none"
    else:
        return
    raise InputError(
        f"lab {rundir.name}: its disks {trouble}; use the minigts that they were made with, or remove them with: "
        f"minigts down {rundir.name}"
    )
