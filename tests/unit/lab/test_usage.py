"""What lies between two readings of a lab's counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tc_hosts
from experiment_lab import recorded

from fake_lab import Answering, fake_lab
from minigts import lab as labs
from minigts.lab import Lab, usage
from minigts.lab.usage import Carried, Reading, Used
from minigts.topology.read.load import parse

COUNTERS = """1795418501202107663
cpu  10 0 290 1300 20 0 30 0 0 0
MemTotal:         500000 kB
MemAvailable:     480000 kB
  lo:  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0
  eth1:  292991  5610  0  0  0  0  0  0 71065354  47221  0  0  0  0  0  0
[{"kind":"tbf","dev":"eth1","drops":7,"backlog":4500},{"dev":"eth1","drops":0},{"kind":"netem","dev":"ifb-eth1","drops":3}]
"""
TEXT = "name: two\npair: {hosts: [ams, bra], link: {rtt: 2ms, rate: 50mbit}}\n"
SECOND_NS = 1_000_000_000
DROPS, MARKS = [841, 1244, 856, 863, 833], [43, 0, 3, 13, 1530]
"""Of hub's ports, as `tc -s qdisc` has them in recorded/counters-queues.txt."""


def test_what_a_host_prints_is_read() -> None:
    found = usage.parse_counters(COUNTERS)
    assert found.at_ns == 1795418501202107663
    assert found.used == Used((330, 1650), (20000 * 1024, 500000 * 1024))
    assert found.sent == {"lo": (0, 0), "eth1": (71065354, 47221)}
    assert found.drops == {"eth1": 7, "ifb-eth1": 3}
    assert found.queued == {"eth1": 4500, "ifb-eth1": 0}


def test_the_disciplines_of_a_host_have_their_drops_and_marks() -> None:
    """codel, fq_codel, cake, red and fq on eth1 to eth5: each counts its marks in its own words."""
    found = usage.parse_counters(recorded("counters-queues.txt"))
    ports = [f"eth{number}" for number in range(1, 6)]
    assert [found.drops[port] for port in ports] == DROPS
    assert [found.marks[port] for port in ports] == MARKS
    assert [found.queued[port] for port in ports] == [1514, 40878, 0, 0, 0]


def test_a_direction_with_a_wire_has_the_drops_of_both_queues() -> None:
    counted = usage.parse_counters(recorded("counters-queues.txt"))
    passed = usage._with_host(Carried(1000, 10, 2, 3, 5, 4), replace(counted, queued={"eth1": 700}), "eth1")
    assert passed == Carried(1000, 10, 2 + DROPS[0], 3, 705, 4, MARKS[0])
    assert usage._with_host(Carried(1, 1, 0, 0), counted, "eth9") == Carried(1, 1, 0, 0)


