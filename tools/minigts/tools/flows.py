"""Several flows at the same time, each by a tool of its own: what they are, when each runs, what they give together.

All flows end at the same time and are compared over the same time: from `omit` after the last one has begun, for
`duration`. What a flow does before that is left out by its own tool, or here (`measured_of`).
"""

from __future__ import annotations

import functools
import math
import operator
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from minigts.language.fields import MADE, Strict, matching, whole
from minigts.language.problems import Finding, Misplaced, list_names, quote
from minigts.language.validation import keys
from minigts.tools import iperf3_tcp, iperf3_udp, netperf_rr, netperf_stream, ping, traffic
from minigts.tools.base import SETUP_ROUND_TRIPS, START_S, Measured, ParseError, PathUnderTest, Tool
from minigts.tools.columns import LOSS, MAX, MEAN, MIN, P99, STDEV, VALUE, Column, Declared
from minigts.tools.iperf3_tcp import RETRANSMITS, RTT
from minigts.tools.options import Options, WholeSeconds
from minigts.tools.payload import tcp_goodput
from minigts.topology.plan.elements import Path

MOST_FLOWS, MOST_OF_A_KIND, LONGEST_OMIT_S = 128, 64, 600
"""The most flows of a measurement, the most of one name, and the longest beginning that iperf3 can leave out."""
_SENDING = (iperf3_tcp.TOOL, iperf3_udp.TOOL, netperf_stream.TOOL, traffic.TOOL)
FLOWING: Mapping[str, Tool] = {tool.name: tool for tool in (*_SENDING, ping.TOOL, netperf_rr.TOOL)}
"""The tools that a flow may have."""
_OF_ALL = ("duration", "omit")
"""Options that the measurement has, for all its flows."""
_OTHER_LENGTHS = ("count", "transactions")
"""Options that say in another way how long a tool runs."""
_ALONE = "slowdown"
"""The option that measures flows alone."""
_OF_HOSTS = ("sessions", "offload", "stress")
"""Options that start something on further hosts or change a host's interface, which flows share."""
_NAME = re.compile(r"[a-z][a-z0-9]{0,19}", re.ASCII)
_SENDERS = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
)


def _senders(given: object) -> object:
    """One host or several; hosts are checked when the plan is known."""
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    raise ValueError(f"{quote(given)} are no hosts: write the name of one, or a list of names")


class _Flow(Strict):
    """One flow, or `number` alike."""

    name: Annotated[str, *matching("a flow's name: lower-case letters and digits, a letter first, at most 20", _NAME)]
    """The flow's name, with which its columns begin."""
    source: Annotated[tuple[str, ...] | None, BeforeValidator(_senders), _SENDERS] = Field(default=None, alias="from")
    """The host that sends, or several hosts, which send a flow each; by default the first end of the path."""
    target: str | None = Field(default=None, alias="to")
    """The host that receives; by default the second end of the path."""
    number: Annotated[int, *whole("a number of flows", 1, MOST_OF_A_KIND)] | None = None
    """How many such flows there are, from the hosts in turn; by default one from each host."""
    start_s: WholeSeconds | None = Field(default=None, alias="start")
    """When it begins, in whole seconds after the measurement does; by default at once."""
    options: Options
    """The options of the flow's tool, without those that say how long it runs."""
    tool: str
    """The flow's tool."""

    @model_validator(mode="after")
    def _without_a_length(self) -> Self:
        given = keys_given(self.options)
        findings: list[Finding] = [
            (("options", key), f"all flows last as long: `{key}` is the measurement's, beside `flows:`")
            for key in given
            if key in _OF_ALL
        ]
        findings += [
            (("options", key), f"all flows last as long: in place of `{key}` write `duration:` beside `flows:`")
            for key in given
            if key in _OTHER_LENGTHS
        ]
        findings += [
            (("options", key), f"`{key}` is of a measurement of one flow") for key in given if key in _OF_HOSTS
        ]
        if _ALONE in given:
            message = f"remove `{_ALONE}`: nothing is measured alone while other flows run"
            findings.append((("options", _ALONE), message))
        if findings:
            raise Misplaced(findings)
        return self

    @property
    def instrument(self) -> Tool:
        return FLOWING[self.tool]

    @property
    def sends(self) -> bool:
        """Whether it has a rate, of which the flows have shares."""
        return self.instrument in _SENDING

    @property
    def begins_s(self) -> float:
        return self.start_s or 0.0

    @property
    def count(self) -> int:
        """How many flows it stands for."""
        return self.number or len(self.source or ("",))


