"""Programs that neither a package nor a module registry holds: the user brings them, and minigts takes them from there.

For the overlay `weave` the user sets MINIGTS_WEAVE to one of these, or puts one at `<data root>/weave`; for
`calico-node`, by the first word of its name, MINIGTS_CALICO and `<data root>/calico`:

- a directory that holds the programs
- a tar archive with the programs anywhere in it, also one that `docker save` made of images, or one that holds such
- an http or https address of such an archive

A program for another kind of processor, as a release for all of them has it too, is passed over.

What was taken lies in `<cache root>/programs/<hash of its content>`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from minigts import paths
from minigts.errors import EnvironmentLacks

DOWNLOAD_TIMEOUT_S = 60.0
_ELF_BYTES, _ELF_MACHINE = 20, slice(18, 20)
"""The start of a program, and where it names its processor: see elf(5)."""


def take(overlay: str, wanted: Collection[str], progress: Callable[[str], None]) -> Path:
    """The directory with the `wanted` programs of that overlay. Raises EnvironmentLacks, which says what to do."""
    programs = paths.cache_root() / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    place = os.environ.get(variable(overlay)) or str(_own_place(overlay))
    with tempfile.TemporaryDirectory(dir=programs, prefix="taking-") as temporary:
        taken = Path(temporary) / "taken"
        taken.mkdir()
        try:
            _collect(place, wanted, taken, progress)
        except (OSError, tarfile.TarError) as error:
            raise EnvironmentLacks(f"{place}: {error}\n{_remedy(overlay, wanted)}") from error
        lacking = sorted(set(wanted) - {path.name for path in taken.iterdir()})
        if lacking:
            raise EnvironmentLacks(f"{place} holds no {', '.join(lacking)}\n{_remedy(overlay, wanted)}")
        ready = programs / _hash(taken)
        if not ready.is_dir():
            taken.rename(ready)
    return ready


def variable(overlay: str) -> str:
    """The environment variable in which the user says where an overlay's programs are."""
    return f"MINIGTS_{_key(overlay).upper()}"


def _own_place(overlay: str) -> Path:
    return paths.data_root() / _key(overlay)


def _key(overlay: str) -> str:
    """A variable's name has no hyphen."""
    return overlay.partition("-")[0]


def _remedy(overlay: str, wanted: Collection[str]) -> str:
    return (
        f"{overlay} needs its own programs {', '.join(wanted)}, which minigts does not contain: put them into "
        f"{_own_place(overlay)}, or set {variable(overlay)} to a directory, an archive (tar, or what "
        f"`docker save` writes), or the http(s) address of an archive that holds them"
    )


def _collect(place: str, wanted: Collection[str], into: Path, progress: Callable[[str], None]) -> None:
    if place.startswith(("http://", "https://")):
        progress(f"fetching {place}")
        with tempfile.TemporaryFile() as fetched:
            with urllib.request.urlopen(place, timeout=DOWNLOAD_TIMEOUT_S) as answer:
                shutil.copyfileobj(answer, fetched)
            fetched.seek(0)
            _write(_in_archive(fetched, wanted), into)
    elif Path(place).is_dir():
        _write(((path.name, path.open("rb")) for path in Path(place).iterdir() if path.name in wanted), into)
    else:
        with Path(place).open("rb") as archive:
            _write(_in_archive(archive, wanted), into)


def _in_archive(file: IO[bytes], wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each wanted program; images, and their layers, are looked into."""
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            wanted_one = name.name in wanted and (member.isreg() or member.islnk())
            holds_more = member.isreg() and (name.suffix == ".tar" or "blobs" in name.parts)
            content = archive.extractfile(member) if wanted_one or holds_more else None
            if content is not None and wanted_one:
                yield name.name, content
            elif content is not None:
                yield from _in_layer(content, wanted)


def _in_layer(content: IO[bytes], wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """A blob may be a layer, or a document of the image's."""
    try:
        yield from _in_archive(content, wanted)
    except tarfile.ReadError:
        return


def _write(found: Iterator[tuple[str, IO[bytes]]], into: Path) -> None:
    with Path("/proc/self/exe").open("rb") as interpreter:
        own = interpreter.read(_ELF_BYTES)
    for name, content in found:
        with content:
            start = content.read(_ELF_BYTES)
            if start[:4] == own[:4] and start[_ELF_MACHINE] != own[_ELF_MACHINE]:
                continue
            with (into / name).open("wb") as target:
                target.write(start)
                shutil.copyfileobj(content, target)
        (into / name).chmod(0o755)


def _hash(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
