"""Routes that a file gives single hosts: what hosts have, what is read back, and the round trips of other ways back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from live.exact import EXACT_MS
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab, routes
from minigts.lab.calibration import probe
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
ROUNDED_MS = 0.001
"""What ping rounds its figures to."""
FILE = """name: static-routes
ipv6: true
defaults: {link: {delay: 2ms, rate: 50mbit}}
hosts:
  a: {routes: {d: c, 10.9.0.0/16: b}}
  b: {run: [ip address add 10.9.0.1/32 dev lo]}
  c:
  d:
links:
  - {ends: [a, b]}
  - {ends: [a, c], delay: 7ms}
  - {ends: [b, d], rate: 20mbit}
  - {ends: [c, d]}
expect: [{latency: sum-of-segments}]
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(parse(FILE, "static.yaml", time="virtual"), "uml", None, quiet)
    yield made
    take_down(made)


def test_the_certificate_reads_the_routes_back_and_the_sum_of_segments_holds(lab: Lab) -> None:
    assert all(routes.differences(lab, host, lab.read_record()) == [] for host in lab.plan.hosts)
    certificate = measure.certify(lab, quiet)
    assert [(row.subject, row.quantity, row.note) for row in certificate.rows if row.ok is False] == []
    (row,) = (row for row in certificate.rows if (row.subject, row.quantity) == ("a-d", "RTT"))
    assert row.declared == pytest.approx(echo_ms(lab.plan, lab.plan.path("a", "d")), abs=EXACT_MS)


def test_the_way_back_is_another_over_ipv4(lab: Lab) -> None:
    path = lab.plan.path("a", "d")
    assert (path.each_there, path.each_back) == ((("a-c", "c-d"),), (("b-d", "a-b"),))
    measured_ms = min(probe(lab.provider, "a", lab.plan.address_over(path), count=4).rtts_ms)
    assert measured_ms == pytest.approx(echo_ms(lab.plan, path), abs=EXACT_MS)


def test_and_over_ipv6(lab: Lab) -> None:
    beside = lab.plan.ipv6_of("d")
    assert beside is not None
    argv = ["ping", "-q", "-c", "4", "-i", "0.2", beside.address]
    shown = user_text(lab.provider.run("a", argv, timeout_s=LIMIT_S).stdout)
    least_ms = float(shown.partition("min/avg/max/mdev = ")[2].partition("/")[0])
    larger_header_ms = 20 * 8 * (3 / 50e3 + 1 / 20e3)
    wanted_ms = echo_ms(lab.plan, lab.plan.path("a", "d")) + larger_header_ms
    assert least_ms == pytest.approx(wanted_ms, abs=EXACT_MS + ROUNDED_MS)


def test_a_network_outside_of_the_plan_is_reached_by_the_neighbour(lab: Lab) -> None:
    measured_ms = min(probe(lab.provider, "a", "10.9.0.1", count=3).rtts_ms)
    assert measured_ms == pytest.approx(echo_ms(lab.plan, lab.plan.path("a", "b")), abs=EXACT_MS)


def test_a_route_that_somebody_changes_is_found(lab: Lab) -> None:
    wanted = next(each for each in lab.plan.routes_of("a") if each.to == f"{lab.plan.host('d').address}/32")
    b = next(far.address for _, other, far in lab.plan.neighbours(lab.plan.host("a")) if other.name == "b")
    change = ["ip", "route", "replace", wanted.to, "via", b, "src", wanted.source]
    lab.provider.run("a", change, timeout_s=LIMIT_S)
    (row,) = (row for row in measure.settings(lab, quiet) if row.subject == "a")
    assert row.ok is False
    assert f"should go by {wanted.via}" in row.note
