"""Datagrams by a schedule, and what a line has done to them: for laws of queues, losses and delays.

On the receiving host:  datagrams.py receive PORT
On the sending host:    datagrams.py send ADDRESS PORT --count 20000 --gap 0.002 --frame 1000

A frame's length counts the headers of Ethernet, IPv4 and UDP, 42 bytes. The receiver has each datagram's moment from
its kernel. The sender prints one JSON document; a figure that has no value there is left out. `analysis` says what each
figure is.

The two clocks need not agree. The receiver answers some datagrams with its own clock, over a way back that must be
steady, and every time here is that of the loop: there, and back in the shortest time seen.
"""

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import socket
import statistics
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

HEADERS = 14 + 20 + 8
"""Bytes before a datagram's payload: Ethernet, IPv4, UDP."""
NUMBER = struct.Struct("!Q")
"""A datagram begins with its number, from 0."""
ARRIVED = struct.Struct("!Q?q")
"""Of each datagram that came: its number, whether it was marked, and when it came, in ns of the receiver's clock."""
ASK, REPORT = b"a", b"r"
EXCHANGES = 20
"""How often the receiver's clock is asked for."""
SHORTEST, LONGEST = HEADERS + NUMBER.size, 9014
MIX = (64, 594, 1518), (7, 4, 1)
"""Three sizes of frames and how often each comes: the simple mix with which routers are tested."""
NO_WAIT_NS = 3000
"""What is shorter is the clocks' resolution."""
ECT, CE = 2, 3
"""The bits of ECN (RFC 3168, section 5): a sender that allows marks, and a packet that was marked."""
NS = 1_000_000_000
SO_TIMESTAMPNS = 35
"""Of Linux; the socket module has no name for it."""


@dataclass(frozen=True)
class Arrival:
    """One datagram's way: its number, its moments in ns of either clock, its frame's bytes, and if it was marked."""

    number: int
    sent_ns: int
    came_ns: int
    frame: int
    marked: bool


def frames(kind: str, count: int) -> list[int]:
    """The lengths of frames in bytes: `1000` of all, `exponential:1200` by chance with that mean, `mix`."""
    word, _, mean = kind.partition(":")
    if word == "mix":
        return random.choices(*MIX, k=count)
    if word == "exponential":
        return [min(max(SHORTEST, round(random.expovariate(1 / float(mean)))), LONGEST) for _ in range(count)]
    return [int(kind)] * count


def dues_ns(count: int, gap_s: float, arrivals: str, first: int) -> Iterator[int]:
    """When each datagram is due, from the beginning: `first` of them at once, then one after each gap."""
    at = 0.0
    for number in range(count):
        if number >= max(first, 1):
            at += random.expovariate(1 / gap_s) if arrivals == "poisson" else gap_s
        yield round(at * NS)


def receive(port: int) -> None:
    """Note what comes, until the process is ended; tell a sender that has connected to the same port and asks."""
    noted: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, socket.create_server(("", port)) as asked:
        asked.setblocking(False)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        line.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        line.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        line.bind(("", port))
        while True:
            datagram, beside, _, sender = line.recvmsg(LONGEST, 128)
            if len(datagram) > 1:
                noted.append(note(datagram, beside))
            elif datagram == ASK:  # before the others
                noted.clear()
                line.sendto(NUMBER.pack(time.time_ns()), sender)
            elif datagram == REPORT:
                with contextlib.suppress(BlockingIOError):
                    answered, _ = asked.accept()
                    with answered:
                        answered.setblocking(True)
                        answered.sendall(b"".join(noted))


def note(datagram: bytes, beside: Iterable[tuple[int, int, bytes]]) -> bytes:
    marked, came_ns = False, 0
    for _, kind, data in beside:
        if kind == SO_TIMESTAMPNS:
            seconds, ns = struct.unpack("@qq", data[:16])
            came_ns = seconds * NS + ns
        elif kind == socket.IP_TOS:
            marked = data[0] & CE == CE
    return ARRIVED.pack(*NUMBER.unpack_from(datagram), marked, came_ns)


def send(to: tuple[str, int], due_ns: Sequence[int], lengths: Sequence[int], ect: bool) -> tuple[list[Arrival], int]:
    """The datagrams that came, in the order in which they did, and the shortest time of the way back in ns: by the
    sender's clock less the receiver's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        line.connect(to)
        back_ns = shortest_back_ns(line)
        asked = socket.create_connection(to)  # now, as a full queue may drop what begins a connection
        if ect:
            line.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT)
        time.sleep(1)
        sent_ns = []
        start_ns = time.time_ns()
        for number, (due, length) in enumerate(zip(due_ns, lengths, strict=True)):
            while (left_ns := start_ns + due - time.time_ns()) > 0:
                time.sleep(left_ns / NS)
            datagram = NUMBER.pack(number).ljust(length - HEADERS, b".")
            sent_ns.append(time.time_ns())
            line.send(datagram)
        time.sleep(2)
        with asked:
            came = ARRIVED.iter_unpack(report(asked, line))
    return [Arrival(number, sent_ns[number], ns, lengths[number], marked) for number, marked, ns in came], back_ns


def report(asked: socket.socket, line: socket.socket) -> bytes:
    """The receiver's notes. It may be asked in vain, where the line loses datagrams."""
    asked.settimeout(1)
    for _ in range(EXCHANGES):
        line.send(REPORT)
        with contextlib.suppress(TimeoutError):
            part = asked.recv(1 << 16)
            asked.settimeout(None)
            return part + b"".join(iter(lambda: asked.recv(1 << 16), b""))
    raise SystemExit("the receiver does not tell what has come")


