"""Programs that are in no package and no module registry: the user supplies them.

For the overlay `weave` the user sets MINIGTS_WEAVE to one of these, or puts one at `<data root>/weave`; for
`calico-node`, by the first word of its name, MINIGTS_CALICO and `<data root>/calico`:

- a directory that contains the programs
- a tar archive with the programs anywhere in it; `docker save` archives of images, also nested, are searched, too
- an http or https address of such an archive

Archives may be compressed by gzip, bzip2 or xz. If MINIGTS_WEAVE_SHA256 is set, the archive must have that sum, which
is checked before anything is unpacked. An archive is read to its end, checksums included, within `Limits`; nothing of a
broken archive is kept. Only regular files are taken, and those that a hard link names in the same archive. Programs for
other kinds of processor, which a release may also contain, are skipped.

The programs are kept in `<cache root>/programs/<hash of their content>`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from minigts import paths
from minigts.artifacts import downloads, tar_stream
from minigts.artifacts.downloads import DownloadRefused, fetch, is_address, public_place
from minigts.errors import EnvironmentLacks, InputError
from minigts.machine.progress import Progress

MIB, GIB = 1 << 20, 1 << 30
_ELF_BYTES, _ELF_MACHINE = 20, slice(18, 20)
"""The length of the part of an ELF header that is read, and the position of the processor in it: see elf(5)."""


@dataclass(frozen=True)
class SuppliedLimits:
    """The most that is taken from a download or an archive; a whole release of Calico needs less than half of each."""

    download: downloads.DownloadLimits = downloads.LIMITS
    unpacked_bytes: int = 16 * GIB
    """All archives together; the content of a nested archive counts again for each archive around it."""
    members: int = 500_000
    header_bytes: int = MIB
    """The headers of one member, with its long names."""
    depth: int = 4
    """The levels of nested archives: a release, an image in it, a layer of that, and one to spare."""
    program_bytes: int = GIB
    programs_bytes: int = 2 * GIB


LIMITS = SuppliedLimits()


def take(overlay: str, wanted: Collection[str], progress: Progress, limits: SuppliedLimits = LIMITS) -> Path:
    """The directory with the `wanted` programs of that overlay. Raises EnvironmentLacks with the remedy when they are
    not all there, and InputError for an invalid SHA-256 sum."""
    place = os.environ.get(variable(overlay)) or str(_own_place(overlay))
    sha256 = _sum_wanted(overlay, place)
    try:
        with _workshop() as taken:
            _collect(place, sha256, _Harvest(frozenset(wanted), taken, limits), progress)
            ready = (
                paths.cache_root()
                / "programs"
                / paths.content_key((path.name, path) for path in sorted(taken.iterdir()))
            )
            if not ready.is_dir():
                taken.rename(ready)
    except DownloadRefused as error:
        raise EnvironmentLacks(f"{public_place(place)}: {error}\n{remedy(overlay, wanted)}") from error
    except OSError as error:
        where = paths.cache_root()
        raise EnvironmentLacks(
            f"{public_place(place)}: cannot be kept in {where}: {tar_stream.reason(error)}\n"
            f"make room there, or set MINIGTS_CACHE to a directory that you can write to"
        ) from error
    return ready


def is_there(overlay: str) -> bool:
    """Whether the user has supplied something for that overlay; only `take` reads it."""
    return bool(os.environ.get(variable(overlay))) or _own_place(overlay).exists()


def variable(overlay: str) -> str:
    """The environment variable that names the place of an overlay's programs."""
    return f"MINIGTS_{_key(overlay).upper()}"


def _own_place(overlay: str) -> Path:
    return paths.data_root() / _key(overlay)


def _key(overlay: str) -> str:
    """The first word of the overlay's name, since a variable's name has no hyphen."""
    return overlay.partition("-")[0]


def _sum_wanted(overlay: str, place: str) -> str | None:
    name = f"{variable(overlay)}_SHA256"
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return None
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InputError(
            f"{name}={text[:80]!r}: a SHA-256 sum is 64 digits and letters a to f; sha256sum FILE prints it"
        )
    if not is_address(place) and Path(place).is_dir():
        raise InputError(f"{name} is for an archive, and {place} is a directory; leave it out, or name an archive")
    return text


def remedy(overlay: str, wanted: Collection[str]) -> str:
    """The message that says which programs that overlay needs, and where to put them."""
    return (
        f"{overlay} needs its own programs {', '.join(wanted)}, which minigts does not contain: put them into "
        f"{_own_place(overlay)}, or set {variable(overlay)} to a directory, an archive (tar, or what "
        f"`docker save` writes), or the http(s) address of an archive that holds them"
    )


