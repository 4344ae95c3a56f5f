"""Image, kernel and clock in one file, for a room without a network: packed here, checked and put in place there.

The file may hold the Python packages of the launcher's environment, too, as wheels.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import re
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from minigts import paths
from minigts.artifacts import checksums, downloads
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.foreign import printable
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.uml.build import clock_build, image, kernel_build

INDEX, WHEELS = "minigts-parts.json", "wheels"
STORES = ("images", "kernels", "clocks")
"""The parts' directories in the cache, in the order of import: no part is there before those that it needs."""
QUICK = 1
"""gzip's level. A higher one takes minutes more and saves a tenth of the size."""
MIB = 1 << 20
FOR_ALL = 0o755
"""The mode of directories: parts are not private, and other users may use them."""
_CHUNK = 1 << 16
"""Bytes read at a time, and tarfile's buffer, which it copies whole for every read or write."""
_ZEROS = bytes(_CHUNK)
_INDEX_BYTES = 8 * MIB
_MOST_BYTES = 16384 * MIB
_BROKEN = (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, ValueError)
_WORD = "[A-Za-z0-9_][A-Za-z0-9._+~-]{0,99}"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OneFile(_Model):
    name: Annotated[str, Field(pattern=f"^{_WORD}(/{_WORD}){{0,6}}$")]
    executable: bool
    size: Annotated[int, Field(ge=0, le=_MOST_BYTES)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Part(_Model):
    """A directory `STORE/KEY` of the cache."""

    store: Annotated[str, Field(pattern=f"^({'|'.join(STORES)})$")]
    key: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    files: Annotated[tuple[OneFile, ...], Field(max_length=20_000)]

    @property
    def place(self) -> str:
        return f"{self.store}/{self.key}"

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


class Index(_Model):
    version: Annotated[int, Field(ge=1, le=1)] = 1
    parts: Annotated[tuple[Part, ...], Field(min_length=1, max_length=len(STORES))]


@dataclass(frozen=True)
class Exported:
    file: Path
    sha256: str
    parts: tuple[Part, ...]


def export(target: Path, wheels: Sequence[Path], say: Progress) -> Exported:
    """Pack the parts that are built, and these wheels, into the new file `target`.

    Raises InputError when `target` exists, EnvironmentLacks when no image is built.
    """
    if os.path.lexists(target):
        raise InputError(f"{target}: exists already; name another file")
    parts = built_parts(say)
    if "images" not in {part.store for part in parts}:
        raise EnvironmentLacks("the image is not built yet; build it with: minigts image build")
    index = Index(parts=parts).model_dump_json(indent=1).encode() + b"\n"
    try:
        with paths.replacing(target) as made:
            _write(made, index, wheels, parts, say)
            made.seek(0)
            digest = hashlib.file_digest(made, "sha256").hexdigest()
    except OSError as error:
        raise MinigtsError(f"{target}: cannot be written: {error.strerror or error}") from error
    return Exported(target, digest, parts)


def built_parts(say: Progress = lambda _text: None) -> tuple[Part, ...]:
    """The parts of this minigts' recipes that are in the cache, with the sum of each file."""
    return tuple(_built(say))


def _built(say: Progress) -> Iterator[Part]:
    for store, key in _expected().items():
        directory = paths.cache_entry(paths.cache_root() / store / key)
        if not directory.is_dir():
            continue
        say(f"computing the sums of {store}/{key}")
        files = [OneFile(**vars(each)) for each in checksums.entries(directory)]
        yield Part(store=store, key=key, files=tuple(files))


def _expected() -> dict[str, str]:
    """The key of each part by this minigts' recipes."""
    return {"images": image.key(), "kernels": kernel_build.product().key, "clocks": clock_build.product().key}


def parts_key() -> str:
    """The keys of all parts by this minigts' recipes, whether they are built or not, in one word."""
    return "-".join(_expected().values())


def _write(made: IO[bytes], index: bytes, wheels: Sequence[Path], parts: Sequence[Part], say: Progress) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=QUICK, fileobj=made, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_CHUNK) as archive,
    ):
        with tempfile.TemporaryFile() as file:
            file.write(index)
            file.seek(0)
            archive.addfile(_member(INDEX, len(index), executable=False), file)
        for wheel in sorted(wheels):
            with wheel.open("rb") as file:
                archive.addfile(_member(f"{WHEELS}/{wheel.name}", wheel.stat().st_size, executable=False), file)
        for part in parts:
            say(f"packing {part.place}, {part.size // MIB} MiB")
            for each in part.files:
                with (paths.cache_entry(paths.cache_root() / part.place) / each.name).open("rb") as file:
                    archive.addfile(_member(f"{part.place}/{each.name}", each.size, executable=each.executable), file)


