"""Kernels by name for tests: a kernel that is there already, or a small file in its place, under another name."""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

from minigts import paths
from minigts.artifacts import checksums, kernels
from minigts.artifacts.kernels import KernelRecord, KernelRequest, NamedKernel, SourceFacts


def registered(name: str, directory: Path, *, recipe: str | None = None, hz: int = 100) -> NamedKernel:
    """A copy of the kernel in this directory, in the cache under the name. `recipe` is the digest of the patches and
    options with which it was built; by default it is today's."""
    store = kernels.store()
    store.mkdir(parents=True, exist_ok=True)
    copy = store / f"copying-{name}"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("log"))
    found = checksums.entries(copy)
    place = store / checksums.total(found)[:16]
    shutil.rmtree(place, ignore_errors=True)
    copy.rename(place)
    manifest = KernelRecord(
        name=name,
        directory=place.name,
        linux_sha256=hashlib.sha256((place / "linux").read_bytes()).hexdigest(),
        version=(place / "version").read_text().strip(),
        asked=KernelRequest(),
        source=SourceFacts(kind="debian", place="7.2.13-1"),
        recipe=kernels.recipe_key() if recipe is None else recipe,
        patches={},
        config_sha256=hashlib.sha256(b"").hexdigest(),
        hz=hz,
        compiler="gcc",
        seconds=1.0,
        built=datetime.now(UTC).isoformat(timespec="seconds"),
        minigts="0",
    )
    paths.write_whole(store / f"{name}.json", manifest.model_dump_json())
    return NamedKernel(manifest, place)


def small(place: Path, text: str = "linux") -> Path:
    """A directory with the files of a kernel, which nobody can run."""
    for name, content in (("linux", text), ("version", "7.2.13-1\n"), ("modules/7.2.13-minigts/modules.dep", "")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content)
    return place
