"""Lines of what a host says, of which nobody knows how long they are."""

from __future__ import annotations

from collections.abc import Iterator

MOST_BYTES = 1 << 16


class Lines:
    """Turns a stream in pieces of any size into lines without their ends. One of more than `most_bytes` is taken apart,
    so that no more than that is ever kept; the time it takes grows with the stream alone.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are whole now."""
        first, *others = piece.split(b"\n")
        yield from self._longer(first)
        for other in others:
            yield bytes(self._begun)
            self._begun.clear()
            yield from self._longer(other)

    def rest(self) -> bytes:
        """What was said last, if that is no whole line; it is not kept."""
        rest = bytes(self._begun)
        self._begun.clear()
        return rest

    def _longer(self, part: bytes) -> Iterator[bytes]:
        for at in range(0, len(part), self._most_bytes):
            self._begun += part[at : at + self._most_bytes]
            if len(self._begun) > self._most_bytes:
                yield bytes(self._begun[: self._most_bytes])
                del self._begun[: self._most_bytes]
