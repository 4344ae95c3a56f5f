"""An overlay network for each group of hosts: each on its own, and all measured at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import quiet
from live.measured import echoed
from live.test_overlays import state
from minigts import lab as labs
from minigts import overlays
from minigts.experiments import prepare, run, run_folders
from minigts.experiments.lab_control import RealLabControl
from minigts.lab import Lab
from minigts.overlays import Endpoint, policy
from minigts.results import store
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual

PAIRS = """\
name: pairs
defaults: {link: {rtt: 2ms, rate: 50mbit}}
hosts: {a1: , a2: , b1: , b2: }
links: [{ends: [a1, a2]}, {ends: [b1, b2]}]
groups: {a: [a1, a2], b: [b1, b2]}
"""
TOGETHER = """\
name: at-once
title: Two pairs at once
topology: pairs.yaml
overlays: [vxlan]
seed: 1
repetitions: 1
measurements:
  - {name: alone, tool: iperf3-tcp, paths: [each-segment], options: {duration: 2s, omit: 1s}}
  - {name: together, tool: iperf3-tcp, paths: [each-segment], together: true, options: {duration: 2s, omit: 1s}}
"""
CLOSED = "name: closed\ndefault: deny\ngroups: {one: [a1]}\nrules: [{allow: {from: one, to: any}}]\n"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_STATE", str(tmp_path_factory.mktemp("state")))
        lab = labs.up(parse(PAIRS, "pairs.yaml", time="virtual"), "uml", None, quiet)
        yield lab
        labs.down(lab)


@pytest.fixture(scope="module")
def swarms(pairs: Lab) -> dict[str, Endpoint]:
    return overlays.join(pairs, "swarm", quiet)


def test_each_group_has_a_swarm_of_its_own(pairs: Lab, swarms: dict[str, Endpoint]) -> None:
    script = "curl -sS --unix-socket /run/docker.sock http://docker/nodes | jq -r '.[].Description.Hostname' | sort"
    nodes = {
        leader: pairs.provider.run(leader, ["sh", "-c", script], timeout_s=120).stdout.split()
        for leader in ("a1", "b1")
    }
    assert nodes == {"a1": ["a1", "a2"], "b1": ["b1", "b2"]}
    # As two Swarms have it that know nothing of each other.
    assert [swarms[host].address for host in ("a1", "a2")] == [swarms[host].address for host in ("b1", "b2")]


def test_each_group_proves_its_own_data_path(pairs: Lab, swarms: dict[str, Endpoint]) -> None:
    proofs = overlays.verify(pairs, quiet)
    assert {host: words["ENCAPSULATION"] for host, words in proofs.items()} == dict.fromkeys(swarms, "vxlan")


def test_a_leader_that_was_ended_joins_its_own_group_again(pairs: Lab, swarms: dict[str, Endpoint]) -> None:
    labs.restart(pairs, "b1")
    again = overlays.rejoin(pairs, "b1", quiet)
    assert set(again) == set(swarms)
    assert echoed(pairs, again["b1"], again["b2"].address)
    assert echoed(pairs, again["a1"], again["a2"].address)


@pytest.mark.nightly
def test_a_policy_holds_in_each_group_and_leaving_leaves_nothing_in_any(pairs: Lab) -> None:
    """What is allowed to a host of one group concerns the other in nothing but what is not allowed there."""
    overlays.leave(pairs, quiet)
    before = state(pairs)
    ends = overlays.join(pairs, "calico", quiet)
    policy.apply(pairs, policy.parse(CLOSED, "closed.yaml", [host.name for host in pairs.plan.hosts]))
    assert echoed(pairs, ends["a1"], ends["a2"].address)
    assert not echoed(pairs, ends["b1"], ends["b2"].address)
    policy.remove(pairs)
    assert echoed(pairs, ends["b1"], ends["b2"].address)
    overlays.leave(pairs, quiet)
    assert state(pairs) == before


@pytest.mark.nightly
def test_pairs_that_are_measured_at_once_do_nothing_to_each_other(pairs: Lab, tmp_path: Path) -> None:
    """They share no link, and in virtual time nothing else: what each pair carries is what it carries alone."""
    (tmp_path / "pairs.yaml").write_text(PAIRS)
    (tmp_path / "at-once.yaml").write_text(TOGETHER.replace("topology: pairs.yaml", f"topology: {tmp_path}/pairs.yaml"))
    prepared = prepare.prepare(tmp_path / "at-once.yaml", paper=False, quick=False, only=(), time="virtual")
    [directory] = run_folders.begin(tmp_path / "results", [prepared], "uml")
    (outcome,) = run.run_together([directory], pairs.provider, RealLabControl(pairs, quiet), lambda _: None)
    assert (outcome.done, outcome.failed, dict(outcome.skipped)) == (4, (), {})

    taken = {name: store.good(directory, f"vxlan.{name}.r1") for name in ("together.a1-a2", "together.b1-b2")}
    begun = {name: raw.started for name, raw in taken.items() if raw is not None}
    assert len(begun) == 2
    assert len(set(begun.values())) == 1

    received = {
        name: json.loads(raw.stdout)["end"]["sum_received"]["bits_per_second"]
        for name in ("alone.a1-a2", "alone.b1-b2", *taken)
        if (raw := store.good(directory, f"vxlan.{name}.r1"))
    }
    for pair in ("a1-a2", "b1-b2"):
        assert received[f"together.{pair}"] == pytest.approx(received[f"alone.{pair}"], rel=0.001)
