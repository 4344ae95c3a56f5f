"""The description of a link's setting, for every module that needs it, and what settings of one kind share. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import partial
from typing import Any, TypeAlias

from minigts.language.quantities import SHARE_PERCENT, TIME_MS, Either, FileName, Quantity, Words
from minigts.topology.time import Time

Amount: TypeAlias = float | str
"""The value of a setting: a number in the plan's unit, or a word."""
Argv: TypeAlias = tuple[str, ...]
Options: TypeAlias = Mapping[str, Any]
"""What `tc -j qdisc show` has under `options` of one queueing discipline."""
Way: TypeAlias = Any
"""One direction of a link: a `Shaping`, which is built from this module."""
DECLARED = "declared"
"""The word for the topology's own value."""
LOSS_OF_ALL = 2**32
"""A share of 100 % on a wire, which counts shares in 1/2^32."""
_NS_A_MS = 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Tc:
    """A setting in the words of `tc`: of the `tbf` on the sender's interface, or of the receiver's `netem`."""

    words: Callable[[Way], Argv]
    """The arguments for the queueing discipline. For the default there are some only where a queueing discipline that
    is changed would keep the value that it is not told."""
    read: Callable[[Options], Any] | None
    """The value that the queueing discipline shows, in the plan's unit; None where no kernel shows it."""
    slack: Callable[[Way], float]
    """How far the shown value may be off by rounding, in the plan's unit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WireField:
    """A whole number of `dataplane.wire.Wire` that follows from a setting."""

    name: str
    value: Callable[[Way], Any]
    """A whole number, or None; of a table its numbers."""
    per: float
    """How many steps of the number make one `unit`."""
    unit: str
    label: str = ""
    """Its name in messages. Default: the setting's word."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One thing that a link does in each direction. `field` and `default` come from the field that it annotates."""

    word: str
    """Its name in a file and for `minigts set`. `queue.discipline` is nested: a file has it as `queue: {discipline:
    …}`."""
    kind: Quantity | Either | Words | FileName
    """The parser of its values, with units and bounds."""
    about: str
    """Its description in the schema."""
    page: str
    """Its section of the reference page."""
    unit: str = ""
    """The unit of figures that are shown."""
    inside: str = "value"
    """The key of its own value in a mapping that has nested settings, too: `queue: {size: 100kB, discipline: …}`."""
    joined: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """For what a file has under one key beside a setting's own values: turns the values by field as they are written
    into those of the plan. Raises ValueError."""
    beside: tuple[Setting, ...] = ()
    """Further keys of the mapping, which are no fields of the plan; `joined` turns them into fields."""
    instead: tuple[Setting, ...] = ()
    """The settings of the same word that a value of another unit sets instead, in the order of `Either.kinds` from the
    second on. Of all of them a direction has one at the most."""
    of_other_unit: bool = False
    """Whether it is another unit of the setting with the same word, which reads and describes it."""
    counted: bool = False
    """Whether its values in the plan are whole numbers."""
    at_sender: bool = False
    """Whether it is set where a direction begins, with the rate, and not where it ends, with the delay."""
    tc: Tc | None = None
    """The setting in `tc`; None where no kernel can be set to it."""
    wire: tuple[WireField, ...] = ()
    read_wire: Callable[[Mapping[str, Any]], Any] | None = None
    """The value by a wire's numbers, in the plan's unit; None where its one number gives it."""
    rare: str = ""
    """Its words in the table of `plan` where it is not the default: `{:g} % overtake`. If empty, it has a column of its
    own, and `explain` always shows it."""
    in_short: Callable[[str], str] | None = None
    """A word for a value that is too long to be shown, which differs with the value."""
    under_traffic: bool = True
    """Whether it can be set while the lab is up."""
    only: Time | None = None
    """The only time in which it applies; None means both."""
    feature: str | None = None
    """The feature that a provider must support for it (`providers.supported`); None where every provider does."""
    features: Mapping[str, str] = dataclass_field(default_factory=dict)
    """The feature that a provider must support for a value, by the value."""
    field: str = ""
    default: Any = None

    @property
    def settable(self) -> bool:
        """Whether a command or a schedule can set it while the lab is up. A file is read with the topology alone."""
        return self.under_traffic and not isinstance(self.kind, FileName)

    @property
    def head(self) -> str:
        """The key under which a file has it: `queue` of `queue.discipline`."""
        return self.word.partition(".")[0]

    @property
    def key(self) -> str:
        """Its key in a mapping with the nested settings of the same head."""
        return self.word.partition(".")[2] or self.inside

    @property
    def limits(self) -> tuple[float, float] | None:
        """The least and the most value that a file may have, in the plan's unit; None of words."""
        kind = self.kind.kinds[0] if isinstance(self.kind, Either) else self.kind
        return (float(self.parse(kind.least)), float(self.parse(kind.most))) if isinstance(kind, Quantity) else None

    def read(self, written: object) -> tuple[str, Amount]:
        """The field that a written value sets, and its value there. Raises ValueError as `parse` does."""
        if not isinstance(self.kind, Either):
            return self.field, self.parse(written)
        chosen = (self, *self.instead)[self.kind.number(written)]
        return chosen.field, chosen.parse(written)

    def parse(self, written: object) -> Amount:
        """The plan's value of a written one. Raises ValueError with what would be right."""
        kind = self.kind.kinds[0] if isinstance(self.kind, Either) else self.kind
        return kind.parse_whole(written) if self.counted and isinstance(kind, Quantity) else kind.parse(written)

    def display(self, amount: Any) -> Any:
        """The value as it is shown to users: as it is, or in short."""
        return self.in_short(amount) if self.in_short is not None and isinstance(amount, str) else amount

    def value_words(self, amount: Amount) -> str:
        """`50 ms`, `1 %`; a word as it is."""
        return self.display(amount) if isinstance(amount, str) else f"{amount:.10g} {self.unit}"

    def plan_words(self, amount: Amount | None) -> str:
        """`50 mbit`, in the unit that the field's name ends with; `declared` of None."""
        if amount is None or isinstance(amount, str):
            return amount or DECLARED
        return f"{amount:.10g} {self.field.rpartition('_')[2]}"

    def wire_value(self, numbers: Mapping[str, Any]) -> Any:
        """The value on a wire with these numbers; None where there is none, or it cannot be determined."""
        if self.read_wire is not None:
            return self.read_wire(numbers)
        number = numbers[self.wire[0].name] if self.wire else None
        return None if number is None else number / self.wire[0].per


