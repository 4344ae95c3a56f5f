"""Flows of datagrams side by side: what is sent, what comes of it, and how far two flows' bytes are apart."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

import pytest
from host_programs import loaded, program

PROGRAM = program("shares")
SHARES = loaded("shares")


def test_datagrams_of_all_flows_are_due_in_the_order_of_time() -> None:
    flows = [SHARES.flow("1000:8e6"), SHARES.flow("500:8e6")]  # every 1 and every 0.5 ms
    due = [*SHARES.dues(flows, 0.002)]
    assert [number for _, number in due] == [0, 1, 1, 0, 1, 1]
    assert [round(at * 1e4) for at, _ in due] == [0, 0, 5, 10, 10, 15]


def test_bytes_are_apart_by_the_most_over_any_time() -> None:
    flows = [SHARES.Flow(100, 1e5), SHARES.Flow(200, 1e5)]
    begin = 5.0
    counted = [(0, 100), (0, 100), (1, 200), (1, 200), (0, 100)]
    came = [(0, 100, begin), *((n, size, begin + 1.1 + i / 10) for i, (n, size) in enumerate(counted))]
    found = SHARES.analysis(came, flows, 2.0)
    assert found["apart_bytes"] == 400  # the second flow has 400 bytes in a row
    assert found["rate_1_mbit"] == pytest.approx(300 * 8 / 1e6) and found["rate_2_mbit"] == pytest.approx(400 * 8 / 1e6)
    assert found["lost_1_percent"] == pytest.approx(100 * (1 - 4 / 250))


def test_what_comes_before_the_queues_are_full_and_after_the_end_does_not_count() -> None:
    flows = [SHARES.Flow(100, 1e5)] * 2
    came = [(0, 100, 0.0), (1, 100, 0.9), (0, 100, 1.5), (1, 100, 1.6), (1, 100, 2.1)]
    found = SHARES.analysis(came, flows, 2.0)
    assert found["apart_bytes"] == 100 and found["rate_1_mbit"] == found["rate_2_mbit"]


def test_over_the_loopback_everything_comes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    receiver = subprocess.Popen([sys.executable, str(PROGRAM), "receive", str(port)])
    try:
        words = ["send", "127.0.0.1", str(port), "--flow", "442:2e5", "--flow", "1442:2e5", "--seconds", "1.5"]
        for _ in range(100):
            ran = subprocess.run([sys.executable, str(PROGRAM), *words], capture_output=True, text=True, check=False)
            if ran.returncode == 0:
                break
            assert "ConnectionRefusedError" in ran.stderr
            time.sleep(0.1)
        found = json.loads(ran.stdout)
        assert found["lost_1_percent"] == found["lost_2_percent"] == 0
        assert found["rate_2_mbit"] == pytest.approx(0.2, rel=0.3) and found["apart_bytes"] < 10 * 1442
    finally:
        receiver.kill()
        receiver.wait()


def test_one_flow_alone_shares_with_nobody() -> None:
    words = ["send", "127.0.0.1", "9", "--flow", "442:2e5", "--seconds", "1"]
    ran = subprocess.run([sys.executable, str(PROGRAM), *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "two flows" in ran.stderr
