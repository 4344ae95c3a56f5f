"""Sockets in a lab's run directory. Standard library only."""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

BACKLOG = 4096
"""How many connections may wait to be accepted: a lab's thousand hosts may all be worked on at once. Linux allows
net.core.somaxconn, by default as many (listen(2))."""
FULL_S, AGAIN_S = 10.0, 0.01
"""How long a socket at which too many wait is tried again, and how often."""


def listening(path: str) -> socket.socket:
    """A listening socket at `path`. Its file appears only when it listens."""
    Path(f"{path}.new").unlink(missing_ok=True)  # a guest's root may have made such a file, which would block its host
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{path}.new")
    listener.listen(BACKLOG)
    Path(f"{path}.new").rename(path)
    return listener


def open_connection(directory: Path, name: str, timeout_s: float | None) -> socket.socket:
    """A new connection to the socket `name` in `directory`. The path goes through an open directory, since a socket's
    path may have at most 107 bytes (unix(7)). Raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connect(connection, directory, name)
    except OSError:
        connection.close()
        raise
    return connection


def is_readable(connection: socket.socket) -> bool:
    """Whether there is something to read, or its end."""
    watched = select.poll()
    watched.register(connection, select.POLLIN)
    return bool(watched.poll(0))


def connect(connection: socket.socket, directory: Path, name: str) -> None:
    """Connect an existing socket in the same way. Where too many wait already, it is tried again, also by a socket that
    does not block: that one would be refused at once. Raises OSError."""
    opened, latest = os.open(directory, os.O_PATH | os.O_DIRECTORY), time.monotonic() + FULL_S
    try:
        while True:
            try:
                return connection.connect(f"/proc/self/fd/{opened}/{name}")
            except BlockingIOError:
                if time.monotonic() > latest:
                    raise
                time.sleep(AGAIN_S)
    finally:
        os.close(opened)
