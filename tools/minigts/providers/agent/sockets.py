"""Sockets in a lab's run directory. Standard library only."""

from __future__ import annotations

import os
import socket
from pathlib import Path

BACKLOG = 128


def listening(path: str) -> socket.socket:
    """The socket appears when it listens, never before."""
    Path(f"{path}.new").unlink(
        missing_ok=True
    )  # a guest's root may have made one, so that its host could not be reached
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{path}.new")
    listener.listen(BACKLOG)
    Path(f"{path}.new").rename(path)
    return listener


def connected(directory: Path, name: str, timeout_s: float | None) -> socket.socket:
    """A path through an open directory: a socket's own may be 107 bytes at the most (unix(7)). Raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connect(connection, directory, name)
    except OSError:
        connection.close()
        raise
    return connection


def connect(connection: socket.socket, directory: Path, name: str) -> None:
    """The same of a socket that is there."""
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{opened}/{name}")
    finally:
        os.close(opened)
