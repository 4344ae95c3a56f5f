"""What else is wrong in a document whose values are partly refused: the rest is validated without them. Pure.

A refused value is left out, or its mapping where it cannot do without it, until the remainder is a model; that is then
checked as a whole. Findings that may only follow from what is left out are not told: those about a word of a refused
part, and those in a mapping that has lost one of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from pydantic import BaseModel

from minigts.language.problems import Finding, Location
from minigts.language.tree import Data

ROUNDS = 6
"""How often parts are left out before the document is given up."""
MISSING = " is missing"
_NOWHERE: Data = []
"""Stands for the value at a place that is none."""


@dataclass
class _Remainder:
    """The document as written, and the places that are left out of it."""

    data: Data
    stand_ins: Mapping[str, Data]
    """Values for keys of the document itself that it cannot do without."""
    gone: set[Location] = field(default_factory=set)

    def words(self) -> set[str]:
        """Every word of the parts that are left out."""
        return {word for place in self.gone for word in _words(_at(self.data, place))} | {
            str(place[-1]) for place in self.gone if place
        }

    def kept(self) -> tuple[Data, dict[Location, list[int]]]:
        """What is left, and for each of its lists the former numbers of its entries."""
        numbers: dict[Location, list[int]] = {}

        def copy(data: Data, old: Location, new: Location) -> Data:
            if isinstance(data, dict):
                return {
                    key: copy(each, (*old, key), (*new, key))
                    for key, each in data.items()
                    if (*old, key) not in self.gone
                }
            if isinstance(data, list):
                numbers[new] = [index for index in range(len(data)) if (*old, index) not in self.gone]
                return [copy(data[index], (*old, index), (*new, at)) for at, index in enumerate(numbers[new])]
            return data

        left = copy(self.data, (), ())
        return ({**self.stand_ins, **left} if isinstance(left, dict) else left), numbers

    def leave_out(self, findings: Iterable[Finding]) -> bool:
        """Leave out what these findings are about; whether that is more than before. The document itself stays."""
        before = len(self.gone)
        for where, _ in findings:
            place = where
            while place and _at(self.data, place, _NOWHERE) is _NOWHERE:
                place = place[:-1]
            if place:
                self.gone.add(place)
        return len(self.gone) > before


def further(
    data: Data,
    validated: Callable[[Data], tuple[BaseModel | None, Iterable[Finding]]],
    check: Callable[[BaseModel], Iterable[Finding]],
    first: Sequence[Finding],
    stand_ins: Mapping[str, Data],
) -> Iterator[Finding]:
    """What is wrong in the document beside the findings that are known already."""
    rest = _Remainder(data, stand_ins)
    rest.leave_out(first)
    told = {where for where, _ in first}
    for _ in range(ROUNDS):
        left, numbers = rest.kept()
        model, raw = validated(left)
        found = raw if model is None else check(model)
        findings = [(_as_written(where, numbers), message) for where, message in found]
        words = rest.words()
        own = [each for each in findings if each[0] not in told and not _follows(each, rest, words)]
        yield from own
        told |= {where for where, _ in own}
        if model is not None or not rest.leave_out(findings):
            return


def _follows(finding: Finding, rest: _Remainder, words: Set[str]) -> bool:
    """Whether the finding may be about nothing but what is left out."""
    where, message = finding
    losers = {place[:-1] for place in rest.gone if isinstance(place[-1], str)}
    inside = any(where[: len(loser)] == loser for loser in losers if loser)
    value = _at(rest.data, where)
    named = {value} if isinstance(value, str) else set(_words(value))
    return message.endswith(MISSING) or inside or not named.isdisjoint(words) or not where


def _as_written(where: Location, numbers: Mapping[Location, Sequence[int]]) -> Location:
    old: list[str | int] = []
    for at, step in enumerate(where):
        known = numbers.get(where[:at])
        old.append(known[step] if known is not None and isinstance(step, int) and step < len(known) else step)
    return tuple(old)


def _at(data: Data, place: Location, otherwise: Data = None) -> Data:
    for step in place:
        if isinstance(data, dict) and step in data:
            data = data[str(step)]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return otherwise
    return data


def _words(data: Data) -> Iterator[str]:
    """Every text and every key below."""
    waiting: list[Data] = [data]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
