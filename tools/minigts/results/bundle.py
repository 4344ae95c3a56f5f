"""A run, or a campaign, in one file: a ZIP archive that is an RO-Crate, its files under `results/`.

A bundle may come from anybody, so nothing in it is trusted. It is read within `Limits`; its names must be plain, below
`results/`, and unique; every file must be in the metadata, with the same digest. The files' contents are then read as
those of any results folder.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field, JsonValue

from minigts import paths
from minigts.errors import InputError, MinigtsError, Problem
from minigts.language.documents import Bounds
from minigts.paths import NotRegularError, open_regular, replacing
from minigts.results import crate, manifest, schema, store, sweeps
from minigts.results.folder import LARGEST_BYTES, inside, plain, read_model, require_plain_name

TOP = "results"
OF_A_RUN = (
    *(schema.MANIFEST, schema.EXPERIMENT, schema.TOPOLOGY, schema.SAMPLES, schema.SUMMARY, schema.SERIES),
    *(schema.FLOWS, schema.CLAIMS, schema.CERTIFICATE, schema.LOG, schema.REPORT),
)
FOLDERS_OF_A_RUN = (schema.RAW, schema.COURSES, schema.BESIDE, "figures")
"""The files and folders of a run's folder that are put into a bundle; nothing else is."""
OF_SEVERAL_RUNS = (schema.REPORT, *(sweeps.ALL + name for name in sweeps.TABLES))
FOLDERS_OF_SEVERAL_RUNS = ("figures",)
"""The files and folders of a campaign's folder and of a sweep's, beside those of its runs."""
DATED = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the archive: the earliest that ZIP allows."""
MODE = stat.S_IFREG | 0o644
MIB = 1 << 20
_CHUNK = 1 << 16
_END, _LONG_END = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _LONG_END_BYTES, _COMMENT_BYTES = 22, 20, 65535
_SUM = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Limits:
    """The limits of what is read from a bundle."""

    archive_bytes: int = 1024 * MIB
    directory_bytes: int = 16 * MIB
    """The size of the list of its files."""
    files: int = 60_000
    """The number of files; ZIP without extensions allows 65,535."""
    file_bytes: int = LARGEST_BYTES
    all_bytes: int = 4096 * MIB
    depth: int = 5


LIMITS = Limits()
OF_METADATA = Bounds(elements=1_000_000, bytes=32 * MIB)
"""The limits of the metadata, which has some 300 bytes in eight entries for each file."""


def write(directory: Path, target: Path) -> tuple[crate.CrateFile, ...]:
    """Write the run, or the campaign, of `directory` to the new file `target`, and return the files in it.

    The same folder gives the same bytes, with the same zlib. Raises InputError for a folder without runs, for a run
    that has not ended, and where `target` exists.
    """
    runs = store.runs_in(directory)
    if not runs:
        raise InputError(f"{directory}: holds no run; a run's folder has a {schema.MANIFEST}")
    manifests = {_place(directory, each): manifest.read(each) for each in runs}
    for run, found in zip(runs, manifests.values(), strict=True):
        if found.ended is None:
            raise InputError(f"{run}: the run has not ended; first: minigts run --resume {directory}")
    content = {
        f"{_place(directory, each)}/{path.relative_to(each).as_posix()}": path
        for each in runs
        for path in _files(each, OF_A_RUN, FOLDERS_OF_A_RUN)
    }
    above = [directory, *(each.parent for each in runs)] if directory not in runs else []
    content |= {
        f"{_place(directory, each)}/{path.relative_to(each).as_posix()}": path
        for each in dict.fromkeys(above)
        for path in _files(each, OF_SEVERAL_RUNS, FOLDERS_OF_SEVERAL_RUNS)
    }
    name = directory.resolve().name
    return archive(target, content, lambda files: crate.metadata(name, manifests, files))


def archive(
    target: Path, content: Mapping[str, Path], metadata: Callable[[tuple[crate.CrateFile, ...]], str]
) -> tuple[crate.CrateFile, ...]:
    """Write the files of `content`, by their names in the bundle, to the new file `target`, with the metadata that
    `metadata` makes of them; return them. Raises InputError where `target` exists, and for too much."""
    if os.path.lexists(target):
        raise InputError(f"{target}: is there already; name another file with -o")
    files = tuple(_listed(name, path) for name, path in sorted(content.items()))
    _hold_to_limits(target, files)
    try:
        with replacing(target) as made, zipfile.ZipFile(made, "w", allowZip64=False) as packed:
            paths.users_file(made)
            _add(packed, crate.METADATA, io.BytesIO(metadata(files).encode()))
            for each in files:
                with content[each.name].open("rb") as source:
                    _add(packed, each.name, source)
    except zipfile.LargeZipFile as error:
        raise InputError(f"{target}: the results are too large for one bundle: {error}") from error
    except OSError as error:
        raise MinigtsError(f"{target}: cannot be written: {error.strerror or error}") from error
    return files


def _place(directory: Path, run: Path) -> str:
    """Where the files of a folder in `directory` lie in the bundle."""
    return TOP if run == directory else f"{TOP}/{run.relative_to(directory).as_posix()}"


def _files(folder: Path, names: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Path]:
    """The regular files; a symbolic link might lead to a file that should not be published."""
    for path in (*(folder / name for name in names), *(path for name in folders for path in (folder / name).glob("*"))):
        inside(folder, *path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield path


def _listed(name: str, path: Path) -> crate.CrateFile:
    with path.open("rb") as file:
        return crate.CrateFile(name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _hold_to_limits(target: Path, files: tuple[crate.CrateFile, ...]) -> None:
    if len(files) > LIMITS.files or sum(each.size for each in files) > LIMITS.all_bytes:
        raise InputError(
            f"{target}: a bundle has at most {LIMITS.files} files and {LIMITS.all_bytes // MIB} MiB; the results have "
            f"{len(files)} files with {sum(each.size for each in files) // MIB} MiB"
        )
    if large := [each.name for each in files if each.size > LIMITS.file_bytes]:
        raise InputError(
            f"{target}: a file of a bundle has at most {LIMITS.file_bytes // MIB} MiB; {large[0]} has more"
        )


def _add(archive: zipfile.ZipFile, name: str, source: IO[bytes]) -> None:
    entry = zipfile.ZipInfo(name, DATED)
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, MODE << 16
    with archive.open(entry, "w") as target:
        while data := source.read(_CHUNK):
            target.write(data)


# Reading


class _Entity(BaseModel):
    """The parts of the metadata that are checked."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(alias="@id", max_length=1000)
    type: JsonValue = Field(alias="@type", default=None)
    conforms_to: JsonValue = Field(alias="conformsTo", default=None)
    sha256: JsonValue = None


