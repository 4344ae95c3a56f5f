"""Links whose packets take seconds, and links that lose all of them: a lab comes up with them, and is certified."""

from __future__ import annotations

import pytest

from live.conftest import MakeLab, quiet
from minigts import overlays
from minigts.fidelity import measure
from minigts.fidelity.certificate import Row
from minigts.fidelity.expectations import check
from minigts.fidelity.measure import LOSES_ALL, certify
from minigts.lab import Lab

pytestmark = pytest.mark.virtual

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
    assert certificate.ok, certificate.in_words()
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


def test_a_rate_that_the_hosts_windows_cannot_fill_is_held_against_what_they_carry(make_lab: MakeLab) -> None:
    lab = make_lab(LONG_AND_FAT)
    row, expected = (row for row in check(lab, quiet).rows if row.quantity.startswith("TCP"))
    assert row.measured is not None
    assert row.measured < 0.9 * row.declared
    assert row.ok, row.in_words()
    assert "the hosts' TCP buffers are the limit" in row.note
    path = lab.plan.path("h1", "h2")
    assert expected.measured is not None
    assert path.tcp_least_mbit is not None
    assert path.tcp_ceiling_mbit is not None
    assert path.tcp_least_mbit <= expected.measured <= path.tcp_ceiling_mbit < 0.4 * row.declared
    assert (expected.ok, "as the hosts' TCP buffers have it" in expected.wanted) == (True, True)


FAST = """
name: fast
hosts: {h1: {}, h2: {}, h3: {}}
links:
  - {ends: [h1, h2], rtt: 2ms, rate: 2.5gbit}
  - {ends: [h2, h3], rtt: 0.2ms, rate: 1.2gbit}
"""


def test_fast_links_are_certified_in_fractions_of_a_second(make_lab: MakeLab) -> None:
    """A second after a second of slow start for each would carry five times as much."""
    lab = make_lab(FAST)
    before_s, rows = _up_s(lab), certify(lab, quiet).rows
    rates = [row for row in rows if row.quantity.startswith("TCP")]
    assert [(row.title, row.ok) for row in rates] == [("h1-h2", True), ("h2-h3", True)], rows
    assert _up_s(lab) - before_s < 2.5


FAST_AND_FAR = "name: fast\npair: {hosts: [h1, h2], link: {rtt: 53ms, rate: 1.2gbit}}\n"


def test_a_fast_link_that_is_far_is_measured_once_and_then_for_longer(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, steps = make_lab(FAST_AND_FAR), list[str]()

    def rate() -> Row:
        return next(row for row in certify(lab, steps.append).rows if row.quantity.startswith("TCP"))

    once = rate()
    assert (once.ok, "the hosts' TCP buffers are the limit" in once.note) == (True, True), once
    assert not [step for step in steps if "longer" in step]
    monkeypatch.setattr(measure, "SETUP_ROUND_TRIPS", -20)  # the client is ended before anything is counted
    longer = rate()
    assert (longer.ok, "the hosts' TCP buffers are the limit" in longer.note) == (True, True), longer
    assert [step for step in steps if "longer" in step]


def _up_s(lab: Lab) -> float:
    return float(lab.provider.run("h1", ["cat", "/proc/uptime"], timeout_s=60).stdout.split()[0])
