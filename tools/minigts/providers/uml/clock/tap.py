"""Reads the frames of a lab from its clock, which carries them: all of them, and no host notices."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from minigts.errors import HostFailed
from minigts.language import documents
from minigts.providers.agent import sockets
from minigts.providers.uml.clock.process import SOCKET

LARGEST_BYTES = 512 << 20
"""How many bytes of frames are kept."""
ANSWER_S = 300.0


@dataclass(frozen=True)
class ClockFrame:
    """A frame that left a host: when, in nanoseconds of the lab's clock, and by which port, from 0."""

    leaves_ns: int
    host: int
    port: int
    content: bytes


class ClockTap:
    """A connection to a lab's clock by which each frame comes. Raises HostFailed when there is no clock."""

    def __init__(self, rundir: Path) -> None:
        try:
            self._socket = sockets.open_connection(rundir, SOCKET, None)
        except OSError as error:
            raise HostFailed("the lab's clock does not run") from error
        self._lines = self._socket.makefile("rb")
        self._ask("capture")
        if "error" in self._read():
            raise HostFailed("the lab's clock is another version's, which tells of no frames")
        self._frames: list[ClockFrame] = []
        self._why = "the lab's clock has ended"
        self._is_complete = False
        self._reader = Thread(target=self._take, daemon=True)
        self._reader.start()

    def end(self) -> list[ClockFrame]:
        """All frames that have left hosts so far, in the order of time, host and port. Raises HostFailed when some are
        missing."""
        self._ask("now")  # answered after all frames that were sent before
        self._reader.join(ANSWER_S)
        self.close()
        if not self._is_complete:
            raise HostFailed(f"not all frames could be captured: {self._why}")
        return sorted(self._frames, key=lambda frame: (frame.leaves_ns, frame.host, frame.port))

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def _ask(self, op: str) -> None:
        try:
            self._socket.sendall(json.dumps({"op": op}).encode() + b"\n")
        except OSError as error:
            raise HostFailed("the lab's clock has ended") from error

    def _read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise HostFailed("the lab's clock has ended, or more frames came than could be read")
        found: dict[str, Any] = documents.document(line)
        return found

    def _take(self) -> None:
        size = 0
        try:
            while "frame" in (told := self._read()):
                content = bytes.fromhex(told["frame"])
                size += len(content)
                if size > LARGEST_BYTES:
                    self._why = f"they have more than {LARGEST_BYTES >> 20} MB"
                    self._socket.shutdown(socket.SHUT_RDWR)
                    return
                self._frames.append(ClockFrame(told["leaves_ns"], told["host"], told["port"], content))
            self._is_complete = True
        except (HostFailed, OSError, ValueError, KeyError, TypeError) as error:
            self._why = str(error)
