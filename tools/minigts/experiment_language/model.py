"""The experiment language: the model of an experiment's file. The options of each tool are in its own module."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from minigts.errors import InputError
from minigts.experiment_language.claims import (
    ALONG_PATHS,
    METRICS,
    OF_THE_PATH,
    PLACE,
    SCALAR,
    Claim,
    Name,
    Published,
    expand_ranges,
    formula_name,
    option_value,
    word,
)
from minigts.experiment_language.figures import EXPERIMENT, PLACES, TIME, Figure, Known, unknown_words
from minigts.language import validation
from minigts.language.fields import MADE, Strict, choice, matching, text_schema, truth, unknown, whole
from minigts.language.formula import formula
from minigts.language.problems import Finding, Location, Misplaced, list_names, quote
from minigts.language.quantities import OFFERED_MBIT, whole_number
from minigts.language.units import convert
from minigts.language.validation import findings_of
from minigts.tools import COLUMNS, OPEN, TOOLS, command
from minigts.tools.base import Tool
from minigts.tools.columns import OF_QUEUES, VALUE, Column
from minigts.tools.cpu_bound import OF_THE_PROCESSOR
from minigts.tools.flows import FlowsOptions
from minigts.tools.options import Count, Duration, Options, QueueSize, Switch, WholeSeconds, written_duration
from minigts.topology.plan.plan import Plan
from minigts.topology.plan.stored import MOST_REPLICATES
from minigts.topology.schedule import Moment, Step, moments
from minigts.topology.time import Time

MOST_CROSSING = 64
MOST_QUEUES = 64
MOST_LABS, MOST_SWEPT, LONGEST_CELL = 10_000, 4, 200
"""The most labs of a sweep, the most places that it varies, and the longest name of a lab's folder in characters."""
CROSS = "cross"
"""The key of `vary` for the rate of all cross traffic."""
MOST_SAMPLES = 200_000
"""The most samples of one experiment. A results directory has a file for each, and a report reads them all."""


FEWEST_REPLICATES = 5
"""The fewest of several replicates: fewer decide nothing (docs/decisions/samples.md). A single one is exact."""


def replicates_of(value: object) -> int:
    """The number of replicates. Raises ValueError for a number that decides nothing."""
    number = whole_number(value, "replicates", 1, MOST_REPLICATES)
    if 1 < number < FEWEST_REPLICATES:
        raise ValueError(
            f"{number} replicates decide nothing: write 1 for one exact course, or {FEWEST_REPLICATES} to "
            f"{MOST_REPLICATES}"
        )
    return number


Replicates = Annotated[
    int,
    BeforeValidator(replicates_of),
    WithJsonSchema(
        {"type": "integer", "anyOf": [{"const": 1}, {"minimum": FEWEST_REPLICATES, "maximum": MOST_REPLICATES}]}
    ),
]


class HostPair(Strict):
    """One path, by its two hosts' names; `from` sends."""

    source: str = Field(alias="from")
    """The host that sends."""
    target: str = Field(alias="to")
    """The host that receives."""


def _path_kind(value: object) -> str:
    return "word" if isinstance(value, str) else "pair"


PathWord = Literal["first-to-each", "first-to-last", "each-segment", "every-pair"]
Paths = Annotated[Annotated[PathWord, Tag("word")] | Annotated[HostPair, Tag("pair")], Discriminator(_path_kind)]
"""Which paths: the first host to each other or to the last one, each link, every pair once, or one pair by name."""


_Value = Annotated[str | int, BeforeValidator(option_value), SCALAR]
Varied = dict[str, Annotated[tuple[_Value, ...], Field(min_length=1)]]
"""Values for options, in the order in which figures show them."""


Place = Annotated[str, *matching("a place in the topology's file, as in chain.hosts or links.rtt", PLACE)]
Swept = dict[Place, Annotated[tuple[_Value, ...], BeforeValidator(expand_ranges), Field(min_length=1)]]
"""Values for places in a topology's file; an entry may be a range of values."""


