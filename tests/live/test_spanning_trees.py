"""Switches in a ring: a spanning tree blocks a link, heals the ring when one is cut, and shows its ports' states; and a
ring under a controller of the user's comes up without a storm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from live.exact import EXACT_MS
from live.program import TOPOLOGIES
from minigts.cli.views.labs import lab_facts
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import measure
from minigts.foreign import parser_text, user_text
from minigts.lab import Lab, calibration, changes, link_states, trees
from minigts.topology.outage import Outage
from minigts.topology.plan.elements import Switch

LIMIT_S = 120.0
HELLO_S, MAX_AGE_S, FORWARD_DELAY_S, TICK_S = 2.0, 20.0, 15.0, 1.0
"""The timers of IEEE 802.1D, which Open vSwitch has, and how often it looks at them at least."""
EVERY_S = 0.05


def gap_s(lab: Lab, source: str, target: str, seconds: float, meanwhile: Callable[[], object]) -> float:
    """The longest time without a reply to echo requests, while something is done to the lab 3 s after their begin."""
    address = lab.plan.address_over(lab.plan.path(source, target))
    argv = ["ping", "-n", "-D", "-i", str(EVERY_S), "-c", str(round(seconds / EVERY_S)), address]
    lab.provider.run(source, ["sh", "-c", f"{' '.join(argv)} >/tmp/echoes 2>&1 &"], timeout_s=LIMIT_S)
    lab.provider.run(source, ["sleep", "3"], timeout_s=LIMIT_S)
    meanwhile()
    wait = "while pidof ping >/dev/null; do sleep 0.5; done; cat /tmp/echoes"
    said = parser_text(lab.provider.run(source, ["sh", "-c", wait], timeout_s=LIMIT_S + 4 * seconds).stdout)
    at_s = [float(line[1:].partition("]")[0]) for line in said.splitlines() if "bytes from" in line]
    assert len(at_s) > 2 / EVERY_S, said[-400:]
    return max(after - before for before, after in itertools.pairwise(at_s))


def turn(lab: Lab, switch: str, link: str, state: str) -> None:
    """Turn the switch's own port on the link up or down."""
    port = next(port.name for port in lab.plan.machine(switch).ports if port.link == link)
    lab.provider.run(switch, ["ip", "link", "set", port, state], timeout_s=LIMIT_S)


def roles(lab: Lab, switch: str) -> dict[str, tuple[str, str]]:
    machine = lab.plan.machine(switch)
    assert isinstance(machine, Switch)
    return {port.link: (port.role, port.state) for port in trees.read_tree(lab, machine).ports.values()}


def settled(lab: Lab) -> None:
    trees.wait(lab, lab.read_record(), lambda _: None)


@pytest.mark.virtual
@pytest.mark.touched(
    "provision/switch.sh",
    "tools/minigts/dataplane/switch.py",
    "tools/minigts/lab/trees.py",
    "tools/minigts/topology/routes/spanning_tree.py",
    "topologies/spanning-trees.yaml",
)
@pytest.mark.timeout(1800)
def test_a_ring_of_switches_heals(make_lab: Any) -> None:
    lab = make_lab(TOPOLOGIES / "spanning-trees.yaml")
    certificate = measure.certify(lab, lambda _: None)
    assert certificate.ok
    assert certificate.off == {"r2-r3": link_states.BLOCKED, "s1-s3": link_states.BLOCKED}
    assert roles(lab, "r3") == {
        "a3-r3": ("designated", "forwarding"),
        "r2-r3": ("alternate", "discarding"),
        "r1-r3": ("root", "forwarding"),
    }
    assert roles(lab, "s3")["s1-s3"] == ("alternate", "blocking")
    told = lab_facts(lab)["spanning_trees"]
    assert isinstance(told, dict)
    assert {*told} == {"r1", "r2", "r3", "s1", "s2", "s3"}
    assert told["s2"]["root"] == f"4096 {lab.plan.machine('s1').mac}"
    no_frame_circles(lab)
    rapid_heals(lab)
    plain_heals(lab)


def no_frame_circles(lab: Lab) -> None:
    """A question for an address that nobody has goes to all hosts, and comes to each once: three or four in 4 s, and
    the messages of the spanning tree every 2 s."""
    count = ["cat", "/sys/class/net/eth1/statistics/rx_packets"]
    before = int(parser_text(lab.provider.run("a3", count, timeout_s=LIMIT_S).stdout))
    lab.provider.run("a1", ["ping", "-n", "-c", "4", "-W", "1", "10.20.0.200"], timeout_s=LIMIT_S, check=False)
    after = int(parser_text(lab.provider.run("a3", count, timeout_s=LIMIT_S).stdout))
    assert 3 <= after - before < 20


