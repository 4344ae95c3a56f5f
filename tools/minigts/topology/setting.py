"""What a setting of a link is, wherever somebody has to know of it, and what settings of one kind have alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from minigts.language.quantities import SHARE_PERCENT, TIME_MS, Quantity
from minigts.language.words import Words
from minigts.topology.time import Time

Amount: TypeAlias = float | str
"""What a setting is set to: a number in the plan's unit, or a word."""
Argv: TypeAlias = tuple[str, ...]
Options: TypeAlias = Mapping[str, Any]
"""What `tc -j qdisc show` has under `options` of one queueing discipline."""
Way: TypeAlias = Any
"""One direction of a link: a `Shaping`, whose fields are made of what is here."""
DECLARED = "declared"
"""As the topology has it."""
LOSS_OF_ALL = 2**32
"""A wire counts shares in 1/2^32."""
_NS_A_MS = 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Tc:
    """A setting in the words of `tc`: of the `tbf` on the sender's interface, or of the receiver's `netem`."""

    words: Callable[[Way], Argv]
    """What the queueing discipline is told; no word where the setting is its default."""
    read: Callable[[Options], Any]
    """What it shows, in the plan's unit."""
    slack: Callable[[Way], float]
    """How far what it shows may be off, by its own rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WireField:
    """A whole number of `dataplane.wire.Wire` that follows from a setting."""

    name: str
    value: Callable[[Way], int | None]
    per: float
    """How many of it make one of `unit`."""
    unit: str
    label: str = ""
    """What messages call it; the setting's own word where it is empty."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One thing that a link does in each direction. `field` and `default` follow from where it stands in `Shaping`."""

    word: str
    """What a file and `minigts set` call it. `queue.discipline` is nested: in a file it stands in the mapping
    `queue: {discipline: …}`."""
    kind: Quantity | Words
    """How it is written, with its units and bounds."""
    about: str
    """The schema's sentence."""
    page: str
    """Its section of the reference page."""
    unit: str = ""
    """How figures are shown."""
    inside: str = "value"
    """The key of its own value in a mapping that has nested settings, too: `queue: {size: 100kB, discipline: …}`."""
    counted: bool = False
    """Whether the plan has whole numbers."""
    at_sender: bool = False
    """Whether it is set where a direction begins, in front of the rate; else where it ends, with the delay."""
    tc: Tc | None = None
    """None: no kernel can be told of it."""
    wire: tuple[WireField, ...] = ()
    read_wire: Callable[[Mapping[str, Any]], Any] | None = None
    """What a wire's numbers say of it, in the plan's unit; None: its one number does."""
    rare: str = ""
    """How the table of `plan` says it, in which it stands where it is not the default: `{:g} % overtake`. Empty: it has
    a column of its own, and `explain` always shows it."""
    under_traffic: bool = True
    """Whether it can be set while the lab is up."""
    only: Time | None = None
    """The one time in which it means something; None: in both."""
    feature: str | None = None
    """What a provider must support for it (`providers.supported`); None: every provider's links have it."""
    field: str = ""
    default: Any = None

    @property
    def head(self) -> str:
        """The key under which a file has it: `queue` of `queue.discipline`."""
        return self.word.partition(".")[0]

    @property
    def key(self) -> str:
        """Its key in a mapping with the nested settings of the same head."""
        return self.word.partition(".")[2] or self.inside

    def parse(self, written: object) -> Amount:
        """What is written, as the plan has it. Raises ValueError with what would be right."""
        kind = self.kind
        return kind.parse_whole(written) if self.counted and isinstance(kind, Quantity) else kind.parse(written)

    def in_words(self, amount: Amount) -> str:
        """`50 ms`, `1 %`; a word as it is."""
        return amount if isinstance(amount, str) else f"{amount:.10g} {self.unit}"

    def in_plan_words(self, amount: Amount | None) -> str:
        """`50 mbit`, in the unit that the field's name ends with; `declared` of None."""
        if amount is None or isinstance(amount, str):
            return amount or DECLARED
        return f"{amount:.10g} {self.field.rpartition('_')[2]}"

    def from_wire(self, numbers: Mapping[str, Any]) -> Any:
        """What a wire with these numbers does; None: nothing, or it cannot be told."""
        if self.read_wire is not None:
            return self.read_wire(numbers)
        number = numbers[self.wire[0].name] if self.wire else None
        return None if number is None else number / self.wire[0].per


