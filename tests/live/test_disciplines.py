"""Each queue discipline in virtual time: the kernel has it as the file says, and the lab counts what it drops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.foreign import user_text
from minigts.lab import Lab, metrics, usage
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
RATE_MBIT, DATAGRAMS, DATAGRAM_BYTES = 10, 400, 1472
TOPOLOGY = f"""
name: disciplines
hosts: {{a: {{ecn: on}}, b: , c: }}
defaults: {{link: {{delay: 5ms, rate: {RATE_MBIT}mbit}}}}
links:
  - ends: [a, b]
    queue: {{to: {{size: 60kB, discipline: fq_codel, ecn: false, mark: 3ms}},
             from: {{size: 60kB, discipline: codel, ecn: true, target: 2ms, interval: 50ms}}}}
  - ends: [b, c]
    queue: {{to: {{size: 60kB, discipline: cake, interval: 40ms}},
             from: {{size: 60kB, discipline: red, ecn: true, min: 5kB, max: 15kB}}}}
  - ends: [c, a]
    queue: {{to: {{size: 60kB, discipline: fq, mark: 2ms}}, from: 60kB}}
"""
OPTIONS: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("a", "b"): ("fq_codel", {"limit": 40, "ce_threshold": 3000, "target": 5000, "interval": 100_000}),
    ("b", "a"): ("codel", {"limit": 40, "target": 2000, "interval": 50_000, "ecn": True}),
    ("b", "c"): ("cake", {"memlimit": 120_000, "rtt": 40_000, "bandwidth": "unlimited"}),
    ("c", "b"): ("red", {"limit": 60_000, "min": 5000, "max": 15_000, "ecn": True}),
    ("c", "a"): ("fq", {"limit": 40, "ce_threshold": 2000}),
}
"""By the host and the one that it sends to: the discipline and options as `tc -j` shows them. Times are in us, which
CoDel rounds down to its own unit of 1.024 us; 60 kB are 40 frames, and for cake's memory twice that."""
FLOOD = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range({DATAGRAMS}):
    s.sendto(bytes({DATAGRAM_BYTES}), ("b", 7000))
"""


Flooded = tuple[usage.Carried, int]


def brought_up(name: str) -> tuple[Lab, Flooded]:
    """A lab whose link from a to b has been flooded as the first thing, with what came of it."""
    lab = labs.up(parse(TOPOLOGY, "disciplines.yaml", time="virtual"), "uml", name, quiet)
    return lab, flooded(lab)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Flooded]]:
    with state_directory(tmp_path_factory.mktemp("disciplines")):
        lab, seen = brought_up("disciplines")
    yield lab, seen
    take_down(lab)


@pytest.fixture(scope="module")
def lab(first: tuple[Lab, Flooded]) -> Lab:
    return first[0]


def flooded(lab: Lab) -> Flooded:
    """What the link from a to b has carried while a sent more than it holds, and what the discipline dropped."""
    lab.provider.run("a", ["ping", "-c", "1", "b"], timeout_s=LIMIT_S)  # ARP holds few frames
    before, already = usage.read(lab).carried["a", "a-b"], at(lab, "a", "b")["1:1"]["drops"]
    lab.provider.run("a", ["sh", "-euc", f"python3 -c '{FLOOD}'; sleep 1"], timeout_s=LIMIT_S)
    after = usage.read(lab).carried["a", "a-b"]
    sent, frames, dropped = (getattr(after, name) - getattr(before, name) for name in ("bytes", "frames", "dropped"))
    return usage.Carried(sent, frames, dropped, 0), at(lab, "a", "b")["1:1"]["drops"] - already


def at(lab: Lab, host: str, peer: str) -> dict[str, dict[str, Any]]:
    """The qdiscs of a host's port to another one by their parent; the one without a parent by `root`."""
    port = next(each for each in lab.plan.host(host).ports if each.peer_host == peer)
    shown = user_text(
        lab.provider.run(host, ["tc", "-s", "-j", "qdisc", "show", "dev", port.name], timeout_s=LIMIT_S).stdout
    )
    return {each.get("parent", "root"): each for each in json.loads(shown)}


@pytest.mark.parametrize(("host", "peer"), sorted(OPTIONS))
def test_the_kernel_has_each_discipline_as_the_file_says(lab: Lab, host: str, peer: str) -> None:
    kind, wanted = OPTIONS[host, peer]
    shown = at(lab, host, peer)
    assert (shown["root"]["kind"], shown["1:1"]["kind"]) == ("tbf", kind)
    assert shown["root"]["options"]["rate"] == RATE_MBIT * 1_000_000 / 8
    options = shown["1:1"]["options"]
    for name, value in wanted.items():
        close = name in ("target", "interval", "rtt", "ce_threshold")
        assert options[name] == (pytest.approx(value, abs=2) if close else value), name
    assert ("ecn" in options) == ("ecn" in wanted)


def test_a_fifo_is_the_wires_own(lab: Lab) -> None:
    assert {parent: each["kind"] for parent, each in at(lab, "a", "c").items()} == {"root": "pfifo"}


def test_what_a_discipline_drops_is_counted_and_equal_in_every_run(first: tuple[Lab, Flooded], tmp_path: Path) -> None:
    """The datagrams that have passed and those that were dropped are all that were sent; ARP may add some."""
    lab, (carried, dropped_by_host) = first
    assert carried.dropped == dropped_by_host > DATAGRAMS / 4
    assert DATAGRAMS <= carried.frames + carried.dropped <= DATAGRAMS + 4
    so_far = at(lab, "a", "b")["1:1"]["drops"]
    sample = f'minigts_link_dropped_frames_total{{lab="{lab.name}",link="a-b",from="a",to="b"}} {so_far}'
    assert sample in metrics.read(lab).splitlines()
    with state_directory(tmp_path):
        again, seen = brought_up("again")
    take_down(again)
    assert seen == first[1]
