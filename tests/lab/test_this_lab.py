"""The lab that is up is what its topology says; with none up, topologies/chain6.yaml in virtual time.

minigts up topologies/pair.yaml      # or: TOPOLOGY=topologies/pair.yaml vagrant up
pytest tests/
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minigts import api
from minigts.api.measured import EXACT_MS
from minigts.fidelity import expectations
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.expectations import Expected, Measurements
from minigts.judge.registry import WORDS
from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.tolerances import CEILING, rate
from minigts.tools.cpu_bound import is_modelled
from minigts.topology.plan.elements import Path

pytestmark = pytest.mark.timeout(900)  # virtual machines whose processors are emulated take minutes to come up


def require_whole(lab: api.Lab, path: Path) -> None:
    """A path over a link that the user has cut is not measured."""
    cut = lab.cut.intersection(path.links)
    if cut:
        pytest.skip(f"{', '.join(sorted(cut))} is cut; to restore it: minigts link")


def test_rtt_is_the_sum_of_its_segments(
    lab: api.Lab,
    round_trip: Callable[[str, str, str], api.RoundTrips],
    machine_ms: float,
    over: str,
    path: Path,
) -> None:
    """Against what is declared, and against what the segments themselves were measured to take."""
    require_whole(lab, path)
    ends = {link.name: link.ends for link in lab.plan.links}
    hosts = {host.name for host in lab.plan.hosts}

    whole = round_trip(over, path.source, path.target)
    assert whole.lost == 0 or path.loss_percent, f"{whole}"
    assert abs(whole.median_ms - whole.expected_ms) <= whole.tolerance_ms + machine_ms, f"{whole}"

    if path.hops > 1 and all(hosts.issuperset(ends[name]) for name in path.links):
        segments = [round_trip(over, *ends[name]) for name in path.links]
        sum_ms = sum(segment.median_ms for segment in segments)
        allowed_ms = whole.tolerance_ms + (len(segments) - 1) * (machine_ms or EXACT_MS)
        assert abs(whole.median_ms - sum_ms) <= allowed_ms, f"{whole}; its segments took {sum_ms:.4f} ms"


def test_expect(lab: api.Lab, measurements: Measurements, expected: Expected) -> None:
    """What the topology's own `expect:` says."""
    row = expectations.row_of(lab.plan, expected, measurements)
    if row is None:
        pytest.skip("a link on its way is cut; to restore it: minigts link")
    if row.ok is None:
        pytest.skip(f"undecided: {row.note or row.sentence()}")
    assert row.ok, f"{row.subject}: {row.quantity}: {row.sentence()}" + (f"; {row.note}" if row.note else "")


def test_throughput_keeps_to_its_ceiling(
    lab: api.Lab, flow: Callable[[str, str, str], api.Throughput], over: str, path: Path
) -> None:
    """TCP reaches what the plan allows, and no more. In real time this machine may be what limits it."""
    require_whole(lab, path)
    if path.loss_percent:
        pytest.skip("TCP gives way to the loss that is declared")
    if path.rate_mbit is None:
        pytest.skip("no link on its way declares a rate")
    arrived = flow(over, path.source, path.target)
    assert arrived.ceiling_mbit is not None
    assert arrived.mbit <= CEILING.high * arrived.ceiling_mbit, f"{arrived}"
    if lab.time == "virtual" and not is_modelled(lab.plan, path):
        assert arrived.reaches_ceiling, f"{arrived}"


def test_throughput_trend_over_the_hops(
    lab: api.Lab, flow: Callable[[str, str, str], api.Throughput], over: str, flows: list[Path]
) -> None:
    """As a share of each path's ceiling it is level where links are the limit, and never rises where hosts may be."""
    whole = [path for path in flows if lab.cut.isdisjoint(path.links) and not path.loss_percent]
    if len({path.hops for path in whole}) < 2:
        pytest.skip("all paths from the first host that are whole and declare no loss have the same number of hops")
    rated = all(path.rate_mbit is not None for path in whole)
    modelled = any(is_modelled(lab.plan, path) for path in whole)
    if lab.time == "virtual" and not rated and not modelled:
        pytest.skip("in virtual time, where the processor is free, a link without a rate has no throughput")
    cells = [cell(lab, flow(over, path.source, path.target), path, rated=rated) for path in whole]
    words = ("level",) if lab.time == "virtual" and rated and not modelled else ("level", "falls-with-hops")
    judgements = [WORDS[word](cells, lab.plan) for word in words]
    assert "held" in {each.word for each in judgements}, f"over {over}: {judgements[0].detail}"


def cell(lab: api.Lab, arrived: api.Throughput, path: Path, *, rated: bool) -> PathSamples:
    share = arrived.mbit / arrived.ceiling_mbit if rated and arrived.ceiling_mbit else None
    value, unit = (arrived.mbit, "Mbit/s") if share is None else (100 * share, "% of the ceiling")
    once = measured_once(value, rate(lab.plan))
    return PathSamples(source=path.source, target=path.target, hops=path.hops, unit=unit, estimate=once)


def test_certificate(certificate: Certificate, machine_ms: float, certified: str) -> None:
    """Every host shows what is set, and every link takes, loses and carries what is declared."""
    rows = [row for row in certificate.rows if row.quantity == certified]
    if all(row.ok is None for row in rows):
        pytest.skip("the topology declares nothing of it that can be judged")
    spare = machine_ms if certified == "RTT" else 0.0
    outside = [
        f"{row.subject}: {row.sentence()} {row.note}".strip()
        for row in rows
        if row.ok is False
        and (row.measured is None or abs(row.measured - row.declared) > row.tolerance + spare or not spare)
    ]
    assert outside == [], "; ".join(certificate.busy)
