"""Reads what students hand in: folders of lessons and transcripts of incidents, as they are or in a ZIP or tar archive.
None of it is trusted.

Only files with names that a lesson or a transcript uses are read, into memory and within `Limits`. No name in an
archive becomes a path here, no link is followed, nothing is unpacked to disk, and nothing is run.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from minigts import paths
from minigts.errors import InputError, MinigtsError
from minigts.foreign import printable
from minigts.language.problems import quote
from minigts.lessons import evidence_file, folder, model
from minigts.machine import beneath
from minigts.results import bundle

TRANSCRIPT = re.compile(r"(arena-)?[a-z]{1,20}-[0-9]{1,4}(-[A-Za-z0-9_.-]{1,60})?\.jsonl")
"""The name of an incident's transcript: `arena-routes-5.jsonl`, `routes-5.jsonl`, or with who played behind it."""
PACKED = (".tar.gz", ".tgz", ".tar", ".zip")
_SLASH = re.compile(r"[/\\]")
_BLOCK = tarfile.BLOCKSIZE
_CARRY_NO_DATA = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)


@dataclass(frozen=True)
class SubmissionLimits:
    """How much is read of one student."""

    archive_bytes: int = 10 << 20
    unpacked_bytes: int = 40 << 20
    """The size of a tar archive once unpacked by gzip."""
    files: int = 2000
    file_bytes: int = 100_000
    all_bytes: int = 2_000_000
    """The size of all files of lessons that are read."""
    transcript_bytes: int = 5_000_000
    all_transcripts_bytes: int = 30_000_000
    transcripts: int = 60
    depth: int = 6


LIMITS = SubmissionLimits()


@dataclass(frozen=True)
class Handed:
    """The submission of one student: each lesson's folder by its path, with the content of its files by name."""

    student: str
    folders: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    transcripts: Mapping[str, bytes] = field(default_factory=dict)
    """Each transcript of an incident by its path."""
    problem: str | None = None
    """Why the submission could not be read; None: it could."""


@cache
def known_names() -> frozenset[str]:
    """The names of the files that are read."""
    of_lessons = {name for each in model.all_lessons() for name in each.lesson.files}
    return frozenset({folder.RECORD, folder.PREDICTION, folder.ANSWERS, evidence_file.FILE, *of_lessons})


def _is_known(name: str) -> bool:
    return name in known_names() or TRANSCRIPT.fullmatch(name) is not None


def students(directory: Path, limits: SubmissionLimits = LIMITS) -> Iterator[Handed]:
    """Each entry of a directory as one student's submission, in the order of names; hidden entries are left out.

    Raises InputError when `directory` cannot be read. A bad entry has a `problem`.
    """
    try:
        entries = sorted((each for each in os.scandir(directory) if each.name[0] != "."), key=lambda each: each.name)
    except OSError as error:
        raise InputError(f"{directory}: cannot be read: {error.strerror}") from None
    for entry in entries:
        student = next((entry.name.removesuffix(end) for end in PACKED if entry.name.endswith(end)), entry.name)
        try:
            yield Handed(student, *_sorted(_of(entry, limits), limits))
        except MinigtsError as error:
            yield Handed(student, problem=_within(error, directory))


def _within(error: MinigtsError, directory: Path) -> str:
    return str(error).replace(f"{directory}{os.sep}", "")


def _of(entry: os.DirEntry[str], limits: SubmissionLimits) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """The files of known names: the parts of each one's path, and its content."""
    if entry.is_symlink():
        raise InputError(f"{entry.name} is a link, and links are not followed")
    if entry.is_dir(follow_symlinks=False):
        return _of_directory(Path(entry.path), limits)
    if entry.name.endswith(".zip"):
        return _of_zip(Path(entry.path), limits)
    if entry.name.endswith(PACKED):
        return _of_tar(Path(entry.path), limits)
    raise InputError(f"{entry.name} is neither a folder nor one of {', '.join(PACKED)}")


def _most(name: str, limits: SubmissionLimits) -> int:
    """How many bytes a file of that name may have."""
    return limits.file_bytes if name in known_names() else limits.transcript_bytes


