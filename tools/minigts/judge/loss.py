"""Whether the packets lost agree with a declared loss, and with what confidence."""

from __future__ import annotations

import math
from collections.abc import Callable

CONFIDENCE = 0.99
"""The level of the interval: one in a hundred links that are as declared is judged wrongly."""


def judge_loss(lost: int, sent: int, declared_percent: float, points: float) -> tuple[bool | None, float, float]:
    """Whether `lost` of `sent` agrees with the declared loss, and the interval of the true loss in per cent.

    They agree when the exact interval of the true loss (Clopper and Pearson, 1934) meets the declared loss ± `points`.
    None when so few probes would likely all come back over a link with that loss, which then looks like no loss.
    """
    low, high = (100 * share for share in exact_interval(lost, sent, 1 - CONFIDENCE))
    if declared_percent > 0 and (1 - declared_percent / 100) ** sent > 1 - CONFIDENCE:
        return None, low, high
    return low <= declared_percent + points and high >= declared_percent - points, low, high


def exact_interval(hits: int, of: int, doubt: float) -> tuple[float, float]:
    """The interval of the true share when `hits` of `of` were seen; the share lies outside with the chance `doubt`."""
    low = 0.0 if hits == 0 else _share_where(lambda share: 1 - _at_most(hits - 1, of, share), doubt / 2, rising=True)
    high = 1.0 if hits == of else _share_where(lambda share: _at_most(hits, of, share), doubt / 2, rising=False)
    return low, high


def _share_where(chance: Callable[[float], float], wanted: float, *, rising: bool) -> float:
    """The share at which a chance that rises or falls with it reaches `wanted`, found by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if (chance(middle) < wanted) == rising:
            low = middle
        else:
            high = middle
    return low


def _at_most(hits: int, of: int, share: float) -> float:
    """The chance of at most `hits` among `of` when each comes with the chance `share`."""
    if share in (0.0, 1.0):
        return float(share == 0.0 or hits >= of)
    logs = math.log(share), math.log1p(-share)
    return min(1.0, sum(math.exp(_log_choices(of, k) + k * logs[0] + (of - k) * logs[1]) for k in range(hits + 1)))


def _log_choices(of: int, hits: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(hits + 1) - math.lgamma(of - hits + 1)
