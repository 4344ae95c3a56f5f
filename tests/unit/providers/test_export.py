"""Image, kernel and clock in one file: what comes out is what went in, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from providers.small_parts import exported
from typer.testing import CliRunner

from minigts import paths
from minigts.artifacts import checksums
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers.uml.build import export, image

SHARE = 10
"""One file for so many of `--fuzz`."""


def quiet(_text: str) -> None:
    pass


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An export of small parts; afterwards the cache is another, empty one."""
    return exported(tmp_path, monkeypatch)


def parts(cache: Path) -> dict[str, bytes]:
    """What a lab would take from a cache: no log, no lock, no sums."""
    return {
        str(path.relative_to(cache)): path.read_bytes()
        for path in cache.rglob("*")
        if path.is_file() and path.name not in ("log", "lock") and not path.name.startswith(".")
    }


def test_what_comes_out_is_what_went_in(file: Path, tmp_path: Path) -> None:
    assert {part.store for part in export.load(file, quiet)} == {"images", "kernels", "clocks"}
    assert parts(tmp_path / "here") == parts(tmp_path / "there")
    ready = image.present()
    assert ready is not None
    assert os.access(ready.boot / "linux", os.X_OK)
    assert ready.root.stat().st_blocks * 512 < 1_000_000 < ready.root.stat().st_size
    assert list((tmp_path / "here").rglob("building-*")) == []


