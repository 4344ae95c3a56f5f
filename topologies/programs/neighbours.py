"""How long a kernel looks for a neighbour that does not answer, and how long it remembers a path's MTU.

    neighbours.py resolve ADDRESS INTERFACE       asks for the neighbour until the kernel gives up
    neighbours.py probe ADDRESS INTERFACE         sends to a known neighbour that has been silent for long
    neighbours.py remember ADDRESS                learns a smaller MTU, and waits until it is forgotten

Each prints one JSON document. Addresses may be of IPv4 and of IPv6.
"""

import contextlib
import errno
import itertools
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Callable

ETH_P_ALL, ETH_P_ARP, ETH_P_IPV6 = 3, 0x0806, 0x86DD
ARP_REQUEST, ICMPV6, NEIGHBOUR_SOLICITATION = 1, 58, 135
PORT = 9
"""Where nobody listens."""
IP_MTU_DISCOVER, IP_MTU = 10, 14
IPV6_MTU_DISCOVER, IPV6_MTU = 23, 24
PMTUDISC_DO = 2
"""Of Linux; the socket module has no names for them."""
HEADERS = {socket.IPPROTO_IP: 28, socket.IPPROTO_IPV6: 48}
"""Of IP and UDP, in bytes."""
STALE_S = 60
"""Longer than a neighbour counts as reachable: 30 s in the mean, 45 s at the most (RFC 4861, sections 6.3.2 and 10)."""
WATCHED_S = 20
EVERY_S, LONGEST_S = 0.25, 900


def is_request(frame: bytes, address: str) -> bool:
    """Whether a frame asks for the hardware address of this neighbour, by ARP or by ICMPv6."""
    (kind,) = struct.unpack_from("!H", frame, 12)
    wanted = socket.inet_pton(family(address), address)
    if kind == ETH_P_ARP:
        return struct.unpack_from("!H", frame, 20)[0] == ARP_REQUEST and frame[38:42] == wanted
    solicits = kind == ETH_P_IPV6 and len(frame) >= 78 and frame[20] == ICMPV6 and frame[54] == NEIGHBOUR_SOLICITATION
    return solicits and frame[62:78] == wanted


def watched(interface: str) -> socket.socket:
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    line.bind((interface, 0))
    return line


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def asks(line: socket.socket, address: str) -> tuple[float, bool] | None:
    """The next frame that waits in the line, if this host has sent it to ask for the address: its moment in ms, and
    whether it goes to the neighbour alone. It is read as soon as it is sent."""
    frame, (_, _, kind, _, _) = line.recvfrom(2048)
    sent = kind == socket.PACKET_OUTGOING and is_request(frame, address)
    return (now_ms(), not frame[0] & 1) if sent else None


def now_ms() -> float:
    return time.monotonic_ns() / 1e6


def resolve(address: str, interface: str) -> dict[str, float]:
    """How many requests are sent, the least and the most time between two of them, and the time from the last until the
    kernel says that the neighbour cannot be reached."""
    asked: list[float] = []
    with watched(interface) as line, socket.socket(family(address), socket.SOCK_STREAM) as trying:
        trying.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            trying.connect((address, PORT))
        waiting = select.poll()
        waiting.register(line, select.POLLIN)
        waiting.register(trying, select.POLLOUT)
        ready: set[int] = set()
        while trying.fileno() not in ready:
            ready = {fd for fd, _ in waiting.poll(WATCHED_S * 1000)}
            if not ready:
                raise SystemExit("the kernel neither finds the neighbour nor gives up")
            if line.fileno() in ready and (found := asks(line, address)):
                asked.append(found[0])
        failed = now_ms()
        if trying.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != errno.EHOSTUNREACH:
            raise SystemExit(f"{address} is there")
    between = [later - earlier for earlier, later in itertools.pairwise(asked)]
    return {
        "requests": float(len(asked)),
        "least_ms": min(between),
        "most_ms": max(between),
        "given_up_ms": failed - asked[-1],
    }


def probe(address: str, interface: str) -> dict[str, float]:
    """How long after a datagram to a neighbour that was not heard of for long the kernel asks the neighbour itself."""
    with socket.socket(family(address), socket.SOCK_DGRAM) as sending:
        sending.connect((address, PORT))
        sending.send(b"")
        time.sleep(STALE_S)
        with watched(interface) as line:
            with contextlib.suppress(ConnectionRefusedError):
                sending.send(b"")
            sent = now_ms()
            while select.select([line], [], [], WATCHED_S)[0]:
                found = asks(line, address)
                if found and found[1]:
                    return {"probe_ms": found[0] - sent}
    raise SystemExit("the kernel does not ask")


def remember(address: str) -> dict[str, float]:
    """The MTU that a path is found to have, and how long after that the kernel has forgotten it."""
    level, discover, mtu = (
        (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_MTU)
        if family(address) == socket.AF_INET6
        else (socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_MTU)
    )

    def known() -> int:
        with socket.socket(family(address), socket.SOCK_DGRAM) as asking:
            asking.connect((address, PORT))
            return asking.getsockopt(level, mtu)

    with socket.socket(family(address), socket.SOCK_DGRAM) as sending:
        sending.setsockopt(level, discover, PMTUDISC_DO)
        sending.connect((address, PORT))
        at_first = known()
        sending.send(bytes(at_first - HEADERS[level]))
    learnt, found = wait_while(known, at_first, 0.001, 2)
    forgotten, _ = wait_while(known, found, EVERY_S, LONGEST_S)
    return {"mtu": float(found), "remembered_s": (forgotten - learnt) / 1000}


def wait_while(get: Callable[[], int], value: int, every_s: float, at_most_s: float) -> tuple[float, int]:
    """When something has another value than this one, in ms, and which."""
    until = now_ms() + at_most_s * 1000
    while now_ms() < until:
        time.sleep(every_s)
        if (found := get()) != value:
            return now_ms(), found
    raise SystemExit(f"the MTU is still {value} after {at_most_s} s")


VERBS = {"resolve": resolve, "probe": probe, "remember": remember}


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in VERBS:
        raise SystemExit(__doc__)
    verb, *words = sys.argv[1:]
    sys.stdout.write(json.dumps(VERBS[verb](*words)) + "\n")


if __name__ == "__main__":
    main()