@contextmanager
def _workshop() -> Iterator[Path]:
    """An empty directory in the cache, for one command at a time; directories that a crash has left are removed."""
    programs = paths.cache_root() / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    with (programs / "taking.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process that holds it
        for left in programs.glob("taking-*"):
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(dir=programs, prefix="taking-") as temporary:
            taken = Path(temporary) / "taken"
            taken.mkdir()
            yield taken


# From a place to programs


def _collect(place: str, sha256: str | None, harvest: _Harvest, progress: Progress) -> None:
    """Collect every wanted program from the place. Raises Refused when one is missing there, and OSError when one
    cannot be kept."""
    if is_address(place):
        progress(f"fetching {public_place(place)}")
        with tempfile.TemporaryFile(dir=harvest.into.parent) as fetched:
            fetch(place, fetched, harvest.limits.download)
            _from_archive(fetched, sha256, harvest)
    elif Path(place).is_dir():
        for name in sorted(harvest.wanted):
            if (Path(place) / name).exists():
                with _regular(Path(place) / name) as program:
                    harvest.keep(name, tar_stream.chunks(program))
    else:
        with _regular(Path(place)) as archive:
            _from_archive(archive, sha256, harvest)
    lacking = sorted(harvest.wanted - {path.name for path in harvest.into.iterdir()})
    if lacking:
        links = "".join(
            f"; {name} is a hard link to {target!r}, which is not a file of the same archive"
            for name, (_, target) in sorted(harvest.links.items())
            if name in lacking
        )
        raise DownloadRefused(f"holds no {', '.join(lacking)}{links}")


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file. Raises Refused for anything else."""
    try:
        return paths.open_regular(path)
    except OSError as error:
        raise DownloadRefused(tar_stream.reason(error)) from error


def _from_archive(file: IO[bytes], sha256: str | None, harvest: _Harvest) -> None:
    if sha256 is not None:
        file.seek(0)
        own = _digest(file)
        if own != sha256:
            raise DownloadRefused(f"its SHA-256 sum is {own}, not {sha256}")
    harvest.read(file)
    if set(harvest.links) - {path.name for path in harvest.into.iterdir()}:
        harvest.follow_links()
        harvest.read(file)


@dataclass
class _Harvest:
    """The programs that are wanted and those found so far. A later program replaces an earlier one of the same name, as
    in the layers of an image."""

    wanted: frozenset[str]
    into: Path
    limits: SuppliedLimits
    links: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    """Programs that are hard links: name -> the archives around it, from the outermost, and the link's target there."""
    _targets: dict[tuple[tuple[str, ...], str], list[str]] = field(default_factory=dict)
    _unpacked = _members = _kept = 0

    def follow_links(self) -> None:
        """Have the next reading look for the targets of hard links, for programs that are not there as files."""
        for name, target in self.links.items():
            if not (self.into / name).exists():
                self._targets.setdefault(target, []).append(name)

    def read(self, file: IO[bytes]) -> None:
        file.seek(0)
        self._unpacked = self._members = self._kept = 0
        chunks, is_archive = self._unwrapped(tar_stream.chunks(file))
        if not is_archive:
            raise DownloadRefused("is no tar archive, uncompressed or compressed by gzip, bzip2 or xz")
        self._read_archive(chunks, ())

    def keep(self, name: str, content: Iterator[bytes]) -> None:
        """Write a program, unless it is for another kind of processor."""
        start, content = tar_stream.head(content, _ELF_BYTES)
        with Path("/proc/self/exe").open("rb") as interpreter:
            own = interpreter.read(_ELF_BYTES)
        if start[:4] == own[:4] and start[_ELF_MACHINE] != own[_ELF_MACHINE]:
            return
        size = 0
        with (self.into / name).open("wb") as target:
            for data in content:
                size += len(data)
                self._kept += len(data)
                if size > self.limits.program_bytes:
                    raise DownloadRefused(f"its {name} is larger than {downloads.size(self.limits.program_bytes)}")
                if self._kept > self.limits.programs_bytes:
                    raise DownloadRefused(
                        f"its programs are larger than {downloads.size(self.limits.programs_bytes)} together"
                    )
                target.write(data)
        (self.into / name).chmod(0o755)

    def _read_archive(self, content: Iterator[bytes], around: tuple[str, ...]) -> None:
        for member, part in tar_stream.members(content, self.limits.header_bytes, around):
            self._members += 1
            if self._members > self.limits.members:
                raise DownloadRefused(f"holds more than {self.limits.members} files")
            self._look_at(member, part, around)

    def _look_at(self, member: tarfile.TarInfo, part: Iterator[bytes], around: tuple[str, ...]) -> None:
        name = PurePosixPath(member.name)
        programs = [name.name] if name.name in self.wanted else []
        if programs and member.islnk():
            self.links[name.name] = (around, str(PurePosixPath(member.linkname)))
        elif member.isreg() and not member.issparse():
            programs = self._targets.get((around, str(name)), programs)
            if programs:
                self._keep_as(programs, part)
            elif name.suffix == ".tar" or "blobs" in name.parts:
                self._look_into(str(name), part, around)

    def _keep_as(self, names: Sequence[str], content: Iterator[bytes]) -> None:
        first, *others = names
        self.keep(first, content)
        for other in others:
            if (self.into / first).exists():
                with (self.into / first).open("rb") as program:
                    self.keep(other, tar_stream.chunks(program))

    def _look_into(self, name: str, content: Iterator[bytes], around: tuple[str, ...]) -> None:
        """Read a nested archive: an image or a layer. A blob may also be a document of the image, which is skipped."""
        chunks, is_archive = self._unwrapped(content)
        if is_archive and len(around) + 1 >= self.limits.depth:
            raise DownloadRefused(f"its archives are nested more than {self.limits.depth} deep")
        if is_archive:
            self._read_archive(chunks, (*around, name))

    def _unwrapped(self, content: Iterator[bytes]) -> tuple[Iterator[bytes], bool]:
        """The content, decompressed if necessary and counted, and whether it begins like a tar archive."""
        chunks, is_archive = tar_stream.decompress(content)
        return self._counted(chunks), is_archive

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for data in chunks:
            self._unpacked += len(data)
            if self._unpacked > self.limits.unpacked_bytes:
                raise DownloadRefused(f"unpacks to more than {downloads.size(self.limits.unpacked_bytes)}")
            yield data


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    for data in tar_stream.chunks(file):
        digest.update(data)
    return digest.hexdigest()
