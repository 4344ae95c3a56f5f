"""A link's own distribution of delays, from a file: measured delays, or a table for netem. Pure.

A plan has such a distribution as text: its quantiles in 1/65536 standard deviation from the mean, in ascending order,
each of the same share. They have the mean 0 and the standard deviation 1, as the clock's own tables have
(provision/clock/src/variation.rs).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from minigts.language.problems import quote
from minigts.language.quantities import TIME_MS

SD = 1 << 16
"""One standard deviation, in the unit of the quantiles."""
MOST_VALUES = 4096
"""The most quantiles of a table."""
LARGEST_BYTES = 8_000_000
NETEM_SD = 8192
"""One standard deviation, in the unit of netem's tables."""
NETEM_SUFFIX = ".dist"
_NETEM_MOST = 32767
_NS_A_MS = 1_000_000
_FINER = 1 << 32
_BARE = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)
_NUMBERS = re.compile(r"(?:-?[0-9]{1,10}(?: -?[0-9]{1,10})+)?", re.ASCII)
_FURTHEST = 1_000_000 * SD


@dataclass(frozen=True)
class OwnDelays:
    """What a file says of a link's delays."""

    quantiles: str
    """As a plan has them."""
    mean_ms: float | None = None
    sd_ms: float | None = None
    """Of measured delays; a table for netem has neither."""


def read(text: str, *, netem: bool) -> OwnDelays:
    """The distribution in a file's text. Raises ValueError, with the number of the line where one is wrong."""
    values = sorted(_table(text) if netem else _delays_ns(text))
    if len(values) < 2 or values[0] == values[-1]:
        what = "holds no values" if not values else f"holds {len(values)} of one value" if values[1:] else "holds one"
        raise ValueError(f"{what}: a distribution of delays has two different ones or more")
    if len(values) > MOST_VALUES:
        count = len(values)
        values = [values[(2 * each + 1) * count // (2 * MOST_VALUES)] for each in range(MOST_VALUES)]
        if values[0] == values[-1]:
            raise ValueError(f"has one value in all of {MOST_VALUES} quantiles: such a link has no jitter")
    quantiles, mean, sd = _standardised(values)
    written = " ".join(map(str, quantiles))
    return OwnDelays(written) if netem else OwnDelays(written, round(mean / _NS_A_MS, 6), round(sd / _NS_A_MS, 6))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold something, by number, without comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if content := line.partition("#")[0].strip():
            yield number, content


def _delays_ns(text: str) -> Iterator[int]:
    for number, written in _lines(text):
        try:
            delay_ms = TIME_MS.parse(f"{written}ms" if _BARE.fullmatch(written) else written)
        except ValueError:
            wanted = f"a delay from {TIME_MS.least} to {TIME_MS.most} in each line, as in 12.5 or 12.5ms"
            raise ValueError(f"line {number}: {quote(written)} is no delay: write {wanted}") from None
        yield round(delay_ms * _NS_A_MS)


def _table(text: str) -> Iterator[int]:
    """The numbers of a table for netem, as tc reads them from its library's directory."""
    for number, line in _lines(text):
        for word in line.split():
            if not re.fullmatch(r"-?[0-9]{1,5}", word, re.ASCII) or abs(int(word)) > _NETEM_MOST + 1:
                wanted = f"whole numbers from {-_NETEM_MOST - 1} to {_NETEM_MOST}, in 1/{NETEM_SD} standard deviation"
                raise ValueError(f"line {number}: {quote(word)} is not of a netem table, which has {wanted}")
            yield int(word)


def _standardised(values: Sequence[int]) -> tuple[list[int], float, float]:
    """The values with the mean 0 and the standard deviation `SD`, in whole numbers, so that they are the same on every
    machine; and their own mean and standard deviation."""
    count, total = len(values), sum(values)
    apart = [count * value - total for value in values]
    sd = math.isqrt(sum(each * each for each in apart) * _FINER * _FINER // count)  # count x _FINER times as large
    return [(2 * each * SD * _FINER + sd) // (2 * sd) for each in apart], total / count, sd / _FINER / count


@lru_cache(maxsize=256)
def numbers(quantiles: str) -> tuple[int, ...]:
    """The quantiles of a plan's text; none of an empty one."""
    return tuple(map(int, quantiles.split()))


@lru_cache(maxsize=256)
def _checked(quantiles: str) -> str:
    found = numbers(quantiles) if _NUMBERS.fullmatch(quantiles) else ()
    ascending = list(found) == sorted(found) and all(abs(each) <= _FURTHEST for each in found)
    if bool(found) != bool(quantiles) or len(found) > MOST_VALUES or not ascending:
        raise ValueError(f"no table of delays: 2 to {MOST_VALUES} quantiles in ascending order")
    return quantiles


Quantiles: TypeAlias = Annotated[str, AfterValidator(_checked)]
"""The quantiles of a table as a plan has them; empty: none."""


def short_text(quantiles: str) -> str:
    """`57 values 1f2e3d4c`: the same for the same table."""
    return f"{len(numbers(quantiles))} values {_digest(quantiles)}" if quantiles else "none"


def _digest(quantiles: str) -> str:
    return hashlib.sha256(quantiles.encode()).hexdigest()[:8]


def quantile(quantiles: str, share: float) -> float:
    """The quantile of that share, in standard deviations from the mean."""
    found = numbers(quantiles)
    return found[min(len(found) - 1, max(0, int(share * len(found))))] / SD


@lru_cache(maxsize=256)
def netem_scale(quantiles: str) -> float:
    """By how much a standard deviation that netem is told is larger than the table's own. netem's numbers have 16 bits,
    and so end at 4 standard deviations; of a table that goes further they have a part."""
    most = max((abs(each) for each in numbers(quantiles)), default=0) / SD
    return max(1.0, most * NETEM_SD / _NETEM_MOST)


def netem_file(quantiles: str) -> tuple[str, str]:
    """The name and the text of a table that tc reads for netem: eight numbers a line."""
    per = SD * netem_scale(quantiles) / NETEM_SD
    table = [str(round(each / per)) for each in numbers(quantiles)]
    lines = (" ".join(table[at : at + 8]) for at in range(0, len(table), 8))
    return f"delays-{_digest(quantiles)}", "".join(f"{line}\n" for line in lines)
