"""Judges histories of banks, queues and lists by rules that need no search. Pure. `histories` has those of registers
and sets, and says what an operation is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from minigts.errors import MinigtsError
from minigts.explore.histories import Operation, moment_ns


@dataclass(frozen=True)
class BankVerdict:
    """What reads of all accounts at once have shown, while money was moved between them."""

    reads: int
    wrong: tuple[str, ...]
    """Reads whose balances do not add up to the bank's money, in words with the lab's time."""
    overdrawn: tuple[str, ...]
    """Reads with a balance below zero."""

    @property
    def holds(self) -> bool:
        return not self.wrong and not self.overdrawn


@dataclass(frozen=True)
class QueueVerdict:
    """What became of the values that were put into a queue, which was emptied at the end."""

    acknowledged: int
    lost: tuple[str, ...]
    """Values that were acknowledged and that no take has answered."""
    twice: tuple[str, ...]
    """Values that were taken more than once."""
    unexpected: tuple[str, ...]
    """Values that were taken and refused, never put, or put only after they were taken."""
    unanswered: int
    """Takes that nobody knows the answer of: each may have had one of the lost values."""

    @property
    def holds(self) -> bool:
        return len(self.lost) <= self.unanswered and not self.twice and not self.unexpected


@dataclass(frozen=True)
class ListVerdict:
    """Whether each list grew at its end alone, as all its reads saw it."""

    reads: int
    parted: tuple[str, ...]
    """Keys of which two reads had other values at the same place: neither is the beginning of the other."""
    twice: tuple[str, ...]
    """Keys of which a read had a value more than once."""
    old: tuple[str, ...]
    """Keys of which a read lacked a value whose append was acknowledged, or that another read had shown, before it was
    sent."""
    unexpected: tuple[str, ...]
    """Keys of which a read had a value that was refused, never appended, or appended only after it was read."""

    @property
    def holds(self) -> bool:
        return not (self.parted or self.twice or self.old or self.unexpected)


def judge_bank(history: Iterable[Operation], total: int) -> BankVerdict:
    """Judge a history of a bank whose accounts hold `total` together: reads with `balances`, a balance for each
    account. Other operations count for nothing. Raises MinigtsError for balances that are none."""
    reads, wrong, overdrawn = 0, list[str](), list[str]()
    for each in _answered(history, "read"):
        balances = each.get("balances")
        if not isinstance(balances, Mapping) or not all(type(one) is int for one in balances.values()):
            raise MinigtsError(f"{_at(each)}: a read of a bank has `balances`, a whole number for each account")
        reads += 1
        if sum(balances.values()) != total:
            wrong.append(f"{_at(each)}: {sum(balances.values())} instead of {total}")
        overdrawn += [f"{_at(each)}: {name} has {one}" for name, one in balances.items() if one < 0]
    return BankVerdict(reads, tuple(wrong), tuple(overdrawn))


def judge_queue(history: Iterable[Operation]) -> QueueVerdict:
    """Judge a history of a queue: operations `put` with a `value`, and `take` with the `value` of its answer, null if
    the queue was empty. The history has to go on until takes find it empty; what is left in it counts as lost."""
    whole = [*history]
    puts = {str(each["value"]): each for each in whole if each.get("op") == "put"}
    takes = [each for each in whole if each.get("op") == "take"]
    taken = [(str(each["value"]), each) for each in takes if each["answer"] == "ok" and each.get("value") is not None]
    counted = Counter(value for value, _ in taken)
    acknowledged = [value for value, each in puts.items() if each["answer"] == "ok"]
    unexpected = {value for value, each in taken if not _possible(puts.get(value), each)}
    return QueueVerdict(
        acknowledged=len(acknowledged),
        lost=tuple(sorted({*acknowledged} - {*counted})),
        twice=tuple(sorted(value for value, times in counted.items() if times > 1)),
        unexpected=tuple(sorted(unexpected)),
        unanswered=sum(each["answer"] == "info" for each in takes),
    )


def judge_lists(history: Iterable[Operation]) -> ListVerdict:
    """Judge a history of lists, one for each key: operations `append` with a `value`, and `read` with the `values` of
    its answer. Each key is judged for itself: what a transaction saw of several keys is not compared. Raises
    MinigtsError."""
    appends, reads = dict[str, dict[str, Operation]](), dict[str, list[tuple[tuple[str, ...], Operation]]]()
    for each in history:
        key = str(each.get("key"))
        if each.get("op") == "append":
            appends.setdefault(key, {})[str(each["value"])] = each
        elif each.get("op") == "read" and each["answer"] == "ok":
            values = each.get("values")
            if not isinstance(values, Sequence) or isinstance(values, str):
                raise MinigtsError(f"{_at(each)}: a read of a list has `values`, the list")
            reads.setdefault(key, []).append((tuple(map(str, values)), each))
    found: dict[str, list[str]] = {"parted": [], "twice": [], "old": [], "unexpected": []}
    for key, of_key in sorted(reads.items()):
        own = appends.get(key, {})
        by_length = sorted((values for values, _ in of_key), key=len)
        if any(longer[: len(shorter)] != shorter for shorter, longer in pairwise(by_length)):
            found["parted"].append(key)
        if any(len({*values}) < len(values) for values, _ in of_key):
            found["twice"].append(key)
        if any(_known_before(read, own, of_key) - {*values} for values, read in of_key):
            found["old"].append(key)
        if any(not _possible(own.get(value), read) for values, read in of_key for value in values):
            found["unexpected"].append(key)
    count = sum(map(len, reads.values()))
    return ListVerdict(count, **{name: tuple(keys) for name, keys in found.items()})


def _known_before(
    read: Operation, appends: Mapping[str, Operation], reads: Iterable[tuple[tuple[str, ...], Operation]]
) -> set[str]:
    """The values that were in a list for certain when a read was sent."""
    sent = moment_ns(read, "sent")
    known = {value for value, each in appends.items() if each["answer"] == "ok" and moment_ns(each, "answered") < sent}
    return known.union(*(values for values, each in reads if moment_ns(each, "answered") < sent))


def _possible(cause: Operation | None, seen: Operation) -> bool:
    """Whether a value can have been there: it was put, was not refused, and was sent before it was seen."""
    return cause is not None and cause["answer"] != "fail" and moment_ns(cause, "sent") <= moment_ns(seen, "answered")


def _answered(history: Iterable[Operation], op: str) -> list[Operation]:
    return [each for each in history if each.get("op") == op and each["answer"] == "ok"]


def _at(operation: Operation) -> str:
    """`b, 12.345678 s`"""
    return f"{operation.get('client')}, {moment_ns(operation, 'sent') / 1e9:.6f} s"
