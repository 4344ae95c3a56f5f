"""Searches text by the user's expressions in a separate process, with limits of time and memory.

A regular expression may take for ever, and a JMESPath may need more memory than there is. Python's `re` cannot be
stopped, so the whole process is ended. Otherwise the process is kept for the next search.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from functools import lru_cache
from typing import Literal

from minigts.machine import shell

LIMIT_S = 20.0
"""The longest time of one search; those of experiments take less than 1 ms."""
LONGEST_FOUND = 4000
"""Characters that are kept of a match; a number has fewer."""
_PROGRAM = f"""
import json, resource, signal, struct, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
asked, told = sys.stdin.buffer, sys.stdout.buffer
def by_pattern(pattern, text):
    import re
    found = re.compile(pattern, re.MULTILINE).search(text)
    if found is None:
        return None
    return found["value"] if "value" in found.re.groupindex else found[1 if found.re.groups else 0]
def by_path(path, text):
    import jmespath
    found = jmespath.search(path, json.loads(text, parse_int=float))
    return found if found is None or isinstance(found, str) else repr(found) if type(found) is float else str(found)
while head := asked.read(8):
    kind, expression, text = json.loads(asked.read(*struct.unpack("<Q", head)))
    signal.alarm({2 * LIMIT_S:.0f})  # it ends also where nobody is left to end it
    try:
        found = (by_pattern if kind == "pattern" else by_path)(expression, text)
        answer = ["found", None if found is None else found[:{LONGEST_FOUND}]]
    except BaseException as error:
        answer = ["failed", str(getattr(error, "msg", "") or error or type(error).__name__)[:{LONGEST_FOUND}]]
    signal.alarm(0)
    answer = json.dumps(answer).encode()
    told.write(struct.pack("<Q", len(answer)) + answer)
    told.flush()
"""


class TookTooLong(Exception):
    """A search did not end within its time."""


class Failed(ValueError):
    """An expression cannot be tried on a text; the message says why."""


def search(kind: Literal["pattern", "path"], expression: str, text: str, limit_s: float = LIMIT_S) -> str | None:
    """The first match of a regular expression (its group `value`, else its first group, else all of it), or the value
    at a JMESPath in a JSON document; None if there is none. Raises TookTooLong, Failed.
    """
    said, found = _searcher(os.getpid()).ask((kind, expression, text), limit_s)
    if said == "failed":
        raise Failed(found or "it failed")
    return found


class _Searcher:
    """The searching process, started with the first search, and again after it had to be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._end)

    def ask(self, question: tuple[str, str, str], limit_s: float) -> tuple[str, str | None]:
        content = json.dumps(question).encode()
        with self._lock:
            process = self._begun()
            writing = threading.Thread(target=_write, args=(process, struct.pack("<Q", len(content)) + content))
            writing.start()
            try:
                deadline_s = time.monotonic() + limit_s
                (length,) = struct.unpack("<Q", _read(process, 8, deadline_s))
                said, found = json.loads(_read(process, min(length, 16 * LONGEST_FOUND), deadline_s))
            except BaseException:
                self._end()
                raise
            finally:
                writing.join()
        return said, found

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            argv = [sys.executable, "-P", "-c", _PROGRAM]
            self._process = shell.start(argv, output=subprocess.PIPE, stdin=subprocess.PIPE, errors=subprocess.DEVNULL)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for end in (process.stdin, process.stdout):
                if end is not None:
                    end.close()


@lru_cache(maxsize=1)
def _searcher(_process_id: int) -> _Searcher:
    """The searcher of this process; a forked process gets its own."""
    return _Searcher()


def _write(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(content)
        process.stdin.flush()
    except (OSError, ValueError):  # it was ended meanwhile
        pass


def _read(process: subprocess.Popen[bytes], count: int, deadline_s: float) -> bytes:
    assert process.stdout is not None
    data = b""
    while len(data) < count:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            raise TookTooLong("it did not end in time")
        piece = os.read(process.stdout.fileno(), count - len(data))
        if not piece:
            raise Failed("it needs too much memory")
        data += piece
    return data
