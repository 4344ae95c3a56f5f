"""How long a packet is on its way."""

from __future__ import annotations

from minigts.topology.link_setting import Setting, microseconds, time_setting

DELAY = Setting(
    word="delay",
    about="One-way delay, for both directions or {to: 10ms, from: 30ms}. Not together with rtt. Default: 0ms.",
    page="""\
optional · time, or one for each [direction](#two-directions) · default: `0ms` · `delay: 10ms`

One-way delay: `delay: 10ms` is `rtt: 20ms`, and `delay: {to: 10ms, from: 30ms}` has a round trip of 40 ms. Not
together with `rtt`.""",
    **time_setting(
        "delay_ns",
        "delay_ms",
        lambda ms: ("delay", microseconds(ms)),
        lambda netem: netem.get("delay", {}).get("delay", 0.0),
    ),
)
