"""The sources that a kernel is compiled from: Debian's package, an archive, a directory, or a git repository.

A source lists its files with a stamp each, which differs where a file may differ from an earlier build's, and reads
those that are wanted. Nothing of a source is run here, and no file of it is opened through a link.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal, Protocol

from minigts import paths
from minigts.artifacts import sources
from minigts.artifacts.build_errors import cause
from minigts.artifacts.kernels import KernelRequest, SourceFacts
from minigts.errors import CommandFailed, EnvironmentLacks, InputError
from minigts.foreign import one_line
from minigts.language import documents
from minigts.language.documents import Bounds
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.uml.build import kernel_build

GIT_TIMEOUT_S = 3600.0
LARGEST_FILE_BYTES = 100_000_000
LISTED = Bounds(elements=2_000_000, bytes=100_000_000)
"""The bounds of a list of the files of a tree, of which Linux has a hundred thousand."""
COMPILED = (".config", "vmlinux", "include/generated")
"""What a directory has in which a kernel was compiled: its objects would be taken for those of this build."""
OBJECT = re.compile(r".*\.(o|ko|a|cmd|orig|rej)|(.*/)?\.git(/.*)?")
_ADDRESS = re.compile(r"(https?|git|ssh|file)://[^\s]+", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40,64}")

Mode = Literal["plain", "executable", "link"]


@dataclass(frozen=True)
class SourceFile:
    """A file of a source."""

    mode: Mode
    stamp: str
    """Two files of one path with the same stamp have the same content."""


class SourceTree(Protocol):
    """A kernel's sources, opened."""

    @property
    def facts(self) -> SourceFacts: ...

    @property
    def identity(self) -> str:
        """Differs from every other source's, where the content may; empty where only the files can tell."""
        ...

    @property
    def version(self) -> str:
        """The version of Debian's package; empty where only the sources have one."""
        ...

    def files(self) -> Mapping[str, SourceFile]:
        """Every file, by its path in the source."""
        ...

    def contents(self, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """These files with their content, in any order; of a link what it points to."""
        ...


@contextmanager
def open_tree(asked: KernelRequest, say: Progress) -> Iterator[SourceTree]:
    """The source that was asked for. Raises InputError for one that is none, EnvironmentLacks for one that cannot be
    had."""
    text = asked.source
    place = Path(text).absolute()
    if asked.commit or _ADDRESS.fullmatch(text) or (text and _is_bare(place)):
        yield _repository(text, asked.commit, say)
    elif text and place.is_dir():
        yield _Directory.of(place)
    elif text and place.is_file() and not _is_deb(place):
        yield _Archive(place, SourceFacts(kind="archive", place=str(place), sha256=_sum(place)))
    else:
        yield _of_debian(text, say)


def proven(say: Progress) -> SourceTree:
    """The sources on which minigts' patches were proven, from which they are merged into others."""
    return _of_debian("", say)


def _of_debian(text: str, say: Progress) -> SourceTree:
    """Debian's package, of a version or from a file; empty for the best proven version. It is kept in the cache."""
    recipe = kernel_build.recipe()
    wanted = sources.parse_source(recipe, text, unproven=True) if text else None
    version = wanted.version.removesuffix(sources.UNPROVEN).strip() if wanted else sources.read(recipe)[0].version
    store = paths.cache_root() / "kernel-sources"
    key = hashlib.sha256((text or version).encode()).hexdigest()[:16]
    kept = store / key
    if wanted is not None and "/" in wanted.source:
        kept = store / _sum(Path(wanted.source))[:16]
    if not kept.is_dir():
        say(f"fetching the sources of Linux {version}".rstrip())
        _fetch(recipe, kept, wanted)
    version = (kept / "version").read_text(encoding="utf-8").strip()
    facts = SourceFacts(kind="debian", place=version or text, sha256=_sum(kept / "source.tar"))
    return _Archive(kept / "source.tar", facts, version)


def _fetch(recipe: Path, kept: Path, wanted: sources.Wanted | None) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    place = kept.with_name(f"fetching-{kept.name}-{os.getpid()}")
    place.mkdir()
    try:
        argv = [str(recipe.parent / "fetch.sh"), str(recipe / sources.TABLE), str(place), "minigts kernel build NAME"]
        shell.run_group(argv, timeout_s=GIT_TIMEOUT_S, env=wanted.settings if wanted else {})
        if (place / "source.deb").exists():
            _take_out(place)
        place.rename(kept)
    except CommandFailed as error:
        raise EnvironmentLacks(f"the kernel's sources cannot be had: {cause(error.out, 'half a GB')}") from error
    finally:
        paths.remove_tree(place)


def _take_out(place: Path) -> None:
    """Take the archive out of Debian's package."""
    with (place / "source.tar").open("wb") as target:
        unpacking = shell.start(
            ["dpkg-deb", "--fsys-tarfile", str(place / "source.deb")], output=subprocess.PIPE, errors=subprocess.DEVNULL
        )
        assert unpacking.stdout is not None
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as package:
                for member in package:
                    if re.fullmatch(r"\./usr/src/linux-source-[^/]*\.tar\.[a-z0-9]+", member.name) and member.isfile():
                        taken = package.extractfile(member)
                        assert taken is not None, "it is a file"
                        while block := taken.read(1 << 20):
                            target.write(block)
        except tarfile.TarError as error:
            raise InputError(f"{place.name}: no package of Debian's with a kernel's sources: {error}") from error
        finally:
            unpacking.stdout.close()
            shell.kill_group(unpacking)
    if not (place / "source.tar").stat().st_size:
        raise InputError("the package has no archive of a kernel's sources")
    (place / "source.deb").unlink()


@dataclass(frozen=True)
class _Archive:
    """A tar archive; all of it is below one directory."""

    place: Path
    facts: SourceFacts
    version: str = ""

    @property
    def identity(self) -> str:
        return self.facts.sha256

    def files(self) -> Mapping[str, SourceFile]:
        """As of `SourceTree`. Of an archive in the cache they are kept beside it, since all of it has to be read."""
        kept = self.place.with_name(f"{self.place.name}.files")
        if not self.place.is_relative_to(paths.cache_root()):
            return self._files()
        try:
            known = documents.document(paths.read_whole(kept, LISTED.bytes), LISTED)
            return {path: SourceFile(mode, stamp) for path, (mode, stamp) in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            found = self._files()
            paths.write_whole(kept, json.dumps({path: [file.mode, file.stamp] for path, file in found.items()}))
            return found

    def _files(self) -> Mapping[str, SourceFile]:
        found = {}
        for path, member, content in self._members(None):
            mode: Mode = "link" if member.issym() else "executable" if member.mode & 0o100 else "plain"
            found[path] = SourceFile(mode, hashlib.sha256(content).hexdigest()[:32])
        return found

    def contents(self, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for path, _, content in self._members(frozenset(wanted)):
            yield path, content

    def _members(self, wanted: frozenset[str] | None) -> Iterator[tuple[str, tarfile.TarInfo, bytes]]:
        try:
            with tarfile.open(self.place) as archive:
                for member in archive:
                    path = str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
                    if path == "." or member.isdir() or (wanted is not None and path not in wanted):
                        continue
                    _require_inside(path)
                    if member.issym():
                        yield path, member, member.linkname.encode()
                    elif (file := archive.extractfile(member)) is not None:
                        yield path, member, _all_of(file, path)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise InputError(f"--source {self.place}: no archive that can be read: {error}") from error


@dataclass(frozen=True)
class _Directory:
    """A directory as it is. Of a git working tree these are the files that git knows or would add."""

    place: Path
    facts: SourceFacts
    version: str = ""
    identity: str = ""

    @classmethod
    def of(cls, place: Path) -> _Directory:
        if not (place / "Makefile").is_file() or not (place / "arch" / "um").is_dir():
            raise InputError(f"--source {place}: holds no sources of Linux: there is no Makefile, or no arch/um")
        commit, changed = "", False
        if (place / ".git").exists():
            commit = _git(place, "rev-parse", "HEAD").strip()
            changed = bool(_git(place, "status", "--porcelain").strip())
        elif there := [each for each in COMPILED if (place / each).exists()]:
            raise InputError(
                f"--source {place}: a kernel was compiled there ({there[0]}), and its objects would be taken for this "
                "one's: make mrproper, or name a git working tree"
            )
        return cls(place, SourceFacts(kind="directory", place=str(place), commit=commit, changed=changed))

    def files(self) -> Mapping[str, SourceFile]:
        found = {}
        for path in self._paths():
            status = os.lstat(self.place / path)
            if stat.S_ISLNK(status.st_mode):
                found[path] = SourceFile("link", str((self.place / path).readlink()))
            elif stat.S_ISREG(status.st_mode):
                mode: Mode = "executable" if status.st_mode & 0o100 else "plain"
                found[path] = SourceFile(mode, f"{status.st_size}.{status.st_mtime_ns}")
        return found

    def _paths(self) -> Iterator[str]:
        if self.facts.commit:
            listed = _git(self.place, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
            yield from (path for path in listed.split("\0") if path and os.path.lexists(self.place / path))
            return
        for above, _, names in os.walk(self.place):
            for name in names:
                path = (Path(above) / name).relative_to(self.place).as_posix()
                if OBJECT.fullmatch(path) is None:
                    yield path

    def contents(self, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for path in wanted:
            place = self.place / path
            if place.is_symlink():
                yield path, str(place.readlink()).encode()
            else:
                with paths.open_regular(place, os.O_NOFOLLOW) as file:
                    yield path, _all_of(file, path)


@dataclass(frozen=True)
class _Commit:
    """A commit of a git repository; nothing of it is checked out."""

    repository: Path
    facts: SourceFacts
    version: str = ""

    @property
    def identity(self) -> str:
        return self.facts.commit

    def files(self) -> Mapping[str, SourceFile]:
        found = {}
        for line in _git(self.repository, "ls-tree", "-r", "-z", "--full-tree", self.facts.commit).split("\0"):
            if not line:
                continue
            about, path = line.split("\t", 1)
            mode, kind, blob = about.split()
            _require_inside(path)
            if kind == "blob":
                words: dict[str, Mode] = {"120000": "link", "100755": "executable"}
                found[path] = SourceFile(words.get(mode, "plain"), blob)
        return found

    def contents(self, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        blobs, several = self.files(), list(wanted)
        # git holds answers back until it has many of them or its input ends, so it gets the whole input as a file.
        with tempfile.TemporaryFile() as asked:
            asked.write("".join(f"{blobs[path].stamp}\n" for path in several).encode())
            asked.seek(0)
            answering = shell.start(
                [*_argv(self.repository), "cat-file", "--batch", "--buffer"],
                output=subprocess.PIPE,
                errors=subprocess.DEVNULL,
                stdin=asked,
            )
        try:
            assert answering.stdout is not None
            yield from ((path, _blob(answering.stdout, path)) for path in several)
        finally:
            shell.kill_group(answering)


def _blob(said: IO[bytes], path: str) -> bytes:
    head = said.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        raise InputError(f"--source: git does not give {path[:200]}")
    content = said.read(int(head[2]))
    said.read(1)
    return content


def _repository(text: str, commit: str, say: Progress) -> SourceTree:
    if _ADDRESS.fullmatch(text):
        place = paths.cache_root() / "kernel-sources" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.git"
        if not place.is_dir():
            place.mkdir(parents=True)
            _git(place, "init", "--quiet", "--bare")
        say(f"fetching {commit or 'the newest commit'} of {text}")
        _git(place, "fetch", "--quiet", "--depth=1", "--no-tags", "--", text, commit or "HEAD")
        named = "FETCH_HEAD"
    else:
        place, named = Path(text).absolute(), commit or "HEAD"
        if not text or not place.is_dir():
            raise InputError(f"--commit {commit}: --source names the git repository that has it, and {text!r} is none")
    if named.startswith("-"):
        raise InputError(f"--commit {named}: no name of a commit")
    found = _git(place, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}").strip()
    if _COMMIT.fullmatch(found) is None:
        raise InputError(f"--source {text}: it has no commit {named}")
    return _Commit(place, SourceFacts(kind="git", place=text, commit=found))


def _argv(repository: Path) -> list[str]:
    """git, with nothing of the repository's own settings that starts programs."""
    off = ("protocol.ext.allow=never", "core.fsmonitor=false", "core.hooksPath=/dev/null", "maintenance.auto=false")
    return ["git", "-C", str(repository), *(word for each in off for word in ("-c", each))]


def _git(repository: Path, *words: str) -> str:
    try:
        return shell.run([*_argv(repository), *words], timeout_s=GIT_TIMEOUT_S).stdout
    except CommandFailed as error:
        raise InputError(f"--source {repository}: git {words[0]}: {one_line(error.err, 300) or 'it fails'}") from error


def _is_bare(place: Path) -> bool:
    return (place / "HEAD").is_file() and (place / "objects").is_dir()


def _is_deb(place: Path) -> bool:
    with place.open("rb") as file:
        return file.read(8) == b"!<arch>\n"


def _sum(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _all_of(file: IO[bytes], path: str) -> bytes:
    content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise InputError(f"--source: {path[:200]} has more than {LARGEST_FILE_BYTES >> 20} MB")
    return content


def _require_inside(path: str) -> None:
    if path.startswith("/") or ".." in PurePosixPath(path).parts or "\n" in path:
        raise InputError(f"--source: {path[:200]!r} is no path of a file in a tree of sources")
