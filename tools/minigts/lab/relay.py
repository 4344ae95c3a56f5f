"""The program on a host for `minigts forward`: it carries one TCP connection between a pair of pipes and a socket.

The host's Python gets this file as a text, with the arguments `PORT ADDRESS…`; it tries the addresses in turn. Standard
input and output carry records: four bytes in network order, then data. The four bytes are the length of the data; 0
ends that direction. With the highest bit set they acknowledge so many bytes of the other direction, and no data
follows; no side sends more than a window ahead. It uses only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator

HEADER = struct.Struct("!I")
TAKEN = 1 << 31
WINDOW = 1 << 20
"""How many bytes of a direction may be unacknowledged."""
CHUNK = 1 << 15
MOST_RECORD_BYTES = 1 << 16
"""The most data in a record that is accepted; each side sends less."""
CONNECT_S = 20.0
REFUSED = 111


def data(content: bytes) -> bytes:
    """A record with bytes of the connection; without bytes it ends this direction."""
    return HEADER.pack(len(content)) + content


def acknowledgement(count: int) -> bytes:
    """A record that acknowledges `count` bytes."""
    return HEADER.pack(TAKEN | count)


class Records:
    """Turns a stream of bytes, in pieces of any size, into records: an int for an acknowledgement, bytes for data.
    Raises ValueError for a record longer than MOST_RECORD_BYTES.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[int | bytes]:
        self._buffer += piece
        while len(self._buffer) >= HEADER.size:
            (number,) = HEADER.unpack_from(self._buffer)
            length = 0 if number & TAKEN else number
            if length > MOST_RECORD_BYTES:
                raise ValueError(f"a record of {length} bytes")
            if len(self._buffer) < HEADER.size + length:
                return
            content = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            yield number & ~TAKEN if number & TAKEN else content


class _Relay:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._under_way = 0
        self._ways = 2
        self._may_send = threading.Condition()
        self._output = threading.Lock()

    def serve(self) -> None:
        """Carry until both directions have ended, or either side has closed; then end the program."""
        threading.Thread(target=self._back, daemon=True).start()
        with contextlib.suppress(OSError):  # the server has closed the connection
            self._there()
        os._exit(0)

    def _there(self) -> None:
        records = Records()
        while piece := os.read(0, 1 << 16):
            for record in records.feed(piece):
                if isinstance(record, int):
                    with self._may_send:
                        self._under_way -= record
                        self._may_send.notify()
                elif record:
                    self._connection.sendall(record)
                    self._say(acknowledgement(len(record)))
                else:
                    self._one_way_less()
                    self._connection.shutdown(socket.SHUT_WR)

    def _back(self) -> None:
        try:
            while piece := self._connection.recv(CHUNK):
                with self._may_send:
                    self._may_send.wait_for(lambda: self._under_way < WINDOW)
                    self._under_way += len(piece)
                self._say(data(piece))
        except OSError:  # such as a reset
            pass
        self._say(data(b""))
        self._one_way_less()

    def _one_way_less(self) -> None:
        with self._may_send:
            self._ways -= 1
            if self._ways == 0:
                os._exit(0)

    def _say(self, record: bytes) -> None:
        with self._output:
            left = memoryview(record)
            while left:
                left = left[os.write(1, left) :]


def connect_first(port: int, addresses: list[str]) -> socket.socket:
    """A connection to the first address that accepts one. Raises the last address's OSError when none does."""
    failure = OSError("no address")
    for address in addresses:
        try:
            connection = socket.create_connection((address, port), CONNECT_S)
        except OSError as error:
            failure = error
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    raise failure


def main() -> int:
    port, *addresses = sys.argv[1:]
    try:
        connection = connect_first(int(port), addresses)
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        return REFUSED
    _Relay(connection).serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
