"""Transactions over several lists: each anomaly is found and named, and one order of all of them always holds."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.errors import MinigtsError
from minigts.explore import edn
from minigts.explore.transactions import judge_transactions

Step = list[Any]
S = 1_000_000_000


def txn(client: str, sent: float, answered: float, *steps: Step, answer: str = "ok") -> dict[str, Any]:
    value = [list(step) for step in steps]
    return {
        "op": "txn", "client": client, "sent": round(sent * S), "answered": round(answered * S), "answer": answer,
        "value": value,
    }  # fmt: skip


def append(key: str, value: int) -> Step:
    return ["append", key, value]


def read(key: str, *values: int) -> Step:
    return ["r", key, [*values]]


ANOMALIES = {
    "G0": [
        txn("a", 0, 9, append("x", 1), append("y", 1)),
        txn("b", 0, 9, append("x", 2), append("y", 2)),
        txn("c", 0, 9, read("x", 1, 2), read("y", 2, 1)),
    ],
    "G1a": [txn("a", 0, 9, append("x", 1), answer="fail"), txn("b", 0, 9, read("x", 1))],
    "G1b": [txn("a", 0, 9, append("x", 1), append("x", 2)), txn("b", 0, 9, read("x", 1))],
    "G1c": [txn("a", 0, 9, append("x", 1), read("y", 1)), txn("b", 0, 9, append("y", 1), read("x", 1))],
    "G-single": [
        txn("a", 0, 9, append("x", 1), append("y", 1)),
        txn("b", 0, 9, read("x", 1), read("y")),
        txn("c", 0, 9, read("y", 1)),
    ],
    "G2-item": [
        txn("a", 0, 9, read("x"), append("y", 1)),
        txn("b", 0, 9, read("y"), append("x", 1)),
        txn("c", 0, 9, read("x", 1), read("y", 1)),
    ],
    "G-single-realtime": [txn("a", 0, 1, append("x", 1)), txn("b", 2, 3, read("x")), txn("c", 2, 9, read("x", 1))],
    "internal": [txn("a", 0, 9, append("x", 1), read("x"))],
    "twice": [txn("a", 0, 9, append("x", 1)), txn("b", 0, 9, read("x", 1, 1))],
    "parted": [
        txn("a", 0, 9, append("x", 1)),
        txn("a", 0, 9, append("x", 2)),
        txn("b", 0, 9, read("x", 1)),
        txn("b", 0, 9, read("x", 2)),
        txn("b", 0, 9, read("x", 1, 2)),
    ],
    "unexpected": [txn("a", 0, 9, read("x", 7))],
}


@pytest.mark.parametrize("kind", ANOMALIES)
def test_each_anomaly_is_found_and_named(kind: str) -> None:
    found = judge_transactions(ANOMALIES[kind])
    assert kind in [each.kind for each in found.anomalies]
    assert not found.holds
    assert found.is_serializable is kind.endswith("-realtime")


def test_a_cycle_is_told_in_the_order_of_its_transactions() -> None:
    (found,) = judge_transactions(ANOMALIES["G-single-realtime"]).anomalies
    assert found.words == "a at 0.000000 s was answered before b at 2.000000 s, which did not see a at 0.000000 s"
    (found,) = judge_transactions(ANOMALIES["G2-item"]).anomalies
    assert found.words == "a at 0.000000 s did not see b at 0.000000 s, which did not see a at 0.000000 s"


def test_what_was_refused_and_is_not_seen_is_no_anomaly_nor_what_nobody_knows() -> None:
    history = [
        txn("a", 0, 1, append("x", 1), answer="fail"),
        txn("b", 0, 1, append("x", 2), read("y"), answer="info"),
        txn("c", 2, 3, read("x", 2), append("x", 3), read("x", 2, 3)),
        txn("d", 4, 5, read("x", 2, 3)),
    ]
    assert judge_transactions(history).holds
    assert judge_transactions(history).transactions == 2


@pytest.mark.parametrize("value", [None, "x", [["write", "x", 1]], [["append", "x", None]], [["r", "x", 5]], [[]]])
def test_operations_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(MinigtsError, match=r"a, 1.000000 s: a transaction's `value` is a list of steps"):
        judge_transactions([{**txn("a", 1, 2), "value": value}])


def test_a_value_is_appended_once() -> None:
    with pytest.raises(MinigtsError, match="a second time"):
        judge_transactions([txn("a", 1, 2, append("x", 1)), txn("a", 3, 4, append("x", 1))])


def served(seed: int, count: int, wrong: float) -> list[dict[str, Any]]:
    """Transactions of one server, one after the other; of its reads a share shows what was there some time before."""
    chance = random.Random(seed)
    lists: dict[str, list[int]] = {"x": [], "y": []}
    history, number = [], itertools.count(1)
    for at in range(count):
        steps: list[Step] = []
        before = {key: len(values) for key, values in lists.items()}
        for _ in range(chance.randint(1, 3)):
            key = chance.choice("xy")
            if chance.random() < 0.5:
                lists[key].append(next(number))
                steps.append(append(key, lists[key][-1]))
            else:
                left_out = chance.randint(0, 2) if chance.random() < wrong and len(lists[key]) == before[key] else 0
                steps.append(read(key, *lists[key][: max(0, len(lists[key]) - left_out)]))
        sent, answered = at - chance.random() * 2, at + chance.random() * 2
        history.append(txn(f"c{at}", 10 + sent, 10 + answered, *steps))
    last = 10 + count + 3
    return [*history, txn("end", last, last + 1, read("x", *lists["x"]), read("y", *lists["y"]))]


@given(st.integers(0, 10_000))
def test_one_server_in_one_order_always_holds(seed: int) -> None:
    assert judge_transactions(served(seed, 30, wrong=0)).anomalies == ()


def has_an_order(history: list[dict[str, Any]], *, in_time: bool) -> bool:
    """Whether there is an order of all transactions in which each sees what those before it have done."""

    def go(left: frozenset[int], lists: dict[str, tuple[int, ...]]) -> bool:
        if not left:
            return True
        first = min(history[each]["answered"] for each in left)
        for each in left:
            if in_time and history[each]["sent"] > first:
                continue
            now, fits = dict(lists), True
            for word, key, value in history[each]["value"]:
                if word == "append":
                    now[key] = (*now.get(key, ()), value)
                elif now.get(key, ()) != tuple(value):
                    fits = False
            if fits and go(left - {each}, now):
                return True
        return False

    return go(frozenset(range(len(history))), {})


@given(st.integers(0, 100_000))
def test_the_verdict_is_that_of_trying_all_orders(seed: int) -> None:
    history = served(seed, 6, wrong=0.4)
    found = judge_transactions(history)
    assert found.holds is has_an_order(history, in_time=True)
    assert found.is_serializable is has_an_order(history, in_time=False)


def test_a_history_is_written_as_jepsen_has_it() -> None:
    history = [
        txn("a", 1, 2, append("x", 1), read("y", 3)),
        {"op": "write", "client": "b", "key": "k", "value": 'q"', "sent": 1, "answered": 1, "answer": "info"},
        {"op": "cas", "client": "b", "key": "k", "from": 1, "value": 2, "sent": 5, "answered": 6, "answer": "fail"},
        {"op": "read", "client": "b", "key": "k", "value": None, "sent": 7, "answered": 8, "answer": "ok"},
    ]
    assert edn.edn_lines(history) == [
        '{:index 0, :type :invoke, :process 0, :f :write, :value ["k" "q\\""], :time 1}',
        '{:index 1, :type :info, :process 0, :f :write, :value ["k" "q\\""], :time 1}',
        '{:index 2, :type :invoke, :process 1, :f :cas, :value ["k" [1 2]], :time 5}',
        '{:index 3, :type :fail, :process 1, :f :cas, :value ["k" [1 2]], :time 6}',
        '{:index 4, :type :invoke, :process 1, :f :read, :value ["k" nil], :time 7}',
        '{:index 5, :type :ok, :process 1, :f :read, :value ["k" nil], :time 8}',
        '{:index 6, :type :invoke, :process 2, :f :txn, :value [[:append "x" 1] [:r "y" nil]], :time 1000000000}',
        '{:index 7, :type :ok, :process 2, :f :txn, :value [[:append "x" 1] [:r "y" [3]]], :time 2000000000}',
    ]
    assert edn.edn({"a": True, "b": 1.5}) == '{"a" true, "b" 1.5}'
