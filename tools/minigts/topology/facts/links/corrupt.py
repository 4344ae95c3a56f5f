"""Packets with a wrong bit."""

from __future__ import annotations

from minigts.topology.link_setting import Setting, share_setting

CORRUPT = Setting(
    rare="{:g} % corrupt",
    about="Share of packets with one wrong bit, in each direction or {to: 1%, from: 0%}. Default: 0%.",
    page="""\
optional · share, or one for each direction · default: `0%` · `corrupt: 0.1%`

Share of packets in which one bit is flipped. A checksum finds it and the packet is dropped, so the plan counts it as
lost. In virtual time the bit lies after the Ethernet header. In real time it may lie in the header, and a packet with
only a wrong sender there arrives: 6 of the 98 bytes of an echo.""",
    **share_setting("corrupt", always=True),
)
