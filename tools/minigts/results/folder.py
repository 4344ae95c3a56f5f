"""A results folder: which paths are inside it, who may write to it, and how its files are read.

A folder's contents may have been written by somebody else. So every path made from names in it goes through `inside`,
and every file is read by `read_text`, which limits its size and never waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from minigts import paths
from minigts.errors import InputError, MinigtsError, Problem
from minigts.foreign import UNPRINTABLE
from minigts.language.documents import Bounds, Unreadable, document

LOCK = "run.lock"
LARGEST_BYTES = 100_000_000
"""The largest size of any file; a raw sample has some kB."""
OF_A_FILE = Bounds(elements=1_000_000, bytes=LARGEST_BYTES)
LARGEST_NUMBER = 1e15
"""The largest number in a file; no measured time, rate or count comes near it."""
LONGEST_WHOLE = len(str(-(2**64)))
DEEPEST = 60
LONGEST_NAME = 200
"""The longest name of a file in bytes: file systems allow 255, and a temporary name is longer."""
MOST_PROBLEMS = 20
LONGEST_MESSAGE = 300
_NO_NAME = re.compile(f"[/\t\n]|{UNPRINTABLE.pattern}")
_LEFT_OVER = re.compile(r"\..+\.[a-z0-9_]{8}")
"""The names of temporary files that a killed `paths.write_whole` leaves."""
_M = TypeVar("_M", bound=BaseModel)


def inside(folder: Path, *words: str) -> Path:
    """The path `folder/word/…`. Raises InputError for a word that is no plain name, or a link out of the folder.

    The file need not exist.
    """
    for word in words:
        require_plain_name(folder, word)
    path = folder.joinpath(*words)
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise InputError([Problem(str(path), 0, "leads out of the results folder; put the file itself there")])
    return path


def require_plain_name(folder: Path, word: str) -> None:
    """Raise InputError unless `word` is a plain name of a file in `folder`."""
    if not is_name(word):
        shown = repr(word if len(word) <= LONGEST_NAME else f"{word[:LONGEST_NAME]}…")
        raise InputError([Problem(str(folder), 0, f"{shown} is no name of a file in a results folder")])


def is_name(word: str) -> bool:
    """Whether it is a plain name of a file, without a folder, `..` or characters that act on a terminal. Names from
    archives and folders all go through this."""
    if _NO_NAME.search(word) or word in (".", ".."):
        return False
    return 0 < len(os.fsencode(word)) <= LONGEST_NAME


def write_new(folder: Path, name: str, content: bytes, mode: int = 0o644) -> None:
    """Write a new file into the folder itself, never through a link. Raises InputError for what is no name,
    MinigtsError where there is such a file or none can be written."""
    require_plain_name(folder, name)
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, mode, dir_fd=directory), "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content)
        finally:
            os.close(directory)
    except OSError as error:
        raise disk_error(folder / name, error) from error


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Be the only run in `folder` while the context is open. The lock ends with the process that holds it.

    Temporary files of killed runs are removed. Raises InputError, with nothing changed, while another run has the
    folder; MinigtsError where it cannot be locked.
    """
    path = inside(folder, LOCK)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MinigtsError(f"{path}: cannot be opened: {error.strerror}; every run locks its folder by it") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{folder}: another run is writing here: {_holder(handle)}; wait for it, or end it"
            ) from error
        except OSError as error:
            raise MinigtsError(f"{path}: cannot be locked: {error.strerror}") from error
        holder = {
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat("T", "seconds"),
            "command": shlex.join(sys.argv),
        }
        os.ftruncate(handle, 0)
        os.pwrite(handle, (json.dumps(holder) + "\n").encode(), 0)
        _sweep(folder)
        yield
    finally:
        os.close(handle)


class _Holder(BaseModel):
    model_config = ConfigDict(extra="ignore")

    pid: int
    since: str
    command: str


