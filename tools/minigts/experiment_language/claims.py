"""The model of an experiment's claims and published values. A topology's `expect:` uses the same words."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections import Counter
from decimal import Decimal
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from minigts.judge.ranges import Range
from minigts.language.fields import Strict, choice, matching, number, text_schema
from minigts.language.formula import formula
from minigts.language.problems import quote
from minigts.language.quantities import is_whole_number, whole_number
from minigts.language.units import UNITS, unit
from minigts.tools import COLUMNS, QUANTITIES
from minigts.tools.columns import VALUE
from minigts.topology.fields import EXPECTATIONS, LatencyWord, ThroughputWord

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
Name = Annotated[str, *matching("a name: lower-case letters, digits and hyphens, a letter first, at most 40", NAME)]


def option_value(value: object) -> str | int:
    """One of the values that an option takes in turn: a whole number, or text. Raises ValueError for anything else."""
    if isinstance(value, str):
        return whole_number(value, "a value", -(10**15), 10**15) if is_whole_number(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{quote(value)} where a value is wanted, as in 1400B or 9")


def word(value: object) -> str:
    """A value as written in tables and in names of samples, `3packets` for `3 packets`. Raises ValueError."""
    return "".join(str(option_value(value)).split())


PLACE = re.compile(r"(?:[a-z][a-z0-9_]*(?:\.[a-z0-9][a-z0-9_-]*){1,5}|seed|routing|bfd|kernel)", re.ASCII)
"""A place in a topology file to which a sweep gives values."""
MOST_STEPS = 10_000
_STEPS = re.compile(
    r"(?P<first>[0-9]{1,9}(?:\.[0-9]{1,6})?)(?P<unit>[A-Za-z%]{0,8}) to (?P<last>[0-9]{1,9}(?:\.[0-9]{1,6})?)(?P=unit)"
    r"(?: by (?P<by>[0-9]{1,9}(?:\.[0-9]{1,6})?)(?P=unit))?",
    re.ASCII,
)


def expand_ranges(values: object) -> object:
    """The values with ranges expanded: `2ms to 10ms by 4ms` is 2ms, 6ms, 10ms; without `by` the step is 1. Raises
    ValueError for steps that do not rise, and for a value given twice."""
    if not isinstance(values, list | tuple):
        return values
    found: list[object] = []
    for value in values:
        steps = _STEPS.fullmatch(value) if isinstance(value, str) else None
        if steps is None:
            found.append(value)
            continue
        first, last, by = (Decimal(steps[name] or 1) for name in ("first", "last", "by"))
        if by == 0 or last < first or (last - first) / by >= MOST_STEPS:
            raise ValueError(f"{quote(value)} are no steps: write the least first, as in 2ms to 10ms by 4ms")
        found += [f"{first + by * step:f}{steps['unit']}" for step in range(int((last - first) / by) + 1)]
    if twice := [value for value, count in Counter(map(word, found)).items() if count > 1]:
        raise ValueError(f"{quote(twice[0])} is given twice")
    return found


SCALAR = WithJsonSchema({"type": ["string", "integer"]})

Number = Annotated[float, *number("a number")]
Quantity = Literal["latency", "throughput", "loss", "jitter", "gap", "cpu", "cost", "value"]
METRICS: dict[Quantity, tuple[str, str]] = {
    quantity: (quantity if column.name == VALUE else column.name, column.unit or "")
    for quantity in get_args(Quantity)
    for column in [QUANTITIES[quantity]]
}
"""For each quantity that a claim may name: its metric in summary.csv, and that metric's unit."""
_NUMBER = r"(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)"
_UNIT = r"[^\s\d][^\s]{0,19}"
_ONE_SIDED = re.compile(rf"(under|over) {_NUMBER}(?: ?({_UNIT}))?")
_BETWEEN = re.compile(rf"{_NUMBER} to {_NUMBER}(?: ?({_UNIT}))?")


def _range(text: object) -> object:
    if isinstance(text, Range):
        return text
    words = text if isinstance(text, str) else ""
    one, two = _ONE_SIDED.fullmatch(words), _BETWEEN.fullmatch(words)
    if one:
        value = float(one[2])
        low, high = (-math.inf, value) if one[1] == "under" else (value, math.inf)
        return Range(low, high, one[3] or "", words)
    if two and float(two[1]) <= float(two[2]):
        return Range(float(two[1]), float(two[2]), two[3] or "", words)
    raise ValueError(f"{quote(text)} is not a range; write under 30 ms, over 95 %, or 90 to 100 %")


