"""Programs that only the user can bring: found in a directory or an archive, or asked for in one message."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from minigts import overlays
from minigts.artifacts import overlay_programs, supplied
from minigts.errors import EnvironmentLacks

WANTED = ("weaver", "weaveutil")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MINIGTS_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MINIGTS_WEAVE", raising=False)
    monkeypatch.delenv("MINIGTS_CALICO", raising=False)


def archive(members: Mapping[str, bytes], compression: str = "") -> bytes:
    """A tar archive with these members."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=f"w:{compression}") as tar:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return written.getvalue()


def directory(place: Path) -> None:
    place.mkdir(parents=True)
    for name in WANTED:
        (place / name).write_text(name)


def plain_archive(place: Path) -> None:
    place.write_bytes(archive({f"weave-2.8.1/bin/{name}": name.encode() for name in WANTED}, "gz"))


def in_pieces(place: Path) -> None:
    """As bgzip compresses: piece by piece, and the last one is empty."""
    whole = archive({f"weave-2.8.1/bin/{name}": name.encode() for name in WANTED})
    pieces = (whole[:1000], whole[1000:], b"")
    place.write_bytes(b"".join(gzip.compress(piece) for piece in pieces))


def linked(place: Path) -> None:
    with tarfile.open(place, "w") as tar:
        for name in ("weaver", "other"):
            header = tarfile.TarInfo(name)
            header.size = len(WANTED[name == "other"])
            tar.addfile(header, io.BytesIO(WANTED[name == "other"].encode()))
        header = tarfile.TarInfo("bin/weaveutil")
        header.type, header.linkname = tarfile.LNKTYPE, "other"
        tar.addfile(header)


def kept(tmp_path: Path) -> list[Path]:
    """What the cache has of programs, whole or half."""
    return [path for path in (tmp_path / "cache" / "programs").iterdir() if path.name != "taking.lock"]


def take(**limits: object) -> Path:
    return supplied.take("weave", WANTED, replace(supplied.LIMITS, **limits))


def refusal(place: Path | str, content: bytes | None, monkeypatch: pytest.MonkeyPatch, **limits: object) -> str:
    """What is said, in its first line, of a place where nothing can be taken from; nothing of it is kept."""
    if content is not None:
        assert isinstance(place, Path)
        place.write_bytes(content)
    monkeypatch.setenv("MINIGTS_WEAVE", str(place))
    with pytest.raises(EnvironmentLacks) as refused:
        take(**limits)
    reason, remedy = str(refused.value).split("\n")
    assert remedy.startswith("weave needs its own programs weaver, weaveutil")
    assert reason.isprintable()
    assert [path.name for path in supplied.paths.cache_root().rglob("*")] == ["programs", "taking.lock"]
    return reason