def _holder(handle: int) -> str:
    """The process that holds the lock, in words; it is unknown until that process has written it."""
    try:
        holder = _Holder.model_validate_json(os.pread(handle, 4096, 0))
    except (ValidationError, OSError):
        return "a run that has just begun"
    return f"process {holder.pid}, since {holder.since[:40]}: {holder.command[:200]}"


def _sweep(folder: Path) -> None:
    for place in (folder, folder / "raw", folder / "figures"):
        with contextlib.suppress(OSError, InputError):
            inside(folder, *place.relative_to(folder).parts)
            for entry in os.scandir(place):
                if _LEFT_OVER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    Path(entry.path).unlink()


def make(directory: Path) -> None:
    """Make the directory of results folders unless it exists. Raises MinigtsError."""
    try:
        paths.users_folder(directory, exist_ok=True)
    except OSError as error:
        raise MinigtsError(f"{directory}: cannot be made: {error.strerror or error}") from error


@contextlib.contextmanager
def made_directory(directory: Path) -> Iterator[None]:
    """As `make`; at the end a directory that was made here is removed if it is empty."""
    before = directory.is_dir()
    make(directory)
    try:
        yield
    finally:
        if not before:
            with contextlib.suppress(OSError):
                directory.rmdir()


def write(path: Path, text: str | bytes) -> None:
    """Write `text` to `path`, whole or not at all. Raises MinigtsError when the disk is full or refuses."""
    try:
        paths.users_folder(path.parent, exist_ok=True)
        paths.write_for_user(path, text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise disk_error(path, error) from error


def append(path: Path, lines: str) -> None:
    """Write whole lines at the end of a file, onto the disk. Raises MinigtsError when the disk is full or refuses."""
    try:
        with path.open("ab+") as file:
            if not file.tell():
                paths.users_file(file)
            elif file.seek(-1, os.SEEK_END) and file.read(1) != b"\n":
                file.write(b"\n")  # a crash has cut the last line short
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> MinigtsError:
    """The error for a disk that is full or refuses."""
    return MinigtsError(f"{path}: cannot be written: {error.strerror or error}; what was measured before is kept")


def read_text(path: Path, most_bytes: int = LARGEST_BYTES) -> str:
    """A file's text. Raises InputError for a file that is missing, not regular, above `most_bytes`, or not UTF-8."""
    return _decoded(path, read_bytes(path, most_bytes), 1)


def read_blocks(path: Path, most_bytes: int) -> Iterator[str]:
    """A file's text in blocks of whole lines, so that a large file needs little memory. Raises as `read_text` does,
    during the iteration."""
    line = 1
    try:
        for data in paths.read_lines(path, most_bytes):
            yield _decoded(path, data, line)
            line += data.count(b"\n")
    except OSError as error:
        raise _unreadable(path, error) from error


def _decoded(path: Path, data: bytes, line: int) -> str:
    """The text of a block that begins on that line of the file. Raises InputError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise InputError([Problem(str(path), line, "cannot be read: is not text in UTF-8")]) from error


def read_bytes(path: Path, most_bytes: int = LARGEST_BYTES) -> bytes:
    """A file's content. Raises InputError for a file that is missing, not regular, or above `most_bytes`."""
    try:
        return paths.read_whole(path, most_bytes)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError([Problem(str(path), 0, f"cannot be read: {reason}")])


def plain(text: str) -> str:
    """`text` with U+FFFD for each character that would change a terminal or cannot be written."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def read_json(path: Path, *, raw: bool = False, bounds: Bounds = OF_A_FILE) -> tuple[JsonValue, str]:
    """A file's JSON document, and its text. Raises InputError, also for numbers above LARGEST_NUMBER, and for more than
    the bounds.

    Unless `raw`, characters that would change a terminal are replaced.
    """
    text = read_text(path, bounds.bytes)
    try:
        value = document(text, bounds, whole=_whole, real=_real)
        return _checked(value, DEEPEST, (lambda said: said) if raw else plain), text
    except Unreadable as error:
        why = str(error) if error.line else f"cannot be read: it {error}"
        raise InputError([Problem(str(path), error.line, why)]) from error
    except ValueError as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error}")]) from error


def read_model(path: Path, model: type[_M], *, raw: bool = False, bounds: Bounds = OF_A_FILE) -> _M:
    """A file's JSON document as `model`. Raises InputError with every problem, each with its line and place."""
    value, text = read_json(path, raw=raw, bounds=bounds)
    return validate_value(path, model, value, text)


def validate_value(path: Path, model: type[_M], value: JsonValue, text: str) -> _M:
    """`value`, which `text` of the file `path` contains, as `model`. Raises InputError."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [_problem(path, text, entry["loc"], _said(entry)) for entry in found[:MOST_PROBLEMS]]
        if len(found) > MOST_PROBLEMS:
            problems.append(Problem(str(path), problems[-1].line, f"… and {len(found) - MOST_PROBLEMS} more problems"))
        raise InputError(problems) from error
    except RecursionError as error:
        raise InputError([Problem(str(path), 0, "cannot be read: it is nested too deep")]) from error


_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is no key that is known here",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
}


def _said(entry: ErrorDetails) -> str:
    return _SAID.get(entry["type"], entry["msg"])


def _problem(path: Path, text: str, where: Sequence[int | str], message: str) -> Problem:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where).lstrip(".") or "document"
    message = message.removeprefix("Value error, ")
    short = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    return Problem(str(path), line_of(text, where), f"{place[:LONGEST_MESSAGE]}: {short}")


def _whole(text: str) -> int:
    # A kernel's counters have 64 bits, and so has netem's seed.
    if len(text) > LONGEST_WHOLE or abs(number := int(text)) >= 2**64:
        raise ValueError(f"the number {text[:12]}… is larger than anything measured here")
    return number


def _real(text: str) -> float:
    value = float(text)
    if not abs(value) <= LARGEST_NUMBER:
        raise ValueError(f"the number {text[:12]} is larger than anything measured here")
    return value


def finite(text: str) -> float:
    """`21.75` → 21.75. Raises ValueError for text that is no finite number up to LARGEST_NUMBER."""
    value = float(text)
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise ValueError(text)
    return value


def _checked(value: Any, depth: int, text: Callable[[str], str]) -> Any:
    """The value with `text` applied to its strings; lists are changed in place, as there may be many. Raises ValueError
    when it is nested too deep."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict | list) and depth == 0:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return {text(key): _checked(each, depth - 1, text) for key, each in value.items()}
    if isinstance(value, list):
        for index, each in enumerate(value):
            if isinstance(each, str | dict | list):
                value[index] = _checked(each, depth - 1, text)
    return value


_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def line_of(text: str, where: Sequence[int | str]) -> int:
    """The line, from 1, of the value at `where` in the JSON document `text`, or of the nearest one around it."""
    at = _after_blank(text, 0)
    for step in where:
        inner = _entry(text, at, step)
        if inner is None:
            break
        at = inner
    return text.count("\n", 0, at) + 1


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _entry(text: str, at: int, step: int | str) -> int | None:
    """The position of the value of a key, or of an index, in the object or list that begins at `at`."""
    if text[at : at + 1] != ("{" if isinstance(step, str) else "["):
        return None
    at, index = _after_blank(text, at + 1), 0
    try:
        while text[at] not in "}]":
            key: int | str = index
            if isinstance(step, str):
                key, at = _DECODER.raw_decode(text, at)
                at = _after_blank(text, _after_blank(text, at) + 1)
            if key == step:
                return at
            _, at = _DECODER.raw_decode(text, at)
            at = _after_blank(text, at)
            at, index = (_after_blank(text, at + 1) if text[at] == "," else at), index + 1
    except (ValueError, IndexError, RecursionError):
        return None
    return None
