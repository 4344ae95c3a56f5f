"""The experiment language: what an experiment's file may say. `options.py` has what a tool's options may say."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from minigts.errors import InputError
from minigts.experiments.options import (
    Count,
    Ends,
    Links,
    Name,
    NetperfOptions,
    PingOptions,
    Strict,
    TcpOptions,
    UdpOptions,
    WholeSeconds,
)
from minigts.experiments.vocabulary import Claim, Figure, Published


class Pair(Strict):
    """One path, by its two hosts' names; what is sent is sent by `from`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")


def _path_kind(value: object) -> str:
    return "word" if isinstance(value, str) else "pair"


PathWord = Literal["first-to-each", "each-segment", "every-pair"]
Paths = Annotated[Annotated[PathWord, Tag("word")] | Annotated[Pair, Tag("pair")], Discriminator(_path_kind)]
"""Which paths: the first host to each other, each link, every pair once, or one pair by name."""


Varied = dict[str, Annotated[tuple[str | Annotated[int, Field(strict=True)], ...], Field(min_length=1)]]
"""Values for options, in the order in which they are drawn."""


class _Measurement(Strict):
    """What is measured. `vary` lists values for some of the options; each combination is measured."""

    name: Name
    paths: Annotated[tuple[Paths, ...], Field(min_length=1)]
    options: Any
    vary: Varied = Field(default_factory=dict)
    over: tuple[Name, ...] = ()
    """Only over these overlays; all of the experiment's when absent."""
    ends: Ends = Ends()
    links: Links = Links()
    watch: tuple[Literal["cpu"], ...] = ()
    """cpu: sample the processor counters of both hosts meanwhile, inside them and, where that can be, outside."""

    @model_validator(mode="after")
    def _variants_are_valid(self) -> Self:
        self.check_variants()
        return self

    def check_variants(self) -> None:
        """Raise ValueError for an option that is not there, or a value that it cannot have."""
        known = [field.alias or name for name, field in type(self.options).model_fields.items()]
        for key in self.vary:
            if key not in known:
                raise ValueError(f"vary: no option {key!r}; options of {self.name} are {', '.join(known)}")
        for condition in self.conditions:
            self.under(condition)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Each combination of what varies, as `datagram=1400B offload=on`; one empty word when nothing does."""
        words = [[f"{key}={_word(value)}" for value in values] for key, values in self.vary.items()]
        return tuple(" ".join(chosen) for chosen in itertools.product(*words))

    def under(self, condition: str) -> Self:
        """The same with the options of one of its `conditions`. Raises pydantic's ValidationError, KeyError."""
        values = {(key, _word(value)): value for key, listed in self.vary.items() for value in listed}
        chosen = {key: values[key, value] for key, value in settings(condition).items()}
        written = self.options.model_dump(by_alias=True, exclude_none=True)
        return self.model_copy(update={"options": type(self.options).model_validate({**written, **chosen}), "vary": {}})


def _word(value: object) -> str:
    return str(value).replace(" ", "")


def settings(condition: str) -> dict[str, str]:
    """`datagram=1400B offload=on` → {"datagram": "1400B", "offload": "on"}."""
    return dict(word.split("=", 1) for word in condition.split())


class NetperfRR(_Measurement):
    tool: Literal["netperf-rr"]
    options: NetperfOptions = NetperfOptions()


class Ping(_Measurement):
    tool: Literal["ping"]
    options: PingOptions = PingOptions()


class Iperf3Tcp(_Measurement):
    tool: Literal["iperf3-tcp"]
    options: TcpOptions = TcpOptions()


class Iperf3Udp(_Measurement):
    tool: Literal["iperf3-udp"]
    options: UdpOptions = UdpOptions()


AnyMeasurement = NetperfRR | Ping | Iperf3Tcp | Iperf3Udp
Measurement = Annotated[AnyMeasurement, Field(discriminator="tool")]


