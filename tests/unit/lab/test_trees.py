"""The spanning tree of a lab: what a switch says is compared with what follows from the plan, without cut links."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from minigts import paths
from minigts.dataplane import switch
from minigts.fidelity.explanation import compose_explanation
from minigts.lab import Record, link_states
from minigts.topology.plan.elements import Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
PLAN = load(TOPOLOGIES / "spanning-trees.yaml", time="virtual")
RECORD = Record(provider="uml", time="real", created=datetime(2026, 11, 29, tzinfo=UTC), state="up")
RSTP = """\
---- br0 ----
Root ID:
  stp-priority    4096
  stp-system-id   02:6d:67:00:00:02
  stp-hello-time  2s
  stp-max-age     20s
  stp-fwd-delay   15s
  root-port       eth3
  root-path-cost  200000

Bridge ID:
  stp-priority    32768
  stp-system-id   02:6d:67:00:01:02
  stp-hello-time  2s
  stp-max-age     20s
  stp-fwd-delay   15s

  Interface  Role       State      Cost     Pri.Nbr
  ---------- ---------- ---------- -------- -------
  eth1       Designated Forwarding 2000     128.1
  eth2       Alternate  Discarding 200000   128.2
  eth3       Root       Forwarding 200000   128.3

"""
"""As Open vSwitch 3.5.0 prints it on r3 of that topology."""
STP = """\
---- br0 ----
Root ID:
  stp-priority  4096
  stp-system-id   02:6d:67:00:05:02
  stp-hello-time  2s
  stp-max-age     20s
  stp-fwd-delay   15s
  root-port       eth2
  root-path-cost  38

Bridge ID:
  stp-priority  32768
  stp-system-id   02:6d:67:00:06:02
  stp-hello-time  2s
  stp-max-age     20s
  stp-fwd-delay   15s

  Interface  Role       State      Cost  Pri.Nbr
  ---------- ---------- ---------- ----- -------
  eth1       designated forwarding 2     128.1
  eth2       root       listening  19    128.2
  eth3       alternate  blocking   100   128.3

"""


def machine(name: str, plan: Plan = PLAN) -> Switch:
    found = plan.machine(name)
    assert isinstance(found, Switch)
    return found


def said(name: str, output: str, step: str = "show_tree") -> str:
    """What a step of switch.sh prints where `ovs-appctl` prints this."""
    script = switch.script(PLAN, machine(name), "show_tree").rpartition("show_tree\n")[0]
    script = script.replace("MINIGTS_PATIENCE=52", "MINIGTS_PATIENCE=0")
    says = f"ovs-appctl() {{ cat <<'SAID'\n{output}SAID\n}}\n{step}\n"
    done = subprocess.run(["bash", "-eu", "-c", script + says], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_switch_shows_the_root_and_its_ports() -> None:
    found = switch.shown_tree(machine("r3"), said("r3", RSTP))
    assert found == switch.expected_tree(PLAN, machine("r3"))
    assert found.ports["eth2"] == switch.PortInTree("r2-r3", "alternate", "discarding")
    assert [*switch.tree_differences(found, found)] == []


def test_a_port_that_still_listens_is_named() -> None:
    shown = switch.shown_tree(machine("s3"), said("s3", STP))
    wanted = switch.expected_tree(PLAN, machine("s3"))
    assert [*switch.tree_differences(wanted, shown)] == [
        "eth2: it is root and listening in the spanning tree, should be root and forwarding"
    ]
    other = switch.shown_tree(machine("r2"), said("r2", RSTP))
    assert "eth1: it is designated and forwarding in the spanning tree, should be root and forwarding" in [
        *switch.tree_differences(switch.expected_tree(PLAN, machine("r2")), other)
    ]


def test_the_wait_ends_in_silence_when_all_is_as_planned() -> None:
    assert said("r3", RSTP, "wait_for_tree") == ""
    assert "eth2 root listening" in said("s3", STP, "wait_for_tree")


def test_without_a_cut_link_the_tree_goes_over_the_blocked_one() -> None:
    healed = switch.expected_tree(PLAN, machine("r3"), {"r1-r3"})
    assert {port.link: port.role for port in healed.ports.values()} == {"a3-r3": "designated", "r2-r3": "root"}
    alone = switch.expected_tree(PLAN, machine("r3"), {"r1-r3", "r2-r3"})
    assert alone.root == f"32768 {machine('r3').mac}"


def test_blocked_links_are_not_measured_nor_paths_over_what_was_blocked_anew() -> None:
    assert link_states.other_ways(PLAN, RECORD) == {"r2-r3": link_states.BLOCKED, "s1-s3": link_states.BLOCKED}
    measured = {link.name for link in link_states.used_links(PLAN, RECORD)}
    assert measured == {link.name for link in PLAN.links} - {"r2-r3", "s1-s3"}
    cut = RECORD.model_copy(update={"cut": frozenset(["r1-r3"])})
    assert link_states.other_ways(PLAN, cut) == {"s1-s3": link_states.BLOCKED}
    assert {path.target for path in link_states.whole_paths(PLAN, cut) if path.source == "a3"} == set()


def test_explain_names_a_blocked_link() -> None:
    [link] = [each for each in PLAN.links if each.name == "r2-r3"]
    found = compose_explanation("x", PLAN, link, RECORD, {}, {}, None, carried=True)
    assert (found.cause, found.answer) == ("blocked", "r2-r3 is blocked by the spanning tree: it was not measured")


@pytest.mark.parametrize("protocol", ["stp", "rstp"])
def test_everything_that_decides_on_the_tree_is_set(protocol: str) -> None:
    name = {"rstp": "r1", "stp": "s1"}[protocol]
    text = switch.script(PLAN, machine(name), "make_switch")
    settings = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("MINIGTS_"))
    assert settings["MINIGTS_TREE"] == protocol
    assert settings["MINIGTS_PRIORITY"] == "4096"
    assert settings["MINIGTS_MAC"] == machine(name).mac
    costs = {"rstp": "'eth2=200000 eth3=200000'", "stp": "'eth2=19 eth3=100'"}
    assert settings["MINIGTS_COSTS"] == costs[protocol]


def test_only_switches_of_a_controllers_ring_forward_nothing_without_it() -> None:
    text = (paths.project_root() / "topologies" / "switched.yaml").read_text()
    assert "MINIGTS_RING=''" in switch.script(
        parse(text, "x.yaml"), machine("s1", parse(text, "x.yaml")), "make_switch"
    )
    ring = parse(
        "name: x\nhosts: {c: }\nswitches: {s1: {controller: c}, s2: {controller: c}, s3: {controller: c}}\n"
        "links: [{ends: [c, s1]}, {ends: [s1, s2]}, {ends: [s2, s3]}, {ends: [s3, s1]}]\n",
        "x.yaml",
    )
    script = switch.script(ring, machine("s3", ring), "ask_controller")
    assert "MINIGTS_RING=yes" in script
    assert "MINIGTS_UNFLOODED=eth1" in script
    assert f"MINIGTS_NEIGHBOUR=10.20.0.1={ring.host('c').ports[0].mac}" in script