Limits = Annotated[
    Range,
    BeforeValidator(_range),
    PlainSerializer(lambda limits: limits.written, return_type=str),
    text_schema(f"^({_ONE_SIDED.pattern}|{_BETWEEN.pattern})$", "under 30 ms", "over 95 %", "90 to 100 %"),
]

Formulated = Annotated[
    str,
    BeforeValidator(lambda given: formula(given).written),
    WithJsonSchema({"type": ["string", "number"], "examples": ["0.75 * mss / (rtt * sqrt(p))"]}),
]
FormulaUnit = Annotated[str, BeforeValidator(unit), WithJsonSchema({"enum": [*UNITS]})]
Order = Annotated[tuple[Annotated[str, BeforeValidator(word), SCALAR], ...], Field(min_length=2)]
_UNLESS_NONE = Field(exclude_if=lambda given: given is None)

General = Literal["compared", "bounded", "falls", "rises", "drops-past-mtu", "follows", "slope", "share", "ordered"]
"""compared: the ratio of `where` to `than` is within `range`. bounded: the figure is within `range`. falls, rises: from
the first to the last value of `by`. drops-past-mtu: the ratio of the first datagram that needs fragments to the last
that needs none is within `range`. follows: the figure is within `range` of what `formula` gives. slope: the exponent of
the figure over the values of `by`, on logarithmic axes, is within `range`. share: of the figure and that of `than`
together, the figure's share is within `range`. ordered: the figure rises along the values of `order`."""
LatencyClaim = Annotated[
    LatencyWord | General, choice("a claim about latency", *EXPECTATIONS["latency"], *get_args(General))
]
ThroughputClaim = Annotated[
    ThroughputWord | General, choice("a claim about throughput", *EXPECTATIONS["throughput"], *get_args(General))
]
ValueWord = General | Literal["better", "worse"]
"""better, worse: compared with the cell that `than` names, in the direction that the measurement declares."""
NEEDS: dict[str, tuple[str, ...]] = {
    "better": ("than",),
    "worse": ("than",),
    "compared": ("than", "range"),
    "bounded": ("range",),
    "falls": ("by",),
    "rises": ("by",),
    "drops-past-mtu": ("range",),
    "follows": ("formula", "unit", "range"),
    "slope": ("by", "range"),
    "share": ("than", "range"),
    "ordered": ("by", "order"),
}
OF_PERCENT = frozenset({"compared", "drops-past-mtu", "follows", "share"})
"""The words whose range is in per cent, whatever the figure's unit."""


OF_THE_PATH = ("mss", "mtu", "rtt", "rate", "p", "hops")
"""The names of a formula that the plan says of a path: the payload of a segment and a packet in bytes, the round trip
in seconds, the lowest rate in bytes a second, the share of packets that the links lose, and the number of links."""
ALONG_PATHS = ("p", "rtt", "rate")
"""The names of OF_THE_PATH over which a slope may be claimed."""


def formula_name(setting: str) -> str:
    """The name of a setting in formulas: `bulk_number` for `bulk.number`."""
    return setting.replace(".", "_").replace("-", "_")


Words = dict[str, Annotated[str, BeforeValidator(word), SCALAR]]
"""Values by name, `{overlay: swarm, sessions: 9}`."""


def is_of_the_value(quantity: Quantity) -> bool:
    """Whether a claim about the quantity is about a sample's value, and not about another column."""
    return METRICS[quantity][0] == quantity


def _instead(quantity: Quantity) -> tuple[str, ...]:
    """The columns that a claim about the quantity may name in place of the usual one."""
    if is_of_the_value(quantity):
        return tuple(name for name, column in COLUMNS.items() if column.unit is None)
    return tuple(name for name, column in COLUMNS.items() if column.part_of == quantity)


def _no_metric(name: str, quantity: Quantity) -> str:
    instead = _instead(quantity)
    if not instead:
        return f"metric: {quantity} is one column, so leave `metric:` out"
    return f"metric: {quote(name)} is no column of {quantity}; there are {', '.join(instead)}"


Kind = Literal["clock", "constant", "emerges"]
Seen = Literal["before", "after", "unknown"]


def _day(text: object) -> object:
    """A date as in 2026-11-27, which YAML reads as one."""
    if isinstance(text, datetime.date) and not isinstance(text, datetime.datetime):
        return text.isoformat()
    try:
        return datetime.date.fromisoformat(text).isoformat() if isinstance(text, str) else _no_day(text)
    except ValueError:
        return _no_day(text)


