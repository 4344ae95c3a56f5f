"""Queues that are read again and again in virtual time, in the wire and in the host that sends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.lab import Lab, queues
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
SIZE_BYTES, FRAME_BYTES, RATE_MBIT, DATAGRAMS = 60_000, 1514, 2, 30
TOPOLOGY = """name: queue-readings
hosts: {{a: , b: , c: }}
links:
  - {{ends: [a, b], rate: 100mbit}}
  - {{ends: [b, c], delay: 5ms, rate: 2mbit, queue: {}}}
"""
SEND = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range({DATAGRAMS}):
    s.sendto(bytes(1472), ("c", 7000))
"""
LEAVES_S = FRAME_BYTES * 8 / RATE_MBIT / 1e6
"""How long a frame takes to leave: 6 ms."""


@pytest.fixture(params=["60kB", "{size: 60kB, discipline: bfifo}"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(parse(TOPOLOGY.format(request.param), "q.yaml", time="virtual"), "uml", None, quiet)
    yield made
    take_down(made)


def test_a_queue_drains_by_its_rate(lab: Lab) -> None:
    with lab.provider.together() as pool:
        reading = pool.start(lambda: list(read(lab)))
        lab.provider.run("a", ["python3", "-c", SEND], timeout_s=LIMIT_S)
        found = reading.result()
    assert [round(at_s, 6) for at_s, _ in found] == [number * 0.02 for number in range(len(found))]
    waiting = [(at_s, queue.bytes) for at_s, queue in found if queue.bytes]
    assert len(waiting) > 4
    assert max(held for _, held in waiting) > SIZE_BYTES / 3
    for (first_s, before), (second_s, after) in pairwise(waiting[1:]):
        gone = (before - after) / FRAME_BYTES
        assert gone == pytest.approx((second_s - first_s) / LEAVES_S, abs=1.01)
    assert found[-1][1].bytes == 0
    in_host = lab.plan.host("b").ports[1].outgoing.queue_discipline != "fifo"
    assert {queue.packets is not None for _, queue in found} == {in_host}


def read(lab: Lab) -> Iterator[tuple[float, queues.Queue]]:
    end = ("b", "b-c")
    seen: list[float] = []
    for at_s, each in queues.readings(lab, [end], 0.02, lambda: len(seen) > 15):
        seen.append(at_s)
        yield at_s, each[end]
