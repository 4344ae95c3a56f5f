"""What TCP's windows leave of a link's rate: by the buffers that its two hosts have, as they are set there now."""

from __future__ import annotations

from dataclasses import dataclass

from minigts.errors import reading_from
from minigts.lab import Lab
from minigts.language.figures import digits, span

READ_TIMEOUT_S = 20.0
RECEIVE, SEND = "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"
PAYLOAD_SHARES = (107 / 256, 151 / 256)
"""Of a receive buffer, what Linux offers as a window: it goes by how much of the first full segment's memory is
payload, and the buffers of a port come in two sizes (docs/virtual-time.md, "A window of two sizes")."""
SEND_SHARE = 0.5
"""Of a send buffer at the least: the rest is the kernel's own for each segment (tcp_sndbuf_expand)."""
LEAST_BYTES = 200_000
"""Whoever needs no more is not limited by any buffers that hosts come up with."""


@dataclass(frozen=True)
class Window:
    """How much may be under way, in bytes: between `least` and `most`."""

    least: float
    most: float
    receive_bytes: int
    """The largest buffer of the host that receives: the third number of its tcp_rmem."""
    send_bytes: int
    """And of the one that sends, of its tcp_wmem."""

    def mbit(self, rtt_ms: float) -> tuple[float, float]:
        """The least and the most that it carries over a round trip."""
        return self.least * 8 / (rtt_ms * 1000), self.most * 8 / (rtt_ms * 1000)

    def in_words(self, rtt_ms: float) -> str:
        low, high = self.mbit(rtt_ms)
        sizes = span(digits(self.least / 1e6), digits(self.most / 1e6))
        buffers = f"tcp_rmem up to {self.receive_bytes}, tcp_wmem up to {self.send_bytes}"
        return (
            f"the hosts' TCP buffers are the limit: windows of {sizes} MB "
            f"({buffers}) carry {span(digits(low, 4), digits(high, 4))} Mbit/s over {rtt_ms:g} ms"
        )


def window(receive_bytes: int, send_bytes: int) -> Window:
    """By the largest buffers of who receives and who sends. Pure."""
    low, high = PAYLOAD_SHARES
    least, most = min(low * receive_bytes, SEND_SHARE * send_bytes), min(high * receive_bytes, send_bytes)
    return Window(least, most, receive_bytes, send_bytes)


def read(lab: Lab, source: str, target: str) -> Window:
    """As the two hosts are set now. Raises what `Provider.run` raises, HostFailed for what is no such setting."""
    return window(_largest(lab, target, RECEIVE), _largest(lab, source, SEND))


def _largest(lab: Lab, host: str, file: str) -> int:
    """`4096 131072 6291456`: least, initial, and the largest that a connection comes to by itself (tcp(7))."""
    shown = lab.provider.run(host, ["cat", file], timeout_s=READ_TIMEOUT_S).stdout
    with reading_from(host, file):
        _, _, largest = map(int, shown.split())
        return largest
