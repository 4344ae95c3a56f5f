"""What of a link can be set while its lab is up: the words, and how each is counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from minigts.language.problems import listed, shown
from minigts.language.quantities import (
    BURST_PACKETS,
    LOSS_PERCENT,
    RATE_MBIT,
    SHARE_PERCENT,
    SIZE_BYTES,
    TIME_MS,
    Quantity,
)

DECLARED = "declared"
"""As the topology has it."""
SETTABLE: Mapping[str, tuple[str, Quantity]] = {
    "delay": ("delay_ms", TIME_MS),
    "jitter": ("jitter_ms", TIME_MS),
    "loss": ("loss_percent", LOSS_PERCENT),
    "burst": ("burst_packets", BURST_PACKETS),
    "reorder": ("reorder_percent", SHARE_PERCENT),
    "duplicate": ("duplicate_percent", SHARE_PERCENT),
    "corrupt": ("corrupt_percent", SHARE_PERCENT),
    "slot": ("slot_ms", TIME_MS),
    "rate": ("rate_mbit", RATE_MBIT),
    "queue": ("queue_bytes", SIZE_BYTES),
}
"""By word the field of a plan's shaping, and the quantity."""


def amount(what: str, written: object) -> tuple[str, float | None]:
    """The field that the word names, and what it is set to; None: as declared. Raises ValueError."""
    if what not in SETTABLE:
        raise ValueError(f"{shown(what)} is nothing that can be set: write {listed([*SETTABLE])}")
    field, quantity = SETTABLE[what]
    return field, None if written == DECLARED else quantity.parse(written)
