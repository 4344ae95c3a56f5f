"""Queue disciplines of links in virtual time: Linux's own, in the host that sends, with what they drop and mark."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.errors import EnvironmentLacks
from minigts.fidelity import explanation
from minigts.foreign import user_text
from minigts.lab import Lab, schedule_player
from minigts.topology.plan import link_names
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
RATE_MBIT = 20
SIZE_BYTES = 150_000
RTT_MS = 22.0
FULL_MS = SIZE_BYTES * 8 / RATE_MBIT / 1000
"""How long a full queue takes to leave: 60 ms."""
CEILING_MBIT = RATE_MBIT * 1448 / 1514
DATAGRAMS, DATAGRAM_BYTES, FRAME_BYTES = 300, 1472, 1514
FRAME_NS = FRAME_BYTES * 8 * 1000 / RATE_MBIT
TOPOLOGY = f"""
name: queues
hosts:
  one: {{ecn: on}}
  two: {{ecn: accurate}}
  rtr:
  far: {{ecn: accurate}}
links:
  - {{ends: [one, rtr], delay: 1ms, rate: 200mbit}}
  - {{ends: [two, rtr], delay: 1ms, rate: 200mbit}}
  - {{ends: [rtr, far], delay: 10ms, rate: {RATE_MBIT}mbit, queue: {SIZE_BYTES // 1000}kB}}
"""
PORT = "eth3"
"""The port of rtr to far."""
SEND = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range({DATAGRAMS}):
    s.sendto(number.to_bytes(4, "big").ljust({DATAGRAM_BYTES}), ("far", 7000))
"""
RECEIVE = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7000))
print("ready", flush=True)
s.settimeout(5)
while True:
    try:
        number = s.recv(1500)
    except TimeoutError:
        break
    print(int.from_bytes(number[:4], "big"), time.time_ns())
    s.settimeout(1)
"""
THRESHOLDS: dict[str, dict[str, Any]] = {
    "codel": {"queue_discipline": "codel", "queue_ecn": "true", "queue_mark_ms": 5.0},
    "red": {"queue_discipline": "red", "queue_ecn": "true", "queue_min_bytes": 12_500, "queue_max_bytes": 12_500},
}
"""Marking from 5 ms on, by the delay and by the bytes of the queue."""


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("queues")):
        made = labs.up(parse(TOPOLOGY, "queues.yaml", time="virtual"), "uml", None, quiet)
        made.provider.run("far", ["iperf3", "-s", "-D"], timeout_s=LIMIT_S)
    yield made
    take_down(made)


@pytest.fixture(autouse=True)
def as_before(queues: Lab) -> Iterator[None]:
    before = queues.read_record()
    yield
    labs.restore_links(queues, before)


def on(lab: Lab, host: str, script: str) -> str:
    return user_text(lab.provider.run(host, ["sh", "-euc", script], timeout_s=LIMIT_S).stdout)


def begin(lab: Lab, host: str, command: str, output: str) -> None:
    """Start a command beside others. Time passes only while a command is waited for, so what follows is equal in every
    run."""
    on(lab, host, f"setsid {command} >{output} 2>&1 </dev/null & sleep 0.2")


def discipline(lab: Lab) -> dict[str, Any]:
    """What `tc -s` shows of the discipline below the tbf of rtr's port."""
    shown = json.loads(on(lab, "rtr", f"tc -s -j qdisc show dev {PORT}"))
    return next(each for each in shown if each.get("parent") == "1:1")


def loaded(lab: Lab, *, control: str = "cubic") -> tuple[float, float, int]:
    """The median round trip in ms from `two` to far while `one` sends by TCP there, its rate in Mbit/s, and how many
    segments it sent again."""
    begin(lab, "one", f"iperf3 -c far -C {control} -t 4 -J", "/tmp/stream")
    said = on(lab, "two", "sleep 2; ping -i 0.05 -c 30 far")
    result = json.loads(on(lab, "one", "while pgrep -x iperf3 >/dev/null; do sleep 0.1; done; cat /tmp/stream"))
    rtts_ms = [float(each) for each in re.findall(r"time=([\d.]+) ms", said)]
    sent, received = result["end"]["sum_sent"], result["end"]["sum_received"]
    return statistics.median(rtts_ms), received["bits_per_second"] / 1e6, sent["retransmits"]


@pytest.mark.parametrize("name", ["fifo", pytest.param("bfifo", marks=pytest.mark.nightly)])
def test_a_full_queue_delays_all_that_passes_it(queues: Lab, name: str) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_discipline": name}, "rtr")
    rtt_ms, rate_mbit, _ = loaded(queues)
    assert RTT_MS + FULL_MS / 2 < rtt_ms < RTT_MS + 1.1 * FULL_MS
    assert rate_mbit > 0.95 * CEILING_MBIT


@pytest.mark.parametrize(
    ("name", "waits_ms"),
    [
        ("fq_codel", 2.0),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in (("cake", 2.0), ("fq", 2.0), ("codel", 15.0))),
    ],
)
def test_a_discipline_of_linux_cures_it(queues: Lab, name: str, waits_ms: float) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_discipline": name}, "rtr")
    rtt_ms, rate_mbit, _ = loaded(queues)
    assert RTT_MS < rtt_ms < RTT_MS + waits_ms
    assert rate_mbit > 0.9 * CEILING_MBIT
    shown = discipline(queues)
    assert shown["kind"] == name
    assert shown["packets"] > 5000