@pytest.mark.parametrize("make", [directory, plain_archive, in_pieces, linked])
def test_programs_are_taken_from(make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(make)
    make(tmp_path / "place")
    monkeypatch.setenv("MINIGTS_WEAVE", str(tmp_path / "place"))

    taken = take()

    assert {path.name: path.read_text() for path in taken.iterdir()} == {name: name for name in WANTED}
    assert all(path.stat().st_mode & 0o111 for path in taken.iterdir())
    assert take() == taken


def test_a_program_for_another_processor_is_passed_over(tmp_path: Path) -> None:
    own = Path("/proc/self/exe").read_bytes()[:64]
    foreign = own[:18] + b"\xff\xff" + own[20:]
    kinds = {"amd64": own, "other": foreign}
    members = {f"bin/{kind}/{name}": content for kind, content in kinds.items() for name in WANTED}
    place = tmp_path / "data" / "weave"
    place.parent.mkdir()
    place.write_bytes(archive(members))

    assert {path.read_bytes() for path in take().iterdir()} == {own}


def test_other_content_is_another_place(tmp_path: Path) -> None:
    directory(tmp_path / "data" / "weave")
    first = take()
    (tmp_path / "data" / "weave" / "weaver").write_text("newer")

    assert take() != first


@pytest.mark.parametrize("place", ["missing", "empty", "text"])
def test_what_is_missing_is_asked_for_in_one_message(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no archive")
    monkeypatch.setenv("MINIGTS_WEAVE", str(tmp_path / place))

    with pytest.raises(EnvironmentLacks, match=rf"(?s){tmp_path / place}.*weaver, weaveutil.*MINIGTS_WEAVE"):
        take()
    assert kept(tmp_path) == []


def test_catalogue_asks_for_what_the_folder_names() -> None:
    with pytest.raises(EnvironmentLacks, match=r"(?s)data/weave.*weave needs its own programs weaver,"):
        overlays.find("weave").programs(lambda _: None)


def test_a_name_with_a_hyphen_is_asked_for_by_its_first_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentLacks, match=r"(?s)data/calico: .*calico-node needs .* set MINIGTS_CALICO to"):
        overlays.find("calico-node-never").programs(lambda _: None)

    (tmp_path / "weave").mkdir()
    monkeypatch.setenv("MINIGTS_CALICO", str(tmp_path / "weave"))
    with pytest.raises(EnvironmentLacks, match=rf"{tmp_path}/weave: holds no bird, .*calico, calico-node"):
        overlays.find("calico-node").programs(lambda _: None)


PROGRAMS = {name: name.encode() * 1000 for name in WANTED}


def header(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> bytes:
    """One member's header."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_an_archive_that_ends_early_is_refused(
    compression: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archive(PROGRAMS, compression).rstrip(b"\0" if not compression else b"")
    assert "broken" in refusal(tmp_path / "cut", whole[: int(len(whole) * share)], monkeypatch)


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("back", [1, 5, 9])
def test_a_wrong_sum_is_refused_also_when_the_programs_came_before_it(
    compression: str, back: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = bytearray(archive(PROGRAMS, compression))
    broken[-back] ^= 0x10
    assert "broken" in refusal(tmp_path / "place", bytes(broken), monkeypatch)


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_what_follows_the_end_is_refused(compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(tmp_path / "place", archive(PROGRAMS, compression) + b"garbage", monkeypatch)
    assert "something follows" in said


def test_a_damaged_header_in_the_middle_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = bytearray(archive({**PROGRAMS, "last": b"x"}))
    broken[broken.rindex(b"last")] ^= 1
    assert "broken" in refusal(tmp_path / "place", bytes(broken), monkeypatch)


@pytest.mark.parametrize("target", ["nothing", "/etc/passwd", "../../etc/passwd", "bin/weaveutil", "bin/weaver", ""])
def test_a_hard_link_to_what_the_archive_does_not_hold(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in a circle."""
    links = header("bin/weaver", tarfile.LNKTYPE, target) + header("bin/weaveutil", tarfile.LNKTYPE, "bin/weaver")
    said = refusal(tmp_path / "place", links + bytes(1024), monkeypatch)
    assert "weaver is a hard link to" in said
    assert "weaveutil is a hard link to 'bin/weaver'" in said


def test_two_programs_may_be_links_to_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = b"".join(header(name, tarfile.LNKTYPE, "./busy") for name in WANTED)
    file = header("busy", size=4) + b"busy".ljust(512, b"\0")
    (tmp_path / "place").write_bytes(gzip.compress(links + file + bytes(1024)))
    monkeypatch.setenv("MINIGTS_WEAVE", str(tmp_path / "place"))
    assert [path.read_bytes() for path in take().iterdir()] == [b"busy", b"busy"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_what_is_no_regular_file_is_no_program(kind: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(header(name, kind, "/etc/passwd") for name in WANTED) + bytes(1024)
    assert "holds no weaver" in refusal(tmp_path / "place", content, monkeypatch)


def test_archives_in_an_archive_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `docker save` writes them; `docker export` writes one that holds the programs."""
    image = archive({"manifest.json": b"[]", "abc/layer.tar": archive(PROGRAMS)})
    assert "holds no weaver" in refusal(tmp_path / "image", image, monkeypatch)


def pax_chain() -> bytes:
    """Headers that each announce another; a reader that follows them by calling itself comes to its end."""
    one = b"13 comment=ab"
    return (header("x", tarfile.XHDTYPE, size=len(one)) + one.ljust(512, b"\0")) * 900 + archive(PROGRAMS)


BOMBS: dict[str, tuple[bytes, dict[str, float], str]] = {
    "in all": (gzip.compress(bytes(1 << 25) + b"x"), {"unpacked_bytes": 1 << 20}, "unpacks to more than 1048576 bytes"),
    "a program": (archive({"weaver": bytes(1 << 21)}, "gz"), {"program_bytes": 1 << 20}, "weaver is larger than"),
    "programs": (archive(PROGRAMS), {"programs_bytes": 9000}, "its programs are larger than 9000 bytes together"),
    "members": (archive({f"{n}": b"" for n in range(99)}), {"members": 98}, "holds more than 98 files"),
    "a long name": (header("x", tarfile.GNUTYPE_LONGNAME, size=1 << 21) + bytes(1 << 21), {}, "header is too long"),
    "a chain of headers": (pax_chain(), {}, "broken"),
    "a size beyond all": (header("x", size=1 << 60) + bytes(1024), {}, "broken"),
    "a size below zero": (header("x", size=-512) + bytes(1024), {}, "broken"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_defused(bomb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, limits, said = BOMBS[bomb]
    assert said in refusal(tmp_path / "bomb", content, monkeypatch, **limits)


@pytest.mark.parametrize("name", ["place", "place/weaver"])
def test_a_fifo_is_not_waited_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    assert f"{Path(name).name} is no regular file" in refusal(tmp_path / "place", None, monkeypatch)


def test_what_a_crash_has_left_goes(tmp_path: Path) -> None:
    directory(tmp_path / "data" / "weave")
    half = tmp_path / "cache" / "programs" / "taking-abc" / "taken"
    half.mkdir(parents=True)
    (half / "weaver").touch()
    ready = take()
    assert kept(tmp_path) == [ready]


def test_what_a_crash_has_left_of_a_build_goes(tmp_path: Path) -> None:
    recipe = tmp_path / "overlay" / "build"
    recipe.mkdir(parents=True)
    (recipe / "build.sh").write_text('#!/bin/sh\ntouch "$1/program"\n')
    (recipe / "build.sh").chmod(0o755)
    (tmp_path / "cache" / "programs" / "building-of-another-recipe").mkdir(parents=True)
    ready = overlay_programs.ensure(recipe, lambda _: None)
    assert [path for path in ready.parent.iterdir() if path.is_dir()] == [ready]


KEEPING = "from minigts.artifacts import supplied; supplied.take('weave', ['weaver', 'weaveutil'])"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_cache_is_said_of_the_cache(tmp_path: Path) -> None:
    (tmp_path / "place").write_bytes(archive({name: os.urandom(100_000) for name in WANTED}))
    (tmp_path / "cache").mkdir()
    script = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" -P -c "$3"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path / "cache"), sys.executable, KEEPING],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(supplied.__file__).parents[2]),
            "MINIGTS_WEAVE": str(tmp_path / "place"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"EnvironmentLacks: {tmp_path}/place" in done.stderr
    assert f"cannot be kept in {tmp_path}/cache: No space left on device\nmake room" in done.stderr


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory(tmp_path / "data" / "weave")
    monkeypatch.setenv("MINIGTS_CACHE", "/dev/null/x")
    with pytest.raises(EnvironmentLacks, match="cannot be kept in /dev/null/x: Not a directory"):
        take()
