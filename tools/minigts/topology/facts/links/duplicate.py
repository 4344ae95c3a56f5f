"""Packets that arrive twice."""

from __future__ import annotations

from minigts.topology.link_setting import Setting, share_setting

DUPLICATE = Setting(
    rare="{:g} % twice",
    about="Share of packets that arrive twice, in each direction or {to: 1%, from: 0%}. Default: 0%.",
    page="""\
optional · share, or one for each direction · default: `0%` · `duplicate: 1%`

Share of packets that are sent twice; each of the two is then lost, delayed and corrupted on its own.""",
    **share_setting("duplicate"),
)
