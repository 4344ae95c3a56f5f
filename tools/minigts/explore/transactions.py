"""Judges histories of transactions over several keys. Pure.

The keys are lists, to whose ends values are appended, each value once. A read of a list then shows in which order its
values came, so which transaction saw what of which other one follows from the answers alone. An order of all
transactions in which each sees what those before it have done exists only if these dependencies have no cycle. The
method is that of Elle (Alvaro and Kingsbury, Elle: Inferring Isolation Anomalies from Experimental Observations, PVLDB
14, 2020), the names of the anomalies are those of Adya, Liskov and O'Neil (Generalized Isolation Level Definitions,
ICDE 2000). `histories` says what an operation is.
"""

from __future__ import annotations

import graphlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Literal, TypeAlias

from minigts.errors import MinigtsError
from minigts.explore.histories import Operation, moment_ns

Why: TypeAlias = Literal["ww", "wr", "rw", "time"]
"""Why one transaction is before another: it has appended right before it, the other has read what it has appended, it
has read what was there before the other has appended, or it was answered before the other was sent."""
IN_WORDS: Mapping[Why, str] = {
    "ww": "appended before",
    "wr": "was read by",
    "rw": "did not see",
    "time": "was answered before",
}
KINDS: Sequence[tuple[str, frozenset[Why]]] = (
    ("G0", frozenset({"ww"})),
    ("G1c", frozenset({"ww", "wr"})),
    ("G2-item", frozenset({"ww", "wr", "rw"})),
)
"""Cycles, the worst first, and what they are made of; G-single is a G2-item with one `rw`."""
_Edges: TypeAlias = dict[tuple[int, int], set[Why]]


@dataclass(frozen=True)
class Anomaly:
    """Something that no order of the transactions explains."""

    kind: str
    """`G0`, `G1a`, `G1b`, `G1c`, `G-single`, `G2-item`; these with `-realtime` where it takes the times of sending and
    answers; `internal`, `twice`, `parted`, `unexpected`: within a transaction, or a list."""
    words: str


