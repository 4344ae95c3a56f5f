"""The common part of readers of other tools' YAML: values by their place, problems, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from minigts.errors import Problem
from minigts.formats.attached import Fitted
from minigts.formats.keys import Place
from minigts.formats.network import Network, NetworkLink, NetworkMachine, Notes, routing_and_time
from minigts.language.problems import Location, did_you_mean, quote
from minigts.language.quantities import Quantity
from minigts.language.tree import DEEPEST, Data, Tree

LEAST_MTU, MOST_MTU = 576, 9500
"""The bounds of a link's MTU in a lab."""
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


class Document:
    """A document that is read piece by piece. `problems` collects what is wrong in it, each with its place.

    A setting that affects the network and cannot be honoured is a problem, too, unless `leave_out`: then it is a note.
    """

    def __init__(self, tree: Tree, file: str, *, leave_out: bool = False) -> None:
        self.data, self._tree, self._file, self.leave_out = tree.data, tree, file, leave_out
        self.problems: list[Problem] = [*tree.problems]
        self.notes = Notes()
        self._judged: set[Location] = set()

    def wrong(self, where: Location, message: str) -> None:
        self.problems.append(self._tree.problem(self._file, (where, message)))

    def lose(self, where: Location, what: str, owner: str, why: str) -> None:
        """Report a setting at `where` that affects the network and cannot be honoured."""
        if self.leave_out:
            self.notes.add(what[:60], owner[:40], f"left out: {why}")
        else:
            self.wrong(where, f"{what} cannot be honoured: {why}. With --leave-out it is left out")

    def judge(self, data: Mapping[str, Data], where: Location, place: Place, owner: str) -> None:
        """Report every key in `data` that the table `place` does not honour, once for each location."""
        if where in self._judged:
            return
        self._judged.add(where)
        for key in data:
            known = place.get(key)
            if known is None:
                self.lose((*where, key), f"the key {quote(key)}", owner, f"it is not known{did_you_mean(key, place)}")
            elif known.fate == "error":
                self.lose((*where, key), key, owner, known.why)
            elif known.fate == "note":
                self.notes.add(key, owner[:40], f"left out: {known.why}")

    def settle(self, found: Fitted) -> None:
        """Report interfaces and addresses that differ from the file's."""
        for where, what, owner, why in found.lost:
            self.lose(where, what, owner, why)
        for where, message in found.twice:
            self.wrong(where, message)
        found.note_names(self.notes)

    def network(self, name: str, machines: Sequence[NetworkMachine], links: Sequence[NetworkLink]) -> Network:
        """The whole network. Where no link joins some nodes to the others, hosts have no routes, as in the other
        tool."""
        routing, time = routing_and_time(machines, links, self.notes)
        return Network(name, tuple(machines), tuple(links), routing=routing, time=time, notes=self.notes.lines())

    def line(self, where: Location) -> int:
        return max(1, self._tree.line(where))

    def mapping(self, data: Data, where: Location) -> Mapping[str, Data]:
        """The mapping at `where`; empty for nothing, and a problem for anything else."""
        if data is not None and not isinstance(data, dict):
            self.wrong(where, f"{quote(data)} where a mapping is wanted")
        return data if isinstance(data, dict) else {}

    def entries(self, data: Data, where: Location) -> Sequence[Data]:
        """The list at `where`; as `mapping`."""
        if data is not None and not isinstance(data, list):
            self.wrong(where, f"{quote(data)} where a list is wanted")
        return data if isinstance(data, list) else []

    def texts(self, data: Data, where: Location) -> list[str]:
        """The list of texts at `where`, or the one text."""
        if isinstance(data, str):
            return [data]
        found = []
        for index, each in enumerate(self.entries(data, where)):
            if isinstance(each, str):
                found.append(each)
            else:
                self.wrong((*where, index), f"{quote(each)} where a text is wanted")
        return found

    def quantity(self, data: Data, where: Location, kind: Quantity, unit: str = "") -> float | None:
        """The quantity in the plan's unit; `unit` is that of a bare number."""
        if data is None:
            return None
        text = str(data).strip() if isinstance(data, str) else ""
        try:
            return kind.parse(f"{text}{unit}" if text[-1:].isdigit() else text or data)
        except ValueError as error:
            self.wrong(where, str(error))
            return None

    def mtu(self, data: Data, where: Location, owner: str) -> int | None:
        """The MTU of a link. One out of range is lost."""
        if data is None:
            return None
        number = int(data) if isinstance(data, str) and data.isascii() and data.isdigit() and len(data) < 10 else None
        if number is None:
            self.wrong(where, f"{quote(data)} is not an MTU: from {LEAST_MTU} to {MOST_MTU} are possible")
        elif not LEAST_MTU <= number <= MOST_MTU:
            self.lose(where, f"mtu {number}", owner, f"from {LEAST_MTU} to {MOST_MTU} are possible")
            return None
        return number

    def truth(self, data: Data, where: Location) -> bool:
        """The value of a boolean in YAML 1.1; false for nothing, and a problem for anything else."""
        word = data.lower() if isinstance(data, str) else None
        if word not in (None, *_YES, *_NO) or not isinstance(data, str | None):
            self.wrong(where, f"{quote(data)} where true or false is wanted")
        return word in _YES


