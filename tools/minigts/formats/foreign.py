"""What readers of other tools' YAML have in common: a value at its place, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from minigts.errors import Problem
from minigts.formats.network import Notes
from minigts.language.problems import Location, shown
from minigts.language.quantities import Quantity
from minigts.language.tree import Data, Tree


class Document:
    """A document that is read piece by piece. What is wrong in it goes to `problems`, each with its place."""

    def __init__(self, tree: Tree, file: str) -> None:
        self.data, self._tree, self._file = tree.data, tree, file
        self.problems: list[Problem] = [*tree.problems]
        self.notes = Notes()

    def wrong(self, where: Location, message: str) -> None:
        self.problems.append(self._tree.problem(self._file, (where, message)))

    def line(self, where: Location) -> int:
        return max(1, self._tree.line(where))

    def mapping(self, data: Data, where: Location) -> Mapping[str, Data]:
        """The mapping that stands there; empty for nothing, and a problem for anything else."""
        if data is not None and not isinstance(data, dict):
            self.wrong(where, f"{shown(data)} where a mapping is wanted")
        return data if isinstance(data, dict) else {}

    def entries(self, data: Data, where: Location) -> Sequence[Data]:
        """The list that stands there, as `mapping`."""
        if data is not None and not isinstance(data, list):
            self.wrong(where, f"{shown(data)} where a list is wanted")
        return data if isinstance(data, list) else []

    def quantity(self, data: Data, where: Location, kind: Quantity, unit: str = "") -> float | None:
        """In the plan's unit; `unit` is that of a bare number."""
        if data is None:
            return None
        text = str(data).strip() if isinstance(data, str) else ""
        try:
            return kind.parse(f"{text}{unit}" if text[-1:].isdigit() else text or data)
        except ValueError as error:
            self.wrong(where, str(error))
            return None

    def unread(self, data: Mapping[str, Data], read: Sequence[str], owner: str) -> None:
        """A note of every key that nobody reads."""
        for key in data:
            if key not in read:
                self.notes.add(key[:40], owner, "left out")


def nested(data: Mapping[str, Data], dotted: str) -> Iterator[Data]:
    """What stands at `a.b`, written so or as `a: {b: …}`."""
    if dotted in data:
        yield data[dotted]
    first, _, rest = dotted.partition(".")
    if rest and isinstance(inner := data.get(first), dict):
        yield from nested(inner, rest)
