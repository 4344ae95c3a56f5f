"""How much TCP carries from one host to another: what the links leave, or less where its hosts' buffers do. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from minigts.language.figures import digits, span
from minigts.topology.sysctls import Sysctl, set_to

PAYLOAD_SHARES = (107 / 256, 151 / 256)
"""Of a receive buffer, what Linux offers as a window: it goes by how much of the first full segment's memory is
payload, and the buffers of a port come in two sizes (docs/virtual-time.md, "A window of two sizes")."""
SEND_SHARE = 0.5
"""Of a send buffer at the least: the rest is the kernel's own for each segment (tcp_sndbuf_expand)."""
ASKED_TIMES = 2
"""A kernel gives a program that asks for a buffer twice as much, for its own use (socket(7), SO_RCVBUF)."""


class Buffers(NamedTuple):
    """The largest of a host's, in bytes: what TCP comes to by itself, and what a program may ask for."""

    receive: int
    send: int
    receive_asked: int
    send_asked: int

    def asked(self, size_bytes: int) -> Buffers:
        """Those of a socket whose program asks for so much, each way."""
        receive, send = (min(size_bytes, most) * ASKED_TIMES for most in (self.receive_asked, self.send_asked))
        return self._replace(receive=receive, send=send)


def buffers(settings: Iterable[Sysctl]) -> Buffers:
    """A host's, by what its file sets: of tcp_rmem and tcp_wmem the last of their three numbers (tcp(7))."""
    values = set_to(settings)
    names = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.rmem_max", "net.core.wmem_max")
    return Buffers(*(int(values[name].split()[-1]) for name in names))


@dataclass(frozen=True)
class Window:
    """How much may be under way, in bytes: between `least` and `most`."""

    least: float
    most: float
    receive_bytes: int
    """The largest buffer of the host that receives."""
    send_bytes: int
    """And of the one that sends."""

    def mbit(self, rtt_ms: float) -> tuple[float, float]:
        """The least and the most that it carries over a round trip."""
        if not rtt_ms:
            return math.inf, math.inf
        return self.least * 8 / (rtt_ms * 1000), self.most * 8 / (rtt_ms * 1000)

    def in_words(self, rtt_ms: float) -> str:
        low, high = self.mbit(rtt_ms)
        sizes = span(digits(self.least / 1e6), digits(self.most / 1e6))
        largest = f"tcp_rmem up to {self.receive_bytes}, tcp_wmem up to {self.send_bytes}"
        return (
            f"the hosts' TCP buffers are the limit: windows of {sizes} MB "
            f"({largest}) carry {span(digits(low, 4), digits(high, 4))} Mbit/s over {rtt_ms:g} ms"
        )


def window(receive_bytes: int, send_bytes: int) -> Window:
    """By the largest buffers of who receives and who sends."""
    low, high = PAYLOAD_SHARES
    least, most = min(low * receive_bytes, SEND_SHARE * send_bytes), min(high * receive_bytes, send_bytes)
    return Window(least, most, receive_bytes, send_bytes)


def between(sender: Buffers, receiver: Buffers) -> Window:
    """From one host to another."""
    return window(receiver.receive, sender.send)


class Goodput(NamedTuple):
    """TCP's payload in Mbit/s: the most of it, and the least where the hosts' buffers may be the limit; where they are
    not, `least_mbit` is None."""

    most_mbit: float
    least_mbit: float | None


def goodput(links_mbit: float, by: Window, rtt_ms: float, streams: int = 1) -> Goodput:
    """Of so many streams together, each with a window of its own, over links that leave `links_mbit` for payload;
    infinity where these have no rate."""
    low, high = (streams * mbit for mbit in by.mbit(rtt_ms))
    return Goodput(min(links_mbit, high), low if low < links_mbit else None)
