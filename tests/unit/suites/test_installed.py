"""What a user has compiled, and hosts of a suite have in place of Debian's."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.suites import installed


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    program = tmp_path / "usr/sbin/zebra"
    program.parent.mkdir(parents=True)
    program.write_text("compiled")
    program.chmod(0o755)
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/zebra").symlink_to("../usr/sbin/zebra")
    return tmp_path


def test_files_and_links_are_packed_as_roots_and_folders_are_left_to_the_host(directory: Path) -> None:
    packed = io.BytesIO()
    installed.pack(directory, packed)
    with tarfile.open(fileobj=io.BytesIO(packed.getvalue())) as archive:
        members = archive.getmembers()
    assert [(each.name, each.mode & 0o777, each.uname, each.linkname) for each in members] == [
        ("sbin/zebra", 0o777, "root", "../usr/sbin/zebra"),
        ("usr/sbin/zebra", 0o755, "root", ""),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place / "usr/sbin/zebra").write_text("compiled anew"),
        lambda place: (place / "usr/sbin/zebra").chmod(0o644),
        lambda place: (place / "usr/sbin/zebra").rename(place / "usr/sbin/bgpd"),
        lambda place: (place / "sbin/bgpd").symlink_to("../usr/sbin/zebra"),
    ],
    ids=["content", "mode", "name", "link"],
)
def test_whatever_a_host_would_see_is_in_the_digest(directory: Path, change: Callable[[Path], object]) -> None:
    before = installed.sha256(directory)
    assert installed.sha256(directory) == before
    change(directory)
    assert installed.sha256(directory) != before


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda place: (place / "zebra.c").write_text(""), "has zebra.c, but `make install DESTDIR=DIR` makes only"),
        (lambda place: os.mkfifo(place / "usr/pipe"), "usr/pipe: is neither a file nor a link"),
        (lambda place: place.rename(place.with_name("other")), "no such directory; `make install DESTDIR=DIR` makes"),
    ],
    ids=["sources", "pipe", "none"],
)
def test_what_make_install_does_not_make_is_refused(
    directory: Path, change: Callable[[Path], object], refusal: str
) -> None:
    change(directory)
    with pytest.raises(InputError, match=refusal):
        installed.sha256(directory)


def test_a_folder_into_which_nothing_was_installed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    with pytest.raises(InputError, match="has no files: nothing was installed there"):
        installed.sha256(tmp_path)


def test_programs_are_what_is_compiled_and_may_be_run(directory: Path) -> None:
    for name, mode in (("usr/sbin/bgpd", 0o755), ("usr/sbin/data", 0o644)):
        (directory / name).write_bytes(b"\x7fELF of a kind")
        (directory / name).chmod(mode)
    assert installed.programs(directory) == [Path("usr/sbin/bgpd")]
