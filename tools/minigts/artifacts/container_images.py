"""Container images of the user: from a file, from this machine's container engine, or from a registry.

A file is an archive of `docker save`, an OCI archive (a tar with oci-layout and index.json: OCI Image Format
Specification, image-layout.md), or a tar of a root file system. Images of an engine are saved by docker or podman,
those of a registry are fetched by skopeo, which the user has to install; both are kept in
`<cache root>/container-images`.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from minigts import paths
from minigts.artifacts import downloads, tar_stream
from minigts.errors import CommandFailed, EnvironmentLacks, InputError
from minigts.foreign import one_line
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.topology.containers import ENGINES_IMAGE, REGISTRYS_IMAGE

ENGINES = ("docker", "podman")
SAVE_TIMEOUT_S, PULL_TIMEOUT_S = 600.0, 1800.0
DESCRIPTION_LIMIT_BYTES = 16 << 20
"""Bytes of the descriptions of an image that are read."""
HEADER_BYTES = 1 << 20
MANIFEST, INDEX = "manifest.json", "index.json"
SYSTEM = frozenset(("bin", "etc", "lib", "opt", "sbin", "srv", "usr"))
"""Directories of which every root file system with a program has at least one at its top."""
_BLOCK_BYTES = 1 << 20
_UNFIT = (tarfile.TarError, zlib.error, EOFError, ValueError, KeyError, TypeError, AttributeError, LookupError)


@dataclass(frozen=True)
class ContainerImage:
    """An image in a file. `key` is a hash of the file's bytes."""

    path: Path
    kind: Literal["archive", "filesystem"]
    key: str
    ids: tuple[str, ...]
    """The ids of the images in an archive: `sha256:…` of each configuration, as the engine shows them."""
    names: tuple[str, ...]
    """The names of the images in the archive."""
    runs: bool
    """Whether every image has a command to run."""

    @property
    def tag(self) -> str:
        """The image's name in a host's engine."""
        return f"minigts/image:{self.key}"


def take(reference: str, progress: Progress) -> ContainerImage:
    """The image that a topology names. Raises InputError when there is not exactly one, EnvironmentLacks for a missing
    tool."""
    if reference.startswith(ENGINES_IMAGE):
        image = look(_from_engine(reference.removeprefix(ENGINES_IMAGE), progress))
    elif reference.startswith(REGISTRYS_IMAGE):
        image = look(_from_registry(reference, progress))
    else:
        image = look(Path(reference))
    if len(image.ids) > 1:
        raise InputError(f"{image.path} holds {len(image.ids)} images ({', '.join(image.names)}): save one alone")
    return image