def of_time(name: str, field: str, words: Callable[[float], Argv], read: Callable[[Options], float]) -> dict[str, Any]:
    """What all times have: microseconds with three digits for tc, which rounds them; nanoseconds for a wire."""
    of = partial(_of, field)
    return {
        "kind": TIME_MS,
        "unit": "ms",
        "tc": Tc(words=lambda way: words(of(way)), read=lambda netem: read(netem) * 1000, slack=lambda _: 0.002),
        "wire": (WireField(name=name, value=lambda way: round(of(way) * _NS_A_MS), per=_NS_A_MS, unit="ms"),),
    }


def of_share(word: str) -> dict[str, Any]:
    """What shares of packets have that netem takes by the same word, and shows as a share of 1."""
    of = partial(_of, f"{word}_percent")
    return {
        "word": word,
        "kind": SHARE_PERCENT,
        "unit": "%",
        "tc": Tc(
            words=lambda way: (word, percent(of(way))) if of(way) else (),
            read=lambda netem: _shown_share(netem, word, word),
            slack=lambda _: 1e-6,
        ),
        "wire": (WireField(name=word, value=lambda way: wire_share(of(way)), per=LOSS_OF_ALL / 100, unit="%"),),
    }


def _of(field: str, way: Way) -> Any:
    return getattr(way, field)


def microseconds(time_ms: float) -> str:
    return f"{time_ms * 1000:.3f}us"


def percent(value: float) -> str:
    return f"{value:.7f}%"


def wire_share(share_percent: float) -> int:
    return round(share_percent * LOSS_OF_ALL / 100)


def _shown_share(netem: Options, what: str, field: str) -> float:
    """In per cent; netem's own are shares of 1."""
    return float(netem.get(what, {}).get(field, 0.0)) * 100


def loss(way: Way) -> Argv:
    """What netem is told of losses, each on its own or in bursts."""
    if way.bursts is not None:
        begins, ends = (percent(100 * chance) for chance in way.bursts)
        return ("loss", "gemodel", begins, ends, percent(100), percent(0))
    return ("loss", "random", percent(way.loss_percent)) if way.loss_percent else ()


def shown_loss(netem: Options) -> float:
    """Of bursts in which all is lost the mean, by the chances that one begins and ends with a packet."""
    if (gilbert := netem.get("loss-gemodel")) is None:
        return _shown_share(netem, "loss-random", "loss")
    return float(100 * gilbert["p"] / (gilbert["p"] + gilbert["r"]))


def shown_burst(netem: Options) -> float:
    """The mean length of bursts; 0 when there are none."""
    return 0.0 if (gilbert := netem.get("loss-gemodel")) is None else 1 / gilbert["r"]


def shown_limit(tbf: Options) -> int:
    """The queue in front of a rate, in bytes."""
    # tc shows the limit as the time that a full queue takes beyond the burst, unless that is negative.
    return int(tbf["limit"]) if "limit" in tbf else round(tbf["lat"] * tbf["rate"] / 1_000_000 + tbf["burst"])


def burst_field(name: str, number: int, label: str) -> WireField:
    """One of the two chances behind bursts: that one begins with a frame (0), or ends with one (1)."""

    def value(way: Way) -> int:
        return wire_share(100 * (way.bursts or (0.0, 0.0))[number])

    return WireField(name=name, value=value, per=LOSS_OF_ALL / 100, unit="%", label=label)
