"""Queues that are read while a sample is taken: which, when, and what becomes of the readings."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments import queue_watch
from minigts.experiments.load import parse as parse_experiment
from minigts.lab.queues import Queue, parse_queues
from minigts.topology.read.load import parse

NECK = """name: neck
hosts: {a: , b: , c: , d: , e: }
links:
  - {ends: [a, c], rate: 100mbit}
  - {ends: [b, c], rate: 5mbit}
  - {ends: [c, d], rate: {to: 10mbit, from: 2mbit}}
  - {ends: [d, e]}
"""
PLAN = parse(NECK, "neck.yaml", time="virtual")


def experiment(queues: str, tool: str = "tool: iperf3-tcp", more: str = "") -> Experiment:
    text = (
        "name: q\ntitle: Queues\ntopology: neck.yaml\noverlays: [none]\nrepetitions: 1\nseed: 1\nmeasurements:\n"
        f"  - {{name: m, {tool}, paths: [{{from: a, to: e}}]{queues}}}\n{more}"
    )
    return parse_experiment(text, "q.yaml")


def ends(queues: str, tool: str = "tool: iperf3-tcp", paths: Sequence[tuple[str, str]] = (("a", "e"),)) -> object:
    return queue_watch.ends_of(experiment(queues, tool).measurements[0], PLAN, paths)


def test_the_bottleneck_is_the_lowest_rate_in_the_direction_of_the_sender() -> None:
    assert ends("") == ()
    assert ends(", queues: {}") == (("c", "c-d"),)
    assert ends(", queues: {}", paths=[("b", "e")]) == (("b", "b-c"),)
    assert ends(", queues: {}", paths=[("e", "b")]) == (("d", "c-d"),)
    assert ends(", queues: {}", paths=[("a", "e"), ("b", "e")]) == (("c", "c-d"), ("b", "b-c"))


def test_a_link_is_named_in_either_direction() -> None:
    assert ends(", queues: {of: [c-d, d-c, c-d]}") == (("c", "c-d"), ("d", "c-d"))
    with pytest.raises(InputError, match=r"m: queues: no link 'c-x'"):
        ends(", queues: {of: [c-x]}")
    with pytest.raises(InputError, match=r"m: queues: link d-e has no rate in that direction"):
        ends(", queues: {of: [d-e]}")
    with pytest.raises(InputError, match=r"m: queues: no link on its way has a rate"):
        ends(", queues: {}", paths=[("d", "e")])


FLOWS = (
    "tool: flows, options: {flows: [{name: x, tool: iperf3-tcp}, {name: y, tool: iperf3-tcp, from: b}, "
    "{name: p, tool: ping, from: e, to: a}]}"
)


def test_of_several_flows_each_that_sends_has_its_bottleneck() -> None:
    assert ends(", queues: {}", FLOWS) == (("c", "c-d"), ("b", "b-c"))


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ("{every: 1ms}", r"1 ?ms is no time between two readings: 10ms to 60s are possible"),
        ("{every: 61s}", r"is no time between two readings"),
        ("{each: 1s}", r"queues.*each"),
        ("true", r"queues"),
    ],
)
def test_what_is_wrong_is_said(queues: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(f", queues: {queues}")


def test_figures_over_time_have_its_columns() -> None:
    wanted = "figures: [{of: m, x: time, y: [queue_bytes, queue_marked]}]\n"
    assert experiment(", queues: {}", more=wanted).figures[0].y == ("queue_bytes", "queue_marked")
    with pytest.raises(InputError, match="queue_bytes"):
        experiment(", series: true", more=wanted)
    with pytest.raises(InputError, match=r"a figure over time is of a measurement with `series: true` or `queues:`"):
        experiment("", more="figures: [{of: m, x: time}]\n")


def test_an_experiment_without_the_key_is_stored_as_before() -> None:
    assert "queues" not in experiment("").model_dump_json()


A, B = ("c", "c-d"), ("b", "b-c")


def test_readings_are_levels_and_counts_since_the_one_before() -> None:
    text = queue_watch.line(0.0, {A: Queue(0, 0, 7, 1)}) + queue_watch.line(0.05, {A: Queue(3000, 2, 9, 1)})
    assert queue_watch.time_series(text) == {
        "queue_bytes": [(0.0, 0.0), (0.05, 3000.0)],
        "queue_packets": [(0.0, 0.0), (0.05, 2.0)],
        "queue_dropped": [(0.0, 0.0), (0.05, 2.0)],
        "queue_marked": [(0.0, 0.0), (0.05, 0.0)],
    }
    assert queue_watch.time_series(queue_watch.readings_before(text, 0.049))["queue_bytes"] == [(0.0, 0.0)]


def test_several_queues_have_their_names_and_a_wire_counts_no_packets() -> None:
    found = queue_watch.time_series(queue_watch.line(0.0, {A: Queue(10, None, 0, 0), B: Queue(20, 1, 0, 0)}))
    assert found["c-d from c queue_bytes"] == [(0.0, 10.0)]
    assert found["b-c from b queue_packets"] == [(0.0, 1.0)]
    assert "c-d from c queue_packets" not in found


@pytest.mark.parametrize("text", ["{}", '{"at_s": 1, "queues": [{}]}', "nonsense", '{"at_s": 0, "queues": 5}'])
def test_damaged_readings_are_no_rows(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        queue_watch.time_series(text)


def test_a_discipline_and_the_tbf_above_it_are_one_queue() -> None:
    child = {"dev": "eth2", "drops": 4, "backlog": 3028, "qlen": 2, "ecn_mark": 5}
    shown = [{"dev": "lo"}, {"dev": "eth2", "drops": 4, "backlog": 3028, "qlen": 2}, child]
    assert parse_queues(json.dumps(shown)) == {"lo": Queue(0, 0, 0, 0), "eth2": Queue(3028, 2, 4, 5)}