def _no_day(text: object) -> object:
    raise ValueError(f"{quote(text)} is no date; write it as in 2026-11-27")


Day = Annotated[str, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]


class Written(Strict):
    """One of the ranges that a law has had."""

    since: Day
    """The day on which the range was written."""
    range: str
    """The range, as `range:` had it then, with what it was held against where that was another figure."""
    figures: Annotated[Seen, choice("when a range was written", *get_args(Seen))]
    """before: before its figures were seen. after: after them. unknown: both are of one commit."""
    came_out: str = ""
    """The figure for which a former range was given up."""
    why: str = ""
    """Why a former range was given up."""


EXPLAINING = {"text", "source", "why", "vacuous", "law", "kind", "tolerance", "failure", "history"}
"""The keys of a claim that explain it, and have no part in its verdict."""


class Claim(Strict):
    """One claim: a quantity and a word, `throughput: falls-with-hops`."""

    latency: LatencyClaim | None = None
    """The word of a claim about the latency."""
    throughput: ThroughputClaim | None = None
    """The word of a claim about the throughput."""
    loss: General | None = None
    """The word of a claim about the loss."""
    jitter: General | None = None
    """The word of a claim about the jitter."""
    gap: General | None = None
    """The word of a claim about the longest time between two replies."""
    cpu: General | None = None
    """The word of a claim about the processor use."""
    cost: General | None = None
    """The word of a claim about the processor time for each byte."""
    value: ValueWord | None = None
    """The word of a claim about the value of `tool: command`, `traffic` or `flows`."""
    metric: str | None = None
    """The column of samples.csv that is judged in place of the quantity's own: mean, min, cpu_target_ns_per_byte."""
    of: Name | None = None
    """The measurement that it is about; by default every measurement of that quantity."""
    overlay: str | None = None
    """The overlay that it is about; by default each overlay."""
    where: Words = Field(default_factory=dict)
    """The values of what varies that it is about; by default all of them."""
    than: Words = Field(default_factory=dict)
    """What to compare with: another `overlay`, `of`, `from`, `to`, or value of what varies."""
    range: Limits | None = None
    """The range in which the figure, or the ratio, is claimed to lie."""
    by: str | None = None
    """The varied option, or hops, over which the figure falls or rises; of a slope also p, rtt or rate of the paths."""
    formula: Annotated[Formulated | None, _UNLESS_NONE] = None
    """What the figure is held against, by arithmetic of what varies and of the path: 0.75 * mss / (rtt * sqrt(p))."""
    unit: Annotated[FormulaUnit | None, _UNLESS_NONE] = None
    """The unit of what the formula gives: B/s, Mbit/s, ms, %; 1 for a plain number."""
    order: Annotated[Order | None, _UNLESS_NONE] = None
    """The values of `by` along which the figure rises, the one with the lowest first."""
    below: Literal["mtu"] | None = None
    """mtu: only datagrams that need no fragments."""
    text: str = ""
    """The claim in a sentence, for the report."""
    source: str = ""
    """The document and section that make the claim; empty for the experiment's own."""
    why: str = ""
    """The reason for a difference from what was published, and what shows it."""
    vacuous: str = ""
    """Why the claim cannot fail, or cannot hold, under the settings of this experiment."""
    law: str = ""
    """The name of the law, or of the reference, that `minigts validate` holds the lab against: Mathis's law."""
    tolerance: str = ""
    """How the range was derived, before the first run."""
    failure: str = ""
    """What a failure would mean: which part of minigts would be wrong."""
    kind: Annotated[Kind | None, choice("what a law tests", *get_args(Kind)), _UNLESS_NONE] = None
    """clock: the lab's clock against its own settings. constant: a constant of a kernel, a program or a document.
    emerges: what comes of many events, and is set nowhere."""
    history: Annotated[tuple[Written, ...], Field(exclude_if=lambda given: not given)] = ()
    """The ranges that the law has had, the present one last: when each was written, and what came out."""

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        given = [quantity for quantity in METRICS if getattr(self, quantity) is not None]
        if len(given) != 1:
            raise ValueError(f"a claim names exactly one of {', '.join(METRICS)}")
        lacking = [key for key in NEEDS.get(self.word, ()) if not getattr(self, key)]
        if lacking:
            raise ValueError(f"{given[0]}: {self.word} needs `{lacking[0]}:`")
        # Which numbers a `command` has beside its value, its measurement says: `model` looks there.
        if self.metric is not None and given[0] != VALUE and self.metric not in _instead(given[0]):
            raise ValueError(_no_metric(self.metric, given[0]))
        of_any_unit = given[0] == "value" and self.word == "bounded"
        idle = [
            key
            for key, of in (("formula", "follows"), ("unit", "follows"), ("order", "ordered"))
            if getattr(self, key) and self.word != of
        ]
        if idle:
            raise ValueError(f"`{idle[0]}:` is of a claim that says {'ordered' if idle[0] == 'order' else 'follows'}")
        if self.range and self.range.unit != self._unit and not of_any_unit:
            raise ValueError(f"range: {self.range.written!r} needs the unit {self._unit}")
        return self

    @model_validator(mode="after")
    def _of_a_law(self) -> Self:
        for key in ("tolerance", "failure", "kind", "history"):
            if getattr(self, key) and not self.law:
                raise ValueError(f"`{key}:` is of a claim with a `law:`")
        if self.law and (lacking := [key for key in ("text", "tolerance", "failure") if not getattr(self, key)]):
            raise ValueError(f"`law:` needs `{lacking[0]}:`")
        if self.history and self.range and self.history[-1].range != self.range.written:
            last = self.history[-1].range
            raise ValueError(f"range: {self.range.written!r} is not the last of `history:`, {last!r}; add a line there")
        if unexplained := [each.range for each in self.history[:-1] if not (each.came_out and each.why)]:
            raise ValueError(f"history: {unexplained[0]!r} was given up, so it needs `came_out:` and `why:`")
        return self

    @property
    def quantity(self) -> Quantity:
        return next(name for name in METRICS if getattr(self, name) is not None)

    @property
    def word(self) -> str:
        return str(getattr(self, self.quantity))

    @property
    def is_of_the_value(self) -> bool:
        """Whether the value of samples, or a column in its place, is judged."""
        return is_of_the_value(self.quantity)

    @property
    def column(self) -> str:
        """The column of samples.csv that is judged; empty when it is the value."""
        return self.metric or ("" if is_of_the_value(self.quantity) else METRICS[self.quantity][0])

    @property
    def overlays(self) -> frozenset[str]:
        """The overlays that the claim names in `overlay`, `where` and `than`."""
        named = (self.overlay, self.where.get("overlay"), self.than.get("overlay"))
        return frozenset(name for name in named if name is not None)

    @property
    def digest(self) -> str:
        """A digest of what is judged, without the texts that explain it."""
        what = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=EXPLAINING)
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def _unit(self) -> str:
        if self.word == "slope":
            return ""
        return "%" if self.word in OF_PERCENT else METRICS[self.quantity][1]

    @property
    def words(self) -> str:
        """The claim in one line, `throughput: compared of tcp offload=on than offload=off, 150 to 250 %`."""
        parts = [f"{self.quantity}: {self.word}", *([f"of {self.of}"] if self.of else [])]
        parts += [f"metric={self.metric}"] if self.metric else []
        parts += [f"{key}={value}" for key, value in self.where.items()]
        parts += [f"{self.formula} {self.unit}"] if self.formula else []
        parts += [f"by {self.by}"] if self.by else []
        parts += [" < ".join(self.order)] if self.order else []
        parts += ["than", *(f"{key}={value}" for key, value in self.than.items())] if self.than else []
        return " ".join(parts) + (f", {self.range.written}" if self.range else "")


class Value(Strict):
    """One published value, in the entry's unit; `where` says for which overlay or condition."""

    where: Words = Field(default_factory=dict)
    """The overlay, hosts and condition of the value."""
    value: Number
    """The value, in the entry's unit."""


class Published(Strict):
    """Values that the study published, or a trend. `by_hops` begins at one hop, `by_segment` is in link order."""

    measurement: Name
    """The measurement beside which it is shown."""
    source: str
    """The report, section and figure."""
    unit: str = ""
    """The unit of the values."""
    by_hops: tuple[Number, ...] = ()
    """Values over one hop, two hops, and so on."""
    by_segment: tuple[Number, ...] = ()
    """Values of the links, in the topology's order."""
    values: tuple[Value, ...] = ()
    """Other values, each with its place."""
    trend: str = ""
    """The trend in words, where no values were published."""
    metric: str = ""
    """The column of samples.csv; by default the measurement's own quantity."""
