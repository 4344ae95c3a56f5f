"""Hosts as namespaces: the same file, the same figures; and nothing is left of them."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from typing import Any

import pytest

from live.program import TOPOLOGIES, Program, Traces
from live.test_overlays import STATE
from live.test_switches import takes_what_is_declared
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.providers.agent import lab_processes

pytestmark = pytest.mark.mininet
LIMIT_S = 120.0
PAIR = str(TOPOLOGIES / "pair.yaml")


@pytest.mark.alone
def test_latency_adds_up_over_five_hops(make_lab: Any) -> None:
    lab = make_lab(TOPOLOGIES / "chain6-lan.yaml", provider="mininet")
    first, *others = (host.name for host in lab.plan.hosts)
    for target in others[::2]:  # over one hop, three and five
        takes_what_is_declared(lab, first, target)


CHOSEN = ("calico", "mesh-sleeve", "none-v6", "ovs", "romana", "vxlan-bare-v6")


def test_those_chosen_have_every_script_and_every_encapsulation() -> None:
    """Of the overlays that need no Docker. The others are the same scripts with another setting: `test_overlays`."""
    possible = [name for name in overlays.known_names() if _needs_no_docker(name)]
    assert {*CHOSEN} <= {*possible}
    for kind in (_script, lambda name: overlays.find(name).data_path.encapsulation):
        assert {kind(name) for name in CHOSEN} == {kind(name) for name in possible}


def _needs_no_docker(name: str) -> bool:
    """Nor modules that Debian's kernel has not."""
    overlay = overlays.find(name)
    return "namespace" in overlay.declaration.engines and not overlay.kernel_modules


def _script(name: str) -> str:
    return overlays.find(name).folder.name


@pytest.mark.timeout(600)
def test_overlays_that_need_no_docker_join_and_leave_nothing(make_lab: Any) -> None:
    """All of them on one lab, one after the other: what one leaves behind, the next would meet."""
    lab = make_lab((TOPOLOGIES / "pair.yaml").read_text() + "ipv6: true\n", provider="mininet")
    before = state_of_hosts(lab)
    for name in CHOSEN:
        overlay = overlays.find(name)
        ends = overlays.join(lab, name, lambda _: None)
        proven = overlays.verify(lab, lambda _: None)
        overlays.leave(lab, lambda _: None)
        seen = {words["ENCAPSULATION"] for words in proven.values()}
        mtus = {end.mtu for end in ends.values()}
        assert (name, seen, mtus) == (name, {overlay.data_path.encapsulation}, {overlay.data_path.mtu_over(1500)})
        assert (name, state_of_hosts(lab)) == (name, before)


def state_of_hosts(lab: Lab) -> dict[str, str]:
    """What an overlay could leave. One host after the other, since each sees the processes of all."""
    argv = ["bash", "-c", STATE]
    return {
        host.name: user_text(lab.provider.run(host.name, argv, timeout_s=LIMIT_S, check=False).stdout)
        for host in lab.plan.hosts
    }


def test_hosts_have_names_routes_and_files_of_their_own_but_one_kernel(make_lab: Any) -> None:
    lab = make_lab("name: two\npair: {hosts: [a, b], link: {rate: 50mbit}}\n", provider="mininet")
    for host, other in pairwise(("a", "b", "a")):
        lab.provider.run(host, ["sh", "-c", "hostname >/root/mine"], timeout_s=LIMIT_S)
        assert user_text(lab.provider.run(host, ["cat", "/root/mine"], timeout_s=LIMIT_S).stdout) == f"{host}\n"
        address = lab.plan.host(other).address
        assert address in user_text(lab.provider.run(host, ["ip", "route"], timeout_s=LIMIT_S).stdout)
    boot = ["cat", "/proc/sys/kernel/random/boot_id"]
    assert len({user_text(lab.provider.run(host, boot, timeout_s=LIMIT_S).stdout) for host in "ab"}) == 1
    assert user_text(lab.provider.run("a", ["ip", "route", "show", "default"], timeout_s=LIMIT_S).stdout) == ""


def test_an_overlay_that_needs_docker_is_refused_before_anything_starts(program: Program) -> None:
    refused = program.run("up", PAIR, "--provider", "mininet", "--overlay", "swarm")
    assert refused.returncode == 2
    assert "needs Docker on every host" in refused.stderr
    assert "none, none-v6, ovs" in refused.stderr


def test_nothing_is_left_when_its_supervisor_was_killed(program: Program, traces: Traces) -> None:
    program.succeeds("up", PAIR, "--provider", "mininet", "--overlay", "none")
    traces.look()
    supervisor = lab_processes.supervisor(program.rundir("pair"))
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    program.succeeds("down", "--all")
    assert traces.left() == []