def _member(name: str, size: int, *, executable: bool) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mode = size, 0o755 if executable else 0o644
    return made


# Importing


def load(file: Path, say: Progress, sha256: str | None = None) -> tuple[Part, ...]:
    """Import the parts in `file` that are not in the cache yet, each only when complete and checked; return them.

    `sha256` is the sum that the whole file must have. Raises InputError for a file that is no export, is damaged, or
    has parts of other recipes than this minigts'; EnvironmentLacks when there is too little room.
    """
    try:
        with ExitStack() as stack:
            opened = stack.enter_context(_regular(file))
            if sha256 is not None:
                _hold_to_sum(file, opened, sha256)
            packed = stack.enter_context(gzip.GzipFile(fileobj=opened))
            archive = stack.enter_context(tarfile.open(fileobj=packed, mode="r|", bufsize=_CHUNK))
            index = _index(file, archive)
            _hold_to_recipes(file, index)
            wanted = [each for each in index.parts if not _is_here(each)]
            _require_room(wanted)
            places = {each.place: stack.enter_context(_beside(each)) for each in wanted}
            _unpack(file, archive, index, places, say)
            for part in wanted:
                ready = places[part.place].rename(paths.cache_root() / part.place)
                checksums.keep(ready, [checksums.Entry(**each.model_dump()) for each in part.files])
    except _BROKEN as error:
        raise _refusal(file, f"is broken: {printable(str(error))[:200]}") from error
    except OSError as error:
        raise MinigtsError(f"{paths.cache_root()}: cannot be written: {error.strerror or error}") from error
    return tuple(wanted)


def _is_here(part: Part) -> bool:
    return paths.cache_entry(paths.cache_root() / part.place).is_dir()


def take(place: str, say: Progress, sha256: str | None = None) -> tuple[Part, ...]:
    """The same of a file, or of an http or https address, which needs the sum. Raises as `load` does, and
    EnvironmentLacks for what cannot be fetched."""
    if not downloads.is_address(place):
        return load(Path(place), say, sha256)
    if sha256 is None:
        raise InputError(
            f"{downloads.public_place(place)}: an address needs --sha256 SUM, from somebody whom you trust, or "
            "--public-key KEY"
        )
    _require_sum(sha256)
    paths.cache_root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.cache_root(), prefix="fetching-") as temporary:
        fetched = Path(temporary) / "parts.tar.gz"
        say(f"fetching {downloads.public_place(place)}")
        try:
            with fetched.open("xb") as into:
                downloads.fetch(place, into)
        except downloads.DownloadRefused as error:
            raise EnvironmentLacks(f"{downloads.public_place(place)}: {error}") from error
        return load(fetched, say, sha256)


def index_of(file: Path) -> Index:
    """What an export has, without its content. Raises InputError for a file that is no export."""
    try:
        with (
            _regular(file) as opened,
            gzip.GzipFile(fileobj=opened) as packed,
            tarfile.open(fileobj=packed, mode="r|", bufsize=_CHUNK) as archive,
        ):
            return _index(file, archive)
    except _BROKEN as error:
        raise _refusal(file, f"is broken: {printable(str(error))[:200]}") from error


def _regular(file: Path) -> BufferedReader:
    try:
        return paths.open_regular(file)
    except paths.NotRegularError as error:
        raise _refusal(file, "is no regular file") from error
    except OSError as error:
        raise _refusal(file, f"cannot be read: {error.strerror}") from error


def _require_sum(sha256: str) -> None:
    if not re.fullmatch("[0-9a-f]{64}", sha256.strip().lower()):
        raise InputError(f"--sha256 {sha256[:80]!r}: a SHA-256 sum is 64 digits and letters a to f")


def _hold_to_sum(file: Path, opened: BufferedReader, sha256: str) -> None:
    _require_sum(sha256)
    own = hashlib.file_digest(opened, "sha256").hexdigest()
    if own != sha256.strip().lower():
        raise _refusal(file, f"its SHA-256 sum is {own}, not {sha256.strip().lower()}")
    opened.seek(0)


def _index(file: Path, archive: tarfile.TarFile) -> Index:
    first = archive.next()
    if first is None or first.name != INDEX or not first.isreg() or first.size > _INDEX_BYTES:
        raise _refusal(file, "contains no image; minigts image export makes such a file")
    opened = archive.extractfile(first)
    assert opened is not None  # a regular file has one
    try:
        return documents.model(opened.read(), Index)
    except documents.Unreadable as error:
        raise _refusal(file, f"its {INDEX} {error}") from error
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, found["loc"]))
        said = printable(f"{where}: {found['msg']}")[:300]
        raise _refusal(file, f"its {INDEX}: {said}") from error


