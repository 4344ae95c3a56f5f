"""Lines of a host's output, which may be arbitrarily long."""

from __future__ import annotations

from collections.abc import Iterator

MOST_BYTES = 1 << 16


class Lines:
    """Turns a stream in pieces of any size into lines without their ends. A line longer than `most_bytes` is split, so
    that no more is ever kept. The time is linear in the length of the stream.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece; yield the lines that are complete now."""
        first, *others = piece.split(b"\n")
        yield from self._longer(first)
        for other in others:
            yield bytes(self._begun)
            self._begun.clear()
            yield from self._longer(other)

    def rest(self) -> bytes:
        """Remove and return the incomplete last line; empty if there is none."""
        rest = bytes(self._begun)
        self._begun.clear()
        return rest

    def _longer(self, part: bytes) -> Iterator[bytes]:
        for at in range(0, len(part), self._most_bytes):
            self._begun += part[at : at + self._most_bytes]
            if len(self._begun) > self._most_bytes:
                yield bytes(self._begun[: self._most_bytes])
                del self._begun[: self._most_bytes]
