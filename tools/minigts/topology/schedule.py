"""A schedule of changes to links: its steps in a file, and the moments that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from minigts.language.fields import Strict, matching, text, text_schema
from minigts.language.problems import Misplaced, quote
from minigts.language.quantities import MOMENT_S
from minigts.topology.fields import HOST_NAME, HOST_NAME_HINT, NAME, NAME_HINT, HostName, Name
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import SETTABLE, Amounts, amount, plan_words
from minigts.topology.outage import SILENT, Outage

MOST_MOMENTS = 20_000
LATEST_S = MOMENT_S.parse(MOMENT_S.most)
LONGEST_PATH = 400
Points: TypeAlias = Sequence[tuple[float, dict[str, Amount | None]]]
"""The points of a trace: seconds, and the fields that are set then."""


@dataclass(frozen=True)
class Trace:
    """What a file says of a link over time: points, and how long it lasts. With `runs` the link's clock plays it by
    itself, and repeats it."""

    points: Points
    length_s: float
    runs: str = ""


def _update_of(update: dict[str, Amount | None]) -> dict[str, Amount | None]:
    for name in update:
        if name not in Amounts.model_fields:
            raise ValueError(f"{quote(name)} is no field of a link's that can be set")
    Amounts(**update)
    return update


class Moment(BaseModel):
    """One change of one link, `at_s` after the schedule's beginning."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    at_s: Annotated[float, Field(ge=0, le=LATEST_S)]
    link: Name
    sender: HostName | None = None
    """The end whose sending direction is changed; None means both."""
    update: Annotated[dict[str, Amount | None], AfterValidator(_update_of)] = {}
    """The new values by field of `Shaping`; None means the declared value."""
    up: bool | None = None
    """False takes the link down, True makes it whole, None does neither."""
    carrier_lost: Annotated[bool, Field(exclude_if=lambda lost: not lost)] = False
    """Whether ends of a link that goes down lose their carrier; else it is cut in silence."""
    lost_at: Annotated[HostName | None, Field(exclude_if=lambda end: end is None)] = None
    """The only end that loses it; None: both do."""

    @property
    def outage(self) -> Outage:
        """How a link is down from this moment on, that goes down."""
        return Outage(end=self.lost_at) if self.carrier_lost else SILENT

    @property
    def in_words(self) -> str:
        """`rate 10 mbit`, `cut`, `down at ams`"""
        if self.up is not None:
            return "whole" if self.up else self.outage.in_words
        return ", ".join(plan_words(field, value) for field, value in self.update.items())


def _settings(value: object) -> tuple[dict[str, str], ...]:
    """One mapping of settings, or several that are used in turn. Raises Misplaced for a wrong value."""
    several = value if isinstance(value, list | tuple) else [value]
    found, findings = [], []
    for number, one in enumerate(several):
        place = (number,) if isinstance(value, list | tuple) else ()
        if not isinstance(one, dict) or not one:
            findings.append((place, f"{quote(one)} says nothing to set: write it as in {{delay: 40ms}}"))
            continue
        for what, written_ in one.items():
            try:
                amount(what, written_)
            except ValueError as error:
                findings.append(((*place, str(what)), str(error)))
        found.append({str(what): str(each) for what, each in one.items()})
    if findings:
        raise Misplaced(findings)
    return tuple(found)


_ONE = {"type": "object", "propertyNames": {"enum": [*SETTABLE]}, "additionalProperties": {"type": "string"}}
Settings: TypeAlias = Annotated[
    tuple[dict[str, str], ...],
    BeforeValidator(_settings),
    WithJsonSchema({"anyOf": [_ONE, {"type": "array", "items": _ONE, "minItems": 1}]}),
]
Seconds: TypeAlias = Annotated[str, BeforeValidator(MOMENT_S.normal), text_schema(MOMENT_S.pattern, "10s")]


