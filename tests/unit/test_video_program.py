"""The star's source of bursts, which runs on hosts: how often it sends, and what it makes of what came."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys

import pytest
from host_programs import loaded, program

PROGRAM = program("video")
VIDEO = loaded("video")


@pytest.mark.parametrize(("second", "kbit"), [(0, 112), (5, 983), (9.999, 1853.8), (10, 112), (25, 983)])
def test_a_worker_s_rate_rises_for_ten_seconds_and_begins_anew(second: float, kbit: float) -> None:
    random.seed(2017)
    mean_s = statistics.fmean(VIDEO.gap_s(1, second) for _ in range(20_000))
    assert 1316 * 8 / mean_s / 1000 == pytest.approx(kbit, rel=0.03)  # four standard deviations of such a mean


def test_the_steady_stream_is_steady() -> None:
    assert {VIDEO.gap_s(0, second) for second in (0, 3, 9.9)} == {1470 * 8 / 1e6}


def test_the_jitter_is_rfc_1889_s_estimate_after_each_datagram_in_the_mean() -> None:
    assert VIDEO.jitter_ns([500, 500, 500]) == 0
    # 160 later, then 160 earlier: 10, then 10 + (160 - 10) / 16
    assert VIDEO.jitter_ns([500, 660, 500]) == pytest.approx((0 + 10 + 19.375) / 3)


def test_a_rate_is_of_whole_seconds_and_a_mean_over_the_workers() -> None:
    bits = {(1, 0): 1000, (1, 1): 3000, (1, 2): 50, (2, 0): 5000, (2, 1): 7000}
    expected = {"least_kbit": 3.0, "mean_kbit": 4.0, "highest_kbit": 5.0}
    assert VIDEO.rates(bits, 3) == expected


def test_streams_that_lose_nothing_arrive_as_they_were_sent() -> None:
    receiver = subprocess.Popen((sys.executable, PROGRAM, "receive", "5611"))
    try:
        sender = (sys.executable, PROGRAM, "send", "127.0.0.1", "5611", "--workers", "9", "--seconds", "2")
        done = subprocess.run(sender, capture_output=True, text=True, check=True, timeout=60)
    finally:
        receiver.terminate()
        receiver.wait()
    found = json.loads(done.stdout)
    # of a rise of ten seconds the first one: 112 to 286, less what was sent before the receiver listened
    assert 100 < found["mean_kbit"] < 320
    assert found["jitter_ms"] >= 0