def _hold_to_recipes(file: Path, index: Index) -> None:
    expected = _expected()
    if len({each.store for each in index.parts}) != len(index.parts):
        raise _refusal(file, f"its {INDEX} names two parts of one kind")
    strange = [each for each in index.parts if each.key != expected[each.store]]
    if strange:
        told = ", ".join(f"{each.place} (here {expected[each.store]})" for each in strange)
        raise _refusal(file, f"was made by another minigts, from other recipes: {told}; export it with this one")


def _require_room(wanted: Sequence[Part]) -> None:
    needed_mb = sum(each.size for each in wanted) // MIB
    root = image.existing(paths.cache_root())
    free_mb = shutil.disk_usage(root).free // MIB
    if free_mb < needed_mb:
        raise EnvironmentLacks(f"importing takes up to {needed_mb} MB in {root}; {free_mb} MB are free")


@contextmanager
def _beside(part: Part) -> Iterator[Path]:
    """A context with an empty directory beside the part's own, and with the lock that keeps builds away. It is named
    like the directory of a build, so that remains of a killed import are removed like those of a killed build."""
    store = paths.cache_root() / part.store
    store.mkdir(parents=True, exist_ok=True)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = store / f"building-{part.key}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        place.chmod(FOR_ALL)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _unpack(file: Path, archive: tarfile.TarFile, index: Index, places: dict[str, Path], say: Progress) -> None:
    """Unpack the parts in `places`. The archive must contain every file of the index exactly once, and besides only
    wheels; files of other parts are skipped."""
    left = {f"{part.place}/{each.name}": (part, each) for part in index.parts for each in part.files}
    told = set()
    while (member := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined] # tarfile would keep all
        if member.name.startswith(f"{WHEELS}/"):
            continue
        part, each = left.pop(member.name, (None, None))
        if part is None or each is None or not member.isreg() or member.size != each.size:
            raise _refusal(file, f"contains {printable(member.name)[:200]!r}, which does not fit its {INDEX}")
        if part.place not in places:
            continue
        if part.place not in told:
            say(f"unpacking {part.place}, {part.size // MIB} MiB")
            told.add(part.place)
        opened = archive.extractfile(member)
        assert opened is not None  # a regular file has one
        _put(file, opened, each, places[part.place] / each.name)
    if left:
        raise _refusal(file, f"ends without {next(iter(left))}")


def _put(file: Path, source: IO[bytes], each: OneFile, target: Path) -> None:
    """Write one file, with holes for blocks of zeros, and check its sum."""
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True)
        target.parent.chmod(FOR_ALL)
    digest = hashlib.sha256()
    with target.open("xb") as made:
        while data := source.read(_CHUNK):
            digest.update(data)
            if data == _ZEROS[: len(data)]:
                made.seek(len(data), os.SEEK_CUR)
            else:
                made.write(data)
        made.truncate(each.size)
        os.fsync(made.fileno())
        os.fchmod(made.fileno(), 0o755 if each.executable else 0o644)
    if digest.hexdigest() != each.sha256:
        raise _refusal(file, f"is damaged: {each.name} has another sum")


def _refusal(file: Path, why: str) -> InputError:
    return InputError([Problem(str(file), 0, why)])


PYTHON_LOCK = "requirements.lock"
WHEELS_TIMEOUT_S = 600.0


def fetch_wheels(directory: Path, progress: Progress) -> tuple[Path, ...]:
    """Fetch the wheels of the checkout's lock, for this Python and this kind of machine, into an empty directory.

    Returns their paths. Raises EnvironmentLacks where there is no lock, no pip or no network.
    """
    lock = paths.project_root() / PYTHON_LOCK
    if not lock.is_file():
        raise EnvironmentLacks("the lock of Python packages is in a checkout: ./minigts image export FILE --wheels")
    progress(f"fetching the wheels of {PYTHON_LOCK} for Python {sys.version_info.major}.{sys.version_info.minor}")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    only = ["--only-binary", ":all:", "--require-hashes", "--no-deps", "-r", str(lock), "-d", str(directory)]
    try:
        shell.run([*pip, *only], timeout_s=WHEELS_TIMEOUT_S)
    except CommandFailed as error:
        raise EnvironmentLacks(f"the wheels could not be fetched; without --wheels none are\n{error}") from error
    return tuple(sorted(directory.glob("*.whl")))
