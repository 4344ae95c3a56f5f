"""The rows of a topology's `expect:`: which there will be, what each says, and what is there without a measurement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from minigts.fidelity import expectations
from minigts.fidelity.certificate import CertificateRow
from minigts.fidelity.expectations import Expected, Measurements, expected_rows, row_of, single_expectations
from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.tolerances import rate
from minigts.lab import Lab
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

CHAIN = """\
name: row
time: {time}
chain: {{hosts: [ams, bra, lon], link: {{rtt: 10ms{rate}}}}}
expect:
  - {{latency: as-declared}}
  - {{latency: sum-of-segments}}
  - {{throughput: within-ceiling}}
  - {{throughput: level}}
"""
RTTS_MS = {"ams-bra": 10.01, "bra-lon": 10.02, "ams-lon": 20.031}


def planned(*, rated: bool = True, time: str = "real") -> Plan:
    return parse(CHAIN.format(time=time, rate=", rate: 50mbit" if rated else ""), "row.yaml")


def measured(plan: Plan, rtts_ms: dict[str, float] = RTTS_MS, **mbit: float) -> Measurements:
    """As if each round trip had been measured by the certificate, and TCP now, by target."""
    lab = SimpleNamespace(plan=plan, read_record=lambda: SimpleNamespace(cut=frozenset(), silent=frozenset()))
    declared_ms = {"ams-lon": 20.0}
    rows = [
        CertificateRow(
            subject=name,
            quantity="RTT",
            unit="ms",
            declared=declared_ms.get(name, 10.0),
            measured=value,
            tolerance=0.5,
            ok=True,
            p99=value + 1,
        )
        for name, value in rtts_ms.items()
    ]
    made = Measurements(cast(Lab, lab), lambda _: None, rows)
    paths = {path.target: path for path in plan.paths if path.source == "ams"}
    made.__dict__["throughputs"] = tuple(
        PathSamples(
            source="ams",
            target=target,
            hops=paths[target].hops,
            unit="Mbit/s",
            estimate=measured_once(value, rate(plan)),
            predicted=paths[target].tcp_ceiling_mbit,
            predicted_least=paths[target].tcp_least_mbit,
        )
        for target, value in mbit.items()
    )
    return made


def by_title(rows: Any) -> dict[str, CertificateRow]:
    return {f"{row.subject}: {row.quantity}": row for row in rows}


def test_each_expectation_is_named_before_anything_is_measured() -> None:
    assert [str(each) for each in single_expectations(planned())] == [
        "latency: as-declared: ams-bra",
        "latency: as-declared: bra-lon",
        "latency: as-declared: ams-lon",
        "latency: sum-of-segments: ams-lon",
        "throughput: within-ceiling: ams-bra",
        "throughput: within-ceiling: ams-lon",
        "throughput: level",
    ]


def test_every_named_expectation_has_its_row() -> None:
    plan = planned()
    made = measured(plan, bra=47.0, lon=46.9)
    rows = {str(each): row_of(plan, each, made) for each in single_expectations(plan)}
    assert None not in rows.values()
    assert rows["latency: as-declared: bra-lon"] is not None
    assert rows["latency: as-declared: bra-lon"].measured == RTTS_MS["bra-lon"]
    assert row_of(plan, Expected("latency", "as-declared", "bra-ams"), made) is None


def test_hops_and_kinds_of_measured_round_trips_are_those_of_the_plan() -> None:
    cells = measured(planned()).latencies
    assert [(cell.source, cell.target, cell.hops, cell.kind, cell.predicted, cell.p99) for cell in cells] == [
        ("ams", "bra", 1, "segment", 10.0, RTTS_MS["ams-bra"] + 1),
        ("bra", "lon", 1, "segment", 10.0, RTTS_MS["bra-lon"] + 1),
        ("ams", "lon", 2, "path", 20.0, RTTS_MS["ams-lon"] + 1),
    ]
    assert {cell.unit for cell in cells} == {"ms"}


@pytest.mark.parametrize(("over_two_ms", "holds"), [(20.031, True), (25.0, False)])
def test_the_sum_of_segments_is_held_against_what_the_segments_measured(over_two_ms: float, holds: bool) -> None:
    plan = planned()
    made = measured(plan, {**RTTS_MS, "ams-lon": over_two_ms}, bra=47.0, lon=46.9)
    row = by_title(expected_rows(plan, made))["ams-lon: RTT, sum of segments"]
    assert (row.declared, row.measured, row.ok, row.unit) == (20.03, over_two_ms, holds, "ms")
    assert row.wanted.startswith("the segments' 20.0300 ± ")


def test_of_each_path_tcp_is_held_against_its_ceiling() -> None:
    plan = planned()
    rows = by_title(expected_rows(plan, measured(plan, bra=47.0, lon=20.0)))
    assert [(title, row.ok) for title, row in rows.items() if "hop" in title] == [
        ("ams-bra: TCP over 1 hop", True),
        ("ams-lon: TCP over 2 hops", False),
    ]
    shape = rows["ams-lon: TCP, level"]
    assert (shape.ok, shape.declared, shape.measured, shape.unit) == (False, 47.0, 20.0, "Mbit/s")
    assert shape.wanted == "level against 47 over 1 hop"


def test_a_path_whose_tcp_was_not_measured_is_a_row_that_fails_with_the_reason() -> None:
    plan = planned()
    made = measured(plan, bra=47.0)
    made.notes["ams-lon"] = "iperf3: connection refused"
    row = by_title(expected_rows(plan, made))["ams-lon: TCP"]
    assert (row.ok, row.measured, row.unit, row.note) == (False, None, "Mbit/s", "iperf3: connection refused")


@pytest.mark.parametrize(("rated", "undecided"), [(False, True), (True, False)])
def test_in_virtual_time_tcp_over_links_without_a_rate_says_nothing(rated: bool, undecided: bool) -> None:
    """So the row is about the lab, of the quantity that was asked for."""
    plan = planned(rated=rated, time="virtual")
    rows = by_title(expected_rows(plan, measured(plan, bra=47.0, lon=46.9)))
    assert ("row: TCP, within-ceiling" in rows) == undecided
    if undecided:
        row = rows["row: TCP, within-ceiling"]
        assert (row.ok, row.measured, row.unit, row.wanted) == (None, None, "Mbit/s", "within-ceiling")
        assert "no link declares a rate" in row.note
        assert "throughput: within-ceiling" in [str(each) for each in single_expectations(plan)]


@pytest.mark.parametrize("changed", [False, True])
def test_a_path_without_any_limit_is_not_measured_since_tcp_would_hardly_end(
    changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its links had a rate, which a change has taken away, the row says so."""
    links = "links: [{ends: [a, b]%s}, {ends: [a, c], rate: 50mbit}]"
    head = "name: row\ntime: virtual\nhosts: {a: , b: , c: }\nexpect: [{throughput: within-ceiling}]\n"
    now = parse(head + links % "", "row.yaml")
    plan = parse(head + links % ", rate: 9mbit", "row.yaml") if changed else now
    record = SimpleNamespace(cut=frozenset(), silent=frozenset())
    measured = Measurements(cast(Lab, SimpleNamespace(plan=plan, read_record=lambda: record)), lambda _: None)
    asked: list[str] = []

    def tcp_mbit(_lab: Lab, way: Any, **_: int) -> tuple[float, str]:
        asked.append(way.target)
        return 47.0, ""

    monkeypatch.setattr(expectations, "tcp_mbit", tcp_mbit)
    monkeypatch.setattr(expectations, "plan_now", lambda _plan, _record: now)
    rows = by_title(expected_rows(plan, measured))
    assert asked == ["c"]
    assert rows["a-c: TCP over 1 hop"].ok
    assert ("a-b: TCP" in rows) == changed
    assert not changed or "a to b: nothing limits TCP:" in rows["a-b: TCP"].note
