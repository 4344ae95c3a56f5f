"""Image, kernel and clock of a few bytes, in caches of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts import paths
from minigts.providers.uml.build import clock_build, export, image, kernel_build

LOCK = b"bash 5.2.37-2+b10\nlibc6 2.41-12\n"


def built(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put them into a cache, which is this process's from now on."""
    monkeypatch.setenv("MINIGTS_CACHE", str(cache))
    root = b"start" + bytes(3_000_000) + b"end"
    put("images", image.key(), {"root.ext4": root, "boot/linux": b"debian's", "packages.lock": LOCK})
    put("kernels", kernel_build.product().key, {"linux": b"full", "modules/7.2/modules.dep": b"", "log": b"a path"})
    put("clocks", clock_build.product().key, {"clock": b"tick"})


def exported(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with them; afterwards the cache is another, empty one."""
    built(place / "there", monkeypatch)
    (place / "some-1.0-py3-none-any.whl").write_bytes(b"wheel")
    export.export(place / "a.tar.gz", [place / "some-1.0-py3-none-any.whl"], lambda _text: None)
    monkeypatch.setenv("MINIGTS_CACHE", str(place / "here"))
    return place / "a.tar.gz"


def put(store: str, key: str, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        place = paths.cache_root() / store / key / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if name.endswith(("linux", "clock")) else 0o644)
