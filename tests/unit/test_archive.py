"""What comes from a host as an archive: packed by a real tar, and what a host of bad will would send."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from minigts.errors import HostFailed
from minigts.providers import archive


def packed(path: Path) -> io.BytesIO:
    """As the command packs it that a host runs."""
    done = subprocess.run(archive.packing(PurePosixPath(path)), capture_output=True, check=True)
    return io.BytesIO(done.stdout)


def made(*members: tuple[str, bytes, str]) -> io.BytesIO:
    """An archive with these members: name, type, link's target; files hold their own name."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as into:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, target, 0o755
            content = name.encode() if kind == tarfile.REGTYPE else b""
            member.size = len(content)
            into.addfile(member, io.BytesIO(content))
    file.seek(0)
    return file


def test_a_file_by_way_of_a_link_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    (tmp_path / "link").symlink_to("file")
    archive.unpack("ams", packed(tmp_path / "link"), tmp_path / "back")
    assert not (tmp_path / "back").is_symlink()
    assert (tmp_path / "back").read_text() == "content"


def test_a_file_that_says_it_is_empty_is_read(tmp_path: Path) -> None:
    archive.unpack("ams", packed(Path("/proc/sys/kernel/ostype")), tmp_path / "back")
    assert (tmp_path / "back").read_text() == "Linux\n"


def test_what_is_linked_twice_comes_twice(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "one").write_text("content")
    os.link(tmp_path / "tree" / "one", tmp_path / "tree" / "two")
    archive.unpack("ams", packed(tmp_path / "tree"), tmp_path / "back")
    assert [(tmp_path / "back" / name).read_text() for name in ("one", "two")] == ["content", "content"]


def test_pipes_and_devices_are_left_out(tmp_path: Path) -> None:
    sent = made((".", tarfile.DIRTYPE, ""), ("pipe", tarfile.FIFOTYPE, ""), ("disk", tarfile.BLKTYPE, ""))
    archive.unpack("ams", sent, tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/tmp/minigts-outside", "a/../../outside"])
def test_a_name_outside_of_the_target_is_refused(tmp_path: Path, name: str) -> None:
    sent = made((".", tarfile.DIRTYPE, ""), ("a", tarfile.DIRTYPE, ""), (name, tarfile.REGTYPE, ""))
    with pytest.raises(HostFailed, match="host ams sent no whole archive"):
        archive.unpack("ams", sent, tmp_path / "back")
    assert not (tmp_path / "outside").exists()
    assert not Path("/tmp/minigts-outside").exists()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    sent = made(
        (".", tarfile.DIRTYPE, ""), ("way", tarfile.SYMTYPE, str(tmp_path / "outside")), ("way/in", tarfile.REGTYPE, "")
    )
    with pytest.raises(OSError, match="No such file"):
        archive.unpack("ams", sent, tmp_path / "back")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_hard_link_to_a_file_here_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    archive.unpack("ams", made((".", tarfile.DIRTYPE, ""), ("l", tarfile.LNKTYPE, "../secret")), tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


def test_a_stream_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    whole = made((".", tarfile.DIRTYPE, ""), ("file", tarfile.REGTYPE, "")).getvalue()
    with pytest.raises(HostFailed, match="host ams"):
        archive.unpack("ams", io.BytesIO(whole[:1025]), tmp_path / "back")
