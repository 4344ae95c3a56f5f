"""Disks that outlive their kernels: copies with holes, and whether kernels can start on them."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from minigts.errors import InputError, MinigtsError
from minigts.machine import sparse
from minigts.providers.uml.clock.process import EPOCH_NS, ClockOrder
from minigts.providers.uml.provider import going_on
from minigts.providers.uml.run import command_line, disks
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch

HOLE = 3 << 20


@pytest.mark.parametrize("parts", [[], [b"a"], [b"a", None, b"b"], [None, b"x" * 70000, None], [None]])
def test_a_copy_has_the_same_bytes_and_its_holes(tmp_path: Path, parts: list[bytes | None]) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for part in parts:
            file.write(part) if part is not None else file.seek(HOLE, os.SEEK_CUR)
        file.truncate()
    sparse.copy(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert sparse.occupied_bytes(target) <= sparse.occupied_bytes(source) + 4096
    assert target.stat().st_mode & 0o777 == 0o600


def test_neither_a_link_nor_a_file_that_is_there_is_copied_over(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("text")
    (tmp_path / "link").symlink_to("source")
    with pytest.raises(OSError, match="symbolic links"):
        sparse.copy(tmp_path / "link", tmp_path / "target")
    with pytest.raises(FileExistsError):
        sparse.copy(tmp_path / "source", tmp_path / "link")
    assert sparse.occupied_bytes(tmp_path / "absent") == 0


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    image = tmp_path / "images" / "0123456789abcdef"
    image.mkdir(parents=True)
    (image / "root.ext4").write_bytes(b"root")
    clock = ClockOrder("clock", (), {})
    return Launch(image / "boot", image / "root.ext4", (GuestKernel("ams", 64, ()),), (), clock)


@pytest.fixture
def rundir(tmp_path: Path, launch: Launch) -> Path:
    """Of a lab that was kept a minute after its beginning."""
    rundir = tmp_path / "labs" / "mine"
    disk = rundir / "hosts" / "ams" / command_line.DISK
    disk.parent.mkdir(parents=True)
    disk.touch()
    disks.write(disks.kept_note(launch, EPOCH_NS + 60 * 10**9), rundir)
    return rundir


def test_the_clock_goes_on_from_where_it_was_and_says_so_to_the_supervisor(rundir: Path, launch: Launch) -> None:
    kept = disks.read(rundir)
    assert kept is not None
    assert f"{kept.time_of_day:%c}" == "Thu Jan  1 00:01:00 2026"
    disks.require_fit(kept, launch, rundir)
    going_on(launch, kept).write(rundir / "launch.json")
    again = Launch.read(rundir / "launch.json")
    assert again.clock is not None
    assert again.clock.epoch_ns == EPOCH_NS + 60 * 10**9


def test_without_a_note_hosts_start_on_new_disks(tmp_path: Path) -> None:
    assert disks.read(tmp_path) is None


def other_image(launch: Launch) -> Launch:
    other = launch.base.parent.with_name("fedcba9876543210")
    launch.base.parent.rename(other)
    return replace(launch, base=other / "root.ext4")


def built_anew(launch: Launch) -> Launch:
    launch.base.write_bytes(b"root of other bytes")
    return launch


def written_later(launch: Launch) -> Launch:
    os.utime(launch.base, (1, 1))
    return launch


def other_machines(launch: Launch) -> Launch:
    return replace(launch, machines=(*launch.machines, GuestKernel("bra", 64, ())))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_image, "are of image 0123456789abcdef, and hosts now have image fedcba9876543210"),
        (built_anew, "built again since"),
        (written_later, "built again since"),
        (other_machines, "are not all there: bra has none"),
    ],
)
def test_disks_that_do_not_fit_are_refused_with_what_to_do(
    rundir: Path, launch: Launch, change: object, said: str
) -> None:
    assert callable(change)
    kept = disks.read(rundir)
    assert kept is not None
    with pytest.raises(InputError, match=f"{said}.*remove them with: minigts down mine"):
        disks.require_fit(kept, change(launch), rundir)


@pytest.mark.parametrize("content", ["", "{}", '{"image": 1}', "[" * 4097, '{"image": "a", "time_ns": -1}'])
def test_a_damaged_note_is_one_sentence(rundir: Path, content: str) -> None:
    (rundir / disks.KEPT).write_text(content)
    with pytest.raises(MinigtsError, match=re.escape("its kept.json is damaged; take it down with: minigts down mine")):
        disks.read(rundir)
