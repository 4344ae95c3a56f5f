"""The windows of two hosts as they are set now, which may be otherwise than their file has it."""

from __future__ import annotations

from minigts.errors import reading_from
from minigts.lab import Lab
from minigts.topology.tcp import Window, window

READ_TIMEOUT_S = 20.0
RECEIVE, SEND = "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"
LEAST_BYTES = 200_000
"""Whoever needs no more is not limited by any buffers that hosts come up with."""


def read(lab: Lab, source: str, target: str) -> Window:
    """What one sends the other by. Raises what `Provider.run` raises, HostFailed for what is no such setting."""
    return window(_largest(lab, target, RECEIVE), _largest(lab, source, SEND))


def _largest(lab: Lab, host: str, file: str) -> int:
    """`4096 131072 6291456`: least, initial, and the largest that a connection comes to by itself (tcp(7))."""
    shown = lab.provider.run(host, ["cat", file], timeout_s=READ_TIMEOUT_S).stdout
    with reading_from(host, file):
        _, _, largest = map(int, shown.split())
        return largest
