"""A delay that varies: how its mapping is read, what netem shows of it, and how far its median may be. Pure."""

from __future__ import annotations

import math
from typing import Any

from minigts.language.quantities import TIME_MS
from minigts.topology import own_delays
from minigts.topology.setting import Options, Setting

OWN = "table"
"""The distribution that a link brings itself."""
NONE = "none"
"""In place of a table's file in a direction that has none."""
_SD = "jitter_sd"
STANDARD_DEVIATION = Setting(
    word="jitter.sd",
    kind=TIME_MS,
    about="Standard deviation of the delay. Not together with range.",
    page="",
    unit="ms",
    field=_SD,
)
"""A key of the mapping beside `range`. The plan has one number for both."""
QUARTER = 0.25
"""The part of a jitter by which the median of some hundred delays may be off: of a uniform one, some 2.5 deviations of
the median."""
_SKEW = 0.35
"""How far the median of `pareto` and `paretonormal` is below the mean at the most, in standard deviations, netem's
tables included."""


def spread(found: dict[str, Any]) -> dict[str, Any]:
    """The values under `jitter:`, by field, with `sd` or `range` as the plan's one number. Either of the two brings its
    distribution, so that the one of a less specific place does not change what it means. Raises ValueError."""
    values = dict(found)
    deviations = values.pop(_SD, None)
    ranges, words = values.get("jitter_ms"), values.get("jitter_distribution")
    if (tables := values.get("jitter_table")) is not None:
        return values | _by_tables(tables, deviations, ranges, words)
    if words is not None and OWN in words:
        raise ValueError("a distribution `table` without one: name its file, as in table: delays.txt")
    if words is not None:
        values["jitter_table"] = type(words)(None, None)  # of a less specific place
    if deviations is not None and ranges is not None:
        raise ValueError("both range and sd are given: range is for an even spread, sd for any distribution; give one")
    if deviations is None and ranges is None:
        return values
    given: Any = ranges if deviations is None else deviations
    kind = type(given)
    values["jitter_table"] = kind(None, None)
    words = kind("uniform", "uniform") if words is None else words
    if ranges is not None and set(words) != {"uniform"}:
        other = next(word for word in words if word != "uniform")
        raise ValueError(f"a range with the distribution {other}, which has none: write it as in sd: 2ms")
    if deviations is not None:
        values["jitter_ms"] = kind(*(_scale_ms(*each) for each in zip(deviations, words, strict=True)))
    return {**values, "jitter_distribution": words}


def _by_tables(tables: Any, deviations: Any, ranges: Any, words: Any) -> dict[str, Any]:
    """The values with which tables go: their deviations, where the file does not say any, come of the tables."""
    if ranges is not None:
        raise ValueError("both range and table are given: range is for an even spread, a table has its own; give one")
    if words is not None and set(words) != {OWN}:
        other = next(word for word in words if word != OWN)
        raise ValueError(f"both the distribution {other} and a table are given: give one of them")
    kind = type(tables)
    there = [each != NONE for each in tables]
    scales = (None, None) if deviations is None else deviations
    return {
        "jitter_table": kind(*(each if has else None for each, has in zip(tables, there, strict=True))),
        "jitter_distribution": kind(*(OWN if has else "uniform" for has in there)),
        "jitter_ms": kind(*(each if has else 0.0 for each, has in zip(scales, there, strict=True))),
    }


def _scale_ms(sd_ms: float, distribution: str) -> float:
    """Half the width of a uniform distribution with this standard deviation; of others the deviation itself."""
    return round(sd_ms * math.sqrt(3), 6) if distribution == "uniform" else sd_ms


def shown_correlation(netem: Options) -> float:
    """In per cent. Where nothing varies netem goes on showing that of a jitter before."""
    delay = netem.get("delay", {})
    return 100.0 * delay.get("correlation", 0.0) if delay.get("jitter") else 0.0


def shown_order(netem: Options) -> str:
    """Where nothing varies no order has to be kept, and none is asked for."""
    keeps = netem.get("rate", {}).get("rate") or not netem.get("delay", {}).get("jitter")
    return "kept" if keeps else "free"


_SHARE_OFF = 2.5 * 0.5 / math.sqrt(120)
"""How far from a half the share is below the median of 120 delays: 2.5 standard errors."""


def median_part(distribution: str, correlation_percent: float, table: str = "") -> float:
    """By how much of the jitter the median of some hundred delays may be off. Correlated delays are worth fewer
    independent ones. Of a link's own `table` it is known which quantiles such a median is between."""
    alike = correlation_percent / 100
    fewer = math.inf if alike >= 1 else math.sqrt((1 + alike) / (1 - alike))
    if distribution == OWN:
        off = min(0.5, fewer * _SHARE_OFF)
        return max(abs(own_delays.quantile(table, share)) for share in (0.5 - off, 0.5 + off))
    return min(1.0, QUARTER * fewer + (_SKEW if distribution.startswith("pareto") else 0.0))
