"""Links whose packets take seconds, and links that lose all of them: a lab comes up with them, and is certified."""

from __future__ import annotations

import pytest

from live.conftest import MakeLab, quiet
from minigts import overlays
from minigts.dataplane.wire import wire_for
from minigts.fidelity import rates
from minigts.fidelity.expectations import check
from minigts.fidelity.measure import certify
from minigts.fidelity.round_trips import LOSES_ALL
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.current import link_carrier

pytestmark = [pytest.mark.touched("tools/minigts/dataplane", "tools/minigts/fidelity"), pytest.mark.virtual]

FAR = """
name: far
hosts: {h1: {}, h2: {}, h3: {}, h4: {}}
links:
  - {ends: [h1, h2], rtt: 300ms, rate: 10mbit}
  - {ends: [h2, h3], rtt: 4s}
  - {ends: [h3, h4], rtt: 20ms, loss: {to: 100%, from: 0%}}
"""


def test_long_round_trips_and_a_link_that_loses_all_are_certified(make_lab: MakeLab) -> None:
    lab = make_lab(FAR)
    certificate = certify(lab, quiet)
    assert certificate.ok, certificate.summary()
    rows = {(row.title, row.quantity): row for row in certificate.rows}
    assert rows["h1-h2", "RTT"].measured == pytest.approx(300.16, abs=0.01)
    assert rows["h2-h3", "RTT"].measured == pytest.approx(4000, abs=1)
    assert rows["h2-h3", "loss"].measured == 0
    assert (rows["h3-h4", "RTT"].ok, rows["h3-h4", "RTT"].note) == (None, LOSES_ALL)
    assert rows["h3-h4, h3 to h4", "loss"].measured == 100
    assert {end.host for end in overlays.join(lab, "none", quiet).values()} == {"h1", "h2", "h3", "h4"}


LONG_AND_FAT = (
    "name: fat\npair: {hosts: [h1, h2], link: {rtt: 100ms, rate: 1gbit}}\nexpect: [{throughput: within-ceiling}]\n"
)


@pytest.mark.nightly
def test_a_rate_that_the_hosts_windows_cannot_fill_is_held_against_what_they_carry(make_lab: MakeLab) -> None:
    lab = make_lab(LONG_AND_FAT)
    row, expected = (row for row in check(lab, quiet).rows if row.quantity.startswith("TCP"))
    assert row.measured is not None
    assert row.measured < 0.9 * row.declared
    assert row.ok, row.sentence()
    assert "the hosts' TCP buffers are the limit" in row.note
    path = lab.plan.path("h1", "h2")
    assert expected.measured is not None
    assert path.tcp_least_mbit is not None
    assert path.tcp_ceiling_mbit is not None
    assert path.tcp_least_mbit <= expected.measured <= path.tcp_ceiling_mbit < 0.4 * row.declared
    assert (expected.ok, "as the hosts' TCP buffers have it" in expected.wanted) == (True, True)


TRAINS = """
name: fast
hosts: {h1: {}, h2: {}, h3: {}, h4: {}}
links:
  - {ends: [h1, h2], rtt: 53ms, rate: 10gbit}
  - {ends: [h2, h3], rtt: 0.2ms, rate: 1.2gbit, queue: 20kB}
  - {ends: [h3, h4], rate: 100gbit, mtu: 9000}
"""


def test_trains_of_frames_measure_fast_links(make_lab: MakeLab) -> None:
    """They take milliseconds of the lab's time, where TCP has to get through its slow start."""
    lab = make_lab(TRAINS)
    before_s, rows = _up_s(lab), certify(lab, quiet).rows
    rates = {row.title: row for row in rows if row.quantity == "rate"}
    assert [*rates] == ["h1-h2", "h2-h3", "h3-h4"], rows
    for row, declared in zip(rates.values(), (10_000, 1200, 100_000), strict=True):
        assert (row.declared, row.ok) == (declared, True), row
        assert row.measured == pytest.approx(declared, rel=0.01)
    assert rates["h2-h3"].note == "by a train of 13 frames"
    assert _up_s(lab) - before_s < 4


def test_a_train_shows_a_wire_that_is_three_percent_slower_than_declared(make_lab: MakeLab) -> None:
    lab = make_lab(TRAINS)
    carries = link_carrier(lab)
    assert carries is not None
    for host, port in (("h1", "eth1"), ("h2", "eth1")):
        declared = next(each for each in lab.plan.machine(host).ports if each.name == port).outgoing
        assert declared.rate_mbit == 10_000
        carries.set_wires({(host, port): wire_for(declared.model_copy(update={"rate_mbit": 9700.0}))})
    rates = {row.title: row for row in certify(lab, quiet).rows if row.quantity == "rate"}
    assert (rates["h1-h2"].ok, rates["h1-h2"].measured) == (False, pytest.approx(9700, rel=0.01))
    assert [rates[name].ok for name in ("h2-h3", "h3-h4")] == [True, True]


@pytest.mark.nightly
def test_where_the_first_measurement_fails_the_second_is_judged_by_the_windows_too(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, steps, measured = make_lab(LONG_AND_FAT), list[str](), rates.tcp_mbit
    failing = iter([(None, "iperf3: printed nothing")])
    monkeypatch.setattr(rates, "tcp_mbit", lambda lab, way: next(failing, None) or measured(lab, way))
    (row,) = (row for row in certify(lab, steps.append).rows if row.quantity == "TCP")
    assert [step for step in steps if "for longer" in step]
    assert (row.ok, "the hosts' TCP buffers are the limit" in row.note) == (True, True), row


def _up_s(lab: Lab) -> float:
    return float(user_text(lab.provider.run("h1", ["cat", "/proc/uptime"], timeout_s=60).stdout).split()[0])