def keys_given(options: Options) -> list[str]:
    """The keys of the options that have another value than by default."""
    fields = type(options).model_fields
    return [field.alias or name for name, field in fields.items() if getattr(options, name) != field.default]


def _flow_of(tool: Tool) -> type[_Flow]:
    """The model of a flow by a tool, with the tool's options."""
    fields: dict[str, Any] = {
        "tool": (Literal[tool.name], Field(description="The flow's tool.")),
        "options": (
            tool.options,
            Field(default=tool.options(), description="The options of the tool, without those of its length."),
        ),
    }
    parts = (part.capitalize() for part in tool.name.split("-"))
    return create_model(f"{''.join(parts)}Flow", __base__=_Flow, __module__=__name__, __cls_kwargs__=MADE, **fields)


FLOWS: Mapping[str, type[_Flow]] = {name: _flow_of(tool) for name, tool in FLOWING.items()}
"""The model of a flow by its tool's name; they differ in their options."""
if TYPE_CHECKING:
    AnyFlow = _Flow
else:  # a type checker cannot follow a union that a list makes
    AnyFlow = functools.reduce(operator.or_, FLOWS.values())
Flow = Annotated[AnyFlow, Field(discriminator="tool")]


class FlowsOptions(Options):
    """Flows that run at the same time, and are compared over `duration`."""

    duration_s: WholeSeconds = Field(default=10.0, alias="duration")
    """How long the flows are compared, in whole seconds; 10 s by default."""
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    """How long after the last flow's start nothing counts, in whole seconds; nothing by default."""
    flows: Annotated[tuple[Flow, ...], Field(min_length=1, max_length=MOST_FLOWS)]
    """The flows."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        if findings := list(self._wrong()):
            raise Misplaced(findings)
        return self

    def _wrong(self) -> Iterator[Finding]:
        seen: set[str] = set()
        for index, flow in enumerate(self.flows):
            if flow.name in seen:
                yield ("flows", index, "name"), f"{flow.name!r} appears twice"
            seen.add(flow.name)
            try:
                self.options_of(flow)
            except ValueError as error:
                yield ("flows", index), str(error)
        if not any(flow.sends for flow in self.flows):
            yield (
                ("flows",),
                "none of them has a rate, of which flows have shares; "
                f"{list_names([each.name for each in _SENDING])} do",
            )
        if (count := sum(flow.count for flow in self.flows)) > MOST_FLOWS:
            yield ("flows",), f"these are {count} flows; at most {MOST_FLOWS} are possible"
        for index, flow in enumerate(self.flows):
            if self.left_out_s(flow) > LONGEST_OMIT_S:
                yield (
                    ("flows", index),
                    f"begins {self.left_out_s(flow):g} s before the flows are compared; at most {LONGEST_OMIT_S} s are "
                    "possible",
                )

    @property
    def may_vary(self) -> list[str]:
        own = [key for key in keys(type(self)) if key != "flows"]
        return [
            *own,
            *(
                f"{flow.name}.{key}"
                for flow in self.flows
                for key in ("number", *keys(type(flow.options)))
                if key not in (*_OF_ALL, *_OTHER_LENGTHS, *_OF_HOSTS, _ALONE)
            ),
        ]

    def choose(self, chosen: Mapping[str, str | int]) -> Self:
        written = self.model_dump(by_alias=True, exclude_none=True)
        flows = {flow["name"]: flow for flow in written["flows"]}
        for key, value in chosen.items():
            name, _, option = key.partition(".")
            if not option:
                written[key] = value
            elif name not in flows:
                raise KeyError(key)
            elif option == "number":
                flows[name]["number"] = value
            else:
                flows[name]["options"][option] = value
        return type(self).model_validate(written)

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})

    @property
    def last_start_s(self) -> float:
        return max(flow.begins_s for flow in self.flows)

    def left_out_s(self, flow: _Flow) -> float:
        """How long the flow runs before the time over which flows are compared."""
        return self.last_start_s - flow.begins_s + (self.omit_s or 0.0)

    def options_of(self, flow: _Flow) -> Options:
        """The options with which the flow's tool runs. Raises ValueError for a length that the tool cannot have."""
        left_out_s = self.left_out_s(flow)
        if "omit_s" in type(flow.options).model_fields:
            return flow.options.model_copy(update={"omit_s": left_out_s or None, "duration_s": self.duration_s})
        lasting = flow.options.lasting(left_out_s + self.duration_s)
        # Nothing is alone while other flows run.
        return lasting.model_copy(update={_ALONE: False}) if flow.tool == traffic.TOOL.name else lasting

    def members(self, source: str, target: str) -> tuple[Member, ...]:
        """Every single flow, in the file's order; `source` and `target` are the ends of those that name none."""
        return tuple(
            Member(flow, number + 1, senders[number % len(senders)], flow.target or target)
            for flow in self.flows
            for senders in [flow.source or (source,)]
            for number in range(flow.count)
        )


