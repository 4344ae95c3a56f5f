"""A delay that varies: what a file says of it, what netem is told and shows, and how far its median may be."""

from __future__ import annotations

import math
from typing import Any, get_args

from minigts.language.quantities import SHARE_PERCENT, TIME_MS, FileName, Words
from minigts.topology import own_delays
from minigts.topology.fields import Distribution, JitterOrder
from minigts.topology.link_setting import (
    LOSS_OF_ALL,
    Options,
    Setting,
    Tc,
    WireField,
    microseconds,
    percent,
    time_setting,
    wire_share,
    word_of,
)

DISTRIBUTIONS: tuple[str, ...] = get_args(Distribution)
ORDERS: tuple[str, ...] = get_args(JitterOrder)
_KEEPS_ORDER = "100tbit"
"""A rate at which no frame takes a nanosecond. netem with a rate lets none leave before the one that came before."""

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


RANGE = Setting(
    word="jitter",
    inside="range",
    about="How far the one-way delay varies: up and down by up to so much, evenly spread; or a mapping, as in "
    "{sd: 2ms, distribution: normal}. For both directions or {to: 1ms, from: 2ms}. Default: 0ms.",
    page="""\
optional · time, at most the one-way delay, or one for each direction, or a mapping · default: `0ms` · `jitter: 1ms`,
`jitter: {sd: 2ms, distribution: normal, correlation: 25%}`

The one-way delay varies from packet to packet. `jitter: 1ms`, or `{range: 1ms}`, spreads it evenly between delay − 1 ms
and delay + 1 ms. `{sd: 1ms}` is the standard deviation of a [distribution](#linksjitterdistribution) around the delay;
no delay is below 0. Packets arrive in the order in which they were sent, unless
[`order: free`](#linksjitterorder) says otherwise. `minigts set` and schedules set the number alone, `jitter=2ms`: of
`uniform` the range, of the others the standard deviation; the mapping's other keys are `jitter.distribution`,
`jitter.correlation` and `jitter.order` there.""",
    joined=spread,
    beside=(STANDARD_DEVIATION,),
    **time_setting(
        "jitter_ns",
        "jitter_ms",
        lambda ms: (microseconds(ms),) if ms else (),  # the delay's second figure
        lambda netem: netem.get("delay", {}).get("jitter", 0.0),
    ),
)

CORRELATION = Setting(
    word="jitter.correlation",
    kind=SHARE_PERCENT,
    unit="%",
    rare="delays {:g} % correlated",
    about="How much each packet's delay is like that of the one before; only with a jitter. Default: 0%.",
    page="""\
optional, only with a jitter · share, or one for each direction · default: `0%` ·
`jitter: {sd: 2ms, distribution: normal, correlation: 25%}`

How much a packet's delay is like that of the one before. In virtual time the delays are an autoregression of the first
order behind the distribution: neighbours have this correlation, packets that are n apart its n-th power, and the
distribution stays as declared. In real time netem mixes each random number with the one before, which also narrows the
distribution: with 50 % a uniform one to 58 % of its deviation.""",
    tc=Tc(
        words=lambda way: (percent(way.jitter_correlation_percent),) if way.jitter_ms else (),
        read=shown_correlation,
        slack=lambda _: 1e-6,
    ),
    wire=(
        WireField(
            name="jitter_correlation",
            value=lambda way: wire_share(way.jitter_correlation_percent),
            per=LOSS_OF_ALL / 100,
            unit="%",
        ),
    ),
)

