"""A socket in a run directory at which too many wait is waited for, also by who does not block."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from minigts.providers.agent import sockets


def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[socket.socket, list[socket.socket]]:
    """A listener at which no more may wait, and those that do."""
    monkeypatch.setattr(sockets, "BACKLOG", 1)
    listener, waiting = sockets.listening(str(tmp_path / "s")), list[socket.socket]()
    while True:
        each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        each.setblocking(False)
        try:
            each.connect(str(tmp_path / "s"))
        except BlockingIOError:
            each.close()
            return listener, waiting
        waiting.append(each)


@pytest.mark.parametrize("timeout_s", [0, 5.0, None])
def test_who_comes_to_a_full_socket_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float | None
) -> None:
    listener, waiting = full(tmp_path, monkeypatch)
    accepting = threading.Timer(0.1, lambda: [listener.accept()[0].close() for _ in range(len(waiting) + 1)])
    accepting.start()

    sockets.open_connection(tmp_path, "s", timeout_s).close()

    accepting.join()
    for each in (listener, *waiting):
        each.close()


def test_one_that_stays_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "FULL_S", 0.05)
    listener, waiting = full(tmp_path, monkeypatch)

    with pytest.raises(BlockingIOError):
        sockets.open_connection(tmp_path, "s", 0)

    for each in (listener, *waiting):
        each.close()
