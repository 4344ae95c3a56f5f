"""A claim that could not have come out otherwise under its settings says nothing, and is told so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from minigts.experiment_language.claims import Claim
from minigts.experiments.claims import evaluate
from minigts.experiments.load import parse as parse_experiment
from minigts.experiments.matrix import cells as planned
from minigts.experiments.matrix import path_between
from minigts.experiments.summary import Cell, Verdict
from minigts.judge.statistics import estimate
from minigts.judge.verdicts import combine
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

LINK = "{rtt: 10ms, rate: 50mbit}"
MEASUREMENTS = """\
name: some
title: Some
topology: x.yaml
overlays: [none]
seed: 1
repetitions: 3
measurements:
  - {name: latency, tool: netperf-rr, paths: [first-to-each, each-segment]}
  - {name: tcp, tool: iperf3-tcp, paths: [first-to-each]}
  - {name: udp, tool: iperf3-udp, paths: [first-to-each], options: {rate: unlimited}}
  - {name: stream, tool: iperf3-udp, paths: [first-to-each], options: {rate: 5mbit}}
  - {name: crossed, tool: iperf3-udp, paths: [first-to-last], options: {rate: 5mbit}, cross: [{from: h2, to: h3}]}
  - {name: one, tool: iperf3-tcp, paths: [{from: h1, to: h2}]}
