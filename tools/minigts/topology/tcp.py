"""TCP's goodput from one host to another, by the links, or by the hosts' buffers where those allow less. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from minigts.language.figures import digits, span
from minigts.topology.sysctls import Sysctl, set_to

PAYLOAD_SHARES = (107 / 256, 151 / 256)
"""The least and greatest share of a receive buffer that Linux offers as a window. It depends on how much of the first
full segment's memory is payload, and a port's buffers have two sizes (A window of two sizes:
docs/evidence/virtual-time.md)."""
SEND_SHARE = 0.5
"""The least share of a send buffer for payload: the kernel needs the rest for each segment (tcp_sndbuf_expand)."""
ASKED_TIMES = 2
"""A kernel gives a program that asks for a buffer twice as much, for its own use (socket(7), SO_RCVBUF)."""


class Buffers(NamedTuple):
    """A host's largest buffers in bytes: those that TCP reaches by itself, and those that a program may ask for."""

    receive: int
    send: int
    receive_asked: int
    send_asked: int

    def request(self, size_bytes: int) -> Buffers:
        """The buffers of a socket whose program asks for `size_bytes` in each direction."""
        receive, send = (min(size_bytes, most) * ASKED_TIMES for most in (self.receive_asked, self.send_asked))
        return self._replace(receive=receive, send=send)


def buffers(settings: Iterable[Sysctl]) -> Buffers:
    """A host's buffers by its settings; of tcp_rmem and tcp_wmem the last of three numbers counts (tcp(7))."""
    values = set_to(settings)
    names = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.rmem_max", "net.core.wmem_max")
    return Buffers(*(int(values[name].split()[-1]) for name in names))


@dataclass(frozen=True)
class Window:
    """The bytes that TCP may have in flight: between `least` and `most`."""

    least: float
    most: float
    receive_bytes: int
    """The largest buffer of the host that receives."""
    send_bytes: int
    """The largest buffer of the host that sends."""

    def mbit(self, rtt_ms: float) -> tuple[float, float]:
        """The lowest and highest rate in Mbit/s over a round trip."""
        if not rtt_ms:
            return math.inf, math.inf
        return self.least * 8 / (rtt_ms * 1000), self.most * 8 / (rtt_ms * 1000)

    def describe(self, rtt_ms: float) -> str:
        low, high = self.mbit(rtt_ms)
        sizes = span(digits(self.least / 1e6), digits(self.most / 1e6))
        largest = f"tcp_rmem up to {self.receive_bytes}, tcp_wmem up to {self.send_bytes}"
        return (
            f"the hosts' TCP buffers are the limit: windows of {sizes} MB "
            f"({largest}) carry {span(digits(low, 4), digits(high, 4))} Mbit/s over {rtt_ms:g} ms"
        )


def window(receive_bytes: int, send_bytes: int) -> Window:
    """The window for the largest buffers of the receiver and of the sender."""
    low, high = PAYLOAD_SHARES
    least, most = min(low * receive_bytes, SEND_SHARE * send_bytes), min(high * receive_bytes, send_bytes)
    return Window(least, most, receive_bytes, send_bytes)


def window_between(sender: Buffers, receiver: Buffers) -> Window:
    """The window from one host to another."""
    return window(receiver.receive, sender.send)


class Goodput(NamedTuple):
    """TCP's goodput in Mbit/s. `least_mbit` is None where the hosts' buffers cannot be the limit."""

    most_mbit: float
    least_mbit: float | None


def goodput(links_mbit: float, by: Window, rtt_ms: float, streams: int = 1) -> Goodput:
    """The goodput of all streams together, each with its own window, over links that leave `links_mbit` for payload
    (infinity for links without a rate)."""
    low, high = (streams * mbit for mbit in by.mbit(rtt_ms))
    return Goodput(min(links_mbit, high), low if low < links_mbit else None)
