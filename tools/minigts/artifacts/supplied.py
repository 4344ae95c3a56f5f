"""Programs that are in no package and no module registry: the user supplies them.

For the overlay `weave` the user sets MINIGTS_WEAVE to one of these, or puts one at `<data root>/weave`; for
`calico-node`, by the first word of its name, MINIGTS_CALICO and `<data root>/calico`:

- a directory that contains the programs
- a tar archive with the programs anywhere in it, plain or compressed by gzip, bzip2 or xz

An archive is read to its end, checksums included, within `Limits`; nothing of a broken archive is kept. Only regular
files are taken, and those that a hard link names in the archive. Programs for other kinds of processor, which a release
may also contain, are skipped.

The programs are kept in `<cache root>/programs/<hash of their content>`.
"""

from __future__ import annotations

import fcntl
import os
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
from minigts.artifacts.downloads import DownloadRefused
from minigts.errors import EnvironmentLacks

MIB, GIB = 1 << 20, 1 << 30
_ELF_BYTES, _ELF_MACHINE = 20, slice(18, 20)
"""The length of the part of an ELF header that is read, and the position of the processor in it: see elf(5)."""


@dataclass(frozen=True)
class SuppliedLimits:
    """The most that is taken from an archive; what Calico's images hold needs less than half of each."""

    unpacked_bytes: int = 16 * GIB
    members: int = 500_000
    header_bytes: int = MIB
    """The headers of one member, with its long names."""
    program_bytes: int = GIB
    programs_bytes: int = 2 * GIB


LIMITS = SuppliedLimits()


def take(overlay: str, wanted: Collection[str], limits: SuppliedLimits = LIMITS) -> Path:
    """The directory with the `wanted` programs of that overlay. Raises EnvironmentLacks with the remedy when they are
    not all there."""
    place = Path(os.environ.get(variable(overlay)) or _own_place(overlay))
    try:
        with _workshop() as taken:
            _collect(place, _Harvest(frozenset(wanted), taken, limits))
            ready = (
                paths.cache_root()
                / "programs"
                / paths.content_key((path.name, path) for path in sorted(taken.iterdir()))
            )
            if not ready.is_dir():
                taken.rename(ready)
    except DownloadRefused as error:
        raise EnvironmentLacks(f"{downloads.plain(str(place))}: {error}\n{remedy(overlay, wanted)}") from error
    except OSError as error:
        where = paths.cache_root()
        raise EnvironmentLacks(
            f"{downloads.plain(str(place))}: cannot be kept in {where}: {tar_stream.reason(error)}\n"
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


def remedy(overlay: str, wanted: Collection[str]) -> str:
    """The message that says which programs that overlay needs, and where to put them."""
    return (
        f"{overlay} needs its own programs {', '.join(wanted)}, which minigts does not contain: put them into "
        f"{_own_place(overlay)}, or set {variable(overlay)} to a directory or a tar archive that holds them"
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


def _collect(place: Path, harvest: _Harvest) -> None:
    """Collect every wanted program from the place. Raises DownloadRefused when one is missing there, and OSError when
    one cannot be kept."""
    if place.is_dir():
        for name in sorted(harvest.wanted):
            if (place / name).exists():
                with _regular(place / name) as program:
                    harvest.keep(name, tar_stream.chunks(program))
    else:
        with _regular(place) as archive:
            harvest.read(archive)
            if harvest.follow_links():
                harvest.read(archive)
    lacking = sorted(harvest.wanted - {path.name for path in harvest.into.iterdir()})
    if lacking:
        links = "".join(
            f"; {name} is a hard link to {target!r}, which is not a file of the archive"
            for name, target in sorted(harvest.links.items())
            if name in lacking
        )
        raise DownloadRefused(f"holds no {', '.join(lacking)}{links}")


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file. Raises Refused for anything else."""
    try:
        return paths.open_regular(path)
    except OSError as error:
        raise DownloadRefused(tar_stream.reason(error)) from error


@dataclass
class _Harvest:
    """The programs that are wanted and those found so far. A later program replaces an earlier one of the same name."""

    wanted: frozenset[str]
    into: Path
    limits: SuppliedLimits
    links: dict[str, str] = field(default_factory=dict)
    """Programs that are hard links, with the link's target in the archive."""
    _targets: dict[str, list[str]] = field(default_factory=dict)
    _unpacked = _kept = 0

    def follow_links(self) -> bool:
        """Have the next reading look for the targets of hard links, for programs that are not there as files; return
        whether there are any."""
        for name, target in self.links.items():
            if not (self.into / name).exists():
                self._targets.setdefault(target, []).append(name)
        return bool(self._targets)

    def read(self, file: IO[bytes]) -> None:
        file.seek(0)
        self._unpacked = self._kept = 0
        content, is_archive = tar_stream.decompress(tar_stream.chunks(file))
        if not is_archive:
            raise DownloadRefused("is no tar archive, uncompressed or compressed by gzip, bzip2 or xz")
        for count, (member, part) in enumerate(
            tar_stream.members(self._counted(content), self.limits.header_bytes), start=1
        ):
            if count > self.limits.members:
                raise DownloadRefused(f"holds more than {self.limits.members} files")
            self._look_at(member, part)

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

    def _look_at(self, member: tarfile.TarInfo, part: Iterator[bytes]) -> None:
        name = PurePosixPath(member.name)
        programs = [name.name] if name.name in self.wanted else []
        if programs and member.islnk():
            self.links[name.name] = str(PurePosixPath(member.linkname))
        elif member.isreg() and not member.issparse() and (programs := self._targets.get(str(name), programs)):
            self._keep_as(programs, part)

    def _keep_as(self, names: Sequence[str], content: Iterator[bytes]) -> None:
        first, *others = names
        self.keep(first, content)
        for other in others:
            if (self.into / first).exists():
                with (self.into / first).open("rb") as program:
                    self.keep(other, tar_stream.chunks(program))

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for data in chunks:
            self._unpacked += len(data)
            if self._unpacked > self.limits.unpacked_bytes:
                raise DownloadRefused(f"unpacks to more than {downloads.size(self.limits.unpacked_bytes)}")
            yield data