DISTRIBUTION = Setting(
    word="jitter.distribution",
    kind=Words("a distribution", DISTRIBUTIONS),
    rare="{} delays",
    about="How delays are spread: uniform, normal, pareto, paretonormal, or as the link's own table; only with "
    "a jitter. Default: uniform.",
    page="""\
optional, only with a jitter · `uniform`, `normal`, `pareto`, `paretonormal` or `table`, or one for each direction ·
default: `uniform`, with a [`table`](#linksjittertable) that one · `jitter: {sd: 2ms, distribution: pareto}`

`pareto` has a long upper tail, which falls with the third power: most packets are a little faster than the delay, and
now and then one is much slower. `paretonormal` is a quarter `normal` and three quarters `pareto`. In virtual time each
is a table of 4096 quantiles from the distribution's formula, with the declared mean and standard deviation; the slowest
packet takes 3.7 standard deviations more with `normal`, and 23 with `pareto`. In real time netem's own tables
apply. Those end at 4 standard deviations, so that `pareto` and `paretonormal` have 82 and 83 % of the declared
deviation there (iproute2 6.1). No kernel shows which table it has, so it is not read back. A link that is set from
another distribution to `uniform` in real time loses the packets that are on their way. A link with a table of its own
is set from it to another distribution, and back, by `jitter.distribution=normal` and `=table`.""",
    tc=Tc(
        words=lambda way: (
            ()
            if not way.jitter_ms or way.jitter_distribution == "uniform"
            else ("distribution", way.distribution_for_tc)
        ),
        read=None,
        slack=lambda _: 0.0,
    ),
    wire=(
        WireField(
            name="jitter_distribution",
            value=lambda way: DISTRIBUTIONS.index(way.jitter_distribution),
            per=1,
            unit="",
        ),
    ),
    read_wire=lambda wire: word_of(DISTRIBUTIONS, wire["jitter_distribution"]),
)

TABLE = Setting(
    word="jitter.table",
    kind=FileName("measured delays, or a table for netem", "delays.txt"),
    in_short=own_delays.short_text,
    rare="a table of {}",
    about="A file of measured one-way delays, one in each line, or a table for netem, NAME.dist: the delays' "
    "distribution. Default: none.",
    page="""\
optional · path of a file, relative to the topology's, or one for each direction, `none` where there is none · default:
none · `jitter: {table: delays.txt}`

A distribution of your own, from a file in the topology's directory. The file has one measured one-way delay in each
line, in ms or with a unit, `12.5` or `800us`; what follows `#` is a remark. Each is as likely as the others, and no
packet has another delay. **Such a list is the link's delay, jitter included:** the link needs neither `delay` nor `sd`,
which are then the list's mean and standard deviation. Where the topology gives them, as in `rtt: 30ms` or `sd: 2ms`,
these hold, and the list gives the shape alone. Round trips, as `ping` measures them, are of two directions: with
`rtt: 30ms` and `jitter: {sd: 2ms, table: round-trips.txt}` they give the shape of each.

A file whose name ends with `.dist` is a table for netem, as `tc` reads it and iproute2's `maketable` makes it: whole
numbers, of which 8192 are a standard deviation. It has no unit, so it needs `sd` and a delay. Its numbers are moved and
scaled to the declared mean and standard deviation, which netem itself leaves to the table.

A file has 2 to 4096 values; of a longer list 4096 quantiles are taken. The plan holds them, and so do the lab's record
and the results, which also keep the file: so nobody needs the file to measure again. In real time netem has the same
numbers to 16 bits, in `/run/minigts` on the receiving host. The table is chosen in the topology alone: `minigts set`
and schedules set `jitter`, its standard deviation, and `jitter.distribution`.""",
    tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),
    wire=(
        WireField(
            name="jitter_table",
            value=lambda way: own_delays.numbers(way.jitter_table if way.jitter_ms else ""),
            per=1,
            unit="",
        ),
    ),
    read_wire=lambda wire: " ".join(map(str, wire["jitter_table"])),
)

ORDER = Setting(
    word="jitter.order",
    kind=Words("an order", ORDERS),
    rare="order {}",
    about="Whether packets arrive in the order in which they were sent, kept, or overtake each other by their "
    "jitter, free. Default: kept.",
    page="""\
optional, only with a jitter · `kept` or `free`, or one for each direction · default: `kept` ·
`jitter: {range: 1ms, order: free}`

With `kept` a packet that would arrive before one that was sent earlier arrives together with it, as in a queue.
With `free` each has its own delay, and packets overtake each other; TCP, QUIC and SRT then show what reordering does to
them. In real time the order is kept by netem's `rate`, of 100 Tbit/s.""",
    tc=Tc(
        words=lambda way: ("rate", _KEEPS_ORDER if way.jitter_ms and way.jitter_order == "kept" else "0bit"),
        read=shown_order,
        slack=lambda _: 0.0,
    ),
    wire=(WireField(name="jitter_overtakes", value=lambda way: ORDERS.index(way.jitter_order), per=1, unit=""),),
    read_wire=lambda wire: word_of(ORDERS, wire["jitter_overtakes"]),
)
