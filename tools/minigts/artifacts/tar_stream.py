"""Tar archives of strangers, read forwards in pieces: in memory are a member's headers, and a piece of its content.

Archives may be compressed by gzip, bzip2 or xz. Headers are bounded, so that none grows in memory; nothing is unpacked.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Protocol

from minigts.artifacts.downloads import DownloadRefused, plain

MIB = 1 << 20
BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 16
_UNFIT = (tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, ArithmeticError, RecursionError)
"""What tarfile and the decompressors raise for content that is not in their format."""


def members(content: Iterator[bytes], header_bytes: int) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes]]]:
    """The members of an archive, each with its content, which is lost with the next one.

    Raises DownloadRefused for an archive that is broken, or whose headers of one member are longer than `header_bytes`.
    """
    stream = _Stream(content)
    archive: tarfile.TarFile | None = None
    while True:
        stream.allowance = header_bytes
        try:
            archive = archive or tarfile.TarFile(fileobj=stream)  # type: ignore[arg-type]
            member = archive.next()
        except _UNFIT as error:
            raise DownloadRefused(f"is broken: {reason(error)}") from error
        if member is None:
            break
        archive.members.clear()  # type: ignore[attr-defined] # tarfile would keep all of them
        archive.pax_headers.clear()  # type: ignore[attr-defined] # and the headers for all of them
        if member.size < 0:
            raise DownloadRefused("is broken: a member has a negative size")
        yield member, stream.part(member)
    if stream.last_block != bytes(BLOCK):
        raise DownloadRefused(f"is broken: it ends in its middle, or is damaged, at byte {stream.tell()}")
    for data in stream.rest():
        if data.strip(b"\0"):
            raise DownloadRefused(f"is broken: something follows its end, before byte {stream.tell()}")


def decompress(content: Iterator[bytes]) -> tuple[Iterator[bytes], bool]:
    """The content, decompressed if necessary, and whether it begins like a tar archive."""
    start, content = head(content, BLOCK)
    for magic, decompressor in _PACKED.items():
        if start.startswith(magic):
            start, content = head(_expanded(content, magic, decompressor), BLOCK)
            break
    return content, _begins_archive(start)


def reason(error: Exception) -> str:
    """Why it failed, on one line."""
    return (error.strerror if isinstance(error, OSError) else None) or plain(str(error)) or type(error).__name__


class _Stream:
    """A file for tarfile that is read only forwards, and gives at most `allowance` bytes of headers."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._ahead, self._begin, self._at = chunks, b"", 0, 0
        self.allowance = 0
        self.last_block = b""

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        self.allowance -= size
        if size < 0 or self.allowance < 0:
            raise tarfile.ReadError("a member's header is too long")
        self.last_block = b"".join(self._take(size))
        return self.last_block

    def seek(self, position: int) -> None:
        if position < self._at:
            raise tarfile.ReadError("its members overlap")
        for _ in self._take(position - self._at):
            pass

    def part(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        """A member's content, which has to be read before the next member."""
        self.seek(member.offset_data)
        left = member.size
        for data in self._take(left):
            left -= len(data)
            yield data
        if left:
            raise DownloadRefused(f"is broken: it ends {left} bytes before the end of {member.name[-200:]!r}")

    def rest(self) -> Iterator[bytes]:
        while data := b"".join(self._take(_CHUNK)):
            yield data

    def _take(self, size: int) -> Iterator[bytes]:
        while size > 0:
            if self._begin == len(self._ahead):
                self._ahead, self._begin = next(self._chunks, b""), 0
            if not self._ahead:
                return
            data = self._ahead[self._begin : self._begin + size]
            size -= len(data)
            self._begin += len(data)
            self._at += len(data)
            yield data


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_PACKED: dict[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=256 * MIB),
}
"""The decompressors, by the first bytes of a compressed file."""


def _expanded(chunks: Iterator[bytes], magic: bytes, decompressor: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Decompress one or more streams in sequence. Raises Refused for one that ends early, and for data after them."""
    data = next(chunks, b"")
    while data:
        one = decompressor()
        while not one.eof:
            try:
                expanded = one.decompress(data, _CHUNK)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                raise DownloadRefused(f"is broken: {reason(error)}") from error
            data = getattr(one, "unconsumed_tail", b"")  # zlib only; the others keep it themselves
            if expanded:
                yield expanded
            elif not data and not one.eof:
                data = next(chunks, b"")
                if not data:
                    raise DownloadRefused("is broken: the compressed data ends early")
        data, chunks = head(itertools.chain([one.unused_data], chunks), len(magic))
        if data and not data.startswith(magic):
            if any(rest.strip(b"\0") for rest in chunks):
                raise DownloadRefused("is broken: something follows the compressed data")
            return
        data = next(chunks, b"")


def _begins_archive(block: bytes) -> bool:
    """Whether the block is a member's header, or the end of an empty archive."""
    try:
        tarfile.TarInfo.frombuf(block, tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        return block == bytes(BLOCK)
    except ValueError:
        return False
    return True


def head(chunks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first `size` bytes, or fewer if there are not so many, and the whole stream, with them."""
    pieces, length = [], 0
    for data in chunks:
        if data:
            pieces.append(data)
            length += len(data)
        if length >= size:
            break
    return b"".join(pieces)[:size], itertools.chain(pieces, chunks)


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """A file's content. Raises Refused when it cannot be read."""
    while True:
        try:
            data = file.read(_CHUNK)
        except OSError as error:
            raise DownloadRefused(f"cannot be read: {reason(error)}") from error
        if not data:
            return
        yield data
