"""Whether what is built has the bytes that are expected: of the file in the tree, and of small parts in a cache."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from minigts import paths
from minigts.artifacts import checksums, digests
from minigts.artifacts.digests import Proof
from minigts.experiments import provenance
from minigts.providers.base import Provider
from minigts.providers.uml.build import clock_build, image, kernel_build
from minigts.report.compare import changed_settings
from minigts.results.crate import PROVEN, UNPROVEN, metadata
from minigts.results.manifest import read

KEY = "0123456789abcdef"
Put = Callable[[str, str], Path]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


EXPECTED = {
    "kernel/linux": sha256("linux"),
    "kernel/version": sha256("7.2"),
    "image/root.ext4": sha256("root"),
    "image/boot/linux": sha256("debian's"),
}


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a file with this text into a cache of its own, at a place such as `kernels/KEY/linux`, in a project that
    expects EXPECTED; returns the part's directory."""
    listed = tmp_path / "digests"
    listed.write_text("".join(f"{digest}  {place}\n" for place, digest in EXPECTED.items()))
    monkeypatch.setattr(digests, "file", lambda: listed)
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))

    def write(place: str, text: str) -> Path:
        file = tmp_path / "cache" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path / "cache" / Path(*Path(place).parts[:2])

    return write


def test_a_part_with_the_expected_bytes_is_proven(put: Put) -> None:
    put(f"kernels/{KEY}/linux", "linux")
    directory = put(f"kernels/{KEY}/version", "7.2")
    put(f"kernels/{KEY}/log", "another day's")
    assert digests.proof(directory) == Proof()
    assert str(digests.proof(directory)) == "proven"


@pytest.mark.parametrize(
    ("files", "differing"),
    [
        ({"linux": "changed", "version": "7.2"}, ("linux",)),
        ({"linux": "linux"}, ("version",)),
        ({"linux": "linux", "version": "7.2", "unproven": "7.3"}, ("unproven",)),
    ],
)
def test_other_bytes_a_missing_and_a_further_file_are_named(
    put: Put, files: dict[str, str], differing: tuple[str, ...]
) -> None:
    for name, text in files.items():
        directory = put(f"kernels/{KEY}/{name}", text)
    assert digests.proof(directory) == Proof(differing)
    assert str(digests.proof(directory)) == f"unproven: other bytes in {differing[0]}"


def test_why_it_has_other_packages_is_said_with_it(put: Put) -> None:
    put(f"kernels/{KEY}/linux", "changed")
    put(f"kernels/{KEY}/version", "7.2")
    directory = put(f"kernels/{KEY}/unlocked", "the mirror has moved on\n")
    assert str(digests.proof(directory)) == "unproven: other bytes in linux; the mirror has moved on"


def test_the_same_bytes_are_proven_whatever_they_were_made_with(put: Put) -> None:
    put(f"kernels/{KEY}/linux", "linux")
    put(f"kernels/{KEY}/version", "7.2")
    assert digests.proof(put(f"kernels/{KEY}/unlocked", "the mirror has moved on\n")) == Proof(
        (), "the mirror has moved on"
    )


def test_debians_kernel_in_the_image_is_proven_by_the_images_digests(put: Put) -> None:
    directory = put(f"images/{KEY}/boot/linux", "debian's")
    assert digests.proof(directory / "boot") == Proof()
    assert digests.proof(directory) == Proof(("root.ext4",))


def test_nothing_is_expected_of_an_overlays_programs_or_of_what_lies_elsewhere(put: Put, tmp_path: Path) -> None:
    assert digests.proof(put(f"programs/{KEY}/flanneld", "flanneld")) is None
    assert digests.proof(tmp_path) is None


class MadeOf:
    """A provider that says what its labs are made of, and nothing else."""

    def __init__(self, **directories: Path) -> None:
        self._directories = directories

    def part_directories(self) -> dict[str, Path]:
        return self._directories


def test_a_manifest_says_of_each_part_whether_it_is_proven(put: Put) -> None:
    put(f"kernels/{KEY}/linux", "linux")
    kernel, clock = put(f"kernels/{KEY}/version", "7.2"), put(f"clocks/{KEY}/clock", "changed")
    provider: Provider = MadeOf(kernel=kernel, clock=clock)  # type: ignore[assignment]
    found = provenance.parts(provider, lambda _: None)
    assert {word: part.proven for word, part in found.items()} == {"kernel": True, "clock": False}


def test_a_manifest_of_before_is_read_and_compared_by_its_bytes_alone(tmp_path: Path) -> None:
    figures = paths.project_root() / "docs" / "figures"
    document = json.loads((figures / "multihop-manifest.json").read_text())
    for part in document["parts"].values():
        del part["proven"]
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    manifest = read(tmp_path)
    assert {word: part.proven for word, part in manifest.parts.items()} == {
        "image": None,
        "kernel": None,
        "clock": None,
    }
    here = {word: part.model_copy(update={"proven": True}) for word, part in manifest.parts.items()}
    assert provenance.differences(manifest.parts, here, {}, {}) == ()
    assert PROVEN not in metadata("x", {"": manifest}, []) and UNPROVEN not in metadata("x", {"": manifest}, [])
    proven = manifest.model_copy(update={"parts": here})
    assert changed_settings(manifest, proven) == ()
    assert metadata("x", {"": proven}, []).count(PROVEN) == 3


def test_the_file_in_the_tree_names_what_is_built() -> None:
    expected = digests.expected_digests()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in expected.values())
    assert {*expected} >= {
        *("image/root.ext4", "image/packages.lock", "image/boot/linux", "kernel/linux", "kernel/version"),
        *("clock/clock", "clock/crates.lock", "agent/agent"),
    }
    assert not any(checksums.NOT_CONTENT.fullmatch(place.split("/", 1)[1]) for place in expected)


@pytest.mark.parametrize("recipe", ["agent", "clock", "kernel", "image"])
def test_a_lock_names_each_package_once_with_its_sum(recipe: str) -> None:
    lines = (paths.project_root() / "provision" / recipe / "packages.lock").read_text().splitlines()
    rows = [re.fullmatch(r"([a-z0-9][a-z0-9+.-]+) ([0-9A-Za-z.+:~-]+) ([0-9a-f]{64})", line) for line in lines]
    assert [line for line, row in zip(lines, rows, strict=True) if row is None] == []
    names = [row[1] for row in rows if row is not None]
    assert names == sorted({*names})
    assert {"libc6", "dpkg", "apt"} < {*names}


def test_a_lock_is_part_of_the_key_and_the_digests_are_not() -> None:
    assert "packages.lock" in kernel_build.product().parts
    assert "packages.lock" in clock_build.product().parts
    locks = [path for path in image.recipe() if path.name == "packages.lock"]
    assert {path.parent.name for path in locks} == {"image", "agent"}
    assert digests.file() not in image.recipe()