def test_the_same_parts_give_the_same_bytes(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export.load(file, quiet)
    made = export.export(tmp_path / "b.tar.gz", [tmp_path / "some-1.0-py3-none-any.whl"], quiet)
    assert (tmp_path / "b.tar.gz").read_bytes() == file.read_bytes()
    assert made.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_what_is_here_is_left_as_it_is(file: Path) -> None:
    export.load(file, quiet)
    ready = image.present()
    assert ready is not None
    before = ready.root.stat()
    assert export.load(file, quiet) == ()
    assert ready.root.stat().st_mtime_ns == before.st_mtime_ns


def test_the_sum_of_the_parts_is_known_afterwards(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not taken again, which would last ten seconds."""
    export.load(file, quiet)
    monkeypatch.setattr(checksums, "_entry", lambda *_: pytest.fail("read again"))
    ready = image.present()
    assert ready is not None
    assert len(checksums.total(checksums.entries(ready.directory))) == 64


def test_sums_that_are_kept_beside_a_directory_within_are_no_part_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / "image" / "boot").mkdir(parents=True)
    (tmp_path / "image" / "boot" / "linux").write_text("kernel")
    (tmp_path / "image" / "root.ext4").write_text("disk")
    before = checksums.entries(tmp_path / "image")
    checksums.entries(tmp_path / "image" / "boot")
    assert (tmp_path / "image" / ".boot.sums").is_file()
    assert checksums.entries(tmp_path / "image") == before


def test_a_part_that_changed_has_another_sum(file: Path) -> None:
    export.load(file, quiet)
    ready = image.present()
    assert ready is not None
    before = checksums.total(checksums.entries(ready.directory))
    (ready.boot / "linux").write_bytes(b"another")
    assert checksums.total(checksums.entries(ready.directory)) != before


def test_the_launcher_finds_the_wheels(file: Path) -> None:
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert names[:2] == ["minigts-parts.json", "wheels/some-1.0-py3-none-any.whl"]


def test_the_sum_that_was_told_must_be_the_files(file: Path) -> None:
    with pytest.raises(InputError, match="its SHA-256 sum is"):
        export.load(file, quiet, "0" * 64)
    assert image.present() is None
    assert export.load(file, quiet, hashlib.sha256(file.read_bytes()).hexdigest())


def test_too_little_room_is_said_first(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export.shutil, "disk_usage", lambda _: Free())
    with pytest.raises(EnvironmentLacks, match="0 MB are free"):
        export.load(file, quiet)


class Free:
    free = 0


def test_without_an_image_there_is_nothing_to_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="image build"):
        export.export(tmp_path / "a.tar.gz", [], quiet)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_overwritten(file: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        export.export(file, [], quiet)


# Files from elsewhere

Members = list[tuple[tarfile.TarInfo, bytes]]


def altered(file: Path, change: Callable[[Members], object]) -> Path:
    with tarfile.open(file) as archive:
        members = [(each, (archive.extractfile(each) or io.BytesIO()).read()) for each in archive]
    change(members)
    place = file.with_name("altered.tar.gz")
    with tarfile.open(place, "w:gz") as archive:
        for each, data in members:
            each.size = len(data) if each.isreg() else 0
            archive.addfile(each, io.BytesIO(data))
    return place


def index(change: Callable[[dict[str, object]], object]) -> Callable[[Members], object]:
    def alter(members: Members) -> None:
        document = json.loads(members[0][1])
        change(document)
        members[0] = (members[0][0], json.dumps(document).encode())

    return alter


def member(name: str, kind: bytes = tarfile.REGTYPE) -> Callable[[Members], object]:
    def alter(members: Members) -> None:
        one = tarfile.TarInfo(name)
        one.type, one.linkname = kind, "/etc/passwd"
        members.append((one, b"x"))

    return alter


def damage(members: Members) -> None:
    members[-1] = (members[-1][0], b"tock")


CHANGES: dict[str, tuple[Callable[[Members], object], str]] = {
    "no index": (lambda members: members.pop(0), "contains no image"),
    "index is no JSON": (lambda members: members.__setitem__(0, (members[0][0], b"{")), "its minigts-parts.json"),
    "later version": (index(lambda one: one.update(version=2)), "version"),
    "another recipe": (index(lambda one: one["parts"][0].update(key="0" * 16)), "made by another minigts"),  # type: ignore[index]
    "upwards": (index(lambda one: one["parts"][0]["files"][0].update(name="../x")), "should match pattern"),  # type: ignore[index]
    "hidden": (index(lambda one: one["parts"][0]["files"][0].update(name=".x")), "should match pattern"),  # type: ignore[index]
    "endless": (index(lambda one: one["parts"][0]["files"][0].update(size=1 << 60)), "less than or equal"),  # type: ignore[index]
    "one file less": (lambda members: members.pop(), "ends without clocks/"),
    "one file more": (member("images/0123456789abcdef/x"), "does not fit its"),
    "a link": (member("images/0123456789abcdef/x", tarfile.SYMTYPE), "does not fit its"),
    "absolute": (member("/tmp/escaped"), "does not fit its"),
    "damaged": (damage, "clock has another sum"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_altered_is_refused_and_nothing_of_it_is_kept(file: Path, tmp_path: Path, change: str) -> None:
    how, words = CHANGES[change]
    with pytest.raises(InputError) as refused:
        export.load(altered(file, how), quiet)
    assert words in str(refused.value)
    assert "altered.tar.gz: " in str(refused.value)
    assert parts(tmp_path / "here") == {}


@pytest.mark.parametrize("data", [b"", b"no archive", gzip.compress(b"", mtime=0), gzip.compress(b"x" * 600, mtime=0)])
def test_what_is_no_such_file_is_one_error(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.tar\.gz: "):
        export.load(file, quiet)


def test_the_verb_says_so_in_a_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["image", "import", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output == f"minigts: {tmp_path}: is no regular file\n"


def test_a_file_that_is_damaged_at_random_is_whole_or_leaves_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    whole, original = parts(tmp_path / "there"), file.read_bytes()
    for number in range(max(20, request.config.getoption("--fuzz") // SHARE)):
        chance = random.Random(number)
        monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / f"cache{number}"))
        at = chance.randrange(len(original))
        data = original[:at] + bytes([chance.randrange(256)]) + original[at + 1 :]
        file.write_bytes(data if number % 3 else data[:at])
        try:
            export.load(file, quiet)
            assert parts(paths.cache_root()) == whole, f"damage {number}"
        except InputError as error:
            assert str(error).startswith(str(file)), f"damage {number}"
            assert parts(paths.cache_root()) == {}, f"damage {number}"