class _Metadata(BaseModel):
    model_config = ConfigDict(extra="ignore")

    graph: Annotated[tuple[_Entity, ...], FailFast()] = Field(alias="@graph")


@contextmanager
def unpack(file: Path, beside: Path, limits: Limits = LIMITS) -> Iterator[Path]:
    """The checked results of the bundle `file`, in a new directory in `beside`, which may be renamed. What is still
    there at the end is removed.

    Raises InputError for a file that is no bundle, or an incomplete one. Problems with its contents that are raised
    while the context is open name the bundle in place of the directory.
    """
    with tempfile.TemporaryDirectory(dir=beside, prefix=".bundle-", ignore_cleanup_errors=True) as temporary:
        into = Path(temporary)
        with open_archive(file, limits, "; minigts bundle makes one of a results folder") as archive:
            _unpack(archive, file, into, limits)
        _check(file, into)
        try:
            yield into / TOP
        except InputError as error:
            told = [replace(each, file=each.file.replace(str(into), str(file), 1)) for each in error.problems]
            raise InputError(told or str(error)) from error


@contextmanager
def open_archive(file: Path, limits: Limits, instead: str = "") -> Iterator[zipfile.ZipFile]:
    """A ZIP archive whose size and list of files are within `limits`. Raises InputError for a broken one, also while
    the context is open. `instead` ends the message for a file that is no ZIP archive."""
    try:
        regular = open_regular(file)
    except NotRegularError as error:
        raise _refusal(file, "is no regular file") from error
    except OSError as error:
        raise InputError([Problem(str(file), 0, f"cannot be read: {error.strerror}")]) from error
    with regular as stream:
        if os.fstat(stream.fileno()).st_size > limits.archive_bytes:
            raise _refusal(file, f"has more than {limits.archive_bytes // MIB} MiB")
        _look_at_the_end(stream, file, limits, instead)
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError, ValueError) as error:
            raise _refusal(file, f"is broken: {plain(str(error))[:200]}") from error
        except OSError as error:
            if error.errno == errno.EINVAL:  # the archive has an offset before the file's beginning
                raise _refusal(file, "is broken: it names a place that no file has") from error
            raise MinigtsError(f"{file}: cannot be unpacked: {error.strerror or error}") from error


