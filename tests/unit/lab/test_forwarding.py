"""A forwarded connection: its records, and the relay itself between real pipes and a real socket. No hosts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.lab import forwarding, relay

RECORDS = relay.data(b"abc") + relay.acknowledgement(7) + relay.data(b"")


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_records_come_out_as_they_went_in(size: int) -> None:
    records = relay.Records()
    pieces = (RECORDS[start : start + size] for start in range(0, len(RECORDS), size))
    assert [record for piece in pieces for record in records.feed(piece)] == [b"abc", 7, b""]


class Relayed:
    """The relay as a host runs it, with its pipes, and the server's end of its connection."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            source = Path(relay.__file__).read_text(encoding="utf-8")
            argv = [sys.executable, "-S", "-E", "-c", source, str(listener.getsockname()[1]), "127.0.0.1"]
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            listener.settimeout(20)
            self.server = listener.accept()[0]
        self._records = relay.Records()
        self._left: list[int | bytes] = []

    def send(self, record: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(record)
        self.process.stdin.flush()

    def record(self) -> int | bytes:
        assert self.process.stdout is not None
        while not self._left:
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, "the relay has ended"
            self._left = list(self._records.feed(piece))
        return self._left.pop(0)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.server.close()


@pytest.fixture
def relayed() -> Iterator[Relayed]:
    made = Relayed()
    yield made
    made.close()


def test_both_directions_are_carried_and_end_by_themselves(relayed: Relayed) -> None:
    relayed.send(relay.data(b"question") + relay.data(b""))
    assert relayed.record() == len(b"question")
    assert relayed.server.makefile("rb").read() == b"question"
    relayed.server.sendall(b"answer")
    assert relayed.record() == b"answer"
    relayed.server.close()
    assert relayed.record() == b""
    assert relayed.process.wait(20) == 0


def test_it_is_never_further_ahead_than_a_window(relayed: Relayed) -> None:
    relayed.server.settimeout(0.5)
    offered = 0
    with pytest.raises(TimeoutError):
        while offered < 64 * relay.WINDOW:
            offered += relayed.server.send(bytes(relay.CHUNK))
    got = 0
    while got < relay.WINDOW:
        got += len(bytes(relayed.record()))
    relayed.send(relay.acknowledgement(got))
    assert len(bytes(relayed.record())) > 0
    assert got < relay.WINDOW + relay.CHUNK


def test_it_ends_with_the_user_s_side(relayed: Relayed) -> None:
    assert relayed.process.stdin is not None
    relayed.process.stdin.close()
    assert relayed.process.wait(20) == 0
    relayed.process.stdin = None
    assert relayed.server.recv(1) == b""


def test_nobody_at_any_address_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        relay.connect_first(port, ["127.0.0.1", "127.0.0.2"])


def test_it_listens_on_loopback_alone_and_says_when_it_cannot() -> None:
    with forwarding.listening(0) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.2"
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.2:{port}: Address already in use"):
            forwarding.listening(port)


@pytest.mark.parametrize("word", ["ams", "ams:", ":80", "ams:0", "ams:65536", "ams:http", "ams:-1", "ams:²"])
def test_what_is_no_port_of_a_host_is_an_error(word: str) -> None:
    done = CliRunner().invoke(app, ["forward", "--", word])
    assert done.exit_code == 2
    assert "is no HOST:PORT" in done.stderr