@pytest.mark.parametrize("lines", [0, 1, 3, 6])
def test_half_of_it_is_no_reading(lines: int) -> None:
    with pytest.raises((ValueError, IndexError, KeyError)):
        usage.parse_counters("\n".join(COUNTERS.splitlines()[:lines]))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    tc_hosts.use(monkeypatch, tmp_path)
    return labs.up(parse(TEXT, "two.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)


BEFORE = Reading(
    at_ns={"ams": 7 * SECOND_NS, "bra": 7 * SECOND_NS},
    carried={("ams", "ams-bra"): Carried(1000, 10, 1, 2, marked=1), ("bra", "ams-bra"): Carried(500, 5, 0, 0)},
    used={"ams": Used((10, 100), (1, 4)), "bra": Used((10, 100), (1, 4))},
)
AFTER = Reading(
    at_ns={"ams": 9 * SECOND_NS, "bra": 9 * SECOND_NS},
    carried={("ams", "ams-bra"): Carried(1_251_000, 1010, 4, 4, marked=8), ("bra", "ams-bra"): Carried(500, 5, 0, 0)},
    used={"ams": Used((60, 300), (3, 4)), "bra": Used((10, 300), (1, 4))},
)


class OfOneKernel(Answering):
    """Hosts that cannot be restarted alone."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        return (0, COUNTERS) if argv[-1] == usage.COUNTERS else (127, "")


def test_a_host_shows_what_it_uses_where_it_has_a_kernel_of_its_own(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hosts that share a kernel, each would show what all of them use."""
    reading = usage.read(lab)
    assert [load.host for load in usage.activity_between(lab, reading, reading).loads] == ["ams", "bra"]
    together = fake_lab(lab.plan, tmp_path / "shared", monkeypatch, OfOneKernel)
    reading = usage.read(together)
    found = usage.activity_between(together, reading, reading)
    assert ([flow.source for flow in found.flows], found.loads) == (["ams", "bra"], ())


def test_rates_are_by_the_labs_seconds(lab: Lab) -> None:
    found = usage.activity_between(lab, BEFORE, AFTER)
    there, back = found.flows
    assert (found.seconds, there.mbit, there.frames, there.dropped, there.lost) == (2.0, 5.0, 500.0, 3, 2)
    assert (there.rate_mbit, there.outage, there.marked, back.marked) == (50.0, "", 7, 0)
    assert (back.mbit, back.frames) == (0.0, 0.0)
    assert [(load.host, load.processor, load.memory_bytes) for load in found.loads] == [
        ("ams", 0.25, 3),
        ("bra", 0.0, 1),
    ]


def test_counters_that_began_anew_are_no_negative_rates(lab: Lab) -> None:
    found = usage.activity_between(lab, AFTER, replace(BEFORE, at_ns=AFTER.at_ns))
    assert {flow.mbit for flow in found.flows} == {0.0}
    assert {flow.lost for flow in found.flows} == {0}


def test_time_that_stood_still_gives_no_rates(lab: Lab) -> None:
    found = usage.activity_between(lab, BEFORE, replace(AFTER, at_ns=BEFORE.at_ns))
    assert found.seconds == 0
    assert {flow.mbit for flow in found.flows} == {0.0}


def test_a_lab_whose_hosts_are_all_off_does_nothing(lab: Lab) -> None:
    before, record = usage.read(lab), lab.read_record()
    lab.write(record.model_copy(update={"off": frozenset({"ams", "bra"})}), record)
    off = usage.read(lab)
    nothing = usage.Activity(seconds=0, flows=(), loads=())
    assert usage.activity_between(lab, before, off) == usage.activity_between(lab, off, off) == nothing


def test_a_link_that_is_cut_is_down(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    flows = usage.activity_between(lab, BEFORE, AFTER).flows
    assert [(flow.outage, flow.rtt_ms) for flow in flows] == [("cut", None), ("cut", None)]


def test_a_round_trip_is_the_delays_and_what_waits(lab: Lab) -> None:
    waiting = {
        ("ams", "ams-bra"): Carried(0, 0, 0, 0, queued=50_000),
        ("bra", "ams-bra"): Carried(0, 0, 0, 0, queued=6250),
    }
    there, back = usage.activity_between(lab, BEFORE, replace(AFTER, carried=waiting)).flows
    assert (there.queued_bytes, back.queued_bytes) == (50_000, 6250)
    assert there.rtt_ms == back.rtt_ms == 2 + 8 + 1, "50 Mbit/s take 8 ms for 50 kB"
    labs.update_settings(lab, "ams-bra", {"rate_mbit": 100.0, "delay_ms": 2.0}, None)
    assert usage.activity_between(lab, BEFORE, replace(AFTER, carried=waiting)).flows[0].rtt_ms == 4 + 4 + 0.5


@pytest.mark.parametrize(
    ("drops", "lost"), [({"ifb-eth1": 3, "eth1": 9}, 3), ({"eth1": 9}, 0), (None, 0)], ids=["some", "none", "silent"]
)
def test_what_a_direction_loses_is_counted_where_it_ends(lab: Lab, drops: dict[str, int] | None, lost: int) -> None:
    """The sender's queue drops, the receiver's netem loses; of a host that does not answer nothing is known."""
    used = Used((0, 1), (0, 1))
    counted = {
        "ams": usage.Counters(0, used, {"eth1": (1000, 10)}, {"eth1": 7, "ifb-eth1": 100}, {"eth1": 4500}, {"eth1": 6})
    }
    if drops is not None:
        counted["bra"] = usage.Counters(0, used, {}, drops, {})
    found = usage._by_ends(lab, "ams", lab.plan.host("ams").ports[0], counted)
    assert found == Carried(1000, 10, 7, lost, 4500, marked=6)


def test_a_sender_that_drops_nothing_shows_none(lab: Lab) -> None:
    counted = {"ams": usage.Counters(0, Used((0, 1), (0, 1)), {"eth1": (1000, 10)}, {}, {})}
    assert usage._by_ends(lab, "ams", lab.plan.host("ams").ports[0], counted) == Carried(1000, 10, 0, 0, 0)
