"""Connects standard input and output to a TCP connection: `python3 -ISE relay.py HOST PORT`. Standard library only.

It is SSH's proxy command, and runs in the machines' network namespace.
"""

from __future__ import annotations

import os
import select
import socket
import sys

CHUNK = 1 << 16


def main() -> None:
    """Print nothing when the connection fails: SSH reports it, and is started again while a machine boots."""
    try:
        connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10)
    except OSError:
        raise SystemExit(1) from None
    connection.settimeout(None)
    waiting = [0, connection.fileno()]
    while connection.fileno() in waiting:
        readable, _, _ = select.select(waiting, [], [])
        for source in readable:
            data = os.read(source, CHUNK)
            if not data:
                waiting.remove(source)
                if source == 0:
                    connection.shutdown(socket.SHUT_WR)
            elif source == 0:
                connection.sendall(data)
            else:
                _write(data)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