"""
EXPERIMENT = parse_experiment(MEASUREMENTS, "some.yaml")


def lab(link: str = LINK, time: str = "virtual", more: str = "") -> Plan:
    return parse(f"name: x\ntime: {time}\nchain: {{hosts: 4, link: {link}{more}}}\n", "x.yaml")


def measured(plan: Plan, name: str, figure: Callable[[int], float], metric: str = "") -> list[Cell]:
    """What was measured over each path of one course, or of five repetitions in real time, by its hops."""
    measurement = EXPERIMENT.measurement(name)
    rows = [row for row in planned(EXPERIMENT, plan, "none") if row.measurement == name]
    return [
        Cell(
            overlay="none",
            measurement=name,
            quantity=measurement.instrument.quantity,
            metric=metric,
            source=row.source,
            target=row.target,
            hops=row.hops,
            kind=row.kind,
            unit=measurement.instrument.unit,
            estimate=estimate([figure(row.hops)]),
            values=(figure(row.hops),) * (1 if plan.time == "virtual" else 5),
            basis="course" if plan.time == "virtual" else "samples",
            predicted=path_between(plan, row.source, row.target).rtt_ms if name == "latency" else 47.8,
            published=None,
        )
        for row in rows
    ]


def verdict(said: Mapping[str, object], cells: Sequence[Cell], plan: Plan) -> Verdict:
    (found,) = evaluate([Claim.model_validate(said)], cells, plan, EXPERIMENT)
    return found


SUM, FALLS = {"latency": "sum-of-segments"}, {"throughput": "falls-slightly", "of": "udp"}
AS_DECLARED = [
    SUM,
    {"latency": "as-declared"},
    {"latency": "steady"},
    {"latency": "bounded", "range": "under 100 ms"},
    {"latency": "rises", "by": "hops"},
    {"latency": "compared", "where": {"hops": 3}, "than": {"to": "h2"}, "range": "290 to 310 %"},
]


@pytest.mark.parametrize("said", AS_DECLARED, ids=lambda said: said["latency"])
def test_a_round_trip_past_free_processors_is_what_the_file_declares(said: Mapping[str, object]) -> None:
    plan = lab()
    found = verdict(said, measured(plan, "latency", lambda hops: 10.0 * hops), plan)
    assert found.verdict == "vacuous"
    assert "it cannot fail where processors are free: the plan alone decides it" in found.detail


def test_what_cannot_hold_is_vacuous_too() -> None:
    plan = lab()
    found = verdict(FALLS, measured(plan, "udp", lambda _hops: 47.8), plan)
    assert found.verdict == "vacuous"
    assert "it cannot hold" in found.detail
    assert verdict({**FALLS, "throughput": "level"}, measured(plan, "udp", lambda _: 47.8), plan).verdict == "vacuous"


def test_what_is_measured_otherwise_than_could_be_keeps_its_verdict() -> None:
    plan = lab()
    assert verdict(SUM, measured(plan, "latency", lambda hops: 10.0 * hops + (hops > 1)), plan).verdict == "failed"
    assert verdict(FALLS, measured(plan, "udp", lambda hops: 48.8 - hops), plan).verdict == "held"


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (lab("{rtt: 10ms, rate: 50mbit, jitter: 1ms}"), "held"),
        (lab("{rtt: 10ms, rate: 50mbit, loss: 1%}"), "held"),
        (lab(more=", host: {processor: {frame: 3us}}"), "held"),
        (lab(time="real"), "held"),
    ],
    ids=["jitter", "loss", "processors", "real time"],
)
def test_where_something_else_has_a_part_in_it_it_can_fail(plan: Plan, word: str) -> None:
    assert verdict(SUM, measured(plan, "latency", lambda hops: 10.0 * hops), plan).verdict == word


def test_tcp_is_never_the_plans_alone() -> None:
    plan = lab()
    assert verdict({"throughput": "level", "of": "tcp"}, measured(plan, "tcp", lambda _: 47.0), plan).verdict == "held"


def test_the_jitter_and_loss_of_a_stream_that_is_alone_are_none() -> None:
    plan = lab()
    for name, word in (("stream", "vacuous"), ("crossed", "held")):
        jitter = {"jitter": "bounded", "of": name, "range": "under 0.002 ms"}
        assert verdict(jitter, measured(plan, name, lambda _: 0.001, "jitter_ms"), plan).verdict == word
        loss = {"loss": "bounded", "of": name, "range": "under 0.001 %"}
        assert verdict(loss, measured(plan, name, lambda _: 0.0, "loss_percent"), plan).verdict == word
    more = {"jitter": "bounded", "of": "stream", "range": "over 1 ms"}
    found = verdict(more, measured(plan, "stream", lambda _: 0.001, "jitter_ms"), plan)
    assert (found.verdict, "it cannot hold" in found.detail) == ("vacuous", True)


@pytest.mark.parametrize("time", ["real", "virtual"])
def test_one_hop_has_no_shape_over_hops(time: str) -> None:
    plan = lab(time=time)
    found = verdict({"throughput": "falls-with-hops", "of": "one"}, measured(plan, "one", lambda _: 47.0), plan)
    assert found.verdict == "vacuous"
    assert "all its paths have one length" in found.detail


def test_links_without_a_rate_have_no_ceiling() -> None:
    plan = lab("{rtt: 10ms}", time="real")
    cells = [replace(each, predicted=None) for each in measured(plan, "tcp", lambda _: 900.0)]
    assert verdict({"throughput": "within-ceiling", "of": "tcp"}, cells, plan).verdict == "vacuous"


def test_what_the_file_says_is_believed_and_shown() -> None:
    plan = lab()
    cells = measured(plan, "tcp", lambda _: 47.0)
    found = verdict({"throughput": "level", "of": "tcp", "vacuous": "the window is the limit"}, cells, plan)
    assert found.verdict == "vacuous"
    assert found.detail.startswith("tcp: the window is the limit; ")


def test_in_real_time_fewer_than_five_samples_decide_nothing() -> None:
    plan = lab(time="real")
    cells = [replace(each, values=(40.0,) * 4) for each in measured(plan, "tcp", lambda hops: 40.0 / hops)]
    found = verdict({"throughput": "falls-with-hops", "of": "tcp"}, cells, plan)
    assert found.verdict == "undecided"
    assert found.detail.startswith("tcp: 4 samples, and fewer than 5 decide nothing; ")


def with_samples(name: str, *values: Sequence[float]) -> list[Cell]:
    plan = lab(time="real")
    return [
        replace(cell, values=tuple(own), estimate=estimate(own))
        for cell, own in zip(measured(plan, name, lambda _: 1.0), values, strict=False)
    ]


WITHIN = (46.0, 46.1, 46.2, 46.3, 46.4)


def test_holms_procedure_goes_over_the_claims_of_documents_alone() -> None:
    """One claim of five samples holds at p = 1/32; of two such neither does, and our own is not raised."""
    plan, cells = lab(time="real"), with_samples("one", WITHIN)
    said = {"throughput": "bounded", "of": "one", "range": "40 to 50 Mbit/s"}
    first, second = Claim.model_validate({**said, "source": "a"}), Claim.model_validate({**said, "source": "b"})
    ours = Claim.model_validate(said)
    assert [(each.verdict, each.p) for each in evaluate([first, ours], cells, plan)] == [("held", 1 / 32)] * 2
    found = evaluate([first, second, ours], cells, plan)
    assert [each.verdict for each in found] == ["undecided", "undecided", "held"]
    assert found[0].p == 1 / 16
    alone, together = (
        "by itself it would have held",
        "of 2 sourced claims tested together, p = 0.062 by Holm's procedure",
    )
    assert found[0].detail.endswith(f"; {alone}, but {together}")


def test_of_several_figures_one_that_misses_by_chance_does_not_fail_the_claim() -> None:
    cells = [each for _ in range(4) for each in with_samples("one", WITHIN)]
    plan, said = lab(time="real"), {"throughput": "bounded", "of": "one", "range": "40 to 46.25 Mbit/s"}
    assert verdict(said, cells[:1], plan).verdict == "undecided"
    above = with_samples("one", tuple(value + 10 for value in WITHIN))
    assert verdict(said, above, plan).verdict == "failed"
    assert verdict({**said, "range": "40 to 50 Mbit/s"}, [*cells, *above], plan).verdict == "undecided"


def test_a_range_that_was_changed_after_the_run_says_so() -> None:
    plan, cells = lab(time="real"), with_samples("one", WITHIN)
    before = Claim.model_validate({"throughput": "bounded", "of": "one", "range": "40 to 44 Mbit/s"})
    after = before.model_copy(
        update={
            "range": Claim.model_validate(
                {**before.model_dump(exclude_none=True, by_alias=True), "range": "40 to 50 Mbit/s"}
            ).range
        }
    )
    explained = after.model_copy(update={"text": "in other words", "source": "report 1"})
    assert after.digest == explained.digest != before.digest
    [found] = evaluate([after], cells, plan, fixed=[before.digest])
    assert found.changed
    assert found.detail.endswith("; the claim was changed after the run")
    [found] = evaluate([after], cells, plan, fixed=[after.digest])
    assert not found.changed
    [found] = evaluate([after], cells, plan)  # a folder of before has no sums
    assert not found.changed


def test_of_several_labs_those_in_which_it_is_vacuous_say_nothing() -> None:
    assert combine(["vacuous", "held"]) == "held"
    assert combine(["vacuous", "vacuous"]) == "vacuous"
    assert combine(["vacuous", "failed", "held"]) == "failed"


def test_a_sum_of_segments_cannot_hold_where_the_programs_own_calls_take_time() -> None:
    plan = lab(more=", host: {processor: {frame: 3us, call: 16us}}")
    found = verdict(SUM, measured(plan, "latency", lambda hops: 10.0 * hops), plan)
    assert found.verdict == "vacuous"
    assert "a system call takes 16 µs" in found.detail
