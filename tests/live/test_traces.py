"""A trace of delivery opportunities, and links that change while a burst waits: the moments, beside arithmetic."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from minigts import lab as labs
from minigts.foreign import parser_text
from minigts.lab import Lab, schedule_player
from minigts.topology import opportunities
from minigts.topology.schedule import Moment

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
NS_A_MS = 1_000_000
OPPORTUNITY_BYTES = 1504
"""Of an IP packet, and the 4 bytes that mahimahi counts beside each."""
HEADERS = 20 + 8
DELAY_MS = 5
READINGS_NS = 1500
"""Of the clock at both ends, 256 ns each."""
FEW = 20
"""So many frames rule out most moments at which a trace may have begun."""
RECEIVE = r"""
import json, socket, struct, sys
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
line.setsockopt(socket.SOL_SOCKET, 35, 1)
line.bind(("", 5800))
line.settimeout(4)
found = []
try:
    while True:
        datagram, beside, _, _ = line.recvmsg(2000, 128)
        seconds, ns = struct.unpack("@qq", beside[0][2][:16])
        if len(datagram) > 8:
            found.append((int(datagram[:8]), seconds * 1000000000 + ns))
except TimeoutError:
    print(json.dumps(found))
"""
SEND = r"""
import json, socket, sys, time
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.connect((sys.argv[1], 5800))
line.send(b"arp")
time.sleep(0.2)
sent, begin = [], time.time_ns()
for number, (at_ms, length) in enumerate(json.loads(sys.argv[2])):
    left = begin + at_ms * 1000000 - time.time_ns()
    if left > 0:
        time.sleep(left / 1e9)
    sent.append(time.time_ns())
    line.send(b"%08d" % number + b"." * (length - 8))
print(json.dumps(sent))
"""


@pytest.fixture(autouse=True)
def as_before(lab: Lab) -> Iterator[None]:
    """Other tests have this lab, too."""
    before = lab.read_record()
    yield
    labs.restore_links(lab, before)


def sent_and_came(
    lab: Lab, moments: Sequence[Moment], datagrams: Sequence[tuple[int, int]]
) -> tuple[list[int], list[tuple[int, int]]]:
    """When each of the datagrams was sent, and which came when, in ns of the hosts' clock. Each has a moment in ms and
    a length in bytes; the sender begins with the schedule."""
    target = lab.plan.address_over(lab.plan.path("ams", "bra"))
    with lab.provider.together() as pool:
        came = pool.start(lambda: lab.provider.run("bra", ["python3", "-c", RECEIVE], timeout_s=LIMIT_S).stdout)
        argv = ["python3", "-c", SEND, target, json.dumps([*datagrams])]
        said = schedule_player.play(
            lab, moments, lambda _: None, lambda: lab.provider.run("ams", argv, timeout_s=LIMIT_S).stdout
        )
        assert said is not None
        return json.loads(parser_text(said)), [(number, at) for number, at in json.loads(parser_text(came.result()))]


def left_ns(lines: Sequence[int], began_ns: int, frames: Sequence[tuple[int, int]]) -> list[int]:
    """When frames leave by a trace, opportunity after opportunity and byte by byte. `frames` has when each came, and
    its bytes; `lines` the milliseconds of the trace."""
    found: list[int] = []
    unsent = frames[0][1]
    cycle = 0
    while True:
        for line in lines:
            moment = began_ns + (cycle * lines[-1] + line) * NS_A_MS
            room = OPPORTUNITY_BYTES
            while room and frames[len(found)][0] < moment:
                part = min(room, unsent)
                room, unsent = room - part, unsent - part
                if not unsent:
                    found.append(moment)
                    if len(found) == len(frames):
                        return found
                    unsent = frames[len(found)][1]
        cycle += 1


def are_alike(those: Sequence[int], these: Sequence[int]) -> bool:
    return all(abs(is_ - by) < READINGS_NS for is_, by in zip(those, these, strict=True))


def test_a_trace_delivers_byte_for_byte_what_its_opportunities_allow(lab: Lab) -> None:
    chance = random.Random(59)
    lines = sorted(chance.randrange(1, 400) for _ in range(120))
    runs = opportunities.read("".join(f"{line}\n" for line in lines))
    labs.update_settings(lab, "ams-bra", {"delay_ms": DELAY_MS})
    datagrams = sorted((chance.randrange(2000), chance.choice((20, 100, 724, 1000, 1472))) for _ in range(600))
    moments = [
        Moment(at_s=0, link="ams-bra", sender="ams", update={"trace": runs, "queue_bytes": 2_000_000}),
        Moment(at_s=20, link="ams-bra", sender="ams", update={"trace": None, "queue_bytes": None}),
    ]
    sent, came = sent_and_came(lab, moments, datagrams)
    assert [number for number, _ in came] == [*range(len(datagrams))]
    arrived = [at - DELAY_MS * NS_A_MS for _, at in came]
    # The trace begins up to a second before the first datagram; there is one moment of which all arrivals follow.
    firsts = range(arrived[0] - 3000 * NS_A_MS, arrived[0], NS_A_MS)
    # Datagrams are sent at whole milliseconds of the sender's. Opportunities may come just then, and among the
    # datagrams of one millisecond: then it matters how long after its reading of the clock each was sent.
    several = [
        [(at + error_ns, length + HEADERS + 4) for at, (_, length) in zip(sent, datagrams, strict=True)]
        for error_ns in range(-READINGS_NS, 2 * READINGS_NS, 250)
    ]
    alike = [
        began
        for began in firsts
        for frames in several
        if are_alike(arrived[:FEW], left_ns(lines, began, frames[:FEW]))
        and are_alike(arrived, left_ns(lines, began, frames))
    ]
    assert len({(began - alike[0]) % (lines[-1] * NS_A_MS) for began in alike}) == 1


@pytest.mark.parametrize(("before", "after", "moment_s"), [(1, 100, 0.8), (100, 1, 0.205)])
def test_a_changed_rate_reaches_what_waits(lab: Lab, before: float, after: float, moment_s: float) -> None:
    """200 frames of 1514 bytes at once, and bits that leave by the one rate, then by the other."""
    queue = {"queue_bytes": 400_000}
    moments = [
        Moment(at_s=0, link="ams-bra", sender="ams", update={"rate_mbit": before, **queue}),
        Moment(at_s=moment_s, link="ams-bra", sender="ams", update={"rate_mbit": after}),
        Moment(at_s=20, link="ams-bra", sender="ams", update={"rate_mbit": None, "queue_bytes": None}),
    ]
    _, came = sent_and_came(lab, moments, [(0, 1472)] * 200)
    assert len(came) == 200
    frame_ns = {rate: 1514 * 8 * 1000 / rate for rate in (before, after)}
    gaps = [later - earlier for (_, earlier), (_, later) in pairwise(came)]
    slow = [gap for gap in gaps if abs(gap - frame_ns[before]) < READINGS_NS]
    fast = [gap for gap in gaps if abs(gap - frame_ns[after]) < READINGS_NS]
    # All leave by one of the two, but for the one that was leaving.
    assert len(slow) + len(fast) >= 198
    assert slow and fast
    (between,) = [gap for gap in gaps if gap not in slow and gap not in fast] or [frame_ns[after]]
    low, high = sorted(frame_ns.values())
    assert low - READINGS_NS < between < high + READINGS_NS
