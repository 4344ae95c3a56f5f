"""The socket at which a server listens."""

from __future__ import annotations

import socket

from minigts.errors import InputError


def bind(address: str, port: int) -> socket.socket:
    """A listening socket; port 0 means any free port. Raises InputError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        raise InputError(f"cannot listen at {address} port {port}: {error.strerror}") from error
    return listening