class Crossing(HostPair):
    """One flow of cross traffic, by iperf3."""

    protocol: Literal["tcp", "udp"] = "tcp"
    """tcp, or udp at a rate."""
    rate: Annotated[str, BeforeValidator(OFFERED_MBIT.normal), text_schema(OFFERED_MBIT.pattern, "20mbit")] | None = (
        None
    )
    """The rate that is offered; by default TCP sends as much as it can."""
    between: Literal["hosts", "containers"] = "hosts"
    """hosts: over the plain hosts' own routes; containers: over the overlay that is measured."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.protocol == "udp" and self.rate is None:
            raise ValueError("protocol: udp needs `rate:`, as in rate: 20mbit")
        return self


class Links(Strict):
    """The settings of all links while a measurement runs, where they differ from the topology."""

    gro: Annotated[Switch, OF_THE_PROCESSOR] = "off"
    """Generic receive offload on the links' interfaces; off by default."""
    queue: QueueSize | None = None
    """The queue of each link, before its rate: a size, packets or a time; by default the topology's."""
    rate: Literal["unlimited"] | None = None
    """unlimited: no rate on any link; by default the topology's rates."""


class Cut(Strict):
    """A link that is cut while a sample is taken, and then restored. Times count from the sample's beginning."""

    link: str
    """The link's name, or its two ends in the other order."""
    at_s: Duration = Field(alias="at")
    """When the link is cut."""
    for_s: Duration = Field(alias="for")
    """How long the link stays cut."""
    carrier: Literal["kept", "lost"] = "kept"
    """kept: frames are lost in silence; lost: both ends lose their carrier, as where a cable is pulled."""


class Ends(Strict):
    """Where a measurement's client and server are, on its two hosts."""

    client: Literal["container", "host", "second"] = Field(default="container", alias="from")
    """container: the overlay's measuring container; host: the plain host; second: another container on the host."""
    server: Literal["container", "host", "own"] = Field(default="container", alias="to")
    """container: the overlay's address of the container; host: the plain host; own: the container's own address where
    it differs (Docker's bridge with published ports)."""


def _every(value_s: float) -> float:
    if not 0.01 <= value_s <= 60:
        raise ValueError(f"{written_duration(value_s)} is no time between two readings: 10ms to 60s are possible")
    return value_s


class Queues(Strict):
    """The queues that are read while a measurement runs."""

    every_s: Annotated[Duration, AfterValidator(_every)] = Field(default=0.1, alias="every")
    """The time between two readings, 10ms to 60s; 100ms by default."""
    of: Annotated[tuple[str, ...], Field(max_length=MOST_QUEUES)] = ()
    """Links by their names, in that direction: `ams-bra` is the queue of ams, `bra-ams` that of bra. By default the
    direction with the lowest rate on each way that something is sent."""