@dataclass(frozen=True)
class TransactionVerdict:
    """What the transactions of a history show."""

    transactions: int
    """How many were acknowledged."""
    anomalies: tuple[Anomaly, ...]
    """Of each kind of cycle the shortest that was found."""

    @property
    def is_serializable(self) -> bool:
        """Whether nothing speaks against one order of all transactions, whenever they were sent."""
        return all(each.kind.endswith("-realtime") for each in self.anomalies)

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against strict serializability: an order in which each is between its sending and its
        answer."""
        return not self.anomalies


@dataclass(frozen=True)
class _Transaction:
    number: int
    client: str
    answer: str
    sent: int
    answered: int
    steps: Sequence[tuple[str, str, str | tuple[str, ...] | None]]
    """`append` or `r`, a key, and a value, or the values that were read."""

    @property
    def in_words(self) -> str:
        return f"{self.client} at {self.sent / 1e9:.6f} s"


def judge_transactions(history: Iterable[Operation]) -> TransactionVerdict:
    """Judge a history of transactions: operations `txn` whose `value` is a list of steps, `["append", key, value]` and
    `["r", key, values]`, with null for `values` before the answer. Raises MinigtsError for operations that are none."""
    every = [_transaction(number, each) for number, each in enumerate(history) if each.get("op") == "txn"]
    done = [each for each in every if each.answer == "ok"]
    found = [anomaly for each in done for anomaly in _within(each)]
    appended: dict[tuple[str, str], _Transaction] = {}
    for each in every:
        for word, key, value in each.steps:
            if word == "append":
                if (key, str(value)) in appended:
                    raise MinigtsError(f"{each.in_words}: {value} is appended to {key} a second time: each value once")
                appended[key, str(value)] = each
    lists = _lists(done)
    found += _of_lists(done, lists, appended)
    edges = _dependencies(done, lists, appended)
    cycles = [*_cycles(edges, every, "")]
    found += cycles or _cycles(_in_time(done) | edges, every, "-realtime")
    return TransactionVerdict(len(done), tuple(found))


def _transaction(number: int, operation: Operation) -> _Transaction:
    steps: list[tuple[str, str, str | tuple[str, ...] | None]] = []
    client, sent = str(operation.get("client")), moment_ns(operation, "sent")
    value = operation.get("value")
    for step in value if isinstance(value, Sequence) and not isinstance(value, str) else [None]:
        match step:
            case ["append", key, str() | int() as what]:
                steps.append(("append", str(key), str(what)))
            case ["r", key, None]:
                steps.append(("r", str(key), None))
            case ["r", key, [*values]]:
                steps.append(("r", str(key), tuple(map(str, values))))
            case _:
                raise MinigtsError(
                    f"{client}, {sent / 1e9:.6f} s: a transaction's `value` is a list of steps, "
                    '["append", key, value] or ["r", key, values]'
                )
    answer, answered = str(operation.get("answer")), moment_ns(operation, "answered")
    return _Transaction(number, client, answer, sent, answered, tuple(steps))


def _within(transaction: _Transaction) -> Iterable[Anomaly]:
    """Reads that do not end in what the transaction itself has appended before, or differ from an earlier one."""
    seen: dict[str, tuple[str, ...]] = {}
    own: dict[str, tuple[str, ...]] = {}
    for word, key, value in transaction.steps:
        if word == "append":
            own[key] = (*own.get(key, ()), str(value))
        elif isinstance(value, tuple):
            added = own.get(key, ())
            begin = seen.get(key, value[: len(value) - len(added)])
            if value != (*begin, *added):
                yield Anomaly("internal", f"{transaction.in_words} reads {key} as {_shown(value)}")
            if len({*value}) < len(value):
                yield Anomaly("twice", f"{transaction.in_words} reads a value of {key} twice: {_shown(value)}")
            seen[key], own[key] = value, ()


def _every_read(done: Iterable[_Transaction]) -> Iterable[tuple[_Transaction, str, tuple[str, ...]]]:
    for each in done:
        yield from ((each, key, value) for word, key, value in each.steps if word == "r" and isinstance(value, tuple))


def _reads_of_others(done: Iterable[_Transaction]) -> Iterable[tuple[_Transaction, str, tuple[str, ...]]]:
    """The first read of each key in each transaction, unless it has appended to that key before."""
    for each in done:
        touched: set[str] = set()
        for word, key, value in each.steps:
            if word == "r" and key not in touched and isinstance(value, tuple):
                yield each, key, value
            touched.add(key)


def _lists(done: Iterable[_Transaction]) -> dict[str, tuple[str, ...]]:
    """The longest list that was read of each key, in whose order its values came."""
    found: dict[str, tuple[str, ...]] = {}
    for _, key, value in _every_read(done):
        if len(value) >= len(found.setdefault(key, ())):
            found[key] = value
    return found


def _of_lists(
    done: Sequence[_Transaction],
    lists: Mapping[str, tuple[str, ...]],
    appended: Mapping[tuple[str, str], _Transaction],
) -> Iterable[Anomaly]:
    """What reads have that no append explains."""
    for each, key, value in _every_read(done):
        if lists[key][: len(value)] != value:
            whole = f"where another read has {_shown(lists[key])}"
            yield Anomaly("parted", f"{each.in_words} reads {key} as {_shown(value)}, {whole}")
        for one in value:
            by = appended.get((key, one))
            if by is None or by.sent > each.answered:
                when = "that nobody appended" if by is None else f"before {by.in_words} appends it"
                yield Anomaly("unexpected", f"{each.in_words} reads {one} of {key}, {when}")
            elif by.answer == "fail":
                yield Anomaly("G1a", f"{each.in_words} reads {one} of {key}, which {by.in_words} was refused")
    for each, key, value in _reads_of_others(done):
        by = appended.get((key, value[-1])) if value else None
        if by is not None and by is not each:
            last = [str(what) for word, to, what in by.steps if word == "append" and to == key][-1]
            if last != value[-1]:
                yield Anomaly("G1b", f"{each.in_words} reads {key} as {_shown(value)}, without {last} of {by.in_words}")


def _dependencies(
    done: Sequence[_Transaction],
    lists: Mapping[str, tuple[str, ...]],
    appended: Mapping[tuple[str, str], _Transaction],
) -> _Edges:
    """Which transaction is before which other one, by its number, and why."""
    edges: _Edges = {}

    def add(first: _Transaction | None, then: _Transaction | None, why: Why) -> None:
        if first is not None and then is not None and first is not then:
            edges.setdefault((first.number, then.number), set()).add(why)

    for key, values in lists.items():
        for one, other in pairwise(values):
            add(appended.get((key, one)), appended.get((key, other)), "ww")
    for each, key, value in _reads_of_others(done):
        if value:
            add(appended.get((key, value[-1])), each, "wr")
        if len(value) < len(lists[key]):
            add(each, appended.get((key, lists[key][len(value)])), "rw")
    return edges


def _in_time(done: Sequence[_Transaction]) -> _Edges:
    """Each transaction is before those that were sent after its answer. Moments between them, with numbers below zero,
    keep that to a few edges for each: a transaction is before the moment of its answer, each moment is before the next
    one, and the last moment before it was sent is before a transaction."""
    edges: _Edges = {}
    moment, numbers = 0, count(-1, -1)
    happened = [(each.answered, 1, each.number) for each in done] + [(each.sent, 0, each.number) for each in done]
    for _, answered, number in sorted(happened):
        if answered:
            before, moment = moment, next(numbers)
            edges[number, moment] = {"time"}
            if before:
                edges[before, moment] = {"time"}
        elif moment:
            edges[moment, number] = {"time"}
    return edges


def _cycles(edges: _Edges, every: Sequence[_Transaction], suffix: str) -> Iterable[Anomaly]:
    """Of each kind of cycle the shortest of those that pass what a search has found first."""
    by_number = {each.number: each for each in every}
    for kind, whys in KINDS:
        allowed: frozenset[Why] = whys | {"time"} if suffix else whys
        after: dict[int, set[int]] = {}
        for (first, then), of_edge in edges.items():
            if of_edge & allowed:
                after.setdefault(first, set()).add(then)
        if kind == "G2-item":
            calm: dict[int, set[int]] = {}
            for (first, then), of_edge in edges.items():
                if of_edge & (allowed - {"rw"}):
                    calm.setdefault(first, set()).add(then)
            single = _shortest(
                [then, *way]
                for (first, then), of_edge in edges.items()
                if "rw" in of_edge and (way := _way(calm, then, first))
            )
            if single:
                yield Anomaly(f"G-single{suffix}", _told([single[-1], *single[:-1]], edges, allowed, by_number))
                return
        if cycle := _a_cycle(after):
            shortest = _shortest(way for each in cycle if (way := _way(after, each, each)))
            yield Anomaly(f"{kind}{suffix}", _told(shortest, edges, allowed, by_number))
            return


def _a_cycle(after: Mapping[int, Collection[int]]) -> Sequence[int]:
    """The members of a cycle; none if there is none."""
    before: dict[int, set[int]] = {}
    for first, then in after.items():
        for each in then:
            before.setdefault(each, set()).add(first)
    try:
        graphlib.TopologicalSorter(before).prepare()
    except graphlib.CycleError as error:
        cycle: Sequence[int] = error.args[1]
        return cycle[1:]
    return ()


def _way(after: Mapping[int, Collection[int]], start: int, end: int) -> list[int]:
    """The shortest way from `start` to `end`, without `start`; empty if there is none."""
    came: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for each in sorted(after.get(here, ())):
            if each in came:
                continue
            came[each] = here
            if each == end:
                way = [end]
                while came[way[0]] != start:
                    way.insert(0, came[way[0]])
                return way
            waiting.append(each)
    return []


def _shortest(ways: Iterable[list[int]]) -> list[int]:
    return min(ways, key=len, default=[])


def _told(
    cycle: Sequence[int], edges: _Edges, allowed: Collection[Why], transactions: Mapping[int, _Transaction]
) -> str:
    """`a at 1.5 s did not see b at 1.2 s, which was answered before a at 1.5 s`"""
    first = cycle.index(min(each for each in cycle if each in transactions))
    turned = [*cycle[first:], *cycle[: first + 1]]
    words, link = transactions[turned[0]].in_words, ""
    why: Why | None = None
    for one, other in pairwise(turned):
        reasons = [each for each in IN_WORDS if each in edges[one, other] and each in allowed]
        why = why or reasons[0]  # of moments between, the first one's
        if other in transactions:
            words += f"{link} {IN_WORDS[why]} {transactions[other].in_words}"
            why, link = None, ", which"
    return words


def _shown(values: Collection[str]) -> str:
    return f"[{' '.join(values)}]"
