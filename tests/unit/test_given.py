"""Programs that only the user can bring: found in a directory, an archive or an image, or asked for in one message."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from minigts import overlays
from minigts.artifacts import supplied
from minigts.errors import EnvironmentLacks

WANTED = ("weaver", "weaveutil")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def docker_image(place: Path) -> None:
    first = archive({"home/weave/weaver": b"weaver", "etc/passwd": b""})
    second = archive({"usr/bin/weaveutil": b"weaveutil"})
    place.write_bytes(archive({"manifest.json": b"[]", "abc/layer.tar": first, "def/layer.tar": second}))


def oci_image(place: Path) -> None:
    layer = archive({"home/weave/weaver": b"weaver", "usr/bin/weaveutil": b"weaveutil"}, "gz")
    place.write_bytes(archive({"blobs/sha256/11": b'{"schemaVersion": 2}', "blobs/sha256/22": layer}))


def release(place: Path) -> None:
    """An archive that holds images, and one program again as a link to the same."""
    image = archive({"abc/layer.tar": archive({"home/weave/weaver": b"weaver"})})
    place.write_bytes(archive({"release/images/weave.tar": image, "release/bin/weaveutil": b"weaveutil"}, "gz"))


def linked(place: Path) -> None:
    with tarfile.open(place, "w") as tar:
        for name in ("weaver", "other"):
            header = tarfile.TarInfo(name)
            header.size = len(WANTED[name == "other"])
            tar.addfile(header, io.BytesIO(WANTED[name == "other"].encode()))
        header = tarfile.TarInfo("bin/weaveutil")
        header.type, header.linkname = tarfile.LNKTYPE, "other"
        tar.addfile(header)


def take() -> Path:
    return supplied.take("weave", WANTED, lambda _: None)


@pytest.mark.parametrize("make", [directory, plain_archive, docker_image, oci_image, release, linked])
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
    assert list((tmp_path / "cache" / "programs").iterdir()) == []


def test_catalogue_asks_for_what_the_folder_names() -> None:
    with pytest.raises(EnvironmentLacks, match=r"(?s)data/weave.*weave needs its own programs weaver,"):
        overlays.find("weave").programs(lambda _: None)


def test_a_name_with_a_hyphen_is_asked_for_by_its_first_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentLacks, match=r"(?s)data/calico: .*calico-node needs .* set MINIGTS_CALICO to"):
        overlays.find("calico-node-never").programs(lambda _: None)

    (tmp_path / "weave").mkdir()
    monkeypatch.setenv("MINIGTS_CALICO", str(tmp_path / "weave"))
    with pytest.raises(EnvironmentLacks, match=rf"{tmp_path}/weave holds no bird, .*calico, calico-node"):
        overlays.find("calico-node").programs(lambda _: None)