class _Measurement(Strict):
    """One measurement. `vary` lists values for some of the options; each combination is measured."""

    name: Name
    """The name by which claims and figures refer to it."""
    paths: Annotated[tuple[Paths, ...], Field(min_length=1)]
    """first-to-each, first-to-last, each-segment, every-pair, or a pair of hosts by name."""
    together: Annotated[bool, *truth("all paths are measured at the same time")] = False
    """Whether all paths are measured at the same time, each with its own result; no host may be in two of them."""
    options: Options
    """The options of the tool."""
    vary: Varied = Field(default_factory=dict)
    """Options with a list of values each; every combination is measured."""
    over: tuple[Name, ...] = ()
    """The overlays over which it is measured; by default all of the experiment's."""
    ends: Ends = Ends()
    """Where the client and the server are."""
    links: Links = Links()
    """The settings of all links meanwhile."""
    rest_s: Duration | None = Field(default=None, alias="rest")
    """How long nothing is sent before each sample, so that hosts forget the previous one; by default no time."""
    cut: Cut | None = None
    """A link that is cut meanwhile."""
    schedule: tuple[Step, ...] = ()
    """Changes of links meanwhile. Times count from the sample's beginning; changes after its end are left out."""
    play: Literal["topology"] | None = None
    """topology: the schedule of the topology file is played meanwhile."""
    cross: Annotated[tuple[Crossing, ...], Field(max_length=MOST_CROSSING)] = ()
    """Cross traffic meanwhile: each flow is sent by `from` to `to`. `vary: {cross: …}` gives rates for all flows."""
    series: Annotated[bool, *truth("what the tool says of each moment is kept, too")] = False
    """Whether the tool's figures over time become rows of series.csv and a figure over time; false by default."""
    queues: Annotated[Queues | None, Field(exclude_if=lambda queues: queues is None)] = None
    """Read the queue of the bottleneck again and again, into series.csv and a figure over time; by default not."""
    watch: Annotated[tuple[Literal["cpu"], ...], OF_THE_PROCESSOR] = ()
    """cpu: read the processor counters of both hosts meanwhile, inside them and, where possible, outside."""
    tool: str
    """The tool that measures."""

    @model_validator(mode="after")
    def _variants_are_valid(self) -> Self:
        if findings := list(self.wrong_variants()):
            raise Misplaced(findings)
        return self

    def wrong_variants(self) -> Iterator[Finding]:
        """The problems in `vary`: unknown options, impossible values, and values given twice.

        Each value is tried with the first values of the other options, as options exclude each other whatever their
        values.
        """
        known = [*self.options.may_vary, *([CROSS] if self.cross else [])]
        if self.series and self.instrument.series is None:
            able = [name for name, tool in _EVERY.items() if tool.series is not None]
            yield ("series",), f"{self.tool} reports no figures over time; {list_names(able)} do"
        if self.together and (getattr(self.options, "sessions", None) is not None or "sessions" in self.vary):
            yield (
                ("together",),
                "`sessions` uses further hosts, which may be those of another path: give one of the two",
            )
        yield from self._wrong_schedule()
        yield from self._wrong_beside_flows()
        for key in self.vary.keys() - set(known):
            yield ("vary", key), unknown("option", f"options of {self.name}", key, known)
        firsts = {key: values[0] for key, values in self.vary.items() if key in known}
        for key, values in self.vary.items():
            seen: set[str] = set()
            for index, value in enumerate(values):
                where: Location = ("vary", key, index)
                if word(value) in seen:
                    yield where, f"{value!r} is given twice"
                seen.add(word(value))
                if key in known and (index or key == next(iter(firsts))):
                    yield from self._wrong_under({**firsts, key: value}, where)

    def _wrong_beside_flows(self) -> Iterator[Finding]:
        """Keys that a measurement of several flows cannot have."""
        if not isinstance(self.options, FlowsOptions):
            return
        if self.together:
            yield ("together",), "flows run at the same time already: give each its `from:` and `to:`"
        if self.cross:
            yield ("cross",), "cross traffic is a flow here: write it under `flows:`"
        if self.watch:
            yield ("watch",), f"the counters of hosts are read around one client, and {self.tool} has several"

    def _wrong_schedule(self) -> Iterator[Finding]:
        for index, step in enumerate(self.schedule):
            if step.trace is not None:
                yield (
                    ("schedule", index, "trace"),
                    "a trace belongs to a topology: put it into its `schedule:`, and say `play: topology` here",
                )
        if self.schedule and self.play is not None:
            yield ("play",), "`schedule:` and `play:` are both given: one of them is played"

    def _wrong_under(self, chosen: dict[str, str | int], where: Location) -> Iterator[Finding]:
        try:
            self._with(chosen)
        except ValidationError as error:
            for found, message in findings_of(error, type(self.options)):
                at_hand = next((step for step in found if step in chosen), None)
                at_hand = CROSS if found == ("rate",) and CROSS in chosen else at_hand
                yield (("vary", at_hand, where[2] if at_hand == where[1] else 0) if at_hand else where[:2]), message

    @property
    def condition_count(self) -> int:
        """The number of `conditions`, computed without making them."""
        return math.prod(len(values) for values in self.vary.values())

    @property
    def conditions(self) -> Iterator[str]:
        """Each combination of what varies, as `datagram=1400B offload=on`; one empty string when nothing varies."""
        words = [[f"{key}={word(value)}" for value in values] for key, values in self.vary.items()]
        return (" ".join(chosen) for chosen in itertools.product(*words))

    def under(self, condition: str) -> Self:
        """The measurement with the options of one of its `conditions`. Raises pydantic's ValidationError, KeyError."""
        values = {(key, word(value)): value for key, several in self.vary.items() for value in several}
        return self._with({key: values[key, value] for key, value in settings(condition).items()})

    def _with(self, chosen: dict[str, str | int]) -> Self:
        update: dict[str, object] = {"vary": {}}
        if self.cross and CROSS in chosen:
            flows = [flow.model_dump(by_alias=True, exclude_none=True) for flow in self.cross]
            update["cross"] = tuple(Crossing.model_validate({**flow, "rate": chosen[CROSS]}) for flow in flows)
            chosen = {key: value for key, value in chosen.items() if key != CROSS}
        return self.model_copy(update={**update, "options": self.options.choose(chosen)})

    def moments(self, plan: Plan) -> tuple[Moment, ...]:
        """The changes of links meanwhile, without a `cut`: of its own schedule, or of the one that it plays."""
        return plan.schedule if self.play else moments(self.schedule, {})

    @property
    def instrument(self) -> Tool:
        """The measurement's tool, with the label and the unit that its options may give."""
        tool = _EVERY[self.tool]
        return tool if tool.made_for is None else tool.made_for(self.options)


