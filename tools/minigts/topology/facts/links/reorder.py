"""Packets that overtake others."""

from __future__ import annotations

from minigts.topology.link_setting import Setting, share_setting

REORDER = Setting(
    rare="{:g} % overtake",
    about="Share of packets that take no delay and so overtake others; only with a delay. For both directions "
    "or {to: 1%, from: 0%}. Default: 0%.",
    page="""\
optional, only with a delay · share, or one for each direction · default: `0%` · `reorder: 5%`

Share of packets that take no delay, and so overtake those that do. Such a link has no single round trip: the
certificate measures its round trips, and judges neither them nor TCP.""",
    **share_setting("reorder"),
)
