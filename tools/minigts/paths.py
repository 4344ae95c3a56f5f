"""Where things lie: the project's own files, images in the cache, running labs in the state directory.

And how a file is written so that nobody ever reads half of it, and read so that nobody waits for it or runs out of
memory over it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

_CHUNK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 10_000_000
FILES = "MINIGTS_FILES"
"""The variable with directories, parted by colons, from which topologies may take files beside their own."""
UMASK = "MINIGTS_UMASK"
"""The variable in which the command line keeps its user's umask, in octal digits; its own is narrower."""
BROUGHT = "brought"
"""The folder of an installed package that holds the project's own files; pyproject.toml says which."""
LAB, PLAN, CERTIFICATE = "lab.json", "plan.json", "certificate.json"
"""Files of a lab's run directory that several rooms know: its record, its plan, what was measured of it last."""
CONTROL_SOCKET, CONSOLE_LOG = "control.sock", "console.log"
"""Files there that each host has: the socket of its control line, and what its console has said."""
LAUNCH, SUPERVISOR, CLOCK = "launch.json", "supervisor.json", "clock.json"
"""Files there that a provider keeps of what runs: what was to be started, the process that did, and the clock's."""


def cache_root() -> Path:
    """Images and what else can be made again; `MINIGTS_CACHE` overrides the XDG directory."""
    return _chosen("MINIGTS_CACHE", "cache")


def data_root() -> Path:
    """What only the user can bring, such as programs of their own; `MINIGTS_DATA` overrides the XDG directory."""
    return _chosen("MINIGTS_DATA", "data")


def state_root() -> Path:
    """Run directories of labs; `MINIGTS_STATE` overrides the XDG directory."""
    return _chosen("MINIGTS_STATE", "state")


def labs_root() -> Path:
    """Where the run directories of labs lie, each by its lab's name."""
    return state_root() / "labs"


def files_roots() -> tuple[Path, ...]:
    """The directories that the user lets topologies take files from, besides that of each; none unless FILES says."""
    return tuple(Path(each) for each in os.environ.get(FILES, "").split(":") if Path(each).is_absolute())


def project_root() -> Path:
    """Where the project's own files lie: provision/, which is part of the program, topologies/ and experiments/.

    In a checkout that is the checkout; in an installed package what the wheel has brought, inside the package.
    """
    package = Path(__file__).resolve().parent
    return package / BROUGHT if is_installed() else package.parents[1]


def is_installed() -> bool:
    """Whether this program runs from an installed package, and not from a checkout."""
    return (Path(__file__).resolve().parent / BROUGHT).is_dir()


def import_root() -> Path:
    """The directory that Python finds this package in."""
    return Path(__file__).resolve().parents[1]


def own_file(given: Path, folder: str) -> Path | None:
    """The project's own file or folder that `given` means, `FOLDER/NAME` or only `NAME`; None where there is none."""
    if given.is_absolute() or ".." in given.parts:
        return None
    places = [project_root() / given] if given.parts[:1] == (folder,) else [project_root() / folder / given]
    return next((place for place in places if os.path.lexists(place)), None)


def users_umask() -> int:
    """What files that are the user's own do not let others do; 077 where nobody knows."""
    try:
        return int(os.environ.get(UMASK, ""), 8) & 0o777
    except ValueError:
        pass
    with contextlib.suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in status if line.startswith("Umask:")).split()[1], 8)
    return 0o077


def users_folder(path: Path, *, exist_ok: bool = False) -> None:
    """Make a folder of the user's own, and those above it, with the modes that the umask leaves. Raises OSError."""
    new = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    path.mkdir(parents=True, exist_ok=exist_ok)
    for each in new:
        each.chmod(0o777 & ~users_umask())


def users_file(file: IO[Any]) -> None:
    """Give a file of the user's own, just made, the mode that the umask leaves."""
    os.fchmod(file.fileno(), 0o666 & ~users_umask())


def write_for_user(path: Path, content: str | bytes) -> None:
    """As `write_whole`, for what is the user's own, such as results: with the mode that the umask leaves."""
    with replacing(path) as file:
        users_file(file)
        file.write(content.encode() if isinstance(content, str) else content)


def write_whole(path: Path, content: str | bytes) -> None:
    """Put `content` into the file `path`, mode 0600, in one step: a reader sees the old or the new, also after a crash.

    Several writers at once do not meet: each has a temporary file of its own beside it, `.NAME.*`, which a crash may
    leave behind.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[io.BufferedRandom]:
    """A new file, mode 0600, to be written and read, that gets the name `path` once it is whole; as `write_whole`."""
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
    """A path leads to something else than a regular file: a pipe, a device, a directory."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(f"{path.name} is no regular file")
        self.is_directory = stat.S_ISDIR(mode)


def open_regular(path: Path, flags: int = 0) -> io.BufferedReader:
    """A regular file, to be read. It is looked at once it is open, so that it cannot become another, and nothing waits
    for a pipe's other end. `flags` are further ones of `os.open`. Raises NotRegularError, OSError.
    """
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
    """The content of a regular file in blocks of whole lines, about a megabyte each; no more of it is in memory. Raises
    as `read_whole` does, when it comes to that, and OSError for a line that is longer than any here.
    """
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


def content_key(files: Iterable[tuple[str, Path]], before: str = "") -> str:
    """16 hexadecimal digits that stand for the names and bytes of files in this order, and for the text `before` them:
    what is made of them lies in the cache under it. SHA-256, cut.
    """
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
    # Not above: a lab's supervisor writes and reads files by this module too, and has the standard library alone.
    import platformdirs  # noqa: PLC0415

    directories = platformdirs.PlatformDirs("minigts")
    directory: Path = getattr(directories, f"user_{kind}_path")
    return directory