@dataclass(frozen=True)
class Member:
    """One single flow: the `number`-th, from 1, of those of its name."""

    flow: _Flow
    number: int
    source: str
    target: str

    @property
    def in_words(self) -> str:
        which = f" {self.number} of {self.flow.count}" if self.flow.count > 1 else ""
        return f"flow {self.flow.name}{which} from {self.source} to {self.target}"


@dataclass(frozen=True)
class FlowResult:
    """What one flow gave over the common time. `idle_ms` is the round trip without traffic, None where unknown."""

    member: Member
    measured: Measured
    idle_ms: float | None
    share_percent: float | None = None

    @property
    def rate_mbit(self) -> float:
        """The rate that it received; 0 for one that does not send."""
        if not self.member.flow.sends:
            return 0.0
        return self.measured.extra.get(traffic.RECEIVED.name, self.measured.value)

    @property
    def rtt_ms(self) -> float | None:
        """The round trip under load: ping's median, netperf's mean, or the mean that TCP's sender has measured."""
        tool = self.member.flow.instrument
        if tool.quantity == "latency":
            return self.measured.extra.get(MEAN.name) if tool is netperf_rr.TOOL else self.measured.value
        return self.measured.extra.get(RTT.name)

    @property
    def queueing_ms(self) -> float | None:
        """The round trip under load less the idle one; None where one of them is unknown."""
        return None if self.rtt_ms is None or self.idle_ms is None else max(0.0, self.rtt_ms - self.idle_ms)

    @property
    def longest_queueing_ms(self) -> float | None:
        """The longest round trip under load less the idle one; None where one of them is unknown."""
        longest_ms = self.measured.extra.get(MAX.name) if self.member.flow.instrument.quantity == "latency" else None
        return None if longest_ms is None or self.idle_ms is None else max(0.0, longest_ms - self.idle_ms)


def parse_flow(options: FlowsOptions, member: Member, stdout: str, stderr: str) -> Measured:
    """What a flow's tool measured, of ping without what it sent before the common time. Raises ParseError, which names
    the flow."""
    tool = member.flow.instrument
    try:
        measured = tool.read(stdout, stderr)
        return _echoes(measured, stdout, options.left_out_s(member.flow)) if tool is ping.TOOL else measured
    except ParseError as error:
        raise ParseError(f"{member.in_words}: {error}") from error


def _echoes(measured: Measured, stdout: str, left_out_s: float) -> Measured:
    """The round trips of the requests that were sent after that time; counts and gaps stay those of the whole run."""
    replies = sorted(rtt for at_s, rtt in ping.series(stdout)[VALUE] if at_s >= left_out_s)
    if not replies:
        raise ParseError("ping: no reply came in the time over which flows are compared")
    extra = {MIN.name: replies[0], MAX.name: replies[-1], MEAN.name: statistics.fmean(replies)}
    extra[STDEV.name] = statistics.pstdev(replies)
    return replace(measured, value=statistics.median(replies), extra={**measured.extra, **extra})


