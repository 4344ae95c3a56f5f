"""Numbers as people read them: so many digits as matter, in positional notation, never `1e+02`. Pure."""

from __future__ import annotations

import math
from decimal import Decimal


def digits(value: float, count: int = 3) -> str:
    """`0.214`, `94`, `100`, `9598`: `count` digits that matter, and every one in front of the point."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10**count:
        return f"{value:.0f}"
    text = format(Decimal(f"{value:.{count - 1}e}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed(value: float, count: int = 3) -> str:
    """`+1200`, `-0.5`, `+0`."""
    return f"{'' if value < 0 else '+'}{digits(value, count)}"


def span(low: str, high: str) -> str:
    """`95.7 to 100`; one figure where both read the same."""
    return low if low == high else f"{low} to {high}"