def _sorted(
    files: Iterator[tuple[tuple[str, ...], bytes]], limits: SubmissionLimits
) -> tuple[Mapping[str, Mapping[str, bytes]], Mapping[str, bytes]]:
    """The files of lessons by folder, only of folders with a lesson.yaml; and transcripts by path."""
    found: dict[str, dict[str, bytes]] = {}
    transcripts: dict[str, bytes] = {}
    of_lessons = of_incidents = 0
    for (*place, name), content in files:
        if len(content) > (most := _most(name, limits)):
            raise InputError(f"{quote(name)} has more than {most // 1000} kB")
        if name in known_names():
            within, key = found.setdefault("/".join(place), {}), name
            of_lessons += len(content)
        else:
            within, key = transcripts, "/".join((*place, name))
            of_incidents += len(content)
        if of_lessons > limits.all_bytes:
            raise InputError(f"the files of its lessons have more than {limits.all_bytes // 1000} kB")
        if of_incidents > limits.all_transcripts_bytes:
            raise InputError(f"its transcripts have more than {limits.all_transcripts_bytes // 1000} kB")
        if key in within:
            raise InputError(f"has {quote(name)} twice")
        within[key] = content
        if len(transcripts) > limits.transcripts:
            raise InputError(f"holds more than {limits.transcripts} transcripts")
    lessons = {place: within for place, within in sorted(found.items()) if folder.RECORD in within}
    if not lessons and not transcripts:
        raise InputError(
            f"holds no lesson's folder, which has a {folder.RECORD}, and no incident's transcript, such as "
            "arena-routes-5.jsonl"
        )
    return lessons, dict(sorted(transcripts.items()))


def _of_directory(directory: Path, limits: SubmissionLimits) -> Iterator[tuple[tuple[str, ...], bytes]]:
    seen = 0
    for place, folders, files in os.walk(directory):  # into no link
        words = Path(place).relative_to(directory).parts
        seen += len(files) + len(folders)
        if seen > limits.files:
            raise InputError(f"holds more than {limits.files} files")
        if len(words) + 1 >= limits.depth:
            folders.clear()
        for name in filter(_is_known, sorted(files)):
            try:
                yield (*words, name), beneath.read(directory, "/".join((*words, name)), _most(name, limits))
            except OSError as error:
                raise InputError(f"{quote(name)} cannot be read: {error.strerror or error}") from None


def _of_zip(file: Path, limits: SubmissionLimits) -> Iterator[tuple[tuple[str, ...], bytes]]:
    allowed = bundle.Limits(archive_bytes=limits.archive_bytes, directory_bytes=1 << 20)
    with bundle.open_archive(file, allowed) as archive:
        members = archive.infolist()
        if len(members) > limits.files:
            raise InputError(f"holds more than {limits.files} files")
        for member in members:
            words = _words(member.filename, limits)
            if not _is_known(words[-1]) or member.is_dir():
                continue
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
                raise InputError(f"{quote(member.filename)} is no regular file")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(f"{quote(member.filename)} is encrypted, or compressed by another method than deflate")
            with archive.open(member) as source:
                yield words, source.read(_most(words[-1], limits) + 1)


def _of_tar(file: Path, limits: SubmissionLimits) -> Iterator[tuple[tuple[str, ...], bytes]]:
    for count, (member, content) in enumerate(_members(_tar(file, limits))):
        if count > limits.files:
            raise InputError(f"holds more than {limits.files} files")
        words = _words(member.name, limits)
        if not _is_known(words[-1]) or member.isdir():
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise InputError(f"{quote(member.name)} is no regular file")
        yield words, content


def _tar(file: Path, limits: SubmissionLimits) -> bytes:
    """The content of a tar archive, unpacked if it is compressed by gzip. Raises InputError."""
    try:
        with paths.open_regular(file, os.O_NOFOLLOW) as opened:
            if os.fstat(opened.fileno()).st_size > limits.archive_bytes:
                raise InputError(f"{file.name} has more than {limits.archive_bytes >> 20} MiB")
            packed = opened.read(2) == b"\x1f\x8b"
            opened.seek(0)
            with gzip.GzipFile(fileobj=opened) if packed else opened as source:
                content = source.read(limits.unpacked_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file.name} cannot be unpacked: {printable(str(error))[:200]}") from None
    if len(content) > limits.unpacked_bytes:
        raise InputError(f"{file.name} holds more than {limits.unpacked_bytes >> 20} MiB")
    return content


def _members(archive: bytes) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """The headers of an archive in order, each with its data. Extended headers are members like all others, and their
    names are never read. Python's own reader would trust them for how much to read, and where.
    """
    at = 0
    while any(block := archive[at : at + _BLOCK]):
        try:
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise InputError(f"is no whole tar archive: {printable(str(error))[:200]}") from None
        at += _BLOCK
        size = 0 if member.type in _CARRY_NO_DATA else member.size
        if not 0 <= size <= len(archive) - at:
            raise InputError(f"is no whole tar archive: {quote(member.name)} ends behind its end")
        yield member, archive[at : at + size]
        at += -(-size // _BLOCK) * _BLOCK


def _words(name: str, limits: SubmissionLimits) -> tuple[str, ...]:
    """The parts of a path in an archive of any system; `.` for a path that is too deep. Raises InputError for one that
    leads out of the archive."""
    words = tuple(word for word in _SLASH.split(name) if word not in ("", "."))
    if _SLASH.match(name) or ".." in words or "\0" in name:
        raise InputError(f"{quote(name)} leads out of the archive")
    return words if 0 < len(words) <= limits.depth else (".",)