class Step(Strict):
    """A change of one link: once, repeated, or by a trace."""

    at: Seconds | None = None
    """Time of the change, from the schedule's beginning."""
    every: Seconds | None = None
    """Interval of repetition until `until`. The first change is at `at`; default: one interval after the beginning."""
    until: Seconds | None = None
    """End of the repetition, or of a trace, which is repeated until then. Default: a trace is played once."""
    link: Annotated[str, *matching(NAME_HINT, NAME)]
    """Name of the link, such as ams-bra."""
    sender: Annotated[str, *matching(HOST_NAME_HINT, HOST_NAME)] | None = Field(default=None, alias="from")
    """Only the direction that this end sends. Default: both directions."""
    settings: Settings | None = Field(default=None, alias="set")
    """Settings, as in {delay: 40ms}; with `every` also a list, whose entries are used in turn."""
    cut: Seconds | None = None
    """How long the link is cut in silence: it loses all frames, and its ends keep their carrier."""
    down: Seconds | None = None
    """How long the link is down: it loses all frames, and its ends lose their carrier."""
    end: Annotated[str, *matching(HOST_NAME_HINT, HOST_NAME)] | None = None
    """With `down`: the only end that loses its carrier. Default: both do."""
    trace: Annotated[str, text("a path", LONGEST_PATH, one_line=True)] | None = None
    """A file beside the topology: a .csv of seconds and rate, or delay; any other is a trace of mahimahi."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if [self.settings, self.cut, self.down, self.trace].count(None) != 3:
            raise ValueError("a step has one of `set:`, `cut:`, `down:` and `trace:`")
        if self.trace is None and self.at is None and self.every is None:
            raise ValueError("a step says when: `at: 10s`, or `every: 5s` and `until: 60s`")
        if self.every is not None and self.until is None:
            raise ValueError("`every:` without `until:`: say when it ends, as in until: 60s")
        if self.until is not None and self.every is None and self.trace is None:
            raise ValueError("`until:` without `every:` or `trace:`: nothing is repeated")
        if self.settings is not None and len(self.settings) > 1 and self.every is None:
            raise ValueError("several settings are taken in turn: say how often, as in every: 5s")
        if self.every is not None and MOMENT_S.parse(self.every) == 0:
            raise ValueError("`every: 0s` would never come to an end")
        if self.sender is not None and (self.cut is not None or self.down is not None):
            raise ValueError("a link carries nothing either way then: leave `from:` out, or set loss: 100%")
        if self.end is not None and self.down is None:
            raise ValueError(
                "`end:` is the end that loses its carrier, as in down: 10s: leave it out, or write `down:`"
            )
        if self.trace is not None and self.every is not None:
            raise ValueError("a trace has its own times: leave `every:` out")
        return self


def moments(steps: Sequence[Step], traces: Mapping[tuple[str, str], Trace]) -> tuple[Moment, ...]:
    """The moments of all steps in order of time; moments of the same time keep the order of the file. `traces` has each
    trace by its path and the link that it is for. Raises ValueError for too many moments.
    """
    return tuple(moment for _, moment in moments_by_step(steps, traces))


def moments_by_step(steps: Sequence[Step], traces: Mapping[tuple[str, str], Trace]) -> tuple[tuple[int, Moment], ...]:
    """As `moments`, each with the number of its step."""
    found: list[tuple[int, Moment]] = []
    for number, step in enumerate(steps):
        for moment in _of(step, traces):
            found.append((number, moment))
            if len(found) > MOST_MOMENTS:
                raise ValueError(f"the schedule has more than {MOST_MOMENTS} moments")
    return tuple(sorted(found, key=lambda each: each[1].at_s))


def _of(step: Step, traces: Mapping[tuple[str, str], Trace]) -> Iterator[Moment]:
    if step.trace is not None:
        yield from _of_trace(step, traces[step.trace, step.link])
        return
    for number, at_s in enumerate(_times_s(step)):
        if (lasts := step.cut or step.down) is not None:
            lost = step.down is not None
            yield Moment(at_s=at_s, link=step.link, up=False, carrier_lost=lost, lost_at=step.end)
            yield Moment(at_s=round(at_s + MOMENT_S.parse(lasts), 9), link=step.link, up=True)
        elif step.settings is not None:
            chosen = step.settings[number % len(step.settings)]
            yield Moment(at_s=at_s, link=step.link, sender=step.sender, update=_update(chosen))


def _update(chosen: Mapping[str, str]) -> dict[str, Amount | None]:
    return dict(amount(what, written_) for what, written_ in chosen.items())


def _times_s(step: Step) -> Iterator[float]:
    if step.every is None:
        yield MOMENT_S.parse(step.at)
        return
    every_s, until_s = MOMENT_S.parse(step.every), MOMENT_S.parse(step.until)
    first_s = every_s if step.at is None else MOMENT_S.parse(step.at)
    number = 0
    while (at_s := round(first_s + number * every_s, 9)) <= until_s:
        yield at_s
        number += 1


def _of_trace(step: Step, trace: Trace) -> Iterator[Moment]:
    """The moments of a trace, played once, or until `until`."""
    begin_s = 0.0 if step.at is None else MOMENT_S.parse(step.at)
    until_s = begin_s + trace.length_s if step.until is None else MOMENT_S.parse(step.until)
    if trace.runs:
        if begin_s < until_s:
            played: dict[str, Amount | None] = {"trace": trace.runs}
            yield Moment(at_s=begin_s, link=step.link, sender=step.sender, update=played)
            yield Moment(at_s=round(until_s, 9), link=step.link, sender=step.sender, update={"trace": None})
        return
    points, before = trace.points, None
    number = 0
    while True:
        at_s = round(begin_s + number // len(points) * trace.length_s + points[number % len(points)][0], 9)
        if at_s >= until_s:
            return
        update = points[number % len(points)][1]
        if update != before:
            yield Moment(at_s=at_s, link=step.link, sender=step.sender, update=update)
        before, number = update, number + 1