def is_truth(data: Data) -> bool:
    """Whether it is YAML's `true` or `false`."""
    return isinstance(data, str) and data.lower() in (*_YES, *_NO)


@dataclass(frozen=True)
class Layers:
    """Settings of one thing from several places, the nearest first."""

    layers: tuple[tuple[Mapping[str, Data], Location], ...]

    def get(self, key: str) -> tuple[Data, Location]:
        """The nearest value and its place; without one, None and the place where it would be."""
        nearest = next(((data[key], (*where, key)) for data, where in self.layers if data.get(key) is not None), None)
        return nearest or (None, (*(self.layers[0][1] if self.layers else ()), key))

    def every(self, key: str) -> Iterator[tuple[Data, Location]]:
        """All values of the key with their places, the nearest last."""
        yield from ((data[key], (*where, key)) for data, where in reversed(self.layers) if data.get(key) is not None)

    def descend(self, document: Document, key: str) -> Layers:
        """The mappings below a key, in the same order."""
        return Layers(
            tuple(
                (document.mapping(data[key], (*where, key)), (*where, key))
                for data, where in self.layers
                if key in data
            )
        )


NO_LAYERS = Layers(())


def expand_dotted_keys(tree: Tree, file: str) -> Tree:
    """The document with every key `a.b` as `a: {b: …}`, as netlab has it, but for keys with a slash. Lines stay.

    Mappings in both forms are merged; a value that is given twice is a problem.
    """
    made = Tree(lines={}, problems=[*tree.problems], notes=tree.notes)
    made.lines[()] = tree.line(())
    twice: list[Location] = []
    made.data = _undotted(tree.data, (), (), tree, made, twice)
    if twice:
        made.problems += [made.problem(file, (where, "given twice, with dots and without")) for where in twice]
    return made


def _undotted(data: Data, before: Location, after: Location, tree: Tree, made: Tree, twice: list[Location]) -> Data:
    made.lines.setdefault(after, tree.line(before))
    if isinstance(data, list):
        return [
            _undotted(each, (*before, index), (*after, index), tree, made, twice) for index, each in enumerate(data)
        ]
    if not isinstance(data, dict):
        return data
    found: dict[str, Data] = {}
    for key, each in data.items():
        parts = key.split(".") if "/" not in key and all(key.split(".")) else [key]
        if len(parts) + len(after) > DEEPEST:
            parts = [key]
        for deep in range(1, len(parts)):
            made.lines.setdefault((*after, *parts[:deep]), tree.line((*before, key)))
        where = (*after, *parts)
        value = _undotted(each, (*before, key), where, tree, made, twice)
        for part in reversed(parts[1:]):
            value = {part: value}
        found[parts[0]] = _merged(found[parts[0]], value, (*after, parts[0]), twice) if parts[0] in found else value
    return found


def _merged(first: Data, second: Data, where: Location, twice: list[Location]) -> Data:
    if first is None or second is None:
        return second if first is None else first
    if not isinstance(first, dict) or not isinstance(second, dict):
        twice.append(where)
        return second
    both: dict[str, Data] = {**first}
    for key, value in second.items():
        both[key] = _merged(both[key], value, (*where, key), twice) if key in both else value
    return both
