"""The TCP windows of two hosts as they are set now, which may differ from the topology file."""

from __future__ import annotations

from minigts.errors import reading_from
from minigts.lab import Lab
from minigts.topology.tcp import Window, window

READ_TIMEOUT_S = 20.0
RECEIVE, SEND = "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"
LEAST_BYTES = 200_000
"""A bandwidth-delay product below this many bytes is not limited by the buffers that hosts have after their start."""


def read(lab: Lab, source: str, target: str) -> Window:
    """The window from `source` to `target`. Raises what `Provider.run` raises, and HostFailed for unreadable output."""
    return window(_largest(lab, target, RECEIVE), _largest(lab, source, SEND))


def _largest(lab: Lab, host: str, file: str) -> int:
    """The third of `4096 131072 6291456`: the least, initial and largest size that the kernel chooses (tcp(7))."""
    shown = lab.provider.run(host, ["cat", file], timeout_s=READ_TIMEOUT_S).stdout
    with reading_from(host, file):
        _, _, largest = map(int, shown.split())
        return largest
