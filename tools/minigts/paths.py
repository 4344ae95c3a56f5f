"""The places of files: the project's own files, images in the cache, running labs in the state directory.

Also how files are written and read: no reader sees half of a file, waits for one, or runs out of memory over one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

_CHUNK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 10_000_000
_NAMES_AT_ONCE = 10_000
FILES = "MINIGTS_FILES"
"""The environment variable with further directories, separated by colons, from which topologies may take files."""
LESSONS = "MINIGTS_LESSONS"
"""The environment variable with directories of a teacher's own lessons, separated by colons."""
UMASK = "MINIGTS_UMASK"
"""The environment variable in which the command line keeps the user's umask, in octal digits; its own is stricter."""
SHARED, SHARED_PLACE = "MINIGTS_SHARED_CACHE", Path("/var/cache/minigts")
"""The environment variable that names the cache which all users of this machine share, and its place by default."""
BROUGHT = "brought"
"""The folder of an installed package that holds the project's own files; pyproject.toml says which."""
SITE, SITE_OF = "site", "commit"
"""The folder of the documentation's site among the project's own files, and its file with the commit of its pages."""
LAB, PLAN, CERTIFICATE = "lab.json", "plan.json", "certificate.json"
"""Files of a lab's run directory that several packages use: its record, its plan, its latest certificate."""
CONTROL_SOCKET, CONSOLE_LOG = "control.sock", "console.log"
"""Files of each host in it: the socket of the host's control line, and its console's output."""
LAUNCH, SUPERVISOR, CLOCK, RECORDING = "launch.json", "supervisor.json", "clock.json", "course.recording"
KERNELS = "kernels.json"
"""Files of the run directory that a provider uses: what was to be started, the process that started it, the clock's
state, every event that passed the clock, where these are recorded, and the processes of the hosts' kernels."""


def cache_root() -> Path:
    """The directory of images and other files that can be made again; `MINIGTS_CACHE` overrides the XDG directory."""
    return _chosen("MINIGTS_CACHE", "cache")


def shared_cache() -> Path | None:
    """The cache that somebody has filled for all users of this machine, which minigts reads and never writes to; None
    where there is none."""
    place = shared_place()
    return place if place is not None and os.path.isdir(place) else None  # noqa: PTH112 - False where it cannot be seen


def shared_place() -> Path | None:
    """Where the shared cache is or would be; None where the variable SHARED is set and empty."""
    chosen = os.environ.get(SHARED)
    return SHARED_PLACE if chosen is None else Path(chosen).absolute() if chosen else None


def cache_entry(place: Path) -> Path:
    """Where an entry of the cache is read: `place` below `cache_root()`, or its like in the shared cache where only
    that has it."""
    shared, own = shared_cache(), cache_root()
    if shared is None or os.path.lexists(place) or not place.is_relative_to(own):
        return place
    there = shared / place.relative_to(own)
    return there if os.path.exists(there) else place  # noqa: PTH110 - as above


def data_root() -> Path:
    """The directory of what only the user can bring, such as programs; `MINIGTS_DATA` overrides the XDG directory."""
    return _chosen("MINIGTS_DATA", "data")


def state_root() -> Path:
    """The directory of labs' run directories and other state; `MINIGTS_STATE` overrides the XDG directory."""
    return _chosen("MINIGTS_STATE", "state")


def labs_root() -> Path:
    """The directory with the run directory of each lab, under the lab's name."""
    return state_root() / "labs"


def files_roots() -> tuple[Path, ...]:
    """The directories, besides its own, from which the user lets a topology take files: the absolute ones in FILES."""
    return tuple(Path(each) for each in os.environ.get(FILES, "").split(":") if Path(each).is_absolute())


def lessons_roots() -> tuple[Path, ...]:
    """The directories with lessons beside minigts' own: those in LESSONS."""
    return tuple(Path(each).absolute() for each in os.environ.get(LESSONS, "").split(":") if each)


def project_root() -> Path:
    """The directory of the project's own files: provision/, which is part of the program, topologies/ and experiments/.

    In a checkout it is the checkout; in an installed package the folder BROUGHT inside the package.
    """
    package = Path(__file__).resolve().parent
    return package / BROUGHT if is_installed() else package.parents[1]


def is_installed() -> bool:
    """Whether this program runs from an installed package, and not from a checkout."""
    return (Path(__file__).resolve().parent / BROUGHT).is_dir()


def import_root() -> Path:
    """The directory in which Python finds this package."""
    return Path(__file__).resolve().parents[1]


def own_file(given: Path, folder: str) -> Path | None:
    """The project's own file or folder that `given` names, as `FOLDER/NAME` or only `NAME`; None if there is none."""
    if given.is_absolute() or ".." in given.parts:
        return None
    places = [project_root() / given] if given.parts[:1] == (folder,) else [project_root() / folder / given]
    return next((place for place in places if os.path.lexists(place)), None)


def users_umask() -> int:
    """The user's umask, for files that are the user's own; 077 if it is unknown."""
    try:
        return int(os.environ.get(UMASK, ""), 8) & 0o777
    except ValueError:
        pass
    with contextlib.suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in status if line.startswith("Umask:")).split()[1], 8)
    return 0o077