@pytest.mark.parametrize("name", ["red", pytest.param("codel", marks=pytest.mark.nightly)])
def test_dctcp_keeps_the_queue_at_its_threshold(queues: Lab, name: str) -> None:
    labs.update_settings(queues, "rtr-far", THRESHOLDS[name], "rtr")
    before = discipline(queues)
    rtt_ms, rate_mbit, sent_again = loaded(queues, control="dctcp")
    now, marks = discipline(queues), {"codel": "ce_mark", "red": "marked"}[name]
    assert sent_again == 0  # the echoes do not allow marks, and red drops some
    assert now[marks] - before.get(marks, 0) > 100
    assert RTT_MS < rtt_ms < RTT_MS + 8
    assert rate_mbit > 0.9 * CEILING_MBIT


@pytest.mark.nightly
def test_who_asks_for_ecn_is_marked_where_others_are_dropped(queues: Lab) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_discipline": "codel", "queue_ecn": "true"}, "rtr")
    loaded(queues)
    marked = discipline(queues)
    assert marked["ecn_mark"] > 0
    assert marked["drops"] == marked["drop_overlimit"] == 0
    on(queues, "one", "sysctl -q net.ipv4.tcp_ecn=2")
    try:
        loaded(queues)
    finally:
        on(queues, "one", "sysctl -q net.ipv4.tcp_ecn=1")
    assert discipline(queues)["drops"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize(("host", "accurate"), [("one", 0), ("two", 1)])
def test_a_host_asks_for_ecn_as_its_file_says(queues: Lab, host: str, accurate: int) -> None:
    """The SYN carries ECE and CWR (RFC 3168); of accurate ECN it carries AE, too, the bit before them."""
    asks = f"tcp[13] & 0xd2 = 0xc2 and tcp[12] & 1 = {accurate}"
    begin(queues, "far", f"timeout 3 tcpdump -ni eth1 -c 1 '{asks}'", "/tmp/seen")
    on(queues, host, "iperf3 -c far -n 1K")
    assert "1 packet captured" in on(queues, "far", "sleep 3; cat /tmp/seen")


def test_frames_leave_in_order_at_the_rate_and_none_is_lost_uncounted(queues: Lab) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_discipline": "bfifo"}, "rtr")
    before = discipline(queues)
    begin(queues, "far", f"python3 -c '{RECEIVE}'", "/tmp/came")
    on(queues, "one", f"python3 -c '{SEND}'")
    lines = [line.split() for line in on(queues, "far", "sleep 2; cat /tmp/came").splitlines()[1:]]
    now = discipline(queues)
    numbers, times_ns = [int(number) for number, _ in lines], [int(time_ns) for _, time_ns in lines]
    assert numbers == sorted(set(numbers))
    assert len(numbers) + now["drops"] - before["drops"] == DATAGRAMS
    assert len(numbers) >= SIZE_BYTES // FRAME_BYTES
    apart_ns = [later - earlier for earlier, later in pairwise(times_ns)]
    assert max(abs(each - FRAME_NS) for each in apart_ns[: SIZE_BYTES // FRAME_BYTES - 1]) <= 1000


def test_what_is_set_is_shown_and_what_a_host_lost_is_named(queues: Lab) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_discipline": "codel", "queue_target_ms": 3.0}, "rtr")
    link = link_names.link_named(queues.plan, "rtr-far")
    seen = explanation.explain(queues, link)
    rows = {each.name: each for each in seen.quantities if each.source == "rtr"}
    assert (rows["queue.discipline"].declared, rows["queue.discipline"].shown) == ("fifo", "codel")
    assert rows["queue.target"].shown == pytest.approx(3.0, abs=0.002)
    assert rows["queue.target"].where == f"rtr {PORT} codel"
    assert (seen.cause, seen.differences) == ("changed", ())
    on(queues, "rtr", f"tc qdisc replace dev {PORT} parent 1:1 cake")
    seen = explanation.explain(queues, link)
    assert seen.cause == "settings"
    assert seen.differences == (f"rtr {PORT}: the queue discipline is cake, should be codel",)
    labs.set_links_up(queues, "rtr", "far", up=False)
    labs.set_links_up(queues, "rtr", "far", up=True)


def test_a_schedule_changes_disciplines(queues: Lab) -> None:
    moments = [
        Moment(at_s=1, link="rtr-far", sender="rtr", update={"queue_discipline": "fq_codel", "queue_target_ms": 2.0}),
        Moment(at_s=2, link="rtr-far", sender="rtr", update={"queue_discipline": "red", "queue_max_bytes": 60_000}),
    ]
    kinds = []
    schedule_player.play(queues, moments, lambda _: kinds.append(discipline(queues)["kind"]))
    assert kinds == ["fq_codel", "red"]
    assert "tbf" not in on(queues, "rtr", f"tc qdisc show dev {PORT}")


def test_what_the_kernel_lacks_is_refused_before_anything_is_set(queues: Lab) -> None:
    before = queues.read_record()
    with pytest.raises(EnvironmentLacks, match=r"rtr-far with `queue.discipline: pie`: provider uml does not support"):
        labs.update_settings(queues, "rtr-far", {"queue_discipline": "pie"}, "rtr")
    assert queues.read_record() == before


@pytest.mark.parametrize("payload_bytes", [100, DATAGRAM_BYTES])
def test_a_queue_in_packets_holds_that_many_of_any_size(queues: Lab, payload_bytes: int) -> None:
    slow = {"rate_mbit": 1.0, "queue_packets": 20}
    labs.update_settings(queues, "rtr-far", slow, "rtr")
    on(queues, "rtr", "ping -c 1 far")  # or what is sent before the neighbour is known waits elsewhere
    begin(queues, "far", f"python3 -c '{RECEIVE}'", "/tmp/came")
    on(queues, "rtr", f"python3 -c '{SEND.replace(f'ljust({DATAGRAM_BYTES})', f'ljust({payload_bytes})')}'")
    came = [int(line.split()[0]) for line in on(queues, "far", "sleep 9; cat /tmp/came").splitlines()[1:]]
    assert came == [*range(20)]
    link = link_names.link_named(queues.plan, "rtr-far")
    rows = [each for each in explanation.explain(queues, link).quantities if each.source == "rtr"]
    assert [each.shown for each in rows if (each.name, each.unit) == ("queue", "packets")] == [20]
    assert explanation.explain(queues, link).differences == ()


def test_a_queue_in_packets_is_the_limit_of_a_discipline_that_counts_them(queues: Lab) -> None:
    labs.update_settings(queues, "rtr-far", {"queue_packets": 20, "queue_discipline": "codel"}, "rtr")
    assert discipline(queues)["options"]["limit"] == 20
    labs.update_settings(queues, "rtr-far", {"queue_ms": 30.0}, "rtr")
    assert discipline(queues)["options"]["limit"] == -(-RATE_MBIT * 30_000 // 8 // FRAME_BYTES)
