"""What comes from a host as an archive: packed by a real tar, and what a host of bad will would send."""

from __future__ import annotations

import filecmp
import io
import os
import subprocess
import tarfile
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

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
            content = os.fsencode(name) if kind == tarfile.REGTYPE else b""
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
    with pytest.raises(HostFailed, match="host ams sent no whole archive: 'way/in' does not follow the directory"):
        archive.unpack("ams", sent, tmp_path / "back")
    assert list((tmp_path / "outside").iterdir()) == []


D, F, L = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE
TOP = (".", D, "")
CANARY = "the user's own words"
HOSTILE: dict[str, tuple[tuple[tuple[str, bytes, str], ...], str]] = {
    "a link in place of the target": (((".", L, "{canary}"),), "neither the file nor the directory"),
    "a link of another name": ((("notes", L, "{canary}"),), "neither the file nor the directory"),
    "a relative one": (((".", L, "canary"),), "neither the file nor the directory"),
    "a hard link in place of it": (((".", tarfile.LNKTYPE, "{canary}"),), "neither the file nor the directory"),
    "a device in place of it": (((".", tarfile.CHRTYPE, ""),), "neither the file nor the directory"),
    "a file below nothing": (((".", tarfile.FIFOTYPE, ""), ("a", F, "")), "neither the file nor the directory"),
    "the target replaced by a link": ((TOP, (".", L, "{outside}")), "the target itself once more"),
    "replaced under another name": ((TOP, ("./.", L, "{outside}"), ("a", F, "")), "the target itself once more"),
    "replaced by a file": ((TOP, ("./", F, "")), "the target itself once more"),
    "replaced by a hard link": ((TOP, (".", tarfile.LNKTYPE, "{canary}")), "the target itself once more"),
    "a file through a link": ((TOP, ("w", L, "{outside}"), ("w/in", F, "")), "does not follow the directory"),
    "through a link that stays inside": ((TOP, ("d", D, ""), ("w", L, "d"), ("w/in", F, "")), "w/in' does not follow"),
    "a directory through a link": ((TOP, ("w", L, "{outside}"), ("w/in", D, "")), "does not follow the directory"),
    "a directory replaced by a link": ((TOP, ("d", D, ""), ("d", L, "e"), ("d/in", F, "")), "'d' cannot be made here"),
    "a link replaced by a directory": ((TOP, ("d", L, "e"), ("d", D, ""), ("d/in", F, "")), "'d' cannot be made here"),
    "a file twice": ((TOP, ("a", F, ""), ("a", F, "")), "'a' cannot be made here: File exists"),
    "a file through a file": ((TOP, ("a", F, ""), ("a/b", F, "")), "does not follow the directory"),
    "back into a directory": ((TOP, ("d", D, ""), ("a", F, ""), ("d/b", F, "")), "does not follow the directory"),
    "an absolute name": ((TOP, ("{outside}/in", F, "")), "leads out of the target"),
    "a name upwards": ((TOP, ("d", D, ""), ("d/../../outside/in", F, "")), "leads out of the target"),
    "an absolute directory": ((TOP, ("{outside}", D, ""), ("{outside}/in", F, "")), "leads out of the target"),
    "a name longer than any": ((TOP, ("d/" * 2048 + "in", F, "")), "leads out of the target"),
    "a name longer than a name": ((TOP, ("d" * 256, F, "")), "cannot be made here: File name too long"),
    "a link to nothing": ((TOP, ("l", L, "")), "'l' leads to no path"),
    "a link to a long path": ((TOP, ("l", L, "d/" * 2048)), "'l' leads to no path"),
    "a file beside the file": ((("a", F, ""), ("b", F, "")), "follows the only file"),
    "a link beside the file": ((("a", F, ""), (".", L, "{canary}")), "follows the only file"),
    "nothing": ((), "it is empty"),
}


