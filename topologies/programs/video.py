"""Video streams to some workers beside one steady stream, over the same way, and how both arrive.

On the client's host:  video.py receive PORT
On the server's host:  video.py send ADDRESS PORT --workers 9 --seconds 60

The source of bursts: each worker gets datagrams of 1316 bytes at a rate that rises evenly from 112 to 1854 kbit/s
in ten seconds and begins anew, for all workers at once; the gaps between datagrams are drawn at random
(exponential). The steady stream has 1 Mbit/s in datagrams of 1470 bytes, evenly. Each stream is sent from a port
of its own.

The sender prints one JSON document. Of the workers it has the least, mean and highest rate of a second as they
arrived, in kbit/s, each a mean over the workers. Of the steady stream it has the jitter: the mean of RFC 1889's
estimate (section 6.3.1) over all its datagrams. The two hosts' clocks need not agree.
"""

import argparse
import heapq
import json
import random
import socket
import statistics
import struct
import sys
import time
from itertools import pairwise

VIDEO_BYTES, LEAST_KBIT, HIGHEST_KBIT, RISE_S = 1316, 112, 1854, 10.0
STEADY_BYTES, STEADY_KBIT = 1470, 1000
STEADY = 0
"""The number of the steady stream; workers count from 1."""
HEAD = struct.Struct("!HQ")
"""A datagram begins with its stream and the moment at which it was sent, in nanoseconds."""
REPORT = b"report"
NS = 1_000_000_000


def gap_s(stream: int, since_start_s: float) -> float:
    """From a datagram of the stream to its next."""
    if stream == STEADY:
        return STEADY_BYTES * 8 / (STEADY_KBIT * 1000)
    kbit = LEAST_KBIT + since_start_s % RISE_S / RISE_S * (HIGHEST_KBIT - LEAST_KBIT)
    return random.expovariate(kbit * 1000 / (VIDEO_BYTES * 8))


def send(to: tuple[str, int], workers: int, seconds: int) -> dict[str, float]:
    lines = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(workers + 1)]
    start = time.monotonic()
    due = [(start + gap_s(stream, 0), stream) for stream in range(workers + 1)]
    heapq.heapify(due)
    while due[0][0] < start + seconds:
        at, stream = heapq.heappop(due)
        time.sleep(max(0.0, at - time.monotonic()))
        datagram = HEAD.pack(stream, time.monotonic_ns()).ljust(STEADY_BYTES if stream == STEADY else VIDEO_BYTES, b".")
        lines[stream].sendto(datagram, to)
        heapq.heappush(due, (at + gap_s(stream, at - start), stream))
    return asked(to, seconds)


def asked(to: tuple[str, int], seconds: int) -> dict[str, float]:
    """What the receiver has counted."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(1)
        for _ in range(10):
            line.sendto(REPORT + str(seconds).encode(), to)
            try:
                return json.loads(line.recv(65507))
            except TimeoutError:
                continue
    raise SystemExit("the receiver does not answer")


def receive(port: int) -> None:
    """Count what comes, until the process is ended; say what was counted to whoever asks."""
    bits: dict[tuple[int, int], int] = {}
    transits_ns: list[int] = []
    first_ns = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("", port))
        while True:
            datagram, sender = line.recvfrom(65507)
            now_ns = time.monotonic_ns()
            if datagram.startswith(REPORT):
                report = {**rates(bits, int(datagram[len(REPORT) :])), "jitter_ms": jitter_ns(transits_ns) / 1e6}
                line.sendto(json.dumps(report).encode(), sender)
                continue
            stream, sent_ns = HEAD.unpack_from(datagram)
            first_ns = now_ns if first_ns is None else first_ns
            if stream == STEADY:
                transits_ns.append(now_ns - sent_ns)
            else:
                moment = stream, (now_ns - first_ns) // NS
                bits[moment] = bits.get(moment, 0) + len(datagram) * 8


def rates(bits: dict[tuple[int, int], int], seconds: int) -> dict[str, float]:
    """Over whole seconds; the last one may not be whole."""
    workers = {worker for worker, _ in bits}
    kbit = [[bits.get((worker, second), 0) / 1000 for second in range(seconds - 1)] for worker in workers]
    ways = {"least_kbit": min, "mean_kbit": statistics.fmean, "highest_kbit": max}
    return {name: statistics.fmean(map(way, kbit)) for name, way in ways.items()}


def jitter_ns(transits_ns: list[int]) -> float:
    """Each datagram moves the estimate a sixteenth of the way to the difference from the one before, either way."""
    estimates = [0.0]
    for before, after in pairwise(transits_ns):
        estimates.append(estimates[-1] + (abs(after - before) - estimates[-1]) / 16)
    return statistics.fmean(estimates)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = words.add_subparsers(dest="verb", required=True)
    receiver = verbs.add_parser("receive")
    receiver.add_argument("port", type=int)
    sender = verbs.add_parser("send")
    sender.add_argument("address")
    sender.add_argument("port", type=int)
    sender.add_argument("--workers", type=int, required=True)
    sender.add_argument("--seconds", type=int, required=True)
    given = words.parse_args()
    if given.verb == "receive":
        receive(given.port)
    else:
        found = send((given.address, given.port), given.workers, given.seconds)
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