def time_setting(
    name: str, field: str, words: Callable[[float], Argv], read: Callable[[Options], float]
) -> dict[str, Any]:
    """What settings of time share: microseconds with three digits for tc, which rounds them; nanoseconds for a wire."""
    of = partial(_of, field)
    return {
        "kind": TIME_MS,
        "unit": "ms",
        "tc": Tc(words=lambda way: words(of(way)), read=lambda netem: read(netem) * 1000, slack=lambda _: 0.002),
        "wire": (WireField(name=name, value=lambda way: round(of(way) * _NS_A_MS), per=_NS_A_MS, unit="ms"),),
    }


def share_setting(word: str, *, always: bool = False) -> dict[str, Any]:
    """What shares of packets have in common: netem takes them by the same word, and shows them as a share of 1. With
    `always` it is told 0 %, too, as it keeps the value where it is not."""
    of = partial(_of, f"{word}_percent")
    return {
        "word": word,
        "kind": SHARE_PERCENT,
        "unit": "%",
        "tc": Tc(
            words=lambda way: (word, percent(of(way))) if always or of(way) else (),
            read=lambda netem: shown_share(netem, word, word),
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


def word_of(words: Sequence[str], number: int) -> str:
    """The word of that number on a wire; the number itself where there is none."""
    return words[number] if 0 <= number < len(words) else str(number)


def shown_share(netem: Options, what: str, field: str) -> float:
    """In per cent; netem's own are shares of 1."""
    if what == "reorder" and not netem.get("gap", 1):
        return 0.0  # what it was before; without a gap nothing overtakes
    return float(netem.get(what, {}).get(field, 0.0)) * 100