def settings(condition: str) -> dict[str, str]:
    """`datagram=1400B offload=on` → {"datagram": "1400B", "offload": "on"}."""
    return dict(word.split("=", 1) for word in condition.split())


def _measurement_of(tool: Tool) -> type[_Measurement]:
    """The model of a measurement by a tool, with the tool's options: NetperfRR for `netperf-rr`."""
    parts = (part.upper() if len(part) < 3 else part.capitalize() for part in tool.name.split("-"))
    needed = any(field.is_required() for field in tool.options.model_fields.values())
    options = ... if needed else tool.options()
    fields: dict[str, Any] = {
        "tool": (Literal[tool.name], Field(description="The tool that measures.")),
        "options": (tool.options, Field(default=options, description="The options of the tool.")),
    }
    return create_model("".join(parts), __base__=_Measurement, __module__=__name__, __cls_kwargs__=MADE, **fields)


_EVERY = {**TOOLS, **OPEN}
MEASUREMENTS = {name: _measurement_of(tool) for name, tool in _EVERY.items()}
"""The model of a measurement by each tool."""
if TYPE_CHECKING:
    AnyMeasurement = _Measurement
else:  # a type checker cannot follow a union that a list makes
    AnyMeasurement = functools.reduce(operator.or_, MEASUREMENTS.values())
Measurement = Annotated[AnyMeasurement, Field(discriminator="tool")]


