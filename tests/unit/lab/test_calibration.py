"""The emulator's own latency: what a busy machine adds is not taken off a link."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from minigts.lab import calibration
from minigts.providers.base import CommandResult, Provider
from minigts.topology.read.load import parse

PLAN = parse("name: two\npair: {link: {rtt: 10ms, rate: 50mbit}}\n", "two.yaml")
CHAIN = """
name: five
hosts: {a: {}, b: {}, c: {}, d: {}, e: {}}
links:
- {ends: [a, b], rtt: 10ms}
- {ends: [b, c], rtt: 10ms}
- {ends: [c, d], rtt: 10ms, loss: 1%}
- {ends: [d, e], rtt: 10ms}
"""
WINDOW = calibration.PROBES


class Prober:
    """Answers each probe of a host with the next list of round trips, in milliseconds."""

    pace_s = 0.02

    def __init__(self, *answers_ms: list[float]) -> None:
        self.answers_ms = list(answers_ms)
        self.calls = 0
        self.asked: set[tuple[str, str]] = set()

    def run(self, host: str, argv: list[str], **_: Any) -> CommandResult:
        self.asked.add((host, argv[1]))
        rtts_ms = self.answers_ms[min(self.calls, len(self.answers_ms) - 1)]
        self.calls += 1
        said = json.dumps({"sent": 3 * WINDOW, "rtts_us": [rtt * 1000 for rtt in rtts_ms]})
        return CommandResult(host, tuple(argv), 0, said, "", 0.0)


def emulator_overhead_ms(prober: Prober) -> float:
    return calibration.emulator_overhead_ms(cast(Provider, prober), PLAN, PLAN.paths)


def windows(*rtts_ms: float) -> list[float]:
    return [rtt for rtt in rtts_ms for _ in range(WINDOW)]


def test_a_quiet_machine_is_measured_once() -> None:
    prober = Prober(windows(10.2, 10.21, 10.9))
    assert emulator_overhead_ms(prober) == pytest.approx(0.1)
    assert prober.calls == 1


def test_windows_that_disagree_are_measured_again() -> None:
    prober = Prober(windows(11.5, 12.4, 13.9), windows(10.2, 11.1, 10.22))
    assert emulator_overhead_ms(prober) == pytest.approx(0.1)
    assert prober.calls == 2


def test_a_machine_that_stays_busy_is_left_with_the_lowest() -> None:
    prober = Prober(*(windows(first_ms, 12.4, 13.9) for first_ms in (11.5, 11.4, 11.2, 11.1, 11.0)))
    assert emulator_overhead_ms(prober) == pytest.approx(0.5)
    assert prober.calls == calibration.CALLS


def test_a_link_faster_than_declared_has_nothing_taken_off() -> None:
    assert emulator_overhead_ms(Prober(windows(9.9, 9.9, 9.9))) == 0


def test_what_is_taken_off_already_counts_as_the_emulators() -> None:
    prober = Prober(windows(9.7, 9.71, 9.9))
    assert calibration.emulator_overhead_ms(cast(Provider, prober), PLAN, PLAN.paths, 0.25) == pytest.approx(0.1)


def test_the_longest_path_without_chance_stands_for_every_link() -> None:
    plan = parse(CHAIN, "five.yaml")
    prober = Prober(windows(20.4, 20.41, 21.0))
    assert calibration.emulator_overhead_ms(cast(Provider, prober), plan, plan.paths) == pytest.approx(0.1)
    assert prober.asked == {("a", plan.host("c").address)}


def test_a_host_by_itself_behind_a_switch_has_no_path_to_measure() -> None:
    text = "name: one\nhosts: {a: {}}\nswitches: {s: {}}\nlinks: [{ends: [a, s], rtt: 1ms}]\n"
    prober = Prober([])
    alone = parse(text, "one.yaml")
    assert calibration.emulator_overhead_ms(cast(Provider, prober), alone, alone.paths) == 0
    assert prober.calls == 0


def test_where_nobody_answers_it_is_said_between_whom() -> None:
    with pytest.raises(calibration.NothingAnswers, match="from h1 to h2 have no answers"):
        emulator_overhead_ms(Prober([]))


def test_where_one_host_does_not_answer_another_path_is_measured() -> None:
    plan = parse(CHAIN.replace(", loss: 1%", ""), "five.yaml")
    prober = Prober([], windows(30.6, 30.61, 31.0))
    assert calibration.emulator_overhead_ms(cast(Provider, prober), plan, plan.paths) == pytest.approx(0.1)
    assert prober.asked == {("a", plan.host("e").address), ("a", plan.host("d").address)}