@pytest.mark.parametrize("way", ["unpack", "hand_on"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_that_no_copy_makes_is_refused_and_reaches_nothing(tmp_path: Path, kind: str, way: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "canary").write_text(CANARY)
    places = {"outside": tmp_path / "outside", "canary": tmp_path / "canary"}
    members, says = HOSTILE[kind]
    sent = made(*((name.format(**places), type_, leads.format(**places)) for name, type_, leads in members))
    if way == "hand_on" and "cannot be made here" in says:
        pytest.skip("nothing is made here, and the other host's tar replaces what it has made")
    with pytest.raises(HostFailed, match=f"host ams sent no whole archive: .*{says}"):
        if way == "unpack":
            archive.unpack("ams", sent, tmp_path / "back")
        else:
            archive.hand_on("ams", sent, PurePosixPath("/srv/back"), io.BytesIO(), tmp_path)
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "canary").read_text() == CANARY
    assert not (tmp_path / "back").is_symlink()


@pytest.mark.parametrize(
    ("place", "leads_to", "stays"),
    [
        ("l", "a", True),
        ("l", "./a//b", True),
        ("l", ".", True),
        ("d/l", "..", True),
        ("d/l", "../a", True),
        ("d/e/l", "../../a", True),
        ("l", "..", False),
        ("d/l", "../..", False),
        ("d/l", "../../back/a", False),
        ("l", "/etc/passwd", False),
        ("l", "//etc", False),
        ("l", "d/..", False),
        ("l", "m/../a", False),
        ("d/l", ".././../x", False),
    ],
)
def test_a_link_arrives_as_a_link_unless_it_leads_out_of_the_copy(
    tmp_path: Path, place: str, leads_to: str, stays: bool
) -> None:
    """Behind another link's name `..` goes up from wherever that one leads: `m -> .` and `m/..`."""
    sent = made(TOP, ("d", D, ""), ("d/e", D, ""), (place, L, leads_to)) if place.count("/") == 2 else None
    sent = sent or made(TOP, ("d", D, ""), (place, L, leads_to))
    copy = archive.unpack("ams", sent, tmp_path / "back")
    assert copy.left_out == (() if stays else (place,))
    assert (tmp_path / "back" / place).is_symlink() == stays
    if stays:
        assert str((tmp_path / "back" / place).readlink()) == str(Path(leads_to)) or leads_to.startswith("./")
        assert (tmp_path / "back" / place).resolve().is_relative_to(tmp_path / "back")


def test_of_many_links_that_lead_out_the_first_are_named(tmp_path: Path) -> None:
    copy = archive.unpack("ams", made(TOP, *((f"l{number}", L, "/etc") for number in range(9))), tmp_path / "back")
    assert (copy.left_out, copy.left_out_number) == (("l0", "l1", "l2"), 9)


def test_names_of_any_bytes_are_kept(tmp_path: Path) -> None:
    names = ["a\nb", "\x1b[31m", "-rf", " ", "\udcff\udcfe", "~", "$(id)", "'"]
    copy = archive.unpack("ams", made(TOP, *((name, F, "") for name in names)), tmp_path / "back")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == sorted(names)
    assert copy.size_bytes == sum(len(name.encode("utf-8", "surrogateescape")) for name in names)


def test_a_directorys_mode_and_time_are_those_it_was_sent_with(tmp_path: Path) -> None:
    """Also where its mode would keep its own content from being made, and its time would be that of its content."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as into:
        for name, mode, kind in ((".", 0o500, D), ("d", 0o7500, D), ("d/e", 0o000, D), ("d/e/f", 0o444, F)):
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.mtime = kind, mode, 978307200
            into.addfile(member)
    file.seek(0)
    archive.unpack("ams", file, tmp_path / "back")
    for name, mode in (("d/e/f", 0o444), ("d/e", 0), ("d", 0o500), (".", 0o500)):
        state = (tmp_path / "back" / name).stat()
        assert (state.st_mode & 0o7777, state.st_mtime) == (mode, 978307200)
    (tmp_path / "back").chmod(0o700)
    (tmp_path / "back" / "d").chmod(0o700)


MEMBERS = 10_000
LARGEST_MB = 3
"""Each directory and link took half a kilobyte and more, which are five MB and more of so many."""


@contextmanager
def of_many(kind: bytes, names: Iterator[str], leads_to: str) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(member(b".", 0, b"5"))
        for name in names:
            file.write(member(name.encode(), 0, kind, linked=leads_to.encode()))
        file.write(bytes(1024))
        file.seek(0)
        yield file


def peak_mb(do: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("way", ["unpack", "hand_on"])
@pytest.mark.parametrize(
    ("kind", "leads_to"), [(b"0", ""), (b"5", ""), (b"2", "a"), (b"2", "/etc")], ids=["files", "dirs", "links", "out"]
)
def test_members_take_memory_for_one_of_them(tmp_path: Path, kind: bytes, leads_to: str, way: str) -> None:
    names = (f"./{number}" for number in range(MEMBERS))
    with of_many(kind, names, leads_to) as sent, (tmp_path / "handed").open("wb") as into:
        if way == "unpack":
            most_mb = peak_mb(lambda: archive.unpack("ams", sent, tmp_path / "back"))
        else:
            most_mb = peak_mb(lambda: archive.hand_on("ams", sent, PurePosixPath("/srv/back"), into, tmp_path))
    assert most_mb < LARGEST_MB


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_chain_of_headers_is_one_refusal(tmp_path: Path, kind: bytes) -> None:
    """tarfile reads each header in the call of the one before."""
    content = pax((b"a", b"b")) if kind in (b"x", b"g") else b"./name"
    sent = member(b".", 0, b"5") + member(b"x", len(content), kind, content) * 3000 + bytes(1024)
    with pytest.raises(HostFailed, match="host ams sent no whole archive"):
        archive.unpack("ams", io.BytesIO(sent), tmp_path / "back")


def test_headers_for_all_members_are_refused(tmp_path: Path) -> None:
    """tarfile would keep those of each, however many there are."""
    one = pax((b"comment", b"c"))
    sent = member(b".", 0, b"5") + member(b"x", len(one), b"g", one) + member(b"./a", 0, b"0") + bytes(1024)
    with pytest.raises(HostFailed, match="headers for all members"):
        archive.unpack("ams", io.BytesIO(sent), tmp_path / "back")


def test_what_is_handed_on_is_made_anew(tmp_path: Path) -> None:
    """Owners, rights of owners, times that no header has, and attributes are no part of it; links come last."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as into:
        for name, kind, size in ((".", D, 0), ("l", L, 0), ("\udcff\n" * 60, F, 3)):
            one = tarfile.TarInfo(name)
            one.type, one.linkname, one.size, one.mode, one.uid, one.uname = kind, "/etc", size, 0o4755, 1000, "user"
            one.mtime, one.pax_headers = -5.5, {"SCHILY.xattr.security.capability": "x"}
            into.addfile(one, io.BytesIO(b"abc"))
    file.seek(0)
    handed = io.BytesIO()
    copy = archive.hand_on("ams", file, PurePosixPath("/srv/new name"), handed, tmp_path)
    assert (copy.size_bytes, copy.is_directory) == (3, True)
    handed.seek(0)
    with tarfile.open(fileobj=handed) as got:
        members = got.getmembers()
    assert [one.name for one in members] == ["new name", "new name/" + "\udcff\n" * 60, "new name/l"]
    assert [one.type for one in members] == [D, F, L]
    assert {(one.uid, one.gid, one.uname, one.mtime, *one.pax_headers) for one in members} == {(0, 0, "root", 0)}
    assert {one.mode for one in members[:2]} == {0o755}
    assert members[2].linkname == "/etc"
    assert list(tmp_path.iterdir()) == []


def test_zeros_that_are_handed_on_take_no_disk_here(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as zeros:
        zeros.truncate(64 << 20)
    with (tmp_path / "handed").open("w+b") as handed:
        archive.hand_on("ams", packed(tmp_path / "file"), PurePosixPath("/srv/name"), handed, tmp_path)
        handed.flush()
        assert os.fstat(handed.fileno()).st_blocks * 512 < 4 << 20
        handed.seek(0)
        with tarfile.open(fileobj=handed) as got:
            assert [(one.name, one.size) for one in got] == [("name", 64 << 20)]


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


def member(name: bytes, size: int, kind: bytes, content: bytes = b"", linked: bytes = b"") -> bytes:
    """A header as it is written, whatever it says, and what follows it."""
    header = bytearray(512)
    header[: len(name)] = name
    header[157 : 157 + len(linked)] = linked
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
