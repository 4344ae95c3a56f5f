"""The base of measuring tools' options, and the types of values that several of them have.

Units are written out (`2s`, `45mbit`, `64KiB`). A model dumped by alias is in the experiment language again, so an
experiment can be read back from a manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from minigts.language.fields import Strict, text_schema, whole
from minigts.language.quantities import DURATION_S, LOAD_PERCENT, QUEUE, WINDOW_BYTES, Quantity
from minigts.language.validation import keys

MOST_COUNTED = 100_000


class Options(Strict, ABC):
    """The `options:` of a measurement for its tool; most have defaults."""

    @abstractmethod
    def lasting(self, duration_s: float) -> Self:
        """The same options with that duration. Raises ValueError where that is impossible."""

    @property
    def may_vary(self) -> list[str]:
        """The options that a measurement's `vary:` may give other values, by their keys in the file."""
        return keys(type(self))

    def choose(self, chosen: Mapping[str, str | int]) -> Self:
        """The same options with these values. Raises pydantic's ValidationError."""
        return type(self).model_validate({**self.model_dump(by_alias=True, exclude_none=True), **chosen})


def size_bytes(text: str) -> int:
    """`64KiB` → 65536. Raises ValueError."""
    return WINDOW_BYTES.parse_whole(text)


def percent(text: str) -> float:
    """`40%` → 40.0."""
    return LOAD_PERCENT.parse(text)


def written_duration(value: float) -> str:
    """The duration in ms or s, exact, so that reading it gives the same number."""
    exact = Decimal(repr(value))
    return f"{(exact * 1000).normalize():f}ms" if value < 1 else f"{exact.normalize():f}s"


def either(*kinds: str | Quantity) -> str:
    """The pattern of an option that is one of these words, or of these quantities."""
    return "|".join(f"^{kind}$" if isinstance(kind, str) else kind.pattern for kind in kinds)


def _whole_seconds(value: float) -> float:
    if value != int(value):
        raise ValueError(f"{value:g}s: iperf3 counts whole seconds")
    return value


def _seconds(value: object) -> float:
    return DURATION_S.parse(DURATION_S.normal(value))


Duration = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(written_duration, return_type=str),
    text_schema(DURATION_S.pattern, "10ms", "2s", "2min"),
]
WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
QueueSize = Annotated[str, BeforeValidator(QUEUE.normal), text_schema(QUEUE.pattern, "100kB")]
Size = Annotated[str, BeforeValidator(WINDOW_BYTES.normal), text_schema(WINDOW_BYTES.pattern, "64KiB")]
Share = Annotated[str, BeforeValidator(LOAD_PERCENT.normal), text_schema(LOAD_PERCENT.pattern, "40%")]
Count = Annotated[int, *whole("a count", 1, MOST_COUNTED)]
Switch = Literal["on", "off"]
