"""Do two links lose packets independently? Echo requests in turn to two hosts, each behind a lossy link of its own.

    lost_together.py ADDRESS ADDRESS --count 4000 --gap 0.001

It prints one JSON document: `lost_percent` of the requests to both hosts; `together_r`, the coefficient of correlation
of a loss on one link with one on the other, of packets up to SHIFTS apart the one that is furthest from 0; `next_r`,
that of a loss with the next one on the same link, of the two links' the one that is furthest from 0. Answers have to
come back over ways without loss.
"""

import argparse
import json
import select
import socket
import statistics
import struct
import sys
import time
from collections.abc import Sequence

ECHO_REQUEST, ECHO_REPLY = 8, 0
HEADER = struct.Struct("!BBHHH")
"""Type, code, check sum, identifier and number (RFC 792)."""
NUMBERS = 1 << 16
SHIFTS = 3
"""Two links that share their random numbers need not begin with the same packet."""


def request(identifier: int, number: int) -> bytes:
    words = (ECHO_REQUEST << 8) + identifier + number
    folded = (words & 0xFFFF) + (words >> 16)
    return HEADER.pack(ECHO_REQUEST, 0, ~(folded + (folded >> 16)) & 0xFFFF, identifier, number)


def answered(addresses: Sequence[str], count: int, gap_s: float) -> list[list[bool]]:
    """Of each address, which requests were answered."""
    found = [[False] * count for _ in addresses]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        time.sleep(0.5)
        start_s = time.monotonic()
        for number in range(count):
            collect(line, start_s + number * gap_s, found)
            for identifier, address in enumerate(addresses):
                line.sendto(request(identifier, number), (address, 0))
        collect(line, time.monotonic() + 1, found)
    return found


def collect(line: socket.socket, until_s: float, found: list[list[bool]]) -> None:
    """Note what is answered until then."""
    while (left_s := until_s - time.monotonic()) > 0:
        if not select.select([line], [], [], left_s)[0]:
            return
        packet = line.recv(2048)
        kind, _, _, identifier, number = HEADER.unpack_from(packet, 4 * (packet[0] & 15))
        if kind == ECHO_REPLY and identifier < len(found):
            found[identifier][number] = True


def correlation(these: Sequence[bool], others: Sequence[bool], shift: int) -> float:
    """The coefficient of correlation of the one's packets with the other's that were sent `shift` later."""
    pairs = list(zip(these[max(-shift, 0) :], others[max(shift, 0) :], strict=False))
    one, other = zip(*pairs, strict=True)
    try:
        return statistics.correlation(one, other)
    except statistics.StatisticsError:  # all were lost, or none
        return 0.0


def analysis(one: Sequence[bool], other: Sequence[bool]) -> dict[str, float]:
    """All figures, of which requests over either link were lost."""
    together = (correlation(one, other, shift) for shift in range(-SHIFTS, SHIFTS + 1))
    return {
        "lost_percent": 100 * statistics.fmean([*one, *other]),
        "together_r": max(together, key=abs),
        "next_r": max((correlation(each, each, 1) for each in (one, other)), key=abs),
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("addresses", nargs=2, metavar="ADDRESS")
    words.add_argument("--count", type=int, default=4000, help=f"requests to each, up to {NUMBERS}")
    words.add_argument("--gap", type=float, default=0.001, help="from one to the next, in s")
    given = words.parse_args()
    addresses = [socket.gethostbyname(name) for name in given.addresses]
    lost = [[not came for came in each] for each in answered(addresses, given.count, given.gap)]
    sys.stdout.write(json.dumps(analysis(*lost)) + "\n")


if __name__ == "__main__":
    main()
