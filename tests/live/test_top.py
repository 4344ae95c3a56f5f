"""What `minigts top` shows is what passed, to the frame."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from minigts import lab as labs
from minigts.lab import Lab, usage

pytestmark = pytest.mark.touched("tools/minigts/lab/usage.py", "tools/minigts/lab/metrics.py")

COUNT, FRAME_BYTES, ARP_BYTES, LOST = 100, 1014, 42, 5
LIMIT_S = 60.0
ARP_PROBES = 3
"""How often Linux asks a neighbour that it knew (arp(7), ucast_solicit)."""


@pytest.fixture
def pair(pair: Lab) -> Lab:
    echoes(pair, 1)  # ARP
    return pair


def echoes(lab: Lab, count: int) -> None:
    argv = ["ping", "-q", "-i", "0.01", "-W", "1", "-s", str(FRAME_BYTES - 42), "-c", str(count)]
    lab.provider.run("ams", [*argv, lab.plan.host("bra").address], timeout_s=LIMIT_S, check=False)


def test_each_direction_has_carried_what_was_sent(pair: Lab) -> None:
    before = usage.read(pair)
    echoes(pair, COUNT)
    after = usage.read(pair)
    for machine in ("ams", "bra"):
        then, now = (reading.carried[machine, "ams-bra"] for reading in (before, after))
        asked_again = now.frames - then.frames - COUNT
        assert 0 <= asked_again <= 4, "no more than ARP"
        assert now.bytes - then.bytes == COUNT * FRAME_BYTES + asked_again * ARP_BYTES
        assert (now.dropped, now.lost) == (then.dropped, then.lost)


def test_what_a_link_loses_and_that_it_is_down_is_seen(pair: Lab) -> None:
    labs.set_links_up(pair, "ams", "bra", up=False)
    before = usage.read(pair)
    echoes(pair, LOST)
    there, back = usage.activity_between(pair, before, usage.read(pair)).flows
    assert (there.outage, back.outage) == ("cut", "cut")
    assert LOST <= there.lost <= LOST + 4
    assert there.frames > 0
    if pair.time == "virtual":
        assert back.frames == 0
    else:
        assert back.lost <= ARP_PROBES, "bra may ask for ams, of which it has not heard for a while"


@pytest.mark.nightly
@pytest.mark.alone  # in real time others would keep the stream from filling it
def test_a_stream_fills_the_queue_and_the_round_trip_is_as_much_longer(pair: Lab) -> None:
    pair.provider.run("bra", ["iperf3", "-s", "-D", "-1"], timeout_s=LIMIT_S)
    client = ["iperf3", "-c", pair.plan.host("bra").address, "-t", "8" if pair.time == "real" else "10"]
    seen: list[usage.DirectionUsage] = []
    with ThreadPoolExecutor(1) as beside:
        talk = beside.submit(pair.provider.run, "ams", client, timeout_s=2 * LIMIT_S)
        before = usage.read(pair)
        while not talk.done():
            after = usage.read(pair)
            there, back = usage.activity_between(pair, before, after).flows
            assert back.queued_bytes < 2000, "nothing but acknowledgements"
            seen.append(there)
            before = after
            time.sleep(0.1)  # of this machine's time; each look takes some of the lab's
        talk.result()
    fullest = max(seen, key=lambda flow: flow.queued_bytes)
    assert fullest.queued_bytes > 10_000
    assert fullest.rate_mbit == 100
    waits_ms = fullest.queued_bytes * 8 / 100e6 * 1e3
    assert fullest.rtt_ms == pytest.approx(17.7 + waits_ms, abs=0.2)
    assert all(flow.queued_bytes <= pair.plan.directions(pair.plan.links[0])[0].queue_bytes for flow in seen)
