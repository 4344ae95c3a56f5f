"""Captures of several interfaces as one pcapng file, in which Wireshark tells the interfaces apart.

tcpdump writes a pcap with nanoseconds for each interface; this module merges their frames in the order of their times.

Source: the pcap and pcapng capture file formats, drafts ietf-opsawg-pcap and ietf-opsawg-pcapng.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from minigts.errors import HostFailed

NANOSECOND_PCAP = 0xA1B23C4D
ETHERNET = 1
"""LINKTYPE_ETHERNET."""
MOST_FRAME_BYTES = 1 << 18
"""The most that tcpdump keeps of a frame (its MAXIMUM_SNAPLEN)."""
MOST_HELD_BYTES = 64 << 20
"""How much of all interfaces waits to be sorted; more is written in the order of its times so far."""
_FILE_HEADER = struct.Struct("<IHHiIII")
_FRAME_HEADER = struct.Struct("<IIII")
_SECTION, _INTERFACE, _FRAME = 0x0A0D0D0A, 1, 6
_BYTE_ORDER, _ANY_LENGTH = 0x1A2B3C4D, -1
_NAME, _TIME_RESOLUTION, _END_OF_OPTIONS = 2, 9, 0
_NANOSECONDS = bytes([9])


@dataclass(frozen=True, order=True)
class CapturedFrame:
    """A captured frame: its time in ns, its interface's number, its length, and the bytes that were kept of it."""

    time_ns: int
    interface: int
    length_bytes: int
    kept: bytes


class Pcap:
    """Reads one interface's pcap piece by piece. `link_type` is None until the file header has been read."""

    def __init__(self, interface: int) -> None:
        self.interface = interface
        self.link_type: int | None = None
        self.most_bytes = 0
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[CapturedFrame]:
        """The frames that `piece` completes. Raises ValueError for anything but a pcap with nanoseconds."""
        self._held += piece
        if self.link_type is None:
            if len(self._held) < _FILE_HEADER.size:
                return
            magic, _, _, _, _, self.most_bytes, self.link_type = _FILE_HEADER.unpack_from(self._held)
            if magic != NANOSECOND_PCAP:
                raise ValueError("no pcap with nanoseconds")
            del self._held[: _FILE_HEADER.size]
        while len(self._held) >= _FRAME_HEADER.size:
            seconds, nanoseconds, kept_bytes, length_bytes = _FRAME_HEADER.unpack_from(self._held)
            if kept_bytes > MOST_FRAME_BYTES:
                raise ValueError(f"a frame of {kept_bytes} bytes")
            end = _FRAME_HEADER.size + kept_bytes
            if len(self._held) < end:
                return
            kept = bytes(self._held[_FRAME_HEADER.size : end])
            del self._held[:end]
            yield CapturedFrame(seconds * 10**9 + nanoseconds, self.interface, length_bytes, kept)


class Merged:
    """Merges several pcaps into one pcapng, in the order of time. A frame waits for earlier frames of other interfaces:
    `release` writes the frames that were there when it was called the last time.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._pcaps = [Pcap(number) for number in range(len(names))]
        self._begun = False
        self._waiting: list[CapturedFrame] = []
        self._waited: list[CapturedFrame] = []
        self._held_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether more than MOST_HELD_BYTES wait, so that everything has to be released."""
        return self._held_bytes > MOST_HELD_BYTES

    def feed(self, interface: int, piece: bytes) -> None:
        """Add a piece of an interface's pcap. Raises HostFailed for a piece that is no capture."""
        try:
            for frame in self._pcaps[interface].feed(piece):
                heapq.heappush(self._waiting, frame)
                self._held_bytes += _FRAME_HEADER.size + len(frame.kept)
        except ValueError as error:
            raise HostFailed(f"what {self._names[interface]} sends is no capture: {error}") from error

    def release(self, *, everything: bool = False) -> bytes:
        """The bytes that can be written now: of frames that were there at the last call, or of all with `everything`.
        Raises HostFailed when `is_full` and an interface has not even sent a file header.
        """
        if self.is_full and (silent := [pcap.interface for pcap in self._pcaps if pcap.link_type is None]):
            raise HostFailed(f"{self._names[silent[0]]} sends no capture")
        if any(pcap.link_type is None for pcap in self._pcaps) and not everything:
            return b""
        latest = max(self._waited, default=None)
        self._waited = list(self._waiting)
        written = bytearray()
        if not self._begun:
            self._begun = True
            written += _section() + b"".join(map(_interface, self._names, self._pcaps))
        while self._waiting and (everything or (latest is not None and self._waiting[0] <= latest)):
            frame = heapq.heappop(self._waiting)
            self._held_bytes -= _FRAME_HEADER.size + len(frame.kept)
            written += _frame(frame)
        return bytes(written)


def whole(names: Sequence[str], frames: Iterable[CapturedFrame]) -> bytes:
    """A file with these frames of Ethernet, whose interfaces have these names."""
    interfaces = (_described(name, ETHERNET, MOST_FRAME_BYTES) for name in names)
    return _section() + b"".join(interfaces) + b"".join(map(_frame, frames))


def _section() -> bytes:
    return _block(_SECTION, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _ANY_LENGTH))


def _interface(name: str, pcap: Pcap) -> bytes:
    return _described(name, pcap.link_type or 0, pcap.most_bytes)


def _described(name: str, link_type: int, most_bytes: int) -> bytes:
    options = _option(_NAME, name.encode()) + _option(_TIME_RESOLUTION, _NANOSECONDS) + _option(_END_OF_OPTIONS, b"")
    return _block(_INTERFACE, struct.pack("<HHI", link_type, 0, most_bytes) + options)


def _frame(frame: CapturedFrame) -> bytes:
    high, low = divmod(frame.time_ns, 1 << 32)
    fixed = struct.pack("<IIIII", frame.interface, high, low, len(frame.kept), frame.length_bytes)
    return _block(_FRAME, fixed + _padded(frame.kept))


def _option(code: int, content: bytes) -> bytes:
    return struct.pack("<HH", code, len(content)) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