def users_folder(path: Path, *, exist_ok: bool = False) -> None:
    """Make a folder of the user's own, and missing ones above it, with modes by the user's umask. Raises OSError."""
    new = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    path.mkdir(parents=True, exist_ok=exist_ok)
    for each in new:
        each.chmod(0o777 & ~users_umask())


def users_file(file: IO[Any]) -> None:
    """Give a new file of the user's own its mode by the user's umask."""
    os.fchmod(file.fileno(), 0o666 & ~users_umask())


def write_for_user(path: Path, content: str | bytes) -> None:
    """As `write_whole`, for a file of the user's own, such as results: its mode is that of the user's umask."""
    with replacing(path) as file:
        users_file(file)
        file.write(content.encode() if isinstance(content, str) else content)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` to the file `path`, mode 0600, in one step: a reader sees the old or the new, also after a crash.

    Several writers do not disturb each other: each has a temporary file of its own, `.NAME.*` in the same directory,
    which a crash may leave behind.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[io.BufferedRandom]:
    """Yield a new file, mode 0600, for writing and reading. It gets the name `path` once it is complete; see
    `write_whole`."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class NotRegularError(OSError):
    """The path is no regular file: it is a pipe, a device or a directory."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(f"{path.name} is no regular file")
        self.is_directory = stat.S_ISDIR(mode)


def open_regular(path: Path, flags: int = 0) -> io.BufferedReader:
    """Open a regular file for reading. Its kind is checked after it is open, so that it cannot be exchanged in between,
    and no pipe is waited for. `flags` are further flags of `os.open`. Raises NotRegularError, OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise NotRegularError(path, mode)
    return os.fdopen(handle, "rb")


def read_whole(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file. Raises OSError for anything else (a pipe, a device, a link, a directory), and for
    one that holds more than `most_bytes`.
    """
    with open_regular(path, os.O_NOFOLLOW) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"{path.name} holds more than {most_bytes} bytes")
    return content


def read_lines(path: Path, most_bytes: int) -> Iterator[bytes]:
    """Yield the content of a regular file in blocks of whole lines, about a megabyte each. Raises as `read_whole` does,
    once it has read that far, and OSError for a line of more than 10 MB."""
    with open_regular(path, os.O_NOFOLLOW) as file:
        left = most_bytes
        while block := file.read(_CHUNK_BYTES):
            rest = file.readline(_LONGEST_LINE_BYTES)
            left -= len(block) + len(rest)
            if left < 0:
                raise OSError(f"{path.name} holds more than {most_bytes} bytes")
            if len(rest) == _LONGEST_LINE_BYTES:
                raise OSError(f"{path.name} has a line of more than {_LONGEST_LINE_BYTES} bytes")
            yield block + rest


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it, or a file or link in its place; nothing where there is nothing.

    What is in it may be a stranger's: no link is followed, directories may have any mode that their owner may change,
    and lie as deep as they like. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        directory = _opened(path)
        try:
            _clear(directory)
        finally:
            os.close(directory)
        path.rmdir()


def _opened(path: str | Path, within: int | None = None) -> int:
    """Open a directory, which is no link, after its owner may do anything in it; its mode may have forbidden even
    that."""
    held = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        with contextlib.suppress(PermissionError):
            Path(f"/proc/self/fd/{held}").chmod(0o700)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=held)
    finally:
        os.close(held)


def _clear(directory: int) -> None:
    """Remove all that is in an open directory. Directories in its directories are moved up first, so that no more than
    three are open at any depth."""
    while names := _some_names(directory):
        for name in names:
            if not _remove_file(directory, name):
                child = _opened(name, directory)
                try:
                    _move_directories_up(child, directory)
                finally:
                    os.close(child)
                os.rmdir(name, dir_fd=directory)


def _some_names(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in itertools.islice(entries, _NAMES_AT_ONCE)]


def _move_directories_up(child: int, parent: int) -> None:
    """Empty `child`: remove its files, and move its directories into `parent` under new names."""
    while names := _some_names(child):
        for name in names:
            if not _remove_file(child, name):
                os.close(_opened(name, child))  # only who may write to it may move it
                os.rename(name, secrets.token_hex(16), src_dir_fd=child, dst_dir_fd=parent)


def _remove_file(directory: int, name: str) -> bool:
    """Whether it was no directory, and is gone."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
        return False
    os.unlink(name, dir_fd=directory)
    return True


def size_bytes(path: Path) -> int:
    """The size of a file, or of all files in a directory."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file() and not each.is_symlink())


def content_key(files: Iterable[tuple[str, Path]], before: str = "") -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the text `before` and the names and bytes of files, in this
    order. The cache keeps what is made of the files under this key."""
    digest = hashlib.sha256(before.encode())
    for name, path in files:
        digest.update(name.encode() + b"\0")
        with path.open("rb") as file:
            while data := file.read(_CHUNK_BYTES):
                digest.update(data)
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def _chosen(variable: str, kind: Literal["cache", "data", "state"]) -> Path:
    return Path(os.environ.get(variable) or _of_user(kind)).absolute()


def _of_user(kind: Literal["cache", "data", "state"]) -> Path:
    # Imported here, because a lab's supervisor imports this module, too, and has only the standard library.
    import platformdirs  # noqa: PLC0415

    directories = platformdirs.PlatformDirs("minigts")
    directory: Path = getattr(directories, f"user_{kind}_path")
    return directory
