"""What a kernel's TCP does, as the kernel itself counts it: windows, acknowledgements, time-outs, headers.

On one host:    tcp_laws.py serve PORT
On another one: tcp_laws.py COMMAND ADDRESS PORT [OPTIONS]

Each command makes one connection and prints its figures in one line, as `name=number`:

  setup     connect_ms, answer_ms: until the connection is there, and until a byte was sent and one came back, both
            counted from the first packet.
  window    rate_bytes_s, offered_bytes: the rate at which the receiver reads, and the window that it offers, which
            `--window` limits.
  start     cwnd, sent: the congestion window and the number of data segments sent, both in segments, half a round
            trip after slow start's round `--round` (the first round is 0).
  leave     ssthresh, lost, waited_ms: the window with which slow start is left, in segments; the segments sent again
            until a second later; what the queue has added to the round trip when slow start is left.
  acks      segments_per_ack, steady: data segments that came for each acknowledgement sent, of `--segments` full
            ones, and of those that came after the first second. `--window` limits the window.
  delayed   first_ms, held_ms: how long the receiver holds back the acknowledgement of what has no answer, beyond the
            connection's own round trip: of the connection's first data, and of a byte after `--exchanges` of a byte
            each, 100 ms apart.
  timeouts  first_ms, least_ratio, most_ratio: when a segment whose path is cut is sent again, and how many times as
            long as the time before each further wait takes. `--syn`: the segment is the first of the connection;
            then linear_ms is the longest gap between two of the first four.
  halves    answer_ms: how long a request of two writes takes until its answer is there, in the median of the last half
            of `--exchanges`. `--at-once`: without Nagle's algorithm.
  behind    longest_ms, late: of `--exchanges` messages in one connection, `--gap` ms apart, each of which is answered:
            the longest time until an answer came, and how many took over 5 ms longer than the quickest.
  headers   rate_bytes_s, header_bytes: the rate at which the receiver reads once slow start is over, and what the
            receiver's ports have counted beyond the payload, for each segment.

TCP_INFO (linux/tcp.h) has these figures; times are of this host's monotonic clock.
"""

from __future__ import annotations

import argparse
import errno
import json
import socket
import struct
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

INFO_BYTES = 232
WORDS = struct.Struct("=24I")
UNLIMITED = 0x7FFFFFFF
"""The slow-start threshold before slow start was left."""
TCP_CONGESTION, TCP_WINDOW_CLAMP, TCP_INFO = 13, 10, 11
CHUNK = bytes(1448 * 8)
BUFFER_BYTES = 4_000_000


class Info:
    """A connection's struct tcp_info; windows and counts in segments, times in microseconds."""

    def __init__(self, line: socket.socket) -> None:
        raw = line.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES)
        words = WORDS.unpack_from(raw, 8)
        self.unacked, self.rtt_us = words[4], words[15]
        self.ssthresh, self.cwnd, self.sent_again = words[17], words[18], words[23]
        self.segs_out, self.segs_in, _, self.min_rtt_us, self.data_segs_in, self.data_segs_out = struct.unpack_from(
            "=6I", raw, 136
        )
        (self.snd_wnd,) = struct.unpack_from("=I", raw, 228)


def now_ms() -> float:
    return time.monotonic() * 1000


def sleep_until(moment_ms: float) -> None:
    time.sleep(max(0.0, moment_ms - now_ms()) / 1000)


def connected(to: tuple[str, int], asked: dict[str, int], congestion: str = "") -> tuple[socket.socket, float, float]:
    """A connection whose server does what is asked, the moment of its first packet and its set-up time, in ms."""
    line = socket.socket()
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTED)
    if congestion:
        line.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
    began_ms = now_ms()
    line.connect(to)
    setup_ms = now_ms() - began_ms
    if asked:
        line.sendall(json.dumps(asked).encode().ljust(HEAD_BYTES))
    return line, began_ms, setup_ms


HEAD_BYTES = 64
"""A connection begins with what the server is to do, in JSON, filled with blanks."""


ABORTED = struct.pack("=2i", 1, 0)
"""SO_LINGER: what was not sent when the socket is closed is thrown away."""


