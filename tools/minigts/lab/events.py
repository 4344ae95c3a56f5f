"""The log of a lab's changes in its run directory: a line of JSON for each event.

A line is appended after the change is in the lab's record. A line that a crash has cut short is ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeAlias

from minigts.language import documents
from minigts.paths import open_regular, read_whole, write_whole

Event: TypeAlias = Mapping[str, object]
FILE = "events.jsonl"
LIMIT_BYTES = 2 << 20
"""A file longer than this loses its older half before the next line."""
LOOK_EVERY_S = 0.2


def note(rundir: Path, events: Iterable[Event], lab_s: float | None) -> None:
    """Append events; `lab_s` is the lab's own time in seconds, None where it is not known. An event that cannot be
    written is dropped, so that the lab does not fail.
    """
    moment: dict[str, object] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
    if lab_s is not None:
        moment["lab_s"] = round(lab_s, 6)
    lines = [json.dumps({**moment, **event}) + "\n" for event in events]
    if not lines:
        return
    path = rundir / FILE
    try:
        _make_room(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write("".join(lines).encode())
    except OSError:
        return


def read(rundir: Path) -> list[Event]:
    """All events in the file, the oldest first."""
    return list(_events(_content(rundir / FILE)))


def follow(rundir: Path) -> Iterator[Event]:
    """All events in the file, then each new one until the lab is taken down, and last the event `down`."""
    told = 0
    with _Held(rundir / FILE) as held:
        while True:
            gone = not os.path.lexists(rundir)
            content = held.content()
            told = told if told <= len(content) else 0  # the file has lost its older half
            whole = content.rfind(b"\n") + 1
            yield from _events(content[told:whole])
            told = max(told, whole)
            if gone:
                yield {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": "down"}
                return
            time.sleep(LOOK_EVERY_S)


class _Held(AbstractContextManager["_Held"]):
    """A file that is kept open, so that it can be read after it was removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def content(self) -> bytes:
        """The content of the file, or of the removed one if none is there; empty if both are missing, or too long."""
        self._look_again()
        if self._file is None:
            return b""
        self._file.seek(0)
        content = self._file.read(2 * LIMIT_BYTES + 1)
        return content if len(content) <= 2 * LIMIT_BYTES else b""

    def _look_again(self) -> None:
        try:
            now = open_regular(self._path, os.O_NOFOLLOW)
        except OSError:
            return
        if self._file is not None:
            self._file.close()
        self._file = now

    def __exit__(self, *_exception: object) -> None:
        if self._file is not None:
            self._file.close()


def _make_room(path: Path) -> None:
    content = _content(path)
    if len(content) > LIMIT_BYTES:
        half = content.index(b"\n", len(content) // 2) + 1
        write_whole(path, content[half:].decode(errors="replace"))
    elif content and not content.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def _content(path: Path) -> bytes:
    try:
        return read_whole(path, 2 * LIMIT_BYTES)
    except OSError:
        return b""


def _events(content: bytes) -> Iterator[Event]:
    for line in content.splitlines():
        try:
            event = documents.document(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
