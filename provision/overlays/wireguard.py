"""Gives a WireGuard interface its key, its port and its peers, as `wg setconf` does, by the kernel's own messages.

    wireguard.py INTERFACE PORT SECRET NAME <PEERS      a line for each peer: NAME ADDRESS BLOCK

Every host's key follows from the lab's secret and its name, so that none has to be handed around. What belongs to a key
in public is asked of the kernel, which computes it: no program here knows the curve.

Messages: include/uapi/linux/genetlink.h and include/uapi/linux/wireguard.h.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import struct
import sys
from collections.abc import Iterator

CONTROLLER, GET_FAMILY, FAMILY_ID, FAMILY_NAME = 0x10, 3, 1, 2
GET_DEVICE, SET_DEVICE = 0, 1
INTERFACE_NAME, PRIVATE_KEY, PUBLIC_KEY, LISTEN_PORT, PEERS = 2, 3, 4, 6, 8
PEER_PUBLIC_KEY, PEER_ENDPOINT, PEER_ALLOWED = 1, 4, 9
ALLOWED_FAMILY, ALLOWED_ADDRESS, ALLOWED_PREFIX = 1, 2, 3
NESTED = 0x8000
NETLINK_GENERIC = 16
REQUEST, ACKNOWLEDGE, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
TYPE_MASK = 0x3FFF


def attribute(kind: int, value: bytes) -> bytes:
    """Length and kind in front of the value, filled up to four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & TYPE_MASK] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


class Kernel:
    """A line to the kernel's generic netlink. Raises OSError when it refuses."""

    def __init__(self) -> None:
        self._line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self._line.bind((0, 0))
        self._numbers = itertools.count(1)
        answers = self._ask(CONTROLLER, GET_FAMILY, ACKNOWLEDGE, attribute(FAMILY_NAME, b"wireguard\0"))
        self._wireguard = struct.unpack("=H", answers[FAMILY_ID])[0]

    def set(self, interface: str, *settings: bytes) -> None:
        name = attribute(INTERFACE_NAME, interface.encode() + b"\0")
        self._ask(self._wireguard, SET_DEVICE, ACKNOWLEDGE, name + b"".join(settings))

    def public_key(self, interface: str) -> bytes:
        name = attribute(INTERFACE_NAME, interface.encode() + b"\0")
        return self._ask(self._wireguard, GET_DEVICE, DUMP, name)[PUBLIC_KEY]

    def _ask(self, family: int, command: int, flags: int, payload: bytes) -> dict[int, bytes]:
        content = struct.pack("=BBH", command, 1, 0) + payload
        header = struct.pack("=IHHII", 16 + len(content), family, REQUEST | flags, next(self._numbers), 0)
        self._line.send(header + content)
        answer: dict[int, bytes] = {}
        for kind, body in self._messages():
            if kind == DONE:
                break
            if kind == ERROR:
                code = -struct.unpack_from("=i", body)[0]
                if code:
                    raise OSError(code, os.strerror(code))
                break
            answer |= attributes(body[4:])
        return answer

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        while True:
            data = self._line.recv(65536)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                yield kind, data[16:length]
                data = data[(length + 3) & ~3 :]


def private_key(secret: str, name: str) -> bytes:
    """The kernel makes a valid key of any 32 bytes."""
    return hashlib.sha256(f"{secret} {name}".encode()).digest()


def peer(public_key: bytes, port: int, address: str, block: str) -> bytes:
    network, _, prefix = block.partition("/")
    allowed = (
        attribute(ALLOWED_FAMILY, struct.pack("=H", socket.AF_INET))
        + attribute(ALLOWED_ADDRESS, socket.inet_aton(network))
        + attribute(ALLOWED_PREFIX, struct.pack("=B", int(prefix)))
    )
    return attribute(
        NESTED,
        attribute(PEER_PUBLIC_KEY, public_key)
        + attribute(PEER_ENDPOINT, endpoint(address, port))
        + attribute(NESTED | PEER_ALLOWED, attribute(NESTED, allowed)),
    )


def endpoint(address: str, port: int) -> bytes:
    """A sockaddr_in, or a sockaddr_in6 without flow and scope."""
    if ":" in address:
        return struct.pack("=H", socket.AF_INET6) + struct.pack(
            "!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, address), 0
        )
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)


def main() -> None:
    interface, port, secret, own_name = sys.argv[1:]
    kernel = Kernel()
    peers = b""
    for line in sys.stdin:
        name, address, block = line.split()
        kernel.set(interface, attribute(PRIVATE_KEY, private_key(secret, name)))
        peers += peer(kernel.public_key(interface), int(port), address, block)
    own = attribute(PRIVATE_KEY, private_key(secret, own_name))
    listen = attribute(LISTEN_PORT, struct.pack("=H", int(port)))
    kernel.set(interface, own, listen, attribute(NESTED | PEERS, peers))


if __name__ == "__main__":
    main()