def send_for(line: socket.socket, seconds: float) -> None:
    """Sends as fast as TCP takes it."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            line.sendall(CHUNK)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EBADF):
            raise


def answer(line: socket.socket) -> dict[str, float]:
    """What the server has counted, after the last byte."""
    line.shutdown(socket.SHUT_WR)
    found = b""
    while part := line.recv(4096):
        found += part
    answered: dict[str, float] = json.loads(found)
    return answered


def setup(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, began_ms, setup_ms = connected(to, {})
    line.sendall(json.dumps({"echo": 1}).encode().ljust(HEAD_BYTES))
    line.recv(1)
    return {"connect_ms": setup_ms, "answer_ms": now_ms() - began_ms}


def window(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, _ = connected(to, {"window": given.window, "skip_ms": 2000})
    send_for(line, given.seconds)
    offered = Info(line).snd_wnd
    return {"rate_bytes_s": answer(line)["rate_bytes_s"], "offered_bytes": offered}


def headers(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, _ = connected(to, {"skip_ms": 3000})
    send_for(line, given.seconds)
    found = answer(line)
    return {"rate_bytes_s": found["rate_bytes_s"], "header_bytes": found["header_bytes"]}


def start(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, began_ms, rtt_ms = connected(to, {}, given.congestion)
    sender = threading.Thread(target=send_for, args=(line, 3600.0), daemon=True)
    # A short segment would count as a whole one in the window, so the head fills some.
    line.sendall(json.dumps({"skip_ms": 0}).encode().ljust(len(CHUNK)))
    sender.start()
    sleep_until(began_ms + rtt_ms * (given.round + 1.5))
    info = Info(line)
    return {"cwnd": info.cwnd, "sent": info.data_segs_out}


def leave(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, began_ms, _ = connected(to, {"skip_ms": 0}, given.congestion)
    threading.Thread(target=send_for, args=(line, 3600.0), daemon=True).start()
    while Info(line).ssthresh >= UNLIMITED:
        time.sleep(0.001)
        if now_ms() > began_ms + 30_000:
            raise SystemExit("slow start was not left in 30 s")
    info = Info(line)
    time.sleep(1)
    left = {"ssthresh": info.ssthresh, "waited_ms": (info.rtt_us - info.min_rtt_us) / 1000}
    return {**left, "lost": Info(line).sent_again}


def acks(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, _ = connected(to, {"window": given.window, "skip_ms": 1000})
    line.sendall(bytes(1448 * given.segments))
    found = answer(line)
    segments, sent = found["data_segs_in"], found["acks"]
    later = (segments - found["data_segs_in_before"]) / (sent - found["acks_before"])
    return {"segments_per_ack": segments / sent, "steady": later}


def delayed(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, setup_ms = connected(to, {})
    held_ms = [held_back_ms(line, json.dumps({"exchanges": given.exchanges}).encode().ljust(HEAD_BYTES)) - setup_ms]
    for _ in range(given.exchanges):
        time.sleep(0.1)
        line.sendall(b".")
        line.recv(1)
    time.sleep(0.1)
    held_ms.append(held_back_ms(line, b".") - setup_ms)
    return {"first_ms": held_ms[0], "held_ms": held_ms[1]}


def held_back_ms(line: socket.socket, sent: bytes) -> float:
    """How long it takes until what is sent has been acknowledged."""
    sent_ms = now_ms()
    line.sendall(sent)
    while Info(line).unacked:
        time.sleep(0.0001)
    return now_ms() - sent_ms


def halves(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, _ = connected(to, {"exchanges": given.exchanges, "bytes": 2})
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, given.at_once)
    took_ms = []
    for _ in range(given.exchanges):
        time.sleep(0.1)
        asked_ms = now_ms()
        line.sendall(b".")
        line.sendall(b".")
        line.recv(1)
        took_ms.append(now_ms() - asked_ms)
    return {"answer_ms": median(took_ms[given.exchanges // 2 :])}


def behind(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    line, _, _ = connected(to, {"exchanges": given.exchanges})
    sent_ms: list[float] = []

    def send() -> None:
        for number in range(given.exchanges):
            sleep_until(start_ms + number * given.gap)
            sent_ms.append(now_ms())
            line.sendall(b".")

    start_ms = now_ms()
    threading.Thread(target=send, daemon=True).start()
    came_ms: list[float] = []
    while len(came_ms) < given.exchanges:
        answers = len(line.recv(4096))
        came_ms += [now_ms()] * answers
    took_ms = [came - sent for sent, came in zip(sent_ms, came_ms, strict=True)]
    return {"longest_ms": max(took_ms), "late": sum(each > min(took_ms) + 5 for each in took_ms)}


def timeouts(to: tuple[str, int], given: argparse.Namespace) -> dict[str, float]:
    start_ms = now_ms()
    if given.syn:
        sleep_until(start_ms + given.at * 1000)
        line = socket.socket()
        line.setblocking(False)
        line.connect_ex(to)
    else:
        line, _, _ = connected(to, {"skip_ms": 0})
        sleep_until(start_ms + given.at * 1000)
        line.sendall(b".")
    sent_ms, seen = now_ms(), Info(line).sent_again
    again_ms: list[float] = []
    while len(again_ms) < given.times:
        time.sleep(0.001)
        if (count := Info(line).sent_again) > seen:
            again_ms.append(now_ms())
            seen = count
        if now_ms() > sent_ms + 60_000:
            raise SystemExit(f"only {len(again_ms)} of {given.times} were sent again in 60 s")
    waits_ms = [then - before for before, then in pairwise([sent_ms, *again_ms])]
    ratios = [longer / shorter for shorter, longer in pairwise(waits_ms)]
    found = {"first_ms": waits_ms[0], "least_ratio": min(ratios), "most_ratio": max(ratios)}
    return {**found, "linear_ms": max(waits_ms[:4])}


def serve(port: int) -> None:
    with socket.create_server(("", port), backlog=16) as listening:
        while True:
            line, _ = listening.accept()
            threading.Thread(target=served, args=(line, port_bytes()), daemon=True).start()


def served(line: socket.socket, before_bytes: int) -> None:
    with line:
        asked = json.loads(line.recv(HEAD_BYTES, socket.MSG_WAITALL) or b"{}")
        if "echo" in asked:
            line.sendall(b".")
            return
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(asked.get("exchanges", 0)):
            line.recv(asked.get("bytes", 1), socket.MSG_WAITALL)
            line.sendall(b".")
        try:
            if "window" in asked:
                limit_window(line, asked["window"])
            counted = read(line, asked.get("skip_ms", 0))
            info = Info(line)
            counted |= {"data_segs_in": info.data_segs_in, "acks": info.segs_out}
            beyond = port_bytes() - before_bytes - counted["payload_bytes"] - HEAD_BYTES
            counted["header_bytes"] = beyond / info.segs_in
            line.sendall(json.dumps(counted).encode())
        except ConnectionError:
            pass  # the client has seen enough


def limit_window(line: socket.socket, size_bytes: int) -> None:
    """Limits the window that is offered. The kernel lifts such a limit when it tunes the buffer, unless the program has
    set its size, and when it sees the first full segment."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    line.recv(len(CHUNK), socket.MSG_WAITALL)
    line.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, size_bytes)