class Scale(Strict):
    """What `--paper` or `--quick` changes: the study's own length and repetitions, or a short look."""

    repetitions: Annotated[Count | None, Field(exclude_if=lambda number: number is None)] = None
    """How often each cell is measured; by default once for `quick`, and the experiment's number for `paper`."""
    replicates: Annotated[Replicates | None, Field(exclude_if=lambda number: number is None)] = None
    """How many labs with different seeds; by default one for `quick`, and the experiment's number for `paper`."""
    duration_s: WholeSeconds | None = Field(default=None, alias="duration")
    """How long each sample takes, in whole seconds; by default as the measurement says."""
    overlays: tuple[Name, ...] = ()
    """The overlays that are measured; by default all of the experiment's."""
    measurements: Annotated[tuple[Name, ...], Field(exclude_if=lambda names: not names)] = ()
    """The measurements that are made; by default all of the experiment's."""
    vary: dict[str, Annotated[tuple[_Value, ...], BeforeValidator(expand_ranges), Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Other values for what varies in the topology or in measurements."""


class Experiment(Strict):
    """One experiment. `topology` is a path as written, relative to where minigts runs or to the project."""

    name: Name
    """The name of the experiment and of its results directories."""
    title: str
    """The heading of the report."""
    description: str = ""
    """The first paragraph of the report."""
    topology: str
    """The path of the topology file, relative to where minigts runs or to the project."""
    time: Annotated[Time, choice("a lab's time", "real", "virtual")] | None = None
    """The time of the lab, in place of the topology's; real where the processor is measured."""
    vary: Annotated[Swept, Field(max_length=MOST_SWEPT)] = Field(default_factory=dict)
    """Values, or ranges of them, for places in the topology file; each combination is measured in its own lab."""
    overlays: Annotated[tuple[Name, ...], Field(min_length=1)]
    """The overlays, measured one after the other; none is the plain hosts."""
    seed: Annotated[int, *whole("a seed", 0, 2**63 - 1)]
    """The seed of the order of samples within an overlay, and of the bootstrap intervals."""
    repetitions: Count
    """How often each cell is measured."""
    replicates: Annotated[Replicates, Field(exclude_if=lambda number: number == 1)] = 1
    """How many labs with different seeds are measured in virtual time; by default 1, one course of events."""
    measurements: Annotated[tuple[Measurement, ...], Field(min_length=1)]
    """The measurements."""
    claims: tuple[Claim, ...] = ()
    """The claims about the figures."""
    published: tuple[Published, ...] = ()
    """Published values that are drawn beside the measured ones."""
    figures: tuple[Figure, ...] = ()
    """The figures that are drawn; by default one for each measurement."""
    paper: Scale | None = None
    """What `--paper` changes."""
    quick: Scale = Scale()
    """What `--quick` changes."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if findings := list(self._inconsistencies()):
            raise Misplaced(findings)
        return self

    def _inconsistencies(self) -> Iterator[Finding]:
        names = [measurement.name for measurement in self.measurements]
        yield from _given_twice([("measurements", index, "name") for index in range(len(names))], names)
        yield from _given_twice([("overlays", index) for index in range(len(self.overlays))], self.overlays)
        named: list[tuple[Location, str | None]] = [
            *((("published", index, "measurement"), entry.measurement) for index, entry in enumerate(self.published)),
            *((("claims", index, "of"), claim.of) for index, claim in enumerate(self.claims)),
            *(
                (("figures", index, "of"), name)
                for index, each in enumerate(self.figures)
                for name in each.measurements
            ),
        ]
        known = set(names)
        yield from self._wrong_sweep()
        for where, name in named:
            if name is not None and name not in known:
                yield where, unknown("measurement", "measurements", name, names)
        yield from self._wrong_metrics()
        yield from self._wrong_values()
        yield from self._wrong_scales()

    def _wrong_sweep(self) -> Iterator[Finding]:
        at_scales: list[tuple[Location, Mapping[str, tuple[str | int, ...]]]] = [(("vary",), self.vary)]
        for key, scale in (("paper", self.paper), ("quick", self.quick)):
            if scale is not None and not self.vary.keys().isdisjoint(scale.vary):
                at_scales.append(((key, "vary"), self._swept(scale)))
        for where, swept in at_scales:
            if (count := math.prod(map(len, swept.values()))) > MOST_LABS:
                yield where, f"asks for {count:,} labs; at most {MOST_LABS:,} are possible: take fewer values"
            longest = ",".join(f"{place}={max(map(word, values), key=len)}" for place, values in swept.items())
            if len(longest) > LONGEST_CELL:
                long = f"{longest[:60]}…, has {len(longest)} characters, of at most {LONGEST_CELL}"
                yield where, f"a lab's folder is named by its values, and this name, {long}"
            for place, value in ((place, value) for place, values in swept.items() for value in values):
                if "/" in word(value):
                    yield (
                        (*where, place),
                        f"{quote(value)}: a lab's folder is named by its values, so none may have a /",
                    )

    def _swept(self, scale: Scale) -> dict[str, tuple[str | int, ...]]:
        """The values of the topology's places at that scale."""
        return {place: scale.vary.get(place, values) for place, values in self.vary.items()}

    @property
    def variations(self) -> Iterator[Experiment]:
        """The experiment for each combination of what varies in the topology; itself when nothing varies."""
        for chosen in itertools.product(*self.vary.values()):
            yield self.model_copy(update={"vary": {place: (v,) for place, v in zip(self.vary, chosen, strict=True)}})

    @property
    def values(self) -> dict[str, str]:
        """The values of one of its `variations`, by their places in the topology file."""
        return {place: word(value) for place, (value, *_) in self.vary.items()}

    @property
    def variant(self) -> str:
        """These `values` as `chain.hosts=3,chain.link.delay=5ms`; empty when nothing varies."""
        return ",".join(f"{place}={value}" for place, value in self.values.items())

    def _wrong_metrics(self) -> Iterator[Finding]:
        """Claims whose column no tool of their measurements fills."""
        for index, claim in enumerate(self.claims):
            tools = [each.instrument for each in self.measurements if claim.of in (None, each.name)]
            fitting = [tool for tool in tools if tool.quantity == claim.quantity]
            every = [column for tool in fitting for column in tool.columns]
            columns = dict.fromkeys(each.name for each in every if each.unit is None or claim.quantity == VALUE)
            if claim.metric is not None and fitting and claim.metric not in columns:
                yield ("claims", index, "metric"), unknown("column", "columns there", claim.metric, [*columns])

    def _wrong_values(self) -> Iterator[Finding]:
        """Claims about `value` of tools that have none, without the right unit, or without a direction."""
        for index, claim in enumerate(self.claims):
            spoken_of = [each for each in self.measurements if claim.of in (None, each.name)]
            tools = {each.name: each.instrument for each in spoken_of if each.instrument.quantity == VALUE}
            if claim.quantity != VALUE:
                continue
            if not tools:
                whose = f"{quote(claim.of)} is none" if claim.of else "none is here"
                message = f"claims of `value` are about measurements of {list_names([*OPEN])}; {whose}"
                yield ("claims", index, "value"), message
            judged = {name: tool.column(claim.metric or VALUE) for name, tool in tools.items()}
            for name, column in judged.items():
                if column is None:
                    continue
                if claim.word == "bounded" and claim.range and claim.range.unit != column.unit:
                    message = f"{claim.range.written!r} needs the unit of {name}, {column.unit}"
                    yield ("claims", index, "range"), message
                if claim.word in ("better", "worse") and column.better is None:
                    yield ("claims", index, "value"), self._without_direction(name, tools[name], column)

    @staticmethod
    def _without_direction(name: str, tool: Tool, column: Column) -> str:
        """Why no value of that column is better or worse than another."""
        if tool.name == command.TOOL.name:
            return f"{name} does not say what is `better:`, higher or lower"
        having = [each.name for each in (tool.value, *tool.columns) if each.better is not None]
        return f"no {column.name} of {name} is better or worse than another; that is said of {list_names(having)}"

    def _wrong_scales(self) -> Iterator[Finding]:
        """The problems of the measurements as `paper:` or `quick:` change them."""
        for key, scale in (("paper", self.paper), ("quick", self.quick)):
            for measurement in self.measurements if scale else ():
                try:
                    wrong = [*_scaled(measurement, scale or self.quick).wrong_variants()]
                except ValueError as error:
                    yield (key, "duration"), f"{measurement.name}: {error}"
                else:
                    yield from (((key, *where), f"{measurement.name}: {message}") for where, message in wrong)

    def wrong_as_written(self) -> Iterator[Finding]:
        """Problems in a file that a part of an experiment in a manifest may have: unknown names in scales, and more
        samples than are possible on any topology."""
        for key, scale in (("paper", self.paper), ("quick", self.quick)):
            for index, overlay in enumerate(scale.overlays if scale else ()):
                if overlay not in self.overlays:
                    yield (key, "overlays", index), unknown("overlay", "overlays here", overlay, self.overlays)
            names = [each.name for each in self.measurements]
            for index, name in enumerate(scale.measurements if scale else ()):
                if name not in names:
                    yield (key, "measurements", index), unknown("measurement", "measurements here", name, names)
            varying = dict.fromkeys((*self.vary, *(name for each in self.measurements for name in each.vary)))
            for name in scale.vary if scale else ():
                if name not in varying:
                    yield (key, "vary", name), unknown("setting that varies", "settings that vary", name, [*varying])
        yield from self._claims_across_labs()
        yield from self._wrong_curves()
        yield from self._wrong_figures()
        at_scales: list[tuple[Location, Experiment]] = [((), self), (("quick",), self.quick_version())]
        if self.paper is not None:
            at_scales.append((("paper",), self.paper_version()))
        wrong = [(where, count) for where, each in at_scales if (count := each.least_samples) > MOST_SAMPLES]
        yield from ((where, too_many(count, "at least ")) for where, count in wrong[:1])

    def _wrong_figures(self) -> Iterator[Finding]:
        """Words of figures that mean nothing here, and moments of measurements that keep none."""
        for index, figure in enumerate(self.figures):
            shown = [each for each in self.measurements if each.name in figure.measurements]
            yield from ((("figures", index, *where), message) for where, message in self._unknown_in(figure, shown))
            units = dict.fromkeys(each.instrument.unit for each in shown)
            if len(units) > 1:
                yield ("figures", index, "of"), f"measurements in {' and '.join(units)} have no axis in common"
            kept = all(each.series or (figure.x == TIME and each.queues is not None) for each in shown)
            if figure.cdf == "moments" and not kept:
                yield ("figures", index, "cdf"), "moments are kept of measurements with `series: true`"
            if figure.x == TIME and not kept:
                yield ("figures", index, "x"), "a figure over time is of a measurement with `series: true` or `queues:`"

    def _unknown_in(self, figure: Figure, shown: Sequence[AnyMeasurement]) -> Iterator[Finding]:
        if EXPERIMENT in (figure.x, *figure.where):
            where = ("x",) if figure.x == EXPERIMENT else ("where", EXPERIMENT)
            yield where, "an experiment's figures show it alone; `minigts plot` draws several together"
            return
        varied = {key: values for vary in (self.vary, *(each.vary for each in shown)) for key, values in vary.items()}
        further = (column.name for each in shown for column in each.instrument.columns)
        queues = [column.name for column in OF_QUEUES] if any(each.queues is not None for each in shown) else []
        known = Known(
            axes=(*PLACES, TIME, *varied),
            columns=tuple(dict.fromkeys((VALUE, "seconds", *COLUMNS, *further, *queues))),
            overlays=self.overlays,
            settings=("path", *varied),
            words=(*self.overlays, *figure.measurements, *(word(value) for each in varied.values() for value in each)),
        )
        yield from unknown_words(figure, known)

    def _claims_across_labs(self) -> Iterator[Finding]:
        """Claims about what varies in the topology. Each lab is judged by itself, and has one value of it."""
        alone = "differs from lab to lab, and a claim is judged in each lab by itself"
        for index, claim in enumerate(self.claims):
            spoken_of = [each for each in self.measurements if claim.of in (None, each.name)]
            along = ALONG_PATHS if claim.word == "slope" else ()
            varied = ["hops", *along, *dict.fromkeys(key for each in spoken_of for key in each.vary)]
            if claim.by in self.vary:
                yield ("claims", index, "by"), f"{claim.by} {alone}; possible here: {list_names(varied)}"
            elif claim.by is not None and claim.by not in varied:
                yield ("claims", index, "by"), unknown("setting that varies", "settings that vary", claim.by, varied)
            for key, named in (("where", claim.where), ("than", claim.than)):
                yield from ((("claims", index, key), f"{name} {alone}") for name in named if name in self.vary)

    def _wrong_curves(self) -> Iterator[Finding]:
        """Formulas with names or units that mean nothing here, and orders of values that nothing has."""
        for index, claim in enumerate(self.claims):
            every = [each for each in self.measurements if claim.of in (None, each.name)]
            spoken_of = [each for each in every if each.instrument.quantity == claim.quantity] or every
            if claim.formula is not None:
                yield from ((("claims", index, key), said) for key, said in _wrong_formula(claim, spoken_of))
            values = {word(value) for each in spoken_of for value in each.vary.get(claim.by or "", ())}
            for at, value in enumerate(claim.order or ()):
                if values and value not in values:
                    message = unknown("value", f"values of {claim.by}", value, sorted(values))
                    yield ("claims", index, "order", at), message

    @property
    def least_samples(self) -> int:
        """The number of samples if each measurement has one path, computed without making them."""
        return (
            self.replicates
            * self.repetitions
            * sum(
                measurement.condition_count
                for measurement in self.measurements
                for name in self.overlays
                if not measurement.over or name in measurement.over
            )
        )

    @property
    def courses(self) -> Sequence[int]:
        """The numbers of the replicates, from 1; 0 for a single course of events."""
        return range(1, self.replicates + 1) if self.replicates > 1 else (0,)

    def copy_with_replicates(self, number: int) -> Experiment:
        """The same experiment with that number of replicates."""
        return self.model_copy(update={"replicates": number})

    def measurement(self, name: str) -> AnyMeasurement:
        """The measurement called `name`. Raises KeyError."""
        for measurement in self.measurements:
            if measurement.name == name:
                return measurement
        raise KeyError(name)

    @property
    def parts(self) -> frozenset[str]:
        """The names of its overlays and measurements, from which `only` selects."""
        return frozenset((*self.overlays, *(entry.name for entry in self.measurements)))

    def paper_version(self) -> Experiment:
        """The experiment at the study's own length. Raises InputError when the file has no `paper:`."""
        if self.paper is None:
            raise InputError(f"experiment {self.name} has no `paper:` section, so --paper changes nothing")
        return self._at(self.paper, self.repetitions).copy_with_replicates(self.paper.replicates or self.replicates)

    def quick_version(self) -> Experiment:
        """The experiment as `quick:` changes it; by default with one repetition."""
        return self._at(self.quick, 1).copy_with_replicates(self.quick.replicates or 1)

    def _at(self, scale: Scale, repetitions: int) -> Experiment:
        """The experiment as `scale` changes it; `repetitions` where it has none."""
        changed = tuple(_scaled(measurement, scale) for measurement in self.measurements)
        overlays = tuple(name for name in self.overlays if name in scale.overlays or not scale.overlays)
        left = _values(self.measurements) - _values(changed)
        claims = tuple(claim for claim in self._claims_over(overlays) if left.isdisjoint(_values_named(claim)))
        swept = self._swept(scale)
        number = scale.repetitions or repetitions
        update = {"repetitions": number, "overlays": overlays, "measurements": changed, "claims": claims}
        update |= {"vary": swept} if swept else {}
        known = {entry.name for entry in self.measurements}
        return self.model_copy(update=update).only(known.intersection(scale.measurements))

    def _claims_over(self, overlays: Collection[str]) -> Iterator[Claim]:
        """The claims, without those that name an overlay of the experiment that is not in `overlays`."""
        return (claim for claim in self.claims if claim.overlays.isdisjoint({*self.overlays} - {*overlays}))

    def only(self, names: Iterable[str]) -> Experiment:
        """The part that `names` (overlays and measurements) select. Raises InputError for any other name.

        Naming no overlay keeps all overlays, naming no measurement keeps all measurements.
        """
        wanted = set(names)
        measurements = tuple(entry for entry in self.measurements if entry.name in wanted) or self.measurements
        overlays = tuple(entry for entry in self.overlays if entry in wanted) or self.overlays
        if wanted - self.parts:
            listed = ", ".join(sorted(wanted - self.parts))
            raise InputError(f"experiment {self.name} has no {listed}; it has {', '.join(sorted(self.parts))}")
        kept = {entry.name for entry in measurements}
        return self.model_copy(
            update={
                "measurements": measurements,
                "overlays": overlays,
                "claims": tuple(claim for claim in self._claims_over(overlays) if claim.of is None or claim.of in kept),
                "published": tuple(entry for entry in self.published if entry.measurement in kept),
                "figures": tuple(figure for figure in self.figures if kept.issuperset(figure.measurements)),
            }
        )

    def file_values(self) -> dict[str, Any]:
        """The experiment as in a file, as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _wrong_formula(claim: Claim, spoken_of: Sequence[AnyMeasurement]) -> Iterator[tuple[str, str]]:
    """What is wrong with a claim's formula, and with its unit, each with its key."""
    tools = [each.instrument for each in spoken_of]
    columns = [column for tool in tools for column in (tool.value, *tool.columns)]
    varied = [formula_name(key) for each in spoken_of for key in each.vary]
    known = list(dict.fromkeys((*OF_THE_PATH, *varied, *(column.name for column in columns if column.name != VALUE))))
    yield from (
        ("formula", unknown("name", "names here", name, known))
        for name in formula(claim.formula).names
        if name not in known
    )
    own_columns = ((tool, column) for tool in tools if (column := tool.column(claim.metric or VALUE)))
    judged = {tool.unit if column.unit is None else column.unit for tool, column in own_columns}
    for own in sorted(judged) if claim.is_of_the_value else [METRICS[claim.quantity][1]]:
        if convert(1.0, claim.unit or "", own) is None:
            yield "unit", f"{claim.unit} is no unit of a figure in {own or 'plain numbers'}"


def _scaled(measurement: AnyMeasurement, scale: Scale) -> AnyMeasurement:
    update: dict[str, object] = {"vary": {key: scale.vary.get(key, values) for key, values in measurement.vary.items()}}
    if scale.duration_s is not None:
        update["options"] = measurement.options.lasting(scale.duration_s)
    return measurement.model_copy(update=update)


def _values(measurements: Iterable[AnyMeasurement]) -> set[tuple[str, str]]:
    """The keys of what varies, with each of their values."""
    return {(key, str(value)) for each in measurements for key, values in each.vary.items() for value in values}


def _values_named(claim: Claim) -> Iterator[tuple[str, str]]:
    """Each value of what varies that the claim names in `where` or `than`."""
    yield from claim.where.items()
    yield from claim.than.items()


def _given_twice(places: Sequence[Location], names: Sequence[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for where, name in zip(places, names, strict=True):
        if name in seen:
            yield where, f"{name!r} appears twice"
        seen.add(name)


def too_many(samples: int, about: str = "") -> str:
    """The error message for more than MOST_SAMPLES samples."""
    return (
        f"asks for {about}{samples:,} samples; at most {MOST_SAMPLES:,} are possible: take fewer values in `vary:`, or "
        f"fewer repetitions, paths or overlays"
    )


def json_schema_text() -> str:
    """The JSON Schema of an experiment's file, the content of experiments/schema.json."""
    return validation.schema_text(validation.json_schema(Experiment))
