"""Whoever sets a link, the rules are those of its file: `set` and schedules against files with the same result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from minigts.errors import InputError
from minigts.lab import changes
from minigts.lab.record import Record
from minigts.topology.link_settings import SETTABLE, amount
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

VALUES: Mapping[str, Sequence[str]] = {
    "delay": ("0ms", "10ms", "40ms"),
    "jitter": ("0ms", "5ms", "200ms"),
    "jitter.correlation": ("0%", "25%"),
    "jitter.distribution": ("uniform", "normal"),
    "jitter.order": ("kept", "free"),
    "loss": ("0%", "1%", "70%"),
    "burst": ("1packet", "8packets"),
    "burst.loss": ("60%", "100%"),
    "burst.between": ("0%", "0.5%"),
    "rate": ("1mbit", "10mbit", "100mbit"),
    "rate.burst": ("1kB", "30kB"),
    "rate.peak": ("5mbit", "200mbit"),
    "rate.excess": ("queue", "drop"),
    "queue": ("1kB", "40kB", "1MB", "1packet", "100packets", "1ms", "50ms"),
    "queue.discipline": ("fifo", "bfifo", "codel", "red", "cake"),
    "queue.ecn": ("true", "false"),
    "queue.target": ("2ms",),
    "queue.min": ("30kB",),
    "queue.max": ("20kB", "90kB"),
    "reorder": ("0%", "5%"),
    "blackhole": ("1400B", "9000B"),
}
NEEDS = {"burst": ("loss", "0%"), "jitter": ("jitter", "0ms")}
"""What is without effect where another setting is nothing: a burst, and how a jitter is."""


def some(least: int, most: int) -> st.SearchStrategy[dict[str, str]]:
    """Some settings with a value each."""
    words = st.lists(st.sampled_from([*VALUES]), min_size=least, max_size=most, unique=True)
    return words.flatmap(lambda named: st.fixed_dictionaries({word: st.sampled_from(VALUES[word]) for word in named}))


DECLARED = some(0, 5)
FEW = some(1, 3)


def test_every_setting_is_tried() -> None:
    assert {*SETTABLE} - {*VALUES} == {"duplicate", "corrupt", "slot", "queue.interval", "queue.mark"}


def keys(words: Mapping[str, str]) -> str:
    """A link's keys in a file, as in `delay: 10ms, queue: {size: 40kB, discipline: red}`."""
    inside = {"jitter": "sd" if words.get("jitter.distribution", "uniform") != "uniform" else "range"}
    inside |= {"burst": "length", "rate": "mean", "queue": "size"}
    heads: dict[str, list[str]] = {}
    for word, value in words.items():
        head, _, key = word.partition(".")
        heads.setdefault(head, []).append(f"{key or inside[head]}: {value}" if head in inside else value)
    return ", ".join(
        f"{head}: {{{', '.join(of)}}}" if head in inside else f"{head}: {of[0]}" for head, of in heads.items()
    )


def file(words: Mapping[str, str], schedule: str = "") -> Plan:
    further = f", {keys(words)}" if words else ""
    return parse(f"name: r\nhosts: {{a: , b: }}\nlinks: [{{ends: [a, b]{further}}}]\n{schedule}", "r.yaml")


def refusal(words: Mapping[str, str]) -> str | None:
    try:
        file(words)
    except InputError as error:
        return str(error)
    return None


def result(declared: Mapping[str, str], update: Mapping[str, str]) -> dict[str, str]:
    """What a file says that has the update in it. What is without effect then, and was not asked for, is not in it."""
    words = dict(declared)
    if update.get("queue.discipline", words.get("queue.discipline", "fifo")) != words.get("queue.discipline", "fifo"):
        words = {word: value for word, value in words.items() if not word.startswith("queue.")}
    words |= update
    for head, (other, nothing) in NEEDS.items():
        if words.get(other, nothing) == nothing:
            words = {
                word: value
                for word, value in words.items()
                if word.split(".")[0] != head or word == other or word in update
            }
    if not any(word == "burst" for word in words):
        words = {word: value for word, value in words.items() if not word.startswith("burst.") or word in update}
    if words.get("rate.excess") == "drop" and "rate" in words:
        words = {word: value for word, value in words.items() if not word.startswith("queue") or word in update}
    return words


