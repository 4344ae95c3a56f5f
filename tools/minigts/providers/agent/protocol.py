"""Frames between a client, the supervisor and the agent inside a guest.

A frame is a header of nine bytes (channel, kind, length; network order) and `length` bytes. A channel is one command.
Only the standard library is used, since the agent of provider mininet imports the same file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct("!IBI")
HELLO = b"\x00minigts agent 1\x00"
"""The agent's greeting, first on its line; whatever precedes it is noise."""

RUN = 1
"""To the agent: start a command; JSON with argv, timeout_s, terminal (null, or [rows, columns])."""
INPUT = 2
"""To the agent: bytes for the command's standard input; an empty frame closes it."""
KILL = 3
"""To the agent: end the command and all that it started."""
RESIZE = 4
"""To the agent: JSON [rows, columns] of the terminal."""
STDOUT = 5
STDERR = 6
EXIT = 7
"""From the agent, last on its channel: JSON with code and, if the time was up, timeout true."""
TAKEN = 8
"""From the agent, on channel 0: how many bytes it has read off the line since its last such frame; four bytes. From the
supervisor, on a client's channel that has an unread RUN or ASK: the agent has read something off the line."""

WAIT = 9
"""To a lab's clock, which does not pass it on: the sender waits for this channel, so time may pass. Eight bytes with
the sender's turn (0 if it has none), and one byte: 1 to wait for the channel's end, 0 for its next frame."""
PACE = 10
"""To a lab's clock, which does not pass it on: the lab runs in real time as long as this channel is open."""
WAITING = struct.Struct("!Q?")

HOST = 11
"""From the supervisor, on channel 0 and first of all: one byte, whether the host's agent has greeted."""
GREETED = b"\x01"
ASK = 12
"""To the agent, which reads and drops it: its TAKEN frame shows that it runs, and the supervisor passes that on."""
CUT = 13
"""From the supervisor, last on channel 0: this client has left too much unread, and gets no more."""
HEARD = 14
"""From a client, on the channel of a command: tell me all that has come up to now. The supervisor's answer, behind
that, is the same frame with the agent's number of the channel, four bytes."""
TAKE_OVER = 15
"""To the supervisor of a fork, four bytes: this channel is from now on the agent's of that number, which a command of
the first lab's client has had."""

RUN_WITHIN = 16
"""To the agent of a kernel that light hosts share: RUN for one of them. In front of the JSON is its name, behind a byte
with the name's length."""

WINDOW = 3072
"""How many bytes may be on the line that the agent has not read yet. The guest's line discipline holds 4096; UML's
serial driver, once throttled by a full one, does not wake up again (seen in kernels 6.12 and 7.2)."""

COUNT = struct.Struct("!I")
CHUNK = 16384
LONGEST_ANSWER = 1 << 16
"""Bytes that a frame from a guest may hold. An agent sends at most CHUNK, but a guest need not be honest."""
LONGEST_REQUEST = 16 << 20
"""Bytes that any frame may hold. A request holds a command's arguments, which Linux limits to 2 MiB (execve(2))."""
HIGHEST_CODE = 255
LONGEST_END = 200
"""Bytes that an EXIT frame may hold; an agent's are far shorter."""


class Malformed(ValueError):
    """A frame that no agent sends. The message repeats nothing from the sender except numbers."""


class Ended(NamedTuple):
    """How a command ended: its code, 0 to 255, and whether its time was up."""

    code: int
    timeout: bool


def parse_end(payload: bytes) -> Ended:
    """Parse an EXIT frame such as `{"code": 0, "timeout": false}`. Raises Malformed."""
    try:
        said = json.loads(payload) if len(payload) <= LONGEST_END else {}
        code, timeout = said["code"], said.get("timeout", False)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Malformed("it said that a command has ended, and not how") from None
    if type(code) is not int or not 0 <= code <= HIGHEST_CODE or type(timeout) is not bool:  # True is an int, too
        raise Malformed("it said that a command has ended as none can end")
    return Ended(code, timeout)


class Frame(NamedTuple):
    channel: int
    kind: int
    payload: bytes

    def run_of(self, host: str) -> Frame:
        """The RUN frame for a light host; itself for no name."""
        named = host.encode()
        return self._replace(kind=RUN_WITHIN, payload=bytes([len(named)]) + named + self.payload) if host else self

    def encode(self) -> bytes:
        return HEADER.pack(self.channel, self.kind, len(self.payload)) + self.payload


class Decoder:
    """Turns a stream of bytes, in pieces of any size, into frames. Raises Malformed for one longer than `longest`."""

    def __init__(self, longest: int = LONGEST_REQUEST) -> None:
        self._buffer, self._longest = bytearray(), longest

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            channel, kind, length = HEADER.unpack_from(self._buffer)
            if length > self._longest:
                raise Malformed(f"it began a frame of {length} bytes on its control line")
            if len(self._buffer) < HEADER.size + length:
                return
            payload = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            yield Frame(channel, kind, payload)


def require_answer(frame: Frame) -> Frame:
    """Return the frame if an agent may send it; else raise Malformed."""
    if frame.kind == EXIT:
        parse_end(frame.payload)
    elif frame.kind == TAKEN:
        if len(frame.payload) != COUNT.size:
            raise Malformed(f"it said what it has taken in {len(frame.payload)} bytes")
    elif frame.kind not in (STDOUT, STDERR):
        raise Malformed(f"it sent a frame of kind {frame.kind} on its control line")
    return frame
