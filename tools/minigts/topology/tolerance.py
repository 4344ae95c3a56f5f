"""How far a measured round trip may lie from a sum of what it passes: one rule for checks, claims and figures."""

from __future__ import annotations

TOLERANCE_MS = 0.3
TOLERANCE_SHARE = 0.005
IN_WORDS = f"{TOLERANCE_MS:g} ms + {TOLERANCE_SHARE:.1%}".replace("%", " %")


def tolerance_ms(total_ms: float) -> float:
    """0.3 ms, and half a per cent of `total_ms`."""
    return TOLERANCE_MS + TOLERANCE_SHARE * total_ms
