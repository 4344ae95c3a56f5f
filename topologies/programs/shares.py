"""Flows of datagrams side by side, and how a line shares itself among them: for laws of fair queueing.

On the receiving host:  shares.py receive PORT
On the sending host:    shares.py send ADDRESS PORT --flow 442:3e6 --flow 1442:3e6 --seconds 6

Each `--flow FRAME:RATE` sends frames of so many bytes, with the headers of Ethernet, IPv4 and UDP, 42 bytes, at a rate
in bit/s. The sender prints one JSON document; `analysis` says what each figure is.
"""

import argparse
import contextlib
import heapq
import itertools
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADERS = 14 + 20 + 8
"""Bytes before a datagram's payload: Ethernet, IPv4, UDP."""
FLOW = struct.Struct("!I")
"""A datagram begins with its flow's number, from 0."""
ARRIVED = struct.Struct("!IId")
"""Of each datagram that came: its flow's number, its frame's bytes, and the moment in s of the receiver's clock."""
SETTLED_S = 1.0
"""How long queues fill, and fair queueing's credits for new flows are spent, before a flow's bytes count."""


@dataclass(frozen=True)
class Flow:
    """Frames of so many bytes, at a rate in bit/s."""

    frame: int
    rate: float

    @property
    def gap_s(self) -> float:
        return self.frame * 8 / self.rate


def flow(given: str) -> Flow:
    frame, _, rate = given.partition(":")
    return Flow(int(frame), float(rate))


def receive(port: int) -> None:
    """Note what comes, until the process is ended; tell a sender that has connected to the same port before."""
    with socket.create_server(("", port)) as asked, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        line.bind(("", port))
        while True:
            with asked.accept()[0] as asking:
                asking.sendall(noted(line, asking))


def noted(line: socket.socket, asking: socket.socket) -> bytes:
    """What comes until the sender says that it was all."""
    found: list[bytes] = []
    line.settimeout(0.1)
    asking.setblocking(False)
    while True:
        with contextlib.suppress(TimeoutError):
            datagram = line.recv(1 << 16)
            found.append(ARRIVED.pack(*FLOW.unpack_from(datagram), len(datagram) + HEADERS, time.monotonic()))
            continue
        with contextlib.suppress(BlockingIOError):
            asking.recv(1)
            asking.setblocking(True)
            return b"".join(found)


def dues(flows: Sequence[Flow], seconds: float) -> Iterator[tuple[float, int]]:
    """When each datagram is due, in s from the beginning, and its flow's number."""

    def of(number: int) -> Iterator[tuple[float, int]]:
        gap_s = flows[number].gap_s
        return ((index * gap_s, number) for index in range(int(seconds / gap_s)))

    return heapq.merge(*map(of, range(len(flows))))


def send(to: tuple[str, int], flows: Sequence[Flow], seconds: float) -> list[tuple[int, int, float]]:
    """What came, in the order in which it did: its flow's number, its frame's bytes, the moment in s."""
    with contextlib.ExitStack() as opened:
        asked = opened.enter_context(socket.create_connection(to))
        lines = [opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in flows]
        for line in lines:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            line.connect(to)
        start_s = time.monotonic()
        for due_s, number in dues(flows, seconds):
            while (left_s := start_s + due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            lines[number].send(FLOW.pack(number).ljust(flows[number].frame - HEADERS, b"."))
        time.sleep(1)
        asked.sendall(b".")
        return list(ARRIVED.iter_unpack(b"".join(iter(lambda: asked.recv(1 << 16), b""))))


def analysis(came: Sequence[tuple[int, int, float]], flows: Sequence[Flow], seconds: float) -> dict[str, float]:
    """`lost_N_percent`: how much of what the N-th flow sent did not come; `rate_N_mbit`: its rate on the line, headers
    included, while all flows are sent. `apart_bytes`: the most by which the last two flows' bytes differ over any time
    in which all flows are sent, the measure by which fair queueing is judged."""
    begin_s = came[0][2] + SETTLED_S
    end_s = came[0][2] + seconds
    counted = [each for each in came if begin_s <= each[2] < end_s]
    found = {}
    for number, each in enumerate(flows):
        sent = int(seconds / each.gap_s)
        found[f"lost_{number + 1}_percent"] = 100 * (1 - sum(of == number for of, _, _ in came) / sent)
        own = sum(frame for of, frame, _ in counted if of == number)
        found[f"rate_{number + 1}_mbit"] = own * 8 / (end_s - begin_s) / 1e6
    signs = {len(flows) - 2: 1, len(flows) - 1: -1}
    ahead = list(itertools.accumulate((signs.get(of, 0) * frame for of, frame, _ in counted), initial=0))
    return found | {"apart_bytes": float(max(ahead) - min(ahead))}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = words.add_subparsers(dest="verb", required=True)
    receiver = verbs.add_parser("receive")
    receiver.add_argument("port", type=int)
    sender = verbs.add_parser("send")
    sender.add_argument("address")
    sender.add_argument("port", type=int)
    sender.add_argument("--flow", type=flow, action="append", required=True, help="FRAME:RATE, in bytes and bit/s")
    sender.add_argument("--seconds", type=float, required=True, help="how long they are sent")
    given = words.parse_args()
    if given.verb == "receive":
        receive(given.port)
        return
    if len(given.flow) < 2:
        words.error("a line is shared by two flows and more")
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # timers without slack
    came = send((given.address, given.port), given.flow, given.seconds)
    if not came:
        raise SystemExit("nothing arrived")
    sys.stdout.write(json.dumps(analysis(came, given.flow, given.seconds)) + "\n")


if __name__ == "__main__":
    main()