def read(line: socket.socket, skip_ms: float) -> dict[str, float]:
    """Reads to the end. The rate is of what came between the first read after `skip_ms` and the last one; what had been
    counted until that first one is `…_before`."""
    began_ms, total, first, last = now_ms(), 0, None, None
    before = {}
    while part := line.recv(1 << 20):
        total += len(part)
        last = (now_ms(), total)
        if first is None and last[0] > began_ms + skip_ms:
            first, then = last, Info(line)
            before = {"data_segs_in_before": then.data_segs_in, "acks_before": then.segs_out}
    if first is None or last is None or last[0] <= first[0]:
        return {"payload_bytes": total, "rate_bytes_s": 0}
    return {**before, "payload_bytes": total, "rate_bytes_s": (last[1] - first[1]) / (last[0] - first[0]) * 1000}


def port_bytes() -> int:
    """What has come to this host's ports, with the headers of Ethernet and without its check sums."""
    counters = Path("/sys/class/net").glob("*/statistics/rx_bytes")
    return sum(int(each.read_text()) for each in counters if each.parts[-3] != "lo")


COMMANDS = {
    each.__name__: each for each in (setup, window, start, leave, acks, delayed, timeouts, headers, halves, behind)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve").add_argument("port", type=int)
    for name in COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("address")
        command.add_argument("port", type=int)
        command.add_argument("--window", type=int, default=65536, help="bytes")
        command.add_argument("--seconds", type=float, default=10)
        command.add_argument("--congestion", default="")
        command.add_argument("--round", type=int, default=0)
        command.add_argument("--segments", type=int, default=2000)
        command.add_argument("--exchanges", type=int, default=5)
        command.add_argument("--at", type=float, default=2, help="seconds after the program's start")
        command.add_argument("--times", type=int, default=4)
        command.add_argument("--syn", action="store_true")
        command.add_argument("--at-once", action="store_true")
        command.add_argument("--gap", type=float, default=10, help="milliseconds")
    given = parser.parse_args()
    if given.command == "serve":
        serve(given.port)
        return
    found = COMMANDS[given.command]((given.address, given.port), given)
    sys.stdout.write(" ".join(f"{name}={number:.6f}" for name, number in found.items()) + "\n")


if __name__ == "__main__":
    main()