def look(path: Path) -> ContainerImage:
    """The image in a file. Raises InputError when the file is no image."""
    try:
        key = _digest(path)
        described, tops = _described(path)
        if MANIFEST in described:
            return _archive(path, key, described[MANIFEST])
        if INDEX in described:
            return look(_converted(path, key, described[INDEX]))
    except (*_UNFIT, downloads.DownloadRefused, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else f"no image that can be read: {error}"
        raise InputError(f"{path}: {why}") from error
    if SYSTEM.isdisjoint(tops):
        raise InputError(
            f"{path} is no image: a tar of `docker save` contains manifest.json, an OCI archive index.json, a root "
            "file system usr or bin"
        )
    return ContainerImage(path, "filesystem", key, (), (), runs=False)


def _described(path: Path) -> tuple[dict[str, bytes], set[str]]:
    """The content of an archive's manifest.json and index.json, and which of SYSTEM it has at its top."""
    described: dict[str, bytes] = {}
    tops: set[str] = set()
    for name, member, content in _members(path):
        if name in (MANIFEST, INDEX):
            described[name] = _whole(member, content)
        tops |= SYSTEM & {name.partition("/")[0]}
    return described, tops


def _contents(path: Path, names: Collection[str]) -> dict[str, bytes]:
    """The content of these members. Raises KeyError when one is missing, and ValueError when they are too large."""
    found: dict[str, bytes] = {}
    for name, member, content in _members(path):
        if name in names:
            found[name] = _whole(member, content)
            if sum(map(len, found.values())) > DESCRIPTION_LIMIT_BYTES:
                raise ValueError("its descriptions are too large")
    return {name: found[name] for name in names}


def _members(path: Path) -> Iterator[tuple[str, tarfile.TarInfo, Iterator[bytes]]]:
    """The members of an archive with their names and contents, none of which is kept in memory."""
    with path.open("rb") as file:
        chunks, is_archive = tar_stream.decompress(tar_stream.chunks(file))
        if not is_archive:
            raise tarfile.ReadError("it is no tar archive")
        for member, content in tar_stream.members(chunks, HEADER_BYTES):
            yield member.name.removeprefix("./"), member, content


def _archive(path: Path, key: str, manifest: bytes) -> ContainerImage:
    """A file of `docker save`: Docker Image Specification v1.2, *Combined Image JSON + Filesystem Changeset Format*."""
    entries = documents.document(manifest)
    configurations = _contents(path, {str(entry["Config"]) for entry in entries})
    ids: list[str] = []
    names: list[str] = []
    runs = True
    for entry in entries:
        configuration = configurations[entry["Config"]]
        ids.append(f"sha256:{hashlib.sha256(configuration).hexdigest()}")
        names += entry.get("RepoTags") or []
        settings = documents.document(configuration).get("config") or {}
        runs = runs and bool(settings.get("Cmd") or settings.get("Entrypoint"))
    if not ids:
        raise ValueError("it contains no image")
    return ContainerImage(path, "archive", key, tuple(ids), tuple(names), runs)


def _converted(path: Path, key: str, content: bytes) -> Path:
    """A copy of an OCI archive with a manifest.json, which Docker's image store needs; its blobs need no change."""
    ready = _cache() / f"oci-{key}.tar"
    if not ready.exists():
        index = documents.document(content)
        manifests = _contents(path, {_blob(listed) for listed in index["manifests"]})
        entries = []
        for listed in index["manifests"]:
            manifest = documents.document(manifests[_blob(listed)])
            name = (listed.get("annotations") or {}).get("org.opencontainers.image.ref.name", "")
            layers = [_blob(layer) for layer in manifest["layers"]]
            tags = [name] if ":" in name else []
            entries.append({"Config": _blob(manifest["config"]), "RepoTags": tags, "Layers": layers})
        _write(ready, lambda file: _repack(path, json.dumps(entries).encode(), file))
    return ready


def _repack(path: Path, manifest: bytes, file: IO[bytes]) -> None:
    with tarfile.TarFile(fileobj=file, mode="w") as made:
        for _, member, content in _members(path):
            if member.isreg():
                made.addfile(member, _Content(content))  # type: ignore[arg-type]
            else:
                made.addfile(member)
            made.members.clear()  # type: ignore[attr-defined] # tarfile would keep all of them
        added = tarfile.TarInfo(MANIFEST)
        added.size = len(manifest)
        made.addfile(added, io.BytesIO(manifest))


class _Content:
    """A member's content as a file for tarfile."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._ahead = pieces, b""

    def read(self, size: int) -> bytes:
        while len(self._ahead) < size and (piece := next(self._pieces, b"")):
            self._ahead += piece
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data


def _blob(descriptor: Mapping[str, Any]) -> str:
    kind, _, digest = str(descriptor["digest"]).partition(":")
    if not re.fullmatch("[a-z0-9]+", kind) or not re.fullmatch("[0-9a-f]+", digest):
        raise ValueError(f"{descriptor['digest']!a} is no digest")
    return f"blobs/{kind}/{digest}"


def _whole(member: tarfile.TarInfo, content: Iterator[bytes]) -> bytes:
    if not member.isreg() or member.issparse() or member.size > DESCRIPTION_LIMIT_BYTES:
        raise ValueError(f"{member.name[-200:]!a} is no description of an image")
    return b"".join(content)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_BLOCK_BYTES):
            digest.update(data)
    return digest.hexdigest()[:16]


def require(reference: str) -> None:
    """Raises InputError or EnvironmentLacks, as `take` does, for an image that this machine's engine does not have."""
    if reference.startswith(ENGINES_IMAGE):
        _in_engine(reference.removeprefix(ENGINES_IMAGE))


def _from_engine(name: str, progress: Progress) -> Path:
    """The file with the present image of that name in this machine's container engine."""
    engine, said = _in_engine(name)
    ready = _cache() / f"engine-{said.removeprefix('sha256:')[:32]}.tar"
    if not ready.exists():
        progress(f"saving {name} from {Path(engine).name}")
        _fill(ready, lambda path: [engine, "save", "-o", str(path), name], f"{ENGINES_IMAGE}{name}", SAVE_TIMEOUT_S)
    return ready


def _in_engine(name: str) -> tuple[str, str]:
    """This machine's container engine, and the id of its image of that name."""
    engine = next((found for each in ENGINES if (found := shutil.which(each))), None)
    if engine is None:
        raise EnvironmentLacks(
            f"{ENGINES_IMAGE}{name}: this machine has neither {' nor '.join(ENGINES)} to ask for it: name a file that "
            "`docker save` has written"
        )
    argv = [engine, "image", "inspect", "--format", "{{.Id}}", name]
    return engine, _said(argv, f"{ENGINES_IMAGE}{name}", SAVE_TIMEOUT_S).strip()


def _from_registry(reference: str, progress: Progress) -> Path:
    """The file with an image of a registry. It is fetched once; to fetch it again, remove the file."""
    skopeo = shutil.which("skopeo")
    ready = _cache() / f"registry-{hashlib.sha256(reference.encode()).hexdigest()[:32]}.tar"
    if ready.exists():
        return ready
    if skopeo is None:
        raise EnvironmentLacks(
            f"{reference}: fetching from a registry needs skopeo, which is not installed: install it, or save the "
            "image to a file on another machine and name that file"
        )
    progress(f"fetching {reference} into {ready}")
    name = reference.removeprefix(REGISTRYS_IMAGE).partition("@")[0]
    tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    argv = [skopeo, "copy", "--override-os", "linux", "--override-arch", "amd64", reference]
    _fill(ready, lambda path: [*argv, f"docker-archive:{path}:{tagged}"], reference, PULL_TIMEOUT_S)
    return ready


def _fill(ready: Path, argv: Callable[[Path], list[str]], reference: str, timeout_s: float) -> None:
    """Run a command that writes the file `ready`; an incomplete file never appears there."""
    with tempfile.TemporaryDirectory(dir=ready.parent) as place:
        arriving = Path(place) / "image.tar"
        _said(argv(arriving), reference, timeout_s)
        arriving.replace(ready)


def _said(argv: list[str], reference: str, timeout_s: float) -> str:
    try:
        return shell.run(argv, timeout_s=timeout_s).stdout
    except CommandFailed as error:
        last = map(one_line, (error.err.strip() or error.out.strip()).splitlines()[-1:])
        raise InputError(
            f"{reference}: {Path(argv[0]).name} gave no such image: {''.join(last)}; pull or build it there, or name a "
            "file that `docker save` has written"
        ) from error


def _write(ready: Path, fill: Callable[[IO[bytes]], None]) -> None:
    with tempfile.TemporaryDirectory(dir=ready.parent) as place:
        arriving = Path(place) / "image.tar"
        with arriving.open("wb") as file:
            fill(file)
        arriving.replace(ready)


def _cache() -> Path:
    directory = paths.cache_root() / "container-images"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