def rapid_heals(lab: Lab) -> None:
    """RSTP. Nobody is told: what was heard is forgotten three hello times after the last message. The port itself goes
    down: the alternate one forwards at once."""
    silent_s = gap_s(lab, "a3", "a1", 14, lambda: changes.set_link_up(lab, "r1-r3", up=False))
    assert 3 * HELLO_S - HELLO_S - TICK_S <= silent_s <= 3 * HELLO_S + 4 * EVERY_S
    settled(lab)
    assert roles(lab, "r3")["r2-r3"] == ("root", "forwarding")
    changes.set_link_up(lab, "r1-r3", up=True)
    settled(lab)
    assert roles(lab, "r3")["r2-r3"] == ("alternate", "discarding")
    assert gap_s(lab, "a3", "a1", 14, lambda: turn(lab, "r3", "r1-r3", "down")) <= 2 + 4 * EVERY_S
    turn(lab, "r3", "r1-r3", "up")
    settled(lab)
    pulled_s = gap_s(lab, "a3", "a1", 14, lambda: changes.set_link_up(lab, "r1-r3", up=False, how=Outage()))
    assert pulled_s <= 2 + 4 * EVERY_S
    changes.set_link_up(lab, "r1-r3", up=True)
    settled(lab)


def plain_heals(lab: Lab) -> None:
    """STP. Nobody is told: what was heard, which was up to 1 s old, is forgotten at an age of 20 s. Then, and at once
    where the port itself goes down, the blocked port listens and learns, for 15 s each."""
    silent_s = gap_s(lab, "b3", "b1", 70, lambda: changes.set_link_up(lab, "s2-s3", up=False))
    least_s = MAX_AGE_S - HELLO_S - 1 + 2 * FORWARD_DELAY_S
    assert least_s - EVERY_S <= silent_s <= MAX_AGE_S - 1 + 2 * FORWARD_DELAY_S + 3 * TICK_S + 4 * EVERY_S
    settled(lab)
    assert roles(lab, "s3")["s1-s3"] == ("root", "forwarding")
    changes.set_link_up(lab, "s2-s3", up=True)
    settled(lab)
    direct_s = gap_s(lab, "b3", "b1", 50, lambda: turn(lab, "s3", "s2-s3", "down"))
    assert 2 * FORWARD_DELAY_S - EVERY_S <= direct_s <= 2 * FORWARD_DELAY_S + 2 * TICK_S + 4 * EVERY_S


@pytest.mark.uml
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_ring_of_switches_heals_in_real_time(make_lab: Any) -> None:
    """No frame circles, and each ring heals and goes back. How fast depends on the machine."""
    lab = make_lab(TOPOLOGIES / "spanning-trees.yaml", time="real")
    assert roles(lab, "r3")["r2-r3"] == ("alternate", "discarding")
    assert roles(lab, "s3")["s1-s3"] == ("alternate", "blocking")
    no_frame_circles(lab)
    for cut, switch, blocked, state, ends in (
        ("r1-r3", "r3", "r2-r3", "discarding", ("a3", "a1")),
        ("s2-s3", "s3", "s1-s3", "blocking", ("b3", "b1")),
    ):
        changes.set_link_up(lab, cut, up=False)
        settled(lab)
        assert roles(lab, switch)[blocked] == ("root", "forwarding")
        calibration.probe(lab.provider, ends[0], lab.plan.host(ends[1]).address, count=1)
        assert calibration.probe(lab.provider, ends[0], lab.plan.host(ends[1]).address, count=5).rtts_ms
        changes.set_link_up(lab, cut, up=True)
        settled(lab)
        assert roles(lab, switch)[blocked] == ("alternate", state)
    no_frame_circles(lab)


# Without any delay a frame that circles does so without end at one moment of the lab's time.
RING = """\
name: told
hosts: {h1: , h2: , c: }
switches: {s1: {controller: c}, s2: {controller: c}, s3: {controller: c}}
links:
  - {ends: [h1, s1]}
  - {ends: [h2, s2]}
  - {ends: [c, s3]}
  - {ends: [s1, s2]}
  - {ends: [s2, s3]}
  - {ends: [s1, s3]}
"""


@pytest.mark.virtual
@pytest.mark.timeout(900)
def test_a_ring_waits_for_its_controller(make_lab: Any) -> None:
    lab = make_lab(RING)
    certificate = measure.certify(lab, lambda _: None)
    assert certificate.ok
    assert {*certificate.off} == {link.name for link in lab.plan.links}
    target = lab.plan.host("h2").address
    lost = lab.provider.run("h1", ["ping", "-n", "-c", "3", "-W", "1", target], timeout_s=LIMIT_S, check=False)
    assert lost.code == 1, user_text(lost.stdout)
    lab.provider.run("c", ["ovs-testcontroller", "--detach", "--unixctl=none", "ptcp:6653"], timeout_s=LIMIT_S)
    began = time.monotonic()
    for switch in ("s1", "s2", "s3"):
        asked = (
            "for i in $(seq 100); do ovs-vsctl get controller br0 is_connected | grep true && break; sleep 0.2; done"
        )
        done = lab.provider.run(switch, ["bash", "-c", asked], timeout_s=LIMIT_S, check=False)
        assert done.stdout.strip() == "true", f"{switch}, after {time.monotonic() - began} s"
    calibration.probe(lab.provider, "h1", target, count=3)
    measured = calibration.probe(lab.provider, "h1", target, count=40)
    assert len(measured.rtts_ms) == 40
    assert measured.median_ms == pytest.approx(echo_ms(lab.plan, lab.plan.path("h1", "h2")), abs=EXACT_MS, rel=0)