def record() -> Record:
    return Record(provider="uml", time="real", created=datetime(2026, 1, 1, tzinfo=UTC))


def moment(update: Mapping[str, str], at_s: float = 0) -> Moment:
    return Moment(at_s=at_s, link="a-b", update=dict(amount(word, value) for word, value in update.items()))


@settings(max_examples=80, suppress_health_check=[HealthCheck.filter_too_much])
@given(DECLARED, FEW)
def test_set_accepts_exactly_what_the_file_with_the_result_accepts(
    declared: Mapping[str, str], update: Mapping[str, str]
) -> None:
    assume(refusal(declared) is None)
    plan = file(declared)
    said = None
    try:
        changes.record_at(plan, record(), moment(update))
    except InputError as error:
        said = str(error)
    by_file = refusal(result(declared, update))
    assert (said is None) == (by_file is None), (said, by_file)
    if said is not None and by_file is not None:
        assert all(line.removeprefix("a-b: ") in by_file for line in said.splitlines())


def steps(updates: Sequence[Mapping[str, str]]) -> str:
    each = (
        f"{{at: {number}s, link: a-b, set: {{{', '.join(f'{word}: {value}' for word, value in update.items())}}}}}"
        for number, update in enumerate(updates)
    )
    return f"schedule: [{', '.join(each)}]\n"


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(DECLARED, st.lists(FEW, min_size=1, max_size=3))
def test_a_plan_refuses_exactly_the_schedules_that_the_player_refuses(
    declared: Mapping[str, str], updates: Sequence[Mapping[str, str]]
) -> None:
    assume(refusal(declared) is None)
    plan, now, said = file(declared), record(), list[str]()
    for number, update in enumerate(updates):
        try:
            now = changes.record_at(plan, now, moment(update, number))
        except InputError as error:
            said = [f"schedule[{number}]: {line.removeprefix('a-b: ')}" for line in str(error).splitlines()]
            break
    try:
        file(declared, steps(updates))
    except InputError as error:
        assert said
        assert all(line in str(error) for line in said)
    else:
        assert not said


@pytest.mark.parametrize(
    ("declared", "update", "message"),
    [
        ({"delay": "40ms"}, {"jitter": "200ms"}, "jitter 200ms is more than the one-way delay 40ms"),
        ({}, {"blackhole": "9000B"}, "no packet is larger than the MTU 1500"),
        ({"rate": "9mbit", "rate.burst": "30kB", "rate.excess": "drop"}, {"queue": "100kB"}, "nothing waits there"),
        ({}, {"queue": "100kB"}, "a queue without a rate"),
        ({}, {"burst": "8packets"}, "a burst without a loss"),
        ({"rate": "9mbit"}, {"rate.peak": "20mbit"}, "a peak without a burst"),
        ({"delay": "9ms"}, {"jitter": "2ms", "jitter.distribution": "table"}, "no table of delays"),
        ({}, {"reorder": "5%"}, "reorder without a delay"),
    ],
)
def test_what_was_accepted_in_one_place_and_refused_in_another(
    declared: Mapping[str, str], update: Mapping[str, str], message: str
) -> None:
    """Each was accepted by `set`, by a schedule in a plan, or by both, without an effect or with a wrong one."""
    with pytest.raises(InputError, match=message):
        changes.record_at(file(declared), record(), moment(update))
    with pytest.raises(InputError, match=rf"r.yaml:4: schedule\[0\]: .*{message}"):
        file(declared, steps([update]))


def test_a_change_of_one_direction_is_judged_with_the_other() -> None:
    plan = file({"loss": "{to: 1%, from: 0%}"})
    update = {"burst_packets": 8.0}
    changes.record_at(plan, record(), Moment(at_s=0, link="a-b", update=update))
    changes.record_at(plan, record(), Moment(at_s=0, link="a-b", sender="a", update=update))
    with pytest.raises(InputError, match="a burst without a loss"):
        changes.record_at(plan, record(), Moment(at_s=0, link="a-b", sender="b", update=update))
