"""What a file is that should be an image; and what is fetched by another program."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from minigts.artifacts import container_images
from minigts.errors import EnvironmentLacks, InputError

CONFIGURATION = json.dumps({"config": {"Cmd": ["serve"]}}).encode()
ID = hashlib.sha256(CONFIGURATION).hexdigest()
LAYER = b"a layer"


def quiet(_text: str) -> None:
    """Nobody watches."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def saved(*names: str) -> dict[str, bytes]:
    """As `docker save` writes it, with an image of each name."""
    manifest = [{"Config": "c.json", "RepoTags": [name], "Layers": ["l.tar"]} for name in names]
    return {"l.tar": LAYER, "c.json": CONFIGURATION, "manifest.json": json.dumps(manifest).encode()}


def oci() -> dict[str, bytes]:
    """The layout of the OCI Image Format Specification."""
    layer = hashlib.sha256(LAYER).hexdigest()
    manifest = json.dumps({"config": {"digest": f"sha256:{ID}"}, "layers": [{"digest": f"sha256:{layer}"}]}).encode()
    digest = hashlib.sha256(manifest).hexdigest()
    named = {"org.opencontainers.image.ref.name": "shop/web:1"}
    index = {"manifests": [{"digest": f"sha256:{digest}", "annotations": named}]}
    return {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps(index).encode(),
        f"blobs/sha256/{digest}": manifest,
        f"blobs/sha256/{ID}": CONFIGURATION,
        f"blobs/sha256/{layer}": LAYER,
    }


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_what_docker_saved(tmp_path: Path, mode: str) -> None:
    image = container_images.take(str(packed(tmp_path / "web.tar", saved("shop/web:1"), mode)), quiet)
    assert (image.kind, image.ids, image.names, image.runs) == ("archive", (f"sha256:{ID}",), ("shop/web:1",), True)


def test_an_oci_archive_becomes_what_docker_saves(tmp_path: Path) -> None:
    image = container_images.look(packed(tmp_path / "web.tar", oci()))
    assert (image.kind, image.ids, image.names) == ("archive", (f"sha256:{ID}",), ("shop/web:1",))
    with tarfile.open(image.path) as archive:
        (entry,) = json.load(archive.extractfile("manifest.json") or io.BytesIO())
        layer = archive.extractfile(entry["Layers"][0])
        assert layer is not None
        assert layer.read() == LAYER


def test_a_root_file_system_does_not_say_what_to_run(tmp_path: Path) -> None:
    image = container_images.look(packed(tmp_path / "root.tar", {"./usr/bin/web": b"#!"}))
    assert (image.kind, image.ids, image.runs) == ("filesystem", (), False)


def test_the_same_bytes_have_the_same_tag(tmp_path: Path) -> None:
    one, other = (packed(tmp_path / name, saved("a:1")) for name in ("one.tar", "other.tar"))
    assert container_images.look(one).tag == container_images.look(other).tag
    assert container_images.look(packed(tmp_path / "third.tar", saved("a:2"))).tag != container_images.look(one).tag


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"readme": b"no image"}, "is no image: a tar of `docker save` contains manifest.json"),
        ({**saved("a:1"), "manifest.json": b"{"}, "no image that can be read"),
        ({**saved("a:1"), "manifest.json": b"[]"}, "it contains no image"),
        ({**saved("a:1"), "manifest.json": b'[{"Config": "other"}]'}, "no image that can be read"),
        ({**oci(), "index.json": b'{"manifests": [{"digest": "sha256:../x"}]}'}, "is no digest"),
        (saved("a:1", "b:1"), r"holds 2 images \(a:1, b:1\): save one alone"),
    ],
)
def test_what_is_none_is_one_sentence(tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    with pytest.raises(InputError, match=words):
        container_images.take(str(packed(tmp_path / "web.tar", files)), quiet)


def test_what_is_no_tar_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "web.tar").write_bytes(b"x" * 2000)
    with pytest.raises(InputError, match=r"web\.tar: no image that can be read"):
        container_images.look(tmp_path / "web.tar")
    with pytest.raises(InputError, match=r"none\.tar: No such file"):
        container_images.look(tmp_path / "none.tar")


MEMBERS, LARGEST_MB = 10_000, 3
"""Each member took half a kilobyte, which are five MB of so many, and 200 of 400,000 in a file of 2.4 MB."""


@pytest.mark.parametrize("kind", ["filesystem", "archive", "oci"])
def test_a_file_of_many_members_takes_memory_for_one_of_them(tmp_path: Path, kind: str) -> None:
    files = {"archive": saved("a:1"), "oci": oci(), "filesystem": {}}[kind]
    many = packed(tmp_path / "many.tar.gz", {f"usr/{number}": b"" for number in range(MEMBERS)} | files, "w:gz")
    tracemalloc.start()
    image = container_images.look(many)
    most_mb = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert image.kind == ("archive" if kind == "oci" else kind)
    assert most_mb < LARGEST_MB


def test_headers_that_say_they_are_long_are_not_read(tmp_path: Path) -> None:
    """A megabyte that gzip makes of a gigabyte of zeros."""
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    with gzip.open(tmp_path / "long.tar.gz", "wb", compresslevel=1) as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match="header is too long"):
        container_images.look(tmp_path / "long.tar.gz")
    most_mb = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert most_mb < LARGEST_MB


@pytest.mark.parametrize("reference", ["docker-daemon:web:1", "docker://registry.example/web:1"])
def test_without_the_program_that_fetches_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reference: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"skopeo|docker nor podman"):
        container_images.take(reference, quiet)
