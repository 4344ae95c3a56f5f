"""The one gate for results folders: whether this user has made one on this machine, and what it may do here.

A folder that minigts makes gets a signature (HMAC-SHA256, RFC 2104) of all that would make this machine do something:
an exploration's test and plan, a run's experiment and plan. The key is this user's on this machine, in the state
directory. A folder without a valid signature is a stranger's: it acts only with --trust, after all that it asks for is
listed. What acts takes a `Trusted`, which only this module makes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from minigts import paths
from minigts.errors import InputError, MinigtsError, Problem
from minigts.foreign import printable
from minigts.results.folder import disk_error, inside, write

SIGNATURE = "signature"
"""The folder's file with it: one line, FORMAT and 64 hexadecimal digits. It is in no bundle."""
KEY = "folders.key"
KEY_BYTES = 32
_LINE = re.compile(rb"minigts-1 ([0-9a-f]{64})\n")
REMEDY = "nothing was done; if you trust its author with that, add --trust"
NOT_OURS = (
    "it has no valid signature of yours: somebody else made it, or you did on another machine or with an older "
    "minigts, or a file was edited"
)
MOST_LINES, LONGEST_LINE = 200, 2000

T = TypeVar("T")
_PASS = object()


@dataclass(frozen=True)
class Trusted(Generic[T]):
    """What this user has made, or trusts: it may act on this machine. `own` and `Examined.allowed` make it."""

    content: T
    by: object

    def __post_init__(self) -> None:
        if self.by is not _PASS:
            raise TypeError("only the gate says what is trusted")


def own(content: T) -> Trusted[T]:
    """What the user has just asked for by words and files of their own, and no folder."""
    return Trusted(content, _PASS)


@dataclass(frozen=True)
class Examined(Generic[T]):
    """The content of a folder or a bundle, to be shown. It acts on nothing until it is `allowed`."""

    place: Path
    """The folder or the bundle, as the user named it."""
    content: T
    is_own: bool
    """Whether this user has made it on this machine. A bundle is always a stranger's."""

    def allow(self, asks: Sequence[str], *, trusted: bool) -> Trusted[T]:
        """The content, to act. `asks` says what it would do on this machine, a line each; that needs the user's own
        signature, or `trusted`. Raises InputError, which lists the lines; they may be a stranger's text."""
        if asks and not (self.is_own or trusted):
            shown = [_one_line(ask) for ask in asks[:MOST_LINES]]
            if len(asks) > MOST_LINES:
                shown.append(f"… and {len(asks) - MOST_LINES} more")
            head = f"{self.place}: {NOT_OURS}. It would, on this machine:"
            raise InputError("\n  ".join((head, *shown)) + f"\n{REMEDY}")
        return Trusted(self.content, _PASS)


def _one_line(text: str) -> str:
    line = printable(text.replace("\n", "\\n").replace("\t", "\\t"))
    more = len(line) - LONGEST_LINE
    return line if more <= 0 else f"{line[:LONGEST_LINE]}… and {more} more characters"


def examine(folder: Path, content: T, acts: bytes) -> Examined[T]:
    """The content of a folder, whose `acts` are all that would make this machine do something. Raises InputError for a
    damaged key."""
    return Examined(folder, content, is_signed(folder, acts))


def examine_bundle(file: Path, content: T) -> Examined[T]:
    """The content of a bundle, which has no signature."""
    return Examined(file, content, is_own=False)


def sign(folder: Path, acts: bytes) -> None:
    """Sign a folder as made, or trusted, by this user. A new folder is signed before its content is there, so that a
    crash leaves none that is whole and a stranger's. Raises MinigtsError when that cannot be written, InputError for a
    damaged key."""
    write(inside(folder, SIGNATURE), f"minigts-1 {_mac(_key_made(), acts)}\n")


def is_signed(folder: Path, acts: bytes) -> bool:
    """Whether the folder has this user's signature of `acts`. Raises InputError for a damaged key."""
    try:
        line = _LINE.fullmatch(paths.read_whole(inside(folder, SIGNATURE), 200))
    except (OSError, InputError):
        return False
    key = _key()
    return line is not None and key is not None and hmac.compare_digest(line[1].decode(), _mac(key, acts))


def _mac(key: bytes, acts: bytes) -> str:
    return hmac.new(key, b"results folder\0" + acts, hashlib.sha256).hexdigest()


def _place() -> Path:
    return paths.state_root() / KEY


def _key() -> bytes | None:
    """The key; None where there is none yet. Raises InputError for a file that others may have read, or that is no
    key."""
    place = _place()
    try:
        with paths.open_regular(place, os.O_NOFOLLOW) as file:
            status, key = os.fstat(file.fileno()), file.read(KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _no_key(place, f"cannot be read: {error.strerror or error}") from error
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise _no_key(place, "others may read or write it, so they may have signed folders")
    if len(key) != KEY_BYTES:
        raise _no_key(place, f"is no key of {KEY_BYTES} bytes")
    return key


def _no_key(place: Path, why: str) -> InputError:
    remedy = "remove it: a new one is made, and folders of before then need --trust"
    return InputError([Problem(str(place), 0, f"{why}; {remedy}")])


def _key_made() -> bytes:
    """The key, which is made on first use. Of several processes that make it, all get the same one."""
    place = _place()
    if (key := _key()) is not None:
        return key
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{KEY}.")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, place)
        finally:
            Path(temporary).unlink()
    except OSError as error:
        raise disk_error(place, error) from error
    if (key := _key()) is None:
        raise MinigtsError(f"{place}: is gone again; every results folder is signed by it")
    return key