class Scale(Strict):
    """What `--paper` or `--quick` changes: the study's own length and repetitions, or as little as shows something."""

    repetitions: Count = 1
    duration_s: WholeSeconds | None = Field(default=None, alias="duration")
    overlays: tuple[Name, ...] = ()
    vary: Varied = Field(default_factory=dict)
    """Other values for what varies, in every measurement that varies it."""


class Experiment(Strict):
    """One experiment. `topology` is a path as written, relative to where minigts runs or to the project."""

    name: Name
    title: str
    description: str = ""
    topology: str
    overlays: Annotated[tuple[Name, ...], Field(min_length=1)]
    seed: Annotated[int, Field(strict=True, ge=0)]
    repetitions: Count
    measurements: Annotated[tuple[Measurement, ...], Field(min_length=1)]
    claims: tuple[Claim, ...] = ()
    published: tuple[Published, ...] = ()
    figures: tuple[Figure, ...] = ()
    paper: Scale | None = None
    quick: Scale = Scale()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [measurement.name for measurement in self.measurements]
        for scale in (self.paper, self.quick):
            for measurement in self.measurements if scale else ():
                _scaled(measurement, scale or self.quick).check_variants()
        _no_duplicates("measurements", names)
        _no_duplicates("overlays", self.overlays)
        named_by: dict[str, list[str | None]] = {
            "published": [entry.measurement for entry in self.published],
            "claims": [claim.of for claim in self.claims],
            "figures": [next((one for one in each.measurements if one not in names), None) for each in self.figures],
        }
        for kind, entries in named_by.items():
            for index, named in enumerate(entries):
                if named is not None and named not in names:
                    known = ", ".join(names)
                    raise ValueError(f"{kind}[{index}]: no measurement {named!r}; measurements are {known}")
        return self

    def measurement(self, name: str) -> AnyMeasurement:
        """The measurement called `name`. Raises KeyError."""
        for measurement in self.measurements:
            if measurement.name == name:
                return measurement
        raise KeyError(name)

    @property
    def parts(self) -> frozenset[str]:
        """Names of its overlays and measurements, which `only` selects from."""
        return frozenset((*self.overlays, *(entry.name for entry in self.measurements)))

    def for_paper(self) -> Experiment:
        """The same at the study's own length. Raises InputError when the file has no `paper:`."""
        if self.paper is None:
            raise InputError(f"experiment {self.name} has no `paper:` section, so --paper says nothing")
        return self._at(self.paper)

    def for_a_look(self) -> Experiment:
        """The same as `quick:` has it; without that, once instead of several times."""
        return self._at(self.quick)

    def _at(self, scale: Scale) -> Experiment:
        changed = tuple(_scaled(measurement, scale) for measurement in self.measurements)
        overlays = tuple(name for name in self.overlays if name in scale.overlays or not scale.overlays)
        return self.model_copy(update={"measurements": changed, "repetitions": scale.repetitions, "overlays": overlays})

    def only(self, names: Iterable[str]) -> Experiment:
        """The part that `names` (overlays and measurements) select. Raises InputError for a name that is neither.

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
                "claims": tuple(claim for claim in self.claims if claim.of is None or claim.of in kept),
                "published": tuple(entry for entry in self.published if entry.measurement in kept),
                "figures": tuple(figure for figure in self.figures if kept.issuperset(figure.measurements)),
            }
        )

    def as_written(self) -> dict[str, Any]:
        """The experiment as its file would say it, as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _scaled(measurement: AnyMeasurement, scale: Scale) -> AnyMeasurement:
    update: dict[str, object] = {"vary": {key: scale.vary.get(key, values) for key, values in measurement.vary.items()}}
    if scale.duration_s is not None:
        update["options"] = measurement.options.lasting(scale.duration_s)
    return measurement.model_copy(update=update)


def _no_duplicates(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{kind}: {name!r} appears twice")
        seen.add(name)
