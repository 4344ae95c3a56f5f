"""Judges of banks, queues and lists: what one copy in one order has answered always holds, and each sort of mistake is
found."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.errors import MinigtsError
from minigts.explore import judges

History = list[dict[str, Any]]


def told(op: str, at: int, *, answer: str = "ok", until: int = 0, **what: Any) -> dict[str, Any]:
    return {"client": "c", "op": op, "sent": at, "answered": until or at + 1, "answer": answer, **what}


def served(seed: int, act: Callable[[random.Random, int], dict[str, Any]], count: int = 60) -> History:
    """Operations that one server does one after the other at moments 100, 200, …; each client asks before, and is
    answered after that, so that requests overlap."""
    chance, history = random.Random(seed), History()
    for number in range(1, count + 1):
        done = act(chance, number)
        moment = 100 * number
        done |= {"client": f"c{number % 5}", "sent": moment - chance.randrange(300)}
        history.append({"answer": "ok", **done, "answered": moment + chance.randrange(300)})
    return history


def bank(seed: int) -> History:
    accounts = {"a": 10, "b": 10, "c": 10}

    def act(chance: random.Random, _number: int) -> dict[str, Any]:
        if chance.random() < 0.5:
            return {"op": "read", "balances": dict(accounts)}
        one, other = chance.sample(sorted(accounts), 2)
        if accounts[one] > 0:
            accounts[one] -= 1
            accounts[other] += 1
        return {"op": "move", "from": one, "to": other}

    return served(seed, act)


def queue(seed: int) -> History:
    held = deque[str]()

    def act(chance: random.Random, number: int) -> dict[str, Any]:
        if chance.random() < 0.5 and number < 40:
            answer = chance.choice(("ok", "ok", "info", "fail"))
            if answer == "ok" or (answer == "info" and chance.random() < 0.5):
                held.append(str(number))
            return {"op": "put", "value": str(number), "answer": answer}
        if chance.random() < 0.1 and number < 40:  # an answer that has got lost
            if held:
                held.popleft()
            return {"op": "take", "answer": "info"}
        return {"op": "take", "value": held.popleft() if held else None}

    return served(seed, act, 120)


def lists(seed: int) -> History:
    held: dict[str, list[str]] = {"x": [], "y": []}

    def act(chance: random.Random, number: int) -> dict[str, Any]:
        key = chance.choice("xy")
        if chance.random() < 0.5:
            return {"op": "read", "key": key, "values": [*held[key]]}
        answer = chance.choice(("ok", "ok", "info", "fail"))
        if answer == "ok" or (answer == "info" and chance.random() < 0.5):
            held[key].append(str(number))
        return {"op": "append", "key": key, "value": str(number), "answer": answer}

    return served(seed, act)


@given(st.integers())
def test_one_server_is_never_accused(seed: int) -> None:
    assert judges.judge_bank(bank(seed), 30).holds
    found = judges.judge_queue(queue(seed))
    assert found.holds, found
    seen = judges.judge_lists(lists(seed))
    assert seen.holds, seen


@given(st.integers())
def test_money_that_is_nowhere_is_missed(seed: int) -> None:
    history = bank(seed)
    reads = [each for each in history if each["op"] == "read"]
    if not reads:
        return
    reads[0]["balances"]["a"] -= 1
    found = judges.judge_bank(history, 30)
    assert len(found.wrong) == 1
    assert "29 instead of 30" in found.wrong[0]


def test_an_account_below_zero_is_told() -> None:
    found = judges.judge_bank([told("read", 2_000_000_000, balances={"a": -5, "b": 35})], 30)
    assert (found.wrong, found.overdrawn) == ((), ("c, 2.000000 s: a has -5",))
    with pytest.raises(MinigtsError, match="a whole number for each account"):
        judges.judge_bank([told("read", 1, balances=[1, 2])], 3)


@given(st.integers(), st.integers(min_value=0))
def test_a_value_that_no_take_has_answered_is_lost(seed: int, which: int) -> None:
    history = [each for each in queue(seed) if each["answer"] != "info"]
    taken = [each for each in history if each["op"] == "take" and each.get("value") is not None]
    if not taken or not judges.judge_queue(history).holds:
        return
    gone = taken[which % len(taken)]["value"]
    found = judges.judge_queue([each for each in history if each["op"] == "put" or each.get("value") != gone])
    assert (found.lost, found.holds) == ((gone,), False)


@pytest.mark.parametrize(
    ("history", "lost", "twice", "unexpected", "holds"),
    [
        ([told("put", 1, value="x"), told("take", 5, value="x"), told("take", 9, value="x")], (), ("x",), (), False),
        ([told("put", 1, value="x", answer="fail"), told("take", 5, value="x")], (), (), ("x",), False),
        ([told("put", 1, value="x", answer="info"), told("take", 5, value="x")], (), (), (), True),
        ([told("take", 5, value="x")], (), (), ("x",), False),
        ([told("put", 9, value="x"), told("take", 5, value="x")], (), (), ("x",), False),
        ([told("put", 1, value="x"), told("take", 5, value=None)], ("x",), (), (), False),
        # A take that nobody knows the answer of may have had it.
        ([told("put", 1, value="x"), told("take", 5, answer="info")], ("x",), (), (), True),
    ],
)
def test_a_queue_is_judged(
    history: History, lost: tuple[str, ...], twice: tuple[str, ...], unexpected: tuple[str, ...], holds: bool
) -> None:
    found = judges.judge_queue(history)
    assert (found.lost, found.twice, found.unexpected, found.holds) == (lost, twice, unexpected, holds)


ONE, TWO = told("append", 1, key="x", value="1"), told("append", 11, key="x", value="2")


def read(at: int, *values: str) -> dict[str, Any]:
    return told("read", at, key="x", values=[*values])


@pytest.mark.parametrize(
    ("history", "wrong"),
    [
        ([ONE, TWO, read(21, "1", "2")], None),
        ([ONE, TWO, read(21, "1")], "old"),
        ([ONE, TWO, read(21)], "old"),
        ([ONE, TWO, read(5, "1"), read(21, "2", "1")], "parted"),
        ([ONE, read(21, "1", "1")], "twice"),
        ([ONE, TWO, read(5, "1", "2")], "unexpected"),
        ([ONE, read(21, "1", "3")], "unexpected"),
        ([ONE | {"answer": "fail"}, read(21, "1")], "unexpected"),
        # One that nobody knows of may be there or not; once it was read it stays.
        ([ONE | {"answer": "info"}, read(21), read(31, "1")], None),
        ([ONE | {"answer": "info"}, read(21, "1"), read(31)], "old"),
    ],
)
def test_lists_are_judged(history: History, wrong: str | None) -> None:
    found = judges.judge_lists(history)
    assert found.holds == (wrong is None)
    if wrong is not None:
        assert getattr(found, wrong) == ("x",)


@given(st.integers())
def test_two_servers_that_have_parted_are_found(seed: int) -> None:
    """Each takes what its clients append, and they see each other's never."""
    history = [each for each in lists(seed) if each["answer"] == "ok"]
    last = 100_000
    for side in (0, 1):
        own = [each["value"] for number, each in enumerate(history) if each["op"] == "append" and number % 2 == side]
        history.append(told("read", last, key="x", values=own))
    grown = {tuple(each["values"]) for each in history[-2:]}
    if len(grown) == 2:
        assert not judges.judge_lists(history).holds
