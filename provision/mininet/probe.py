#!/usr/bin/python3 -SE
"""Measures round trips by ICMP echo and prints every one of them: JSON {"sent": N, "rtts_us": [...]}.

    probe ADDRESS COUNT INTERVAL_S [SIZE]

As ping does, with the kernel's own receive times; but ping rounds to three digits, which at 100 ms is a millisecond.
Probes are sent on time whether or not earlier ones were answered; a probe that is not answered within 2 s is lost.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35  # socket(7), asm-generic; Python does not name it
PATIENCE_S = 2.0
ECHO_REQUEST, ECHO_REPLY = 8, 0
HEADER = struct.Struct("!BBHHH")
MOMENT = struct.Struct("qq")


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def echo_request(identifier: int, sequence: int, size: int) -> bytes:
    payload = b"\0" * size
    unsummed = HEADER.pack(ECHO_REQUEST, 0, 0, identifier, sequence) + payload
    return HEADER.pack(ECHO_REQUEST, 0, checksum(unsummed), identifier, sequence) + payload


class Probe:
    def __init__(self, address: str) -> None:
        self.identifier = os.getpid() & 0xFFFF
        self.sent_ns: dict[int, int] = {}
        self.rtts_us: list[float] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.connect((address, 0))

    def send(self, sequence: int, size: int) -> None:
        request = echo_request(self.identifier, sequence, size)
        self.sent_ns[sequence] = time.time_ns()
        self.socket.send(request)

    def receive_until(self, moment: float) -> None:
        """Take replies until `moment` on the monotonic clock."""
        while (left_s := moment - time.monotonic()) > 0:
            self.socket.settimeout(left_s)
            try:
                packet, ancillary, _, _ = self.socket.recvmsg(65536, 64)
            except TimeoutError:
                return
            self._take(packet, ancillary)

    def _take(self, packet: bytes, ancillary: list) -> None:
        header_length = (packet[0] & 0x0F) * 4
        kind, _, _, identifier, sequence = HEADER.unpack_from(packet, header_length)
        if kind != ECHO_REPLY or identifier != self.identifier or sequence not in self.sent_ns:
            return
        seconds, nanoseconds = MOMENT.unpack(ancillary[0][2])
        self.rtts_us.append((seconds * 10**9 + nanoseconds - self.sent_ns.pop(sequence)) / 1000)


def main() -> None:
    address, count, interval_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    size = int(sys.argv[4]) if len(sys.argv) > 4 else 56
    probe = Probe(address)
    start = time.monotonic()
    for sequence in range(count):
        probe.receive_until(start + sequence * interval_s)
        probe.send(sequence, size)
    deadline = time.monotonic() + PATIENCE_S
    while probe.sent_ns and time.monotonic() < deadline:
        probe.receive_until(min(deadline, time.monotonic() + 0.02))
    print(json.dumps({"sent": count, "rtts_us": probe.rtts_us}))


if __name__ == "__main__":
    main()
