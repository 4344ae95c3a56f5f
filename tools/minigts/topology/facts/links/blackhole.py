"""Packets that are too large for the way."""

from __future__ import annotations

from minigts.language.quantities import PACKET_BYTES
from minigts.topology.link_setting import Setting, Tc, WireField

BLACKHOLE = Setting(
    word="blackhole",
    kind=PACKET_BYTES,
    unit="bytes",
    counted=True,
    rare="larger than {:g} bytes lost",
    about="Largest IP packet that arrives; larger ones are lost without an ICMP answer. For both directions or "
    "{to: 1400B, from: 9000B}. Default: all that the MTU lets be sent.",
    page="""\
optional · number of bytes below the link's MTU, or one for each direction · default: none ·
`blackhole: 1400B`

A black hole for MTU discovery: IP packets of more than so many bytes are lost, and nobody is told. The hosts at both
ends still believe in the link's [`mtu`](#linksmtu), as where a tunnel or a switch on the way carries less, or where a
firewall drops ICMP's "fragmentation needed". TCP stalls over it, unless it finds the size by probing
(`net.ipv4.tcp_mtu_probing`, RFC 4821). The certificate measures no rate there. In virtual and in real time it is the
link that loses, and no host: every packet that is sent over it is judged by its own size, also one that a host
forwards.""",
    tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),
    wire=(WireField(name="hole_bytes", value=lambda way: way.blackhole_bytes, per=1, unit="bytes"),),
)
