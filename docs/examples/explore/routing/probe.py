"""probe.py HOST…: sends a packet to each of these hosts but this one every 0.1 s, by the host's own address, and
appends to LOG, a line each, with times of day in nanoseconds:

    sent TO SENT_NS
    got FROM SENT_NS HOPS
    loop TO SENT_NS     a router says that the packet's TTL has run out
    none TO SENT_NS     this host, or a router, has no route to it
"""

import select
import socket
import struct
import sys
import time
from pathlib import Path

LOG, PORT, EVERY_NS, TTL = Path("/root/probe.txt"), 5000, 100_000_000, 16
IP_RECVERR, IP_RECVTTL, TIME_EXCEEDED = 11, 12, 11
OF_ERROR = struct.Struct("=IBBBBII")
"""struct sock_extended_err: errno, origin, type, code, padding, info, data."""


def note(log, *words: object) -> None:
    log.write(" ".join(map(str, words)) + "\n")


class Way:
    """The packets to one other host."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TTL)
        self.socket.bind((address(socket.gethostname()), 0))
        self.to = (address(name), PORT)

    def send(self, log) -> None:
        sent_ns = time.time_ns()
        note(log, "sent", self.name, sent_ns)
        packet = f"{socket.gethostname()} {sent_ns}".encode()
        for _ in range(2):  # an earlier packet's error ends the first attempt
            try:
                self.socket.sendto(packet, self.to)
                return
            except OSError:
                self.hear(log)
        note(log, "none", self.name, sent_ns)

    def hear(self, log) -> None:
        """Log what routers said of earlier packets."""
        while True:
            try:
                packet, about, _, _ = self.socket.recvmsg(100, 100, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            except OSError:
                return
            for level, kind, data in about:
                if (level, kind) == (socket.IPPROTO_IP, IP_RECVERR) and packet:
                    said = OF_ERROR.unpack_from(data)
                    word = "loop" if said[2] == TIME_EXCEEDED else "none"
                    note(log, word, self.name, packet.split()[1].decode())


def address(name: str) -> str:
    return socket.getaddrinfo(name, PORT, socket.AF_INET)[0][4][0]


def got(come: socket.socket, log) -> None:
    packet, about, _, _ = come.recvmsg(100, 100)
    name, sent_ns = packet.decode().split()
    left = next(struct.unpack("=i", data)[0] for _, kind, data in about if kind == socket.IP_TTL)
    note(log, "got", name, sent_ns, TTL - left + 1)


def main() -> None:
    ways = [Way(name) for name in sys.argv[1:] if name != socket.gethostname()]
    come = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    come.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    come.bind(("", PORT))
    waiting = select.poll()
    waiting.register(come, select.POLLIN)
    for way in ways:
        waiting.register(way.socket, 0)  # for errors alone
    by_number = {way.socket.fileno(): way for way in ways}
    next_ns = time.monotonic_ns()
    with LOG.open("a", buffering=1) as log:
        while True:
            while time.monotonic_ns() >= next_ns:
                next_ns += EVERY_NS
                for way in ways:
                    way.send(log)
            for number, _ in waiting.poll(max(0, next_ns - time.monotonic_ns()) / 1e6):
                by_number[number].hear(log) if number in by_number else got(come, log)


main()
