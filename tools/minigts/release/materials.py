"""What a release is made of: Debian's packages, the kernel's source, Rust's crates, Python's packages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from minigts import paths
from minigts.artifacts import sources
from minigts.providers.uml.build import package_lock

PYTHON_LOCK = "requirements.lock"
PROGRAMS = ("clock", "agent")
"""Rust's, by their folders in provision/."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Material:
    """A package, by its kind as package URLs have it (`deb`, `cargo`, `pypi`), name and version."""

    kind: str
    name: str
    version: str
    of: str
    """The part of the release that has it."""
    sha256: str = ""
    """Of its source, where one file is fetched and checked."""

    @property
    def purl(self) -> str:
        """Its package URL: https://github.com/package-url/purl-spec."""
        space = "debian/" if self.kind == "deb" else ""
        return f"pkg:{self.kind}/{space}{quote(self.name)}@{quote(self.version)}"


def release_materials(image_lock: Path) -> tuple[Material, ...]:
    """All materials, sorted. `image_lock` is the packages.lock of the image that is packed."""
    return tuple(sorted({*_debian(image_lock), *_kernel(), *_crates(), *_python()}))


def _debian(image_lock: Path) -> Iterator[Material]:
    for name, version in package_lock.read(image_lock).versions.items():
        yield Material("deb", name, version, "image")
    for source in sources.read(paths.project_root() / "provision" / "image")[:1]:
        yield Material("deb", source.package, source.version, "image", source.sha256)


def _kernel() -> Iterator[Material]:
    for source in sources.read(paths.project_root() / "provision" / "kernel")[:1]:
        yield Material("deb", source.package, source.version, "kernel", source.sha256)


def _crates() -> Iterator[Material]:
    for program in PROGRAMS:
        lock = paths.project_root() / "provision" / program / "Cargo.lock"
        for package in tomllib.loads(lock.read_text(encoding="utf-8"))["package"]:
            if "checksum" in package:  # the program itself has none
                yield Material("cargo", package["name"], package["version"], program, package["checksum"])


def _python() -> Iterator[Material]:
    lock = (paths.project_root() / PYTHON_LOCK).read_text(encoding="utf-8")
    for name, version in _PINNED.findall(lock):
        yield Material("pypi", name.lower(), version, "minigts")
