"""Numbers as people read them: with significant digits, in positional notation, never `1e+02`. Pure."""

from __future__ import annotations

import math
from decimal import Decimal


def digits(value: float, count: int = 3) -> str:
    """`0.214`, `94`, `100`, `9598`: `count` significant digits, and every digit before the point."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10**count:
        return f"{value:.0f}"
    text = format(Decimal(f"{value:.{count - 1}e}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed_figure(value: float, count: int = 3) -> str:
    """`+1200`, `-0.5`, `+0`."""
    return f"{'' if value < 0 else '+'}{digits(value, count)}"


def duration(seconds: float) -> str:
    """`3 h 05 min`, `4 min 20 s`, `9 s`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def span(low: str, high: str) -> str:
    """`95.7 to 100`; one figure where both read the same."""
    return low if low == high else f"{low} to {high}"