def jain(rates: Sequence[float]) -> float | None:
    """Jain's index of n rates: (Σx)² / (n·Σx²), 1 when all are equal and 1/n when one has all; None if all are 0.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.
    """
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


def add_shares(results: Sequence[FlowResult]) -> tuple[FlowResult, ...]:
    """The same, each flow that sends with its share of what all of them sent."""
    total = sum(each.rate_mbit for each in results)
    return tuple(
        replace(each, share_percent=100 * each.rate_mbit / total) if each.member.flow.sends and total else each
        for each in results
    )


def together(results: Sequence[FlowResult]) -> Measured:
    """What all flows give: the sum of the rates, and columns of all and of each name (`made_for`)."""
    sending = [each for each in results if each.member.flow.sends]
    echoes = [each for each in results if not each.member.flow.sends]
    waits = [each.queueing_ms for each in echoes or sending if each.queueing_ms is not None]
    found = {
        JAIN.name: jain([each.rate_mbit for each in sending]),
        QUEUEING.name: statistics.median(waits) if waits else None,
    }
    for name, own in _by_name(results).items():
        found |= {f"{name}_{key}": value for key, value in _of_a_name(own).items()}
    return Measured(
        sum(each.rate_mbit for each in sending),
        {name: value for name, value in found.items() if value is not None},
    )


def _by_name(results: Sequence[FlowResult]) -> Mapping[str, list[FlowResult]]:
    found: dict[str, list[FlowResult]] = {}
    for each in results:
        found.setdefault(each.member.flow.name, []).append(each)
    return found


def _of_a_name(own: Sequence[FlowResult]) -> Mapping[str, float | None]:
    """The figures of all flows of a name: rates, shares and retransmissions are sums; round trips medians."""
    times = [each.measured.value for each in own if each.member.flow.instrument.unit == "ms"]
    slowest = [each.measured.extra[P99.name] for each in own if P99.name in each.measured.extra]
    shares = [each.share_percent for each in own if each.share_percent is not None]
    waits = [each.queueing_ms for each in own if each.queueing_ms is not None]
    longest = [each.longest_queueing_ms for each in own if each.longest_queueing_ms is not None]
    again, lost = ([each.measured.extra[key] for each in own if key in each.measured.extra] for key in _FURTHER)
    sends = own[0].member.flow.sends
    return {
        "mbit": sum(each.rate_mbit for each in own) if sends else None,
        "ms": statistics.median(times) if times else None,
        "p99_ms": max(slowest) if slowest and times else None,
        "share_percent": sum(shares) if shares else None,
        "queueing_ms": statistics.median(waits) if waits else None,
        "longest_queueing_ms": max(longest) if longest else None,
        RETRANSMITS.name: sum(again) if again else None,
        LOSS.name: statistics.fmean(lost) if lost else None,
    }


_FURTHER = (RETRANSMITS.name, LOSS.name)
_FOLLOWS: tuple[Declared, ...] = ("delay", "rate", "loss", "jitter")
TOTAL = Column(VALUE, "all flows", "Mbit/s", quantity="value", follows=_FOLLOWS, better="higher")
JAIN = Column("jain", "Jain's index", "", follows=_FOLLOWS, panel=True, tabled=True, better="higher")
UTILISATION = Column("utilisation_percent", "utilisation of the bottleneck", "%", follows=_FOLLOWS, tabled=True)
QUEUEING = Column("queueing_ms", "queueing delay", "ms", follows=_FOLLOWS, panel=True, tabled=True, better="lower")
MOST_PANELS = 4
"""The most names of flows whose shares have panels of their own in figures by default."""


def columns_of(options: FlowsOptions) -> tuple[Column, ...]:
    """The columns of a measurement's samples beside their value."""
    return (JAIN, UTILISATION, QUEUEING, *(column for flow in options.flows for column in _columns_of(flow, options)))


