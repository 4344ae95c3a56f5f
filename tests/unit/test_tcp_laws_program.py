"""The program that reads TCP's figures from the kernel, which runs on hosts: here over the loopback interface."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from host_programs import loaded, program

PROGRAM = program("tcp_laws")
LAWS = loaded("tcp_laws")


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answered, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]


def answered(listening: socket.socket) -> None:
    try:
        while True:
            line, _ = listening.accept()
            threading.Thread(target=LAWS.served, args=(line, 0), daemon=True).start()
    except OSError:
        return  # the test is over


def run(port: int, command: str, *options: str) -> dict[str, float]:
    argv = [sys.executable, str(PROGRAM), command, "127.0.0.1", str(port), *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return {name: float(number) for name, number in (each.split("=") for each in done.stdout.split())}


def test_an_answer_takes_longer_than_the_connection(port: int) -> None:
    found = run(port, "setup")
    assert 0 < found["connect_ms"] < found["answer_ms"]


def test_a_window_s_measurement_says_what_was_offered_and_carried(port: int) -> None:
    """Whether a kernel keeps to the limit differs by its version; the hosts' kernel does (`minigts validate`)."""
    found = run(port, "window", "--window", "40000", "--seconds", "3")
    assert found["offered_bytes"] > 0 and found["rate_bytes_s"] > 0


def test_the_kernel_s_own_counts_are_read_from_their_places() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        line = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
        with line, other:
            assert LAWS.Info(line).cwnd == 10 and LAWS.Info(line).ssthresh == LAWS.UNLIMITED
            for _ in range(3):
                line.sendall(b".")
                other.recv(1)
            sender, receiver = LAWS.Info(line), LAWS.Info(other)
            assert (sender.data_segs_out, receiver.data_segs_in, sender.sent_again) == (3, 3, 0)
            assert 0 < sender.min_rtt_us <= 1_000_000 and sender.snd_wnd > 10_000


def test_what_came_is_counted_from_its_first_byte_and_its_rate_from_later_on(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter((0.0, 50.0, 150.0, 250.0))
    monkeypatch.setattr(LAWS, "now_ms", lambda: next(moments))
    parts = iter((b"a" * 100, b"b" * 100, b"c" * 300, b""))
    with socket.socket() as line:
        monkeypatch.setattr(LAWS, "Info", lambda _line: type("Counted", (), {"data_segs_in": 2, "segs_out": 1}))
        reader = type("Line", (), {"recv": staticmethod(lambda _most: next(parts)), "fileno": line.fileno})
        found = LAWS.read(reader, 100)
    assert found == {"data_segs_in_before": 2, "acks_before": 1, "payload_bytes": 500, "rate_bytes_s": 3000.0}
