"""The lab that `pytest tests/` tests, and what is measured of it: each figure when the first test asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest

from live.real_time import ends_ms
from minigts import api
from minigts.api.measured import PLAIN_HOSTS
from minigts.fidelity import expectations
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.expectations import Measurements
from minigts.fidelity.host_load import recording, taints
from minigts.fidelity.round_trips import ATTEMPTS
from minigts.overlays import UNDERLAY
from minigts.testing.plugin import targets
from minigts.testing.tested_lab import Target
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan

HERE = FilePath(__file__).parent
MOST_PATHS = 200
"""Labs of more pairs of hosts are tested from the first host on alone."""
CERTIFIED = ("settings", "RTT", "loss", "TCP")

RoundTripsOf = Callable[[str, str, str], api.RoundTrips]
FlowOf = Callable[[str, str, str], api.Throughput]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Among all tests of the project, those that bring a lab up in virtual time are such as need it."""
    for item in items if config.getoption("--all-tests") else ():
        if item.path.parent == HERE:
            item.add_marker("virtual")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cases are the lab's own: its paths, over plain hosts and over its overlay, and what its file expects."""
    if "minigts_target" not in metafunc.fixturenames:
        return
    target = targets(metafunc.config)[0]
    plan = target.plan
    if "path" in metafunc.fixturenames:
        chosen = _one_for_each_hop_count if "flow" in metafunc.fixturenames else _pairs
        pairs = [(over, path) for over in networks(target) for path in chosen(plan, over)]
        ids = [_id(over, f"{path.source}-{path.target}") for over, path in pairs]
        metafunc.parametrize(("over", "path"), pairs, ids=ids)
    if "flows" in metafunc.fixturenames:
        cases = [(over, _one_for_each_hop_count(plan, over)) for over in networks(target)]
        metafunc.parametrize(("over", "flows"), cases, ids=[over for over, _ in cases])
    if "expected" in metafunc.fixturenames:
        metafunc.parametrize("expected", expectations.single_expectations(plan), ids=str)
    if "certified" in metafunc.fixturenames:
        metafunc.parametrize("certified", CERTIFIED)


def networks(target: Target) -> list[str]:
    """Over what is measured: plain hosts, and the overlay where there is one."""
    return [PLAIN_HOSTS, *([target.overlay] if target.overlay not in ("", UNDERLAY) else [])]


def _id(over: str, path: str) -> str:
    return path if over == PLAIN_HOSTS else f"{over}: {path}"


def _pairs(plan: Plan, over: str) -> list[Path]:
    found = [path for path in plan.paths if path.reachable or over != PLAIN_HOSTS]
    return found if len(found) <= MOST_PATHS else [path for path in found if path.source == plan.hosts[0].name]


def _one_for_each_hop_count(plan: Plan, over: str) -> list[Path]:
    own = [path for path in _pairs(plan, over) if path.source == plan.hosts[0].name]
    return sorted({path.hops: path for path in reversed(own)}.values(), key=lambda path: path.hops)


@pytest.fixture(scope="module")
def lab(minigts_target: Target, minigts_bring_up: Callable[[Target], Any]) -> Iterator[api.Lab]:
    """The lab that is tested: it goes down before other tests of the project begin."""
    with minigts_bring_up(minigts_target) as made:
        yield made


@pytest.fixture(scope="module")
def certificate(lab: api.Lab) -> Certificate:
    """The one of a lab that has just come up, else a new one."""
    return lab.certificate(anew=not lab.ours)


@pytest.fixture(scope="module")
def measurements(lab: api.Lab, certificate: Certificate) -> Measurements:
    return lab.expectations(certificate)


@pytest.fixture(scope="module")
def machine_ms(lab: api.Lab) -> float:
    """What the ends of a path may add where their processors are emulated."""
    return ends_ms(lab._lab)


@pytest.fixture(scope="module")
def round_trip(lab: api.Lab) -> RoundTripsOf:
    """Round trips over a network, from host to host, each measured once; in real time, as in the certificate, again
    while they are outside their tolerance.
    """
    seen: dict[tuple[str, str, str], api.RoundTrips] = {}

    def measured(over: str, source: str, target: str) -> api.RoundTrips:
        for _ in range(1 if lab.time == "virtual" else ATTEMPTS):
            if (over, source, target) not in seen or not seen[over, source, target].as_expected:
                seen[over, source, target] = lab.rtt(source, target, containers=over != PLAIN_HOSTS)
        return seen[over, source, target]

    return measured


@pytest.fixture(scope="module")
def flow(lab: api.Lab, measurements: Measurements) -> FlowOf:
    """TCP over a network, from the first host to another, each measured once: over plain hosts as `minigts check` does,
    over an overlay when it has left slow start and its first losses. In real time again while other programs take the
    machine's processors, as an experiment's samples.
    """
    seen: dict[tuple[str, str], api.Throughput] = {}

    def measured(over: str, source: str, target: str) -> api.Throughput:
        if over == PLAIN_HOSTS:
            cells = {(each.source, each.target): each for each in measurements.throughputs}
            assert (source, target) in cells, measurements.notes[f"{source}-{target}"]
            cell = cells[source, target]
            return api.Throughput(source, target, over, cell.estimate.median, cell.predicted)
        if (source, target) not in seen:
            slow_start_s = max(2, math.ceil(50 * lab.plan.path(source, target).rtt_ms / 1000))
            for _ in range(1 if lab.time == "virtual" else ATTEMPTS):
                with recording(lab._lab.provider.processes(), lab.time) as machine:
                    seen[source, target] = lab.throughput(source, target, containers=True, slow_start_s=slow_start_s)
                if not taints(machine.load):
                    break
        return seen[source, target]

    return measured
