"""Histories of registers, by Porcupine, and of sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minigts import api
from minigts.errors import MinigtsError
from minigts.explore import histories, variables
from minigts.explore.histories import Heard, HostClocks, Operation
from minigts.lab import Lab
from minigts.lab.events import Event
from minigts.testing.course import FIGURE, Course
from minigts.topology.plan import reseed
from minigts.topology.read.load import parse


def one(op: str, value: str | None, sent: int, answered: int, **others: object) -> Operation:
    return {
        "client": "c",
        "key": "k",
        "op": op,
        "value": value,
        "sent": sent,
        "answered": answered,
        "answer": "ok",
    } | others


def quiet(_line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("history", "verdict", "operations"),
    [
        ([], "linearizable", 0),
        ([one("read", None, 0, 1), one("write", "1", 2, 3), one("read", "1", 4, 5)], "linearizable", 3),
        ([one("write", "1", 0, 1), one("write", "2", 2, 3), one("read", "1", 4, 5)], "not linearizable", 3),
        # Side by side the write may come before or after the read.
        ([one("write", "1", 0, 1), one("write", "2", 2, 9), one("read", "1", 4, 5)], "linearizable", 3),
        # A read has seen it, and a later one has not.
        (
            [one("write", "1", 0, 1), one("write", "2", 2, 9), one("read", "2", 3, 4), one("read", "1", 5, 6)],
            "not linearizable",
            4,
        ),
        # One that was not done counts for nothing; one that nobody knows of may have been done, then or later.
        ([one("write", "1", 0, 1, answer="fail"), one("read", "1", 2, 3)], "not linearizable", 1),
        ([one("write", "1", 0, 1, answer="info"), one("read", None, 2, 3)], "linearizable", 2),
        ([one("write", "1", 0, 1, answer="info"), one("read", None, 2, 3), one("read", "1", 4, 5)], "linearizable", 3),
        (
            [one("write", "1", 0, 1, answer="info"), one("read", "1", 2, 3), one("read", None, 4, 5)],
            "not linearizable",
            3,
        ),
        ([one("read", None, 0, 1, answer="info")], "linearizable", 0),
        (
            [one("write", "1", 0, 1), one("cas", "2", 2, 3, **{"from": "1", "held": True}), one("read", "2", 4, 5)],
            "linearizable",
            3,
        ),
        ([one("write", "1", 0, 1), one("cas", "2", 2, 3, **{"from": "1", "held": False})], "not linearizable", 2),
        # Each key is a register of its own.
        ([one("write", "1", 0, 1), one("read", None, 2, 3, key="other")], "linearizable", 2),
    ],
)
def test_a_history_of_registers_is_judged(history: list[Operation], verdict: str, operations: int) -> None:
    found = histories.judge_registers(history, quiet)
    assert (found.verdict, found.operations) == (verdict, operations)
    assert found.holds == (verdict == "linearizable")


def test_what_is_not_linearizable_is_drawn(tmp_path: Path) -> None:
    history = [one("write", "1", 0, 1), one("read", "0", 2, 3, client="d"), one("read", None, 0, 1, key="other")]
    found = histories.judge_registers(history, quiet, figure=tmp_path / "figure.html")
    assert found.keys == ("k",)
    assert "<html" in (tmp_path / "figure.html").read_text()


def test_the_test_of_a_seed_finds_that_figure_in_its_courses_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "course").mkdir()
    monkeypatch.setenv(variables.COURSE, str(tmp_path / "course"))
    course = Course(api.Lab(Lab(tmp_path / "none")), tmp_path)
    assert course.check_registers([one("write", "1", 0, 1), one("read", "1", 2, 3)]).holds
    assert list(course.folder.iterdir()) == []
    assert not course.check_registers([one("write", "1", 0, 1), one("read", "0", 2, 3)]).holds
    assert "<html" in (tmp_path / "course" / FIGURE).read_text()


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ([one("push", "1", 0, 1)], 'line 1: no operation "push"'),
        ([one("read", None, 0, 1), one("read", None, 3, 2)], "line 2: it was answered before it was sent"),
    ],
)
def test_what_is_no_operation_is_refused(history: list[Operation], says: str) -> None:
    with pytest.raises(MinigtsError) as refused:
        histories.judge_registers(history, quiet)
    assert says in str(refused.value)


def test_of_a_set_acknowledged_values_have_to_be_there_and_refused_ones_not() -> None:
    lines = ['{"value": "a", "answer": "ok"}', '{"value": "b", "answer": "info"}', '{"value": "c", "answer": "fail"}']
    history = [json.loads(line) for line in lines]
    assert histories.judge_set(history, ["a", "b"]).holds
    assert histories.judge_set(history, ["a"]).holds
    found = histories.judge_set(history, ["c", "d"])
    assert (found.acknowledged, found.lost, found.unexpected) == (1, ("a",), ("c", "d"))


def test_lines_of_clients_become_operations() -> None:
    lines = [
        Heard(10, "a", {"op": "write", "key": "x", "value": "1"}),
        Heard(11, "b", {"op": "read", "key": "x"}),
        Heard(20, "b", {"answer": "ok", "value": None}),
        Heard(30, "a", {"answer": "ok"}),
        Heard(40, "a", {"op": "write", "key": "x", "value": "2"}),
    ]
    first = {"client": "a", "op": "write", "key": "x", "value": "1", "sent": 10, "answered": 30, "answer": "ok"}
    second = {"client": "b", "op": "read", "key": "x", "value": None, "sent": 11, "answered": 20, "answer": "ok"}
    left = {"client": "a", "op": "write", "key": "x", "value": "2", "sent": 40, "answered": 40, "answer": "info"}
    assert histories.operations(reversed(lines)) == [first, second, left]


@pytest.mark.parametrize("line", [b"Traceback", b'{"op": "read"}', b'{"at": 1.5}', b"[1]"])
def test_what_is_no_line_of_a_client_is_refused(line: bytes) -> None:
    with pytest.raises(MinigtsError, match=r"a has printed .*, which is no line of a client"):
        histories.line_of("a", line)


def test_a_hosts_clock_is_behind_the_labs_by_its_phase_and_its_pauses() -> None:
    plan = reseed.replicate(parse("name: pair\npair: {hosts: [a, b], link: {rtt: 2ms}}\n", "p.yaml", time="virtual"), 3)
    phase_ns = {name: round(phase_s * 1e9) for name, phase_s in reseed.phases_s(plan).items()}
    happened: list[Event] = [
        {"event": "paused", "host": "a", "lab_s": 5.0},
        {"event": "cut", "link": "a-b", "lab_s": 5.1},
        {"event": "resumed", "host": "a", "lab_s": 7.0},
        {"event": "paused", "host": "a", "lab_s": 9.0},
    ]
    clocks = HostClocks(plan, happened)
    assert clocks.lab_ns("b", 10**10) == 10**10 + phase_ns["b"]
    assert clocks.lab_ns("a", 4 * 10**9) == 4 * 10**9 + phase_ns["a"]
    assert clocks.lab_ns("a", 5 * 10**9) == 7 * 10**9 + phase_ns["a"]


def test_a_hosts_clock_may_run_fast_or_slow_for_a_while_and_its_kernels_log_does_not() -> None:
    happened: list[Event] = [
        {"event": histories.RATE, "host": "b", "percent": 10.0, "lab_s": 5.0},
        {"event": "paused", "host": "b", "lab_s": 10.0},
        {"event": "resumed", "host": "b", "lab_s": 11.0},
        {"event": histories.RATE, "host": "b", "percent": 0.0, "lab_s": 16.0},
        {"event": histories.RATE, "host": "b", "percent": -5.0, "lab_s": 20.0},
        {"event": "started", "host": "b", "lab_s": 30.0},
    ]
    clocks = HostClocks(parse("name: two\npair: {hosts: [a, b], link: {}}\n", "t.yaml", time="virtual"), happened)
    own_s = {4.0: 4.0, 6.1: 6.0, 10.5: 11.0, 11.6: 12.0, 16.0: 16.0, 20.0: 20.0, 20.95: 21.0}
    assert {own: clocks.lab_ns("b", round(own * 1e9)) / 1e9 for own in own_s} == pytest.approx(own_s)
    assert clocks.lab_ns("b", 9 * 10**9, of_log=True) == 9 * 10**9
    assert clocks.lab_ns("b", 10 * 10**9, of_log=True) == 11 * 10**9
    assert clocks.lab_ns("b", 10**9, 1) == 31 * 10**9


def test_a_hosts_clock_begins_anew_with_its_kernel() -> None:
    plan = reseed.replicate(parse("name: pair\npair: {hosts: [a, b], link: {rtt: 2ms}}\n", "p.yaml", time="virtual"), 3)
    phase_ns = round(reseed.phases_s(plan)["a"] * 1e9)
    happened: list[Event] = [
        {"event": "paused", "host": "a", "lab_s": 5.0},
        {"event": "killed", "host": "a", "lab_s": 6.0},
        {"event": "started", "host": "a", "lab_s": 8.0},
        {"event": "paused", "host": "a", "lab_s": 9.0},
        {"event": "resumed", "host": "a", "lab_s": 9.5},
        {"event": "restarted", "host": "a", "lab_s": 20.0},
    ]
    clocks = HostClocks(plan, happened)
    assert clocks.starts_ns("a") == [phase_ns, 8 * 10**9, 20 * 10**9]
    assert [clocks.start_at("a", at_s * 10**9) for at_s in (0, 7, 8, 19, 20, 99)] == [0, 0, 1, 1, 2, 2]
    assert clocks.lab_ns("a", 10**9, 0) == 10**9 + phase_ns
    assert clocks.lab_ns("a", 10**9 - 1, 1) == 9 * 10**9 - 1
    assert clocks.lab_ns("a", 10**9, 1) == 9_500_000_000
    assert clocks.lab_ns("a", 10**9, 2) == 21 * 10**9
