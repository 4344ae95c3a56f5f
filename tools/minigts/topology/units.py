"""Quantities as they are written in a topology file: a number and its unit, `21.75ms`, `50mbit`, `0.1%`, `512MB`.

A number without its unit is refused, since that is where emulators' users go wrong most often (is `delay: 10` in
microseconds, milliseconds, one way?). Every parser raises `ValueError` with a sentence that shows how to write it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

_LONGEST = 40
_WRITTEN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)) ?([A-Za-zµ%]*)", re.ASCII)


def shown(value: object) -> str:
    """What a message shows of something found in a file: a few words at the most, whatever it was."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = str(value)
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


@dataclass(frozen=True)
class Quantity:
    """One kind of quantity. `factors` turn a written unit into the unit that the plan counts in.

    `least` and `most` are written quantities themselves, so that messages can show them.
    """

    what: str
    example: str
    factors: Mapping[str, Decimal]
    least: str
    most: str
    any_case: bool = True

    def parse(self, value: object) -> float:
        """The number in the plan's unit. Raises ValueError: no unit, an unknown one, out of range, no number."""
        exact = self._convert(value)
        if not self._convert(self.least) <= exact <= self._convert(self.most):
            raise ValueError(f"{shown(value)} is out of range: {self.what} is from {self.least} to {self.most}")
        return float(exact)

    def parse_whole(self, value: object) -> int:
        """As `parse`, for what is counted in whole units; a fraction of one is rounded."""
        return round(self.parse(value))

    def _convert(self, value: object) -> Decimal:
        written = _WRITTEN.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
        if written is None:
            raise ValueError(f"{shown(value)} is not {self.what}: write it as in {self.example}")
        number, unit = written.groups()
        if not unit:
            raise ValueError(f"{shown(value)} lacks its unit: write {self.what} as in {self.example}")
        factor = self.factors.get(unit.lower() if self.any_case else unit)
        if factor is None:
            known = ", ".join(self.factors)
            raise ValueError(f"{shown(value)} has an unknown unit {unit!r}: {self.what} is written in {known}")
        return Decimal(number) * factor

    @property
    def pattern(self) -> str:
        """A regular expression for the JSON Schema: what an editor accepts."""
        units = "|".join(sorted(self.factors, key=len, reverse=True))
        return rf"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+) ?({units})$"


def _factors(**units: str) -> dict[str, Decimal]:
    return {unit: Decimal(factor) for unit, factor in units.items()}


TIME_MS = Quantity("a time", "10ms", _factors(us="0.001", ms="1", s="1000"), "0ms", "10s")
"""In milliseconds."""

RATE_MBIT = Quantity(
    "a rate", "100mbit", _factors(bit="0.000001", kbit="0.001", mbit="1", gbit="1000"), "8kbit", "100gbit"
)
"""In 10^6 bits a second."""

LOSS_PERCENT = Quantity("a loss", "0.1%", {"%": Decimal(1)}, "0%", "100%")

SHARE_PERCENT = Quantity("a share", "2%", {"%": Decimal(1)}, "0%", "100%")

# Only this spelling: `kb` could be kilobits, and tc reads `kbps` as kilobytes.
SIZE_BYTES = Quantity(
    "a size",
    "100kB",
    _factors(B="1", kB="1000", KiB="1024", MB="1000000", MiB="1048576"),
    "1kB",
    "1000MB",
    any_case=False,
)

# As in the kernel's `mem=`, in QEMU and in Docker: a host's megabyte of memory is 2^20 bytes, however it is spelt.
MEMORY_MB = Quantity(
    "a size of memory",
    "512MB",
    _factors(MB="1", MiB="1", GB="1024", GiB="1024"),
    "128MB",
    "1024GB",
    any_case=False,
)
"""In units of 2^20 bytes."""
