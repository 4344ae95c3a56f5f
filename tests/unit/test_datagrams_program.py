"""The source of datagrams for laws of queues, losses and delays: what it sends, and what it makes of what came."""

from __future__ import annotations

import json
import random
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

import pytest
from host_programs import loaded, program

PROGRAM = program("datagrams")
MS = 1_000_000


DATAGRAMS = loaded("datagrams")


def wait_until_it_answers(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(0.25)
        line.connect(("127.0.0.1", port))
        for _ in range(100):
            try:
                line.send(DATAGRAMS.ASK)
                line.recv(8)
            except ConnectionRefusedError:
                time.sleep(0.1)
            except TimeoutError:
                continue
            else:
                return
    raise AssertionError("the receiver does not answer")


def arrivals(sent_ms: list[float], came_ms: list[float], frame: int = 1000) -> list[Any]:
    moments = enumerate(zip(sent_ms, came_ms, strict=True))
    return [DATAGRAMS.Arrival(n, round(sent * MS), round(came * MS), frame, False) for n, (sent, came) in moments]


def test_frames_have_the_sizes_that_are_asked_for() -> None:
    random.seed(37)
    assert DATAGRAMS.frames("700", 3) == [700, 700, 700]
    exponential = DATAGRAMS.frames("exponential:1200", 20_000)
    assert statistics.fmean(exponential) == pytest.approx(1200, rel=0.03)  # four standard errors of such a mean
    assert min(exponential) == 50 and max(exponential) <= 9014
    mix = DATAGRAMS.frames("mix", 12_000)
    assert {size: round(12 * mix.count(size) / 12_000) for size in (64, 594, 1518)} == {64: 7, 594: 4, 1518: 1}


def test_some_are_due_at_once_and_the_others_after_gaps() -> None:
    assert [*DATAGRAMS.dues_ns(5, 0.002, "steady", 3)] == [0, 0, 0, 2 * MS, 4 * MS]
    random.seed(37)
    due = [*DATAGRAMS.dues_ns(20_000, 0.002, "poisson", 0)]
    assert due[0] == 0 and due == sorted(due)
    assert due[-1] / 20_000 == pytest.approx(2 * MS, rel=0.03)


def test_runs_of_losses_and_how_a_loss_depends_on_the_one_before() -> None:
    found = DATAGRAMS.losses({0, 1, 4, 5, 6, 8, 9}, 10)  # 2 and 3 are lost, and 7
    assert found["lost_percent"] == pytest.approx(30)
    assert found["run_packets"] == pytest.approx(1.5) and found["single_percent"] == pytest.approx(50)
    assert found["loss_correlation"] == pytest.approx((1 / 9 - 0.09) / (0.3 - 0.09))
    assert DATAGRAMS.losses({0, 1}, 2) == {"lost_percent": 0}


def test_a_datagram_is_overtaken_by_the_next_one() -> None:
    early, late = arrivals([0, 1], [20, 12])
    assert DATAGRAMS.overtaken_percent([late, early]) == 100
    assert DATAGRAMS.overtaken_percent(arrivals([0, 1], [12, 20])) == 0


def test_waits_are_those_of_lindley_s_recursion_and_a_slow_line_is_seen() -> None:
    """A frame of 1000 bytes takes 1 ms at 8 Mbit/s: sent at 0, 0.4 and 3 ms, they leave at 1, 2 and 4 ms."""
    sent = [0, 0.4, 3]
    came = arrivals(sent, [11, 12, 14])
    found = DATAGRAMS.queueing(came, [each.came_ns - each.sent_ns for each in came], 8e6)
    assert found["lindley_us"] == pytest.approx(0, abs=1e-6)
    assert found["wait_ms"] == pytest.approx(0.2) and found["longest_ms"] == pytest.approx(1.6)
    assert found["waits_percent"] == pytest.approx(100 / 3)
    assert found["utilisation"] == pytest.approx(2 / 3) and found["service_ms"] == 1 and found["variation"] == 0
    slow = arrivals(sent, [11.01, 12.02, 14.01])  # a rate 1 % lower
    late = DATAGRAMS.queueing(slow, [each.came_ns - each.sent_ns for each in slow], 8e6)
    assert late["lindley_us"] == pytest.approx(10)


def test_bytes_beyond_the_rate_are_those_of_the_worst_time() -> None:
    at_once = arrivals([0] * 3, [10, 10, 10])
    assert DATAGRAMS.at_once_bytes(at_once, 8e6) == 3000
    spaced = arrivals([0] * 3, [10, 11, 12])
    assert DATAGRAMS.at_once_bytes(spaced, 8e6) == 1000
    assert DATAGRAMS.at_once_bytes([*spaced, *arrivals([0], [12])], 8e6) == 2000


def test_drops_at_the_head_are_noticed_with_the_next_arrival() -> None:
    came = [DATAGRAMS.Arrival(n, n * MS, (2 * n + 10) * MS, 1000, False) for n in range(60) if n % 10 != 9]
    loops = [each.came_ns - each.sent_ns for each in came]
    found = DATAGRAMS.drops(came, loops, 0.005)
    assert found["drop_1_ms"] == pytest.approx(2 * 10 - 2 * 6)  # the sixth waits 6 ms, more than 5; 9 is lost, 10 comes
    assert found["drop_2_ms"] == pytest.approx(20)
    assert "drop_10_ms" not in found and DATAGRAMS.drops(came, [0] * len(came), 0.005) == {}


def test_a_loop_has_its_quantiles() -> None:
    found = DATAGRAMS.delays([(n + 1) * MS for n in range(100)])
    assert (found["loop_p16_ms"], found["loop_median_ms"], found["loop_p99_ms"]) == (16, 50, 99)
    assert (found["loop_least_ms"], found["loop_most_ms"], found["loop_mean_ms"]) == (1, 100, 50.5)


def test_datagrams_to_this_machine_come_all_and_a_second_sender_has_its_own() -> None:
    receiver = subprocess.Popen((sys.executable, PROGRAM, "receive", "5612"), stderr=subprocess.PIPE)
    words = ("127.0.0.1", "5612", "--count", "200", "--gap", "0.001", "--frame", "300", "--rate", "8e9")
    sender = (sys.executable, PROGRAM, "send", *words)
    try:
        wait_until_it_answers(5612)
        for _ in range(2):
            done = subprocess.run(sender, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            assert found["arrived"] == 200 and found["lost_percent"] == 0 and found["overtaken_percent"] == 0
            assert 0 < found["loop_least_ms"] < found["loop_most_ms"]
    finally:
        receiver.terminate()
        receiver.wait()


def test_a_rate_or_a_gap_is_needed() -> None:
    done = subprocess.run(
        (sys.executable, PROGRAM, "send", "127.0.0.1", "5613", "--count", "1", "--frame", "300"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "--gap, or --load with --rate" in done.stderr
