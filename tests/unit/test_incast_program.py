"""Incast's program, which runs on hosts: blocks from many at the same time over loopback, and what it makes of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from host_programs import loaded, program

PROGRAM = program("incast")
INCAST = loaded("incast")


def test_timeouts_are_found_by_their_name() -> None:
    netstat = "TcpExt: SyncookiesSent TCPTimeouts TCPLost\nTcpExt: 1 42 7\nIpExt: InNoRoutes\nIpExt: 3\n"
    assert INCAST.timeouts(netstat) == 42


def test_the_goodput_is_that_of_all_rounds_over_their_time() -> None:
    # 2 rounds of 1 MB in 0.01 and 0.03 s: 16 Mbit in 0.04 s
    found = INCAST.summary([0.01, 0.03], 1_000_000, 3)
    assert found == {"goodput_mbit": 400.0, "timeouts": 3, "worst_ms": 30.0, "rounds_ms": [10.0, 30.0]}


@pytest.fixture
def answering() -> Iterator[int]:
    """The port of an answering program that does not touch this machine's settings: rounds need none."""
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        port: int = plug.getsockname()[1]
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import incast; incast.CONGESTION = ('reno',); "
        f"incast.serve({port})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def test_a_round_ends_with_the_last_byte_of_the_last_host(answering: int) -> None:
    plugs = [INCAST.connected("127.0.0.1", answering, "reno") for _ in range(3)]
    try:
        assert INCAST.round_s(plugs, 300_000) > 0
        assert INCAST.round_s(plugs, 1) > 0
        assert INCAST.told(plugs, "timeouts\n") >= 0
        for plug in plugs:
            plug.setblocking(False)
            with pytest.raises(BlockingIOError):
                plug.recv(1)  # no byte is left over
    finally:
        for plug in plugs:
            plug.close()


def test_a_host_that_does_not_answer_is_one_line() -> None:
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        port = plug.getsockname()[1]
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "ask", str(port), "127.0.0.1"], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "incast: [Errno 111] Connection refused\n"
    with pytest.raises(json.JSONDecodeError):
        json.loads(done.stdout)
