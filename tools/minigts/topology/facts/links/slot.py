"""Packets that wait for each other."""

from __future__ import annotations

from minigts.topology.link_setting import Setting, microseconds, time_setting

SLOT = Setting(
    word="slot",
    rare="slots of {:.2f} ms",
    about="Packets that come within this time arrive together, as over a radio. For both directions or "
    "{to: 10ms, from: 0ms}. Default: 0ms.",
    page="""\
optional · time, or one for each direction · default: `0ms` · `slot: 10ms`

Packets that come within this time of a first packet arrive together at its end, as where a radio or a cable modem gives
each station its turn. A packet waits for one slot at the most, in addition to its delay. In real time netem decides
when a slot begins.""",
    **time_setting(
        "slot_ns",
        "slot_ms",
        lambda ms: ("slot", microseconds(ms), microseconds(ms)),
        lambda netem: netem.get("slot", {}).get("min-delay", 0.0),
    ),
)