def _look_at_the_end(stream: IO[bytes], file: Path, limits: Limits, instead: str) -> None:
    """Raises InputError for a list of files above the limit, because zipfile would read all of it at once."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _END_BYTES - _COMMENT_BYTES - _LONG_END_BYTES))
    tail = stream.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise _refusal(file, f"is no ZIP archive{instead}")
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    if _LONG_END in tail[max(0, at - _LONG_END_BYTES) : at] or listed > limits.directory_bytes:
        raise _refusal(file, f"its list of files is longer than {limits.directory_bytes // MIB} MiB")


def _unpack(archive: zipfile.ZipFile, file: Path, into: Path, limits: Limits) -> None:
    members = [each for each in archive.infolist() if not each.is_dir()]
    if len(members) > limits.files + 1:
        raise _refusal(file, f"holds more than {limits.files} files")
    left = limits.all_bytes
    for member in members:
        place = into.joinpath(*_plain_name(file, member, limits))
        name = plain(member.filename)[:200]
        try:
            paths.users_folder(place.parent, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise _refusal(file, f"{name!r} lies in what is a file") from error
        try:
            target = place.open("xb")
        except FileExistsError as error:
            raise _refusal(file, f"has {name!r} twice") from error
        with target, archive.open(member) as source:
            paths.users_file(target)
            size = 0
            while data := source.read(_CHUNK):
                size += len(data)
                left -= len(data)
                if size > limits.file_bytes:
                    raise _refusal(file, f"{name!r} has more than {limits.file_bytes // MIB} MiB")
                if left < 0:
                    raise _refusal(file, f"holds more than {limits.all_bytes // MIB} MiB")
                target.write(data)


def _plain_name(file: Path, member: zipfile.ZipInfo, limits: Limits) -> tuple[str, ...]:
    """The parts of a member's path. Raises InputError unless it is the metadata's, or a plain path below `results/`."""
    words = tuple(member.filename.split("/"))
    if words != (crate.METADATA,) and (words[0] != TOP or not 2 <= len(words) <= limits.depth):
        raise _refusal(file, f"{plain(member.filename)[:200]!r} is no file of a bundle: those lie in {TOP}/")
    for word in words:
        require_plain_name(file, word)
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        what = "is encrypted, or compressed by another method than deflate"
        raise _refusal(file, f"{plain(member.filename)[:200]!r} {what}")
    return words


def _check(file: Path, into: Path) -> None:
    """Raises InputError unless the unpacked files are those of the metadata."""
    path = into / crate.METADATA
    if not path.is_file():
        raise _refusal(file, f"holds no {crate.METADATA}; minigts bundle makes a bundle of a results folder")
    try:
        graph = read_model(path, _Metadata, raw=True, bounds=OF_METADATA).graph
    except InputError as error:
        told = [Problem(f"{file}/{crate.METADATA}", each.line, each.message) for each in error.problems]
        raise InputError(told or str(error)) from error
    if not any(each.id == crate.METADATA and each.conforms_to == {"@id": crate.PROFILE} for each in graph):
        raise _refusal(file, f"its {crate.METADATA} is of no RO-Crate 1.1")
    files = [each for each in graph if each.type == "File"]
    sums = {each.id: each.sha256 for each in files}
    if len(sums) != len(files):
        raise _refusal(file, f"its {crate.METADATA} names a file twice")
    there = {each.relative_to(into).as_posix(): each for each in sorted(into.rglob("*")) if each.is_file()}
    del there[crate.METADATA]
    wrong = [f"{name!r} is not in its metadata" for name in there if name not in sums]
    wrong += [f"{plain(name)[:200]!r} is missing" for name in sums if name not in there]
    wrong += [
        f"{name!r} is not what its sum says"
        for name, place in there.items()
        if name in sums and not _has_sum(place, sums[name])
    ]
    if wrong:
        more = f", and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise _refusal(file, f"is not whole: {', '.join(wrong[:5])}{more}")
    if not (into / TOP).is_dir():
        raise _refusal(file, "holds no results")


def _has_sum(place: Path, wanted: JsonValue) -> bool:
    with place.open("rb") as opened:
        own = hashlib.file_digest(opened, "sha256").hexdigest()
    return isinstance(wanted, str) and _SUM.fullmatch(wanted) is not None and own == wanted


def _refusal(file: Path, why: str) -> InputError:
    return InputError([Problem(str(file), 0, why)])


def tables(directory: Path) -> dict[str, bytes]:
    """The contents of the files that equal runs in virtual time have byte for byte, by their paths."""
    names = (schema.SAMPLES, schema.SUMMARY, schema.CLAIMS)
    places = (each / name for each in store.runs_in(directory) for name in names)
    return {
        PurePosixPath(path.relative_to(directory)).as_posix(): path.read_bytes() for path in places if path.exists()
    }
