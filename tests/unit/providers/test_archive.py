"""What comes from a host as an archive: packed by a real tar, and what a host of bad will would send."""

from __future__ import annotations

import filecmp
import io
import os
import subprocess
import tarfile
import tracemalloc
from pathlib import Path, PurePosixPath

import pytest

from minigts.errors import HostFailed
from minigts.providers import archive
from minigts.providers.archive import TooMuch


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


def pax(*records: tuple[bytes, bytes]) -> bytes:
    content = b""
    for key, value in records:
        body = b" " + key + b"=" + value + b"\n"
        length = len(body) + 1
        while len(str(length)) + len(body) != length:
            length = len(str(length)) + len(body)
        content += str(length).encode() + body
    return content


def member(name: bytes, size: int, kind: bytes, content: bytes = b"") -> bytes:
    """A header as it is written, whatever it says, and what follows it."""
    header = bytearray(512)
    header[: len(name)] = name
    header[100:124] = b"0000644\0" + b"0000000\0" * 2
    header[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"%011o\0" % size
    header[136:148] = b"%011o\0" % 0
    header[148:156] = b" " * 8
    header[156:157] = kind
    header[257:265] = b"ustar\00000"
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


GROWS = pax((b"GNU.sparse.size", b"2900000000"), (b"GNU.sparse.map", b"0,1"), (b"GNU.sparse.name", b"./hosts"))
OF_HOLES = pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.realsize", b"2900000000"))
LIES = {
    "a file with holes": (
        member(b"PaxHeader", len(GROWS), b"x", GROWS) + member(b"./hosts", 1, b"0", b"A"),
        "is sparse",
    ),
    "an old one": (member(b"./hosts", 0, b"S"), "is sparse|no whole archive"),
    "holes that never end": (
        member(b"PaxHeader", len(OF_HOLES), b"x", OF_HOLES)
        + member(b"./hosts", 1 << 20, b"0", b"9999999\n" + b"1\n" * ((1 << 19) - 4)),
        "headers are too long",
    ),
    "a name of 2 GB": (member(b"././@LongLink", 2 << 30, b"L"), "headers are too long"),
    "more of one member than can be": (member(b"PaxHeader", 2 << 30, b"x"), "headers are too long"),
    "less than nothing": (member(b"./a", -512, b"0"), "negative size|no whole archive"),
    "a number of a million digits": (member(b"x", 100_009, b"x", b"100009 a=" + b"1" * 99_999 + b"\n"), "archive"),
    "more than was sent": (member(b"./hosts", 1 << 31, b"0", b"A"), "unexpected end of data"),
    "a second file": (member(b"./a", 1, b"0", b"A") + member(b"./b", 1, b"0", b"B"), "follows the only file"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_grows_or_lies_is_refused_in_little_memory(tmp_path: Path, lie: str) -> None:
    sent, says = LIES[lie]
    tracemalloc.start()
    with pytest.raises(HostFailed, match=says):
        archive.unpack("ams", io.BytesIO(sent + bytes(1024)), tmp_path / "back")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20
    assert sum(file.stat().st_blocks * 512 for file in tmp_path.rglob("*")) < 4 << 20


def test_more_than_is_taken_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    sent = member(b".", 0, b"5") + member(b"./a", 1 << 20, b"0", bytes(1 << 20)) + member(b"./b", 1, b"0", b"B")
    with pytest.raises(TooMuch, match=r"host ams sends more than 0.0 GB at once"):
        archive.unpack("ams", io.BytesIO(sent + bytes(1024)), tmp_path / "back")


def test_more_members_than_a_disk_has_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 50)
    sent = member(b".", 0, b"5") + b"".join(member(b"./%d" % number, 0, b"0") for number in range(60))
    with pytest.raises(HostFailed, match="more than 50 members"):
        archive.unpack("ams", io.BytesIO(sent + bytes(1024)), tmp_path / "back")


def test_zeros_take_no_disk_here_either(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(32 << 20)
        file.write(b"in the middle")
    with (tmp_path / "packed").open("wb") as file:
        file.write(packed(tmp_path / "file").getvalue())
    with (tmp_path / "packed").open("rb") as file:
        archive.unpack("ams", file, tmp_path / "back")
    assert filecmp.cmp(tmp_path / "file", tmp_path / "back", shallow=False)
    assert (tmp_path / "back").stat().st_blocks * 512 < 4 << 20
