"""Fetches one file by its http or https address, within limits of size and time."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

GIB = 1 << 30
_CHUNK = 1 << 16


class DownloadRefused(Exception):
    """A place cannot be used; the message is the clause that follows `PLACE: `."""


@dataclass(frozen=True)
class DownloadLimits:
    """The most that one download may take."""

    most_bytes: int = 4 * GIB
    most_s: float = 1800.0
    silence_s: float = 60.0
    """The longest pause."""


LIMITS = DownloadLimits()


def is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def public_place(place: str) -> str:
    """The place for messages, without a password in an address."""
    return plain(re.sub(r"//[^/]*@", "//", place) if is_address(place) else place)


def plain(text: str) -> str:
    """The text without control characters, which a terminal would obey."""
    return text if text.isprintable() else ascii(text)


def size(count: int) -> str:
    return f"{count / GIB:g} GiB" if count >= GIB else f"{count} bytes"


def fetch(address: str, into: IO[bytes], limits: DownloadLimits = LIMITS) -> None:
    """Write what is at the address into an open file. Raises Refused for what cannot be fetched, breaks off, or is
    beyond the limits; OSError when the file cannot be written."""
    deadline = time.monotonic() + limits.most_s
    with _reaching():
        opened = urllib.request.urlopen(address, timeout=limits.silence_s)
    with opened as answer:
        promised = answer.headers.get("Content-Length", "")
        while True:
            with _reaching():
                data = answer.read1(_CHUNK)
            if not data:
                break
            into.write(data)
            if into.tell() > limits.most_bytes:
                raise DownloadRefused(f"is larger than {size(limits.most_bytes)}")
            if time.monotonic() > deadline:
                raise DownloadRefused(f"took longer than {limits.most_s:g} s")
    if promised.isdecimal() and int(promised) != into.tell():
        raise DownloadRefused(f"broke off after {into.tell()} of {promised} bytes")


@contextmanager
def _reaching() -> Iterator[None]:
    """A context that turns errors of a download into Refused."""
    try:
        yield
    except urllib.error.HTTPError as error:
        raise DownloadRefused(f"cannot be fetched: HTTP status {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise DownloadRefused(f"cannot be fetched: {plain(str(reason)) or type(error).__name__}") from error