def shortest_back_ns(line: socket.socket) -> int:
    line.settimeout(1)
    found = []
    for _ in range(EXCHANGES):
        line.send(ASK)
        try:
            answer = line.recv(NUMBER.size)
        except TimeoutError:
            continue
        found.append(time.time_ns() - NUMBER.unpack(answer)[0])
    if not found:
        raise SystemExit("the receiver does not answer")
    line.settimeout(None)
    return min(found)


def analysis(came: Sequence[Arrival], count: int, back_ns: int, rate: float, target_s: float) -> dict[str, float]:
    """All figures, of the datagrams that came, of so many that were sent. `rate` is the line's, in bit/s; 0: none.
    `marked_percent` and `unmarked_percent` are of the second half, when an average that marks depend on has settled."""
    loops_ns = [each.came_ns - each.sent_ns + back_ns for each in came]
    found = {
        "arrived": float(len(came)),
        "marked_percent": 100 * statistics.fmean(each.marked for each in came[len(came) // 2 :]),
        "unmarked_percent": 100 * statistics.fmean(not each.marked for each in came[len(came) // 2 :]),
        **losses({each.number for each in came}, count),
        **delays(loops_ns),
        "overtaken_percent": overtaken_percent(came),
    }
    if rate:
        found |= queueing(came, loops_ns, rate) | {"at_once_bytes": at_once_bytes(came, rate)}
    return found | drops(came, loops_ns, target_s)


def overtaken_percent(came: Sequence[Arrival]) -> float:
    """How many came after the one that was sent next."""
    in_order = sorted(came, key=lambda each: each.number)
    return 100 * statistics.fmean(late.came_ns < early.came_ns for early, late in itertools.pairwise(in_order))


def losses(numbers: set[int], count: int) -> dict[str, float]:
    """The share that was lost, and the runs of lost ones: their mean, how many of them are of one alone; and how much
    a loss depends on the one before, as a coefficient of correlation."""
    lost = [number not in numbers for number in range(count)]
    share = statistics.fmean(lost)
    runs = [len(list(run)) for is_lost, run in itertools.groupby(lost) if is_lost]
    found = {"lost_percent": 100 * share}
    if runs:
        found |= {"run_packets": statistics.fmean(runs), "single_percent": 100 * runs.count(1) / len(runs)}
    if 0 < share < 1:
        both = sum(one and other for one, other in itertools.pairwise(lost)) / (count - 1)
        found["loss_correlation"] = (both - share**2) / (share - share**2)
    return found


def delays(loops_ns: Sequence[int]) -> dict[str, float]:
    """Quantiles, mean and standard deviation of the loops in ms, and the correlation of neighbours."""
    in_order = sorted(loops_ns)
    shares = {"p16": 0.16, "median": 0.5, "p84": 0.84, "p90": 0.9, "p99": 0.99}
    found = {f"loop_{name}_ms": in_order[math.ceil(share * len(in_order)) - 1] / 1e6 for name, share in shares.items()}
    mean, sd = statistics.fmean(loops_ns), statistics.pstdev(loops_ns)
    found |= {"loop_least_ms": in_order[0] / 1e6, "loop_most_ms": in_order[-1] / 1e6}
    found |= {"loop_mean_ms": mean / 1e6, "loop_sd_ms": sd / 1e6}
    if sd > 0:
        away = [loop - mean for loop in loops_ns]
        for lag in (1, 2):
            found[f"correlation_{lag}"] = (
                statistics.fmean(a * b for a, b in zip(away, away[lag:], strict=False)) / sd**2
            )
    return found


def queueing(came: Sequence[Arrival], loops_ns: Sequence[int], rate: float) -> dict[str, float]:
    """A line that serves frames one after the other at a rate in bit/s. `service_ms` is a frame's mean time on it,
    `variation` the coefficient of variation of these times, `utilisation` their sum over the time from the first
    arrival to the last, `wait_ms` the mean wait before the service, `waits_percent` how many had to wait, and
    `longest_ms` the longest wait with its service. `lindley_us` is how far the wait of any datagram is from Lindley's
    recursion over the moments at which they were sent."""
    service_ns = [each.frame * 8 * NS / rate for each in came]
    idle_ns = min(loop - service for loop, service in zip(loops_ns, service_ns, strict=True))
    waits_ns = [loop - service - idle_ns for loop, service in zip(loops_ns, service_ns, strict=True)]
    by_law_ns = lindley([each.sent_ns - came[0].sent_ns for each in came], service_ns)
    mean = statistics.fmean(service_ns)
    span_ns = came[-1].sent_ns - came[0].sent_ns
    found = {
        "service_ms": mean / 1e6,
        "variation": statistics.pstdev(service_ns) / mean,
        "wait_ms": statistics.fmean(waits_ns) / 1e6,
        "waits_percent": 100 * statistics.fmean(wait > NO_WAIT_NS for wait in waits_ns),
        "longest_ms": max(map(sum, zip(waits_ns, service_ns, strict=True))) / 1e6,
        "lindley_us": max(abs(wait - law) for wait, law in zip(waits_ns, by_law_ns, strict=True)) / 1e3,
    }
    return found | ({"utilisation": (len(came) - 1) * mean / span_ns} if span_ns else {})


def lindley(sent_ns: Sequence[int], service_ns: Sequence[float]) -> Iterator[float]:
    """Waits by Lindley's recursion: the one before's wait and service, less the time since it came."""
    wait, busy_until = 0.0, 0.0
    for at, service in zip(sent_ns, service_ns, strict=True):
        wait = max(0.0, busy_until - at)
        busy_until = at + wait + service
        yield wait


def at_once_bytes(came: Sequence[Arrival], rate: float) -> float:
    """How many bytes came in any time beyond what the rate lets pass in it: the most, over all pairs of datagrams."""
    most, least, sent = 0.0, math.inf, 0.0
    for each in came:
        passed = (each.came_ns - came[0].came_ns) * rate / 8 / NS
        least = min(least, sent - passed)
        sent += each.frame
        most = max(most, sent - passed - least)
    return most


def drops(came: Sequence[Arrival], loops_ns: Sequence[int], target_s: float) -> dict[str, float]:
    """Of losses at the queue's head: when the first came after the first datagram whose wait was above the target, and
    the 2nd, 10th, 20th and 40th after the first, in ms. A loss is noticed with the next datagram that comes."""
    noticed_ns: list[int] = []
    expected = 0
    for each in came:
        noticed_ns += [each.came_ns] * (each.number - expected)
        expected = each.number + 1
    least = min(loops_ns)
    above = (each.came_ns for each, loop in zip(came, loops_ns, strict=True) if loop - least > target_s * NS)
    if not noticed_ns or (first_above := next(above, None)) is None:
        return {}
    later = {f"drop_{n}_ms": (noticed_ns[n - 1] - noticed_ns[0]) / 1e6 for n in (2, 10, 20, 40) if len(noticed_ns) >= n}
    if "drop_40_ms" in later:
        later["drop_10_to_40_ms"] = later["drop_40_ms"] - later["drop_10_ms"]
    return {"drop_1_ms": (noticed_ns[0] - first_above) / 1e6, **later}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = words.add_subparsers(dest="verb", required=True)
    receiver = verbs.add_parser("receive")
    receiver.add_argument("port", type=int)
    sender = verbs.add_parser("send")
    sender.add_argument("address")
    sender.add_argument("port", type=int)
    sender.add_argument("--count", type=int, required=True, help="how many datagrams")
    sender.add_argument("--frame", required=True, help="bytes; exponential:MEAN; mix")
    sender.add_argument("--gap", type=float, help="the mean time from one to the next, in s")
    sender.add_argument("--load", type=float, help="in place of --gap: the share of --rate that they take, from 0 to 1")
    sender.add_argument("--rate", type=float, default=0.0, help="the line's, in bit/s")
    sender.add_argument("--arrivals", choices=("steady", "poisson"), default="steady")
    sender.add_argument("--first", type=int, default=0, help="how many are sent at once, before the others")
    sender.add_argument("--ect", action="store_true", help="the packets may be marked (ECN)")
    sender.add_argument("--target", type=float, default=0.005, help="of a queue discipline, in s")
    given = words.parse_args()
    if given.verb == "receive":
        receive(given.port)
        return
    lengths = frames(given.frame, given.count)
    if given.gap is None and not (given.load and given.rate):
        words.error("--gap, or --load with --rate, says how often datagrams are sent")
    gap_s = given.gap if given.gap is not None else statistics.fmean(lengths) * 8 / given.rate / given.load
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # timers without slack
    due_ns = list(dues_ns(given.count, gap_s, given.arrivals, given.first))
    came, back_ns = send((given.address, given.port), due_ns, lengths, given.ect)
    if not came:
        raise SystemExit("nothing arrived")
    found = analysis(came, given.count, back_ns, given.rate, given.target)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