def _columns_of(flow: _Flow, options: FlowsOptions) -> Iterator[Column]:
    tool, name = flow.instrument, flow.name
    if tool.unit == "ms":
        yield Column(f"{name}_ms", name, "ms", follows=_FOLLOWS, tabled=True, better="lower")
        if tool.column(P99.name):
            yield Column(f"{name}_p99_ms", f"p99 of {name}", "ms", follows=_FOLLOWS, tabled=True, better="lower")
    if flow.sends:
        yield Column(f"{name}_mbit", f"rate of {name}", "Mbit/s", follows=_FOLLOWS, tabled=True, better="higher")
        panel = len(options.flows) <= MOST_PANELS
        yield Column(f"{name}_share_percent", f"share of {name}", "%", follows=_FOLLOWS, panel=panel, tabled=True)
    if tool.quantity == "latency" or tool.column(RTT.name):
        yield Column(f"{name}_queueing_ms", f"queueing delay of {name}", "ms", follows=_FOLLOWS)
    if tool.quantity == "latency" and tool.column(MAX.name):
        yield Column(f"{name}_longest_queueing_ms", f"longest queueing delay of {name}", "ms", follows=_FOLLOWS)
    for column in (RETRANSMITS, LOSS):
        if tool.column(column.name):
            yield Column(f"{name}_{column.name}", f"{column.label} of {name}", column.unit, follows=_FOLLOWS)


def time_series(outputs: Sequence[tuple[Member, str]]) -> Mapping[str, list[tuple[float, float]]]:
    """Figures over time of each flow's output: for `NAME column` pairs of seconds since the measurement began and the
    figure, of all flows of a name one after the other in time. Raises ParseError."""
    found: dict[str, list[tuple[float, float]]] = {}
    for member, stdout in outputs:
        if (series := member.flow.instrument.series) is None:
            continue
        name = f"{member.flow.name} {member.number}" if member.flow.count > 1 else member.flow.name
        for column, points in series(stdout).items():
            own = column if column != VALUE else "rtt_ms" if member.flow.instrument is ping.TOOL else "completion_ms"
            found[f"{name} {own}"] = [(at_s + member.flow.begins_s, value) for at_s, value in points]
    return found


def seconds(options: FlowsOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    own_s = options.last_start_s + (options.omit_s or 0) + options.duration_s
    return own_s + SETUP_ROUND_TRIPS * path.rtt_ms / 1000 + START_S


def tool_for(options: FlowsOptions) -> Tool:
    """The tool of a measurement with these flows, with their columns."""
    return replace(TOOL, columns=columns_of(options))


def _of_several(*_arguments: Any) -> Any:
    raise ParseError("flows: one output has no result of several flows")


def _endless(options: FlowsOptions) -> bool:
    return any(flow.instrument.endless(flow.options) for flow in options.flows)


def _none(*_arguments: Any) -> None:
    """The plan predicts no rate of flows that share a path."""


def wire_mbit(result: FlowResult, way: PathUnderTest) -> float:
    """The rate that a flow's payload takes on the path, with the headers of its packets, in Mbit/s."""
    tool, options = result.member.flow.instrument, result.member.flow.options
    alone = way.path.model_copy(update={"rate_mbit": 1000.0, "loss_percent": 0.0, "back": None})
    free = replace(way, buffers=None, path=alone)
    if "rate" in keys(type(options)):
        options = options.choose({"rate": "unlimited"})
    expected = tcp_goodput(free) if tool is traffic.TOOL else None
    carried = expected.most_mbit if expected else tool.predicted(options, free)
    return result.rate_mbit * (1000.0 / carried if carried and math.isfinite(carried) else 1.0)


TOOL = Tool(
    name="flows",
    usual_name="flows",
    value=TOTAL,
    columns=(JAIN, UTILISATION, QUEUEING),
    package="",
    options=FlowsOptions,
    argv=_of_several,
    seconds=seconds,
    read=_of_several,
    predicted=_none,
    endless=_endless,
    series=_of_several,
    made_for=tool_for,
)
