"""Policies on real hosts: what is denied stays out, what is allowed gets in, and leaving takes the rules away.

`test_overlays` asks this of overlays that it has joined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from live.conftest import quiet
from live.program import TOPOLOGIES, Program
from minigts import overlays
from minigts.errors import MinigtsError
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.rundir import lab_named
from minigts.overlays import Endpoint, policy
from minigts.results import manifest as manifests

ENFORCING = ("calico", "calico-node", "romana", "canal")
"""Of each kind one."""

NETSERVER, IPERF3 = 12865, 5201
CLOSED = f"""\
name: closed
default: deny
groups: {{web: [ams], store: [bra]}}
rules:
  - allow: {{from: web, to: store, protocol: tcp, ports: [{NETSERVER}]}}
"""
OPEN = f"""\
name: open
groups: {{web: [ams], store: [bra]}}
rules:
  - deny: {{from: web, to: store, protocol: tcp, ports: [{NETSERVER}]}}
"""


def reaches(lab: Lab, source: Endpoint, target: Endpoint) -> dict[str, bool]:
    """Which of the target's services answer from inside the source's container."""
    asked = {
        "icmp": ["ping", "-c", "1", "-W", "2", target.address],
        "netserver": ["timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{target.address}/{NETSERVER}"],
        "iperf3": ["timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{target.address}/{IPERF3}"],
    }
    return {
        what: lab.provider.run(source.host, [*source.network, *argv], timeout_s=120, check=False).code == 0
        for what, argv in asked.items()
    }


def tables(lab: Lab) -> str:
    return user_text(lab.provider.run("bra", ["nft", "list", "tables"], timeout_s=120).stdout)


def what_is_denied_is_denied_and_what_is_allowed_is_allowed(
    pair: Lab, ends: Mapping[str, Endpoint], directory: Path
) -> None:
    """Over what is joined; and when the policy is removed, all is as before. By verbs, and once by their function."""
    hosts = [host.name for host in pair.plan.hosts]
    ams, bra = ends["ams"], ends["bra"]
    program = Program(pair.rundir.parents[1])

    before = reaches(pair, ams, bra)
    (directory / "closed.yaml").write_text(CLOSED)
    program.succeeds("policy", "apply", str(directory / "closed.yaml"), "--lab", pair.name)
    closed, back = reaches(pair, ams, bra), reaches(pair, bra, ams)
    policy.apply(pair, policy.parse(OPEN, "open.yaml", hosts))
    policy.apply(pair, policy.parse(OPEN, "open.yaml", hosts))
    opened = reaches(pair, ams, bra)
    (directory / "wrong.yaml").write_text(CLOSED.replace("[bra]", "[bru]"))
    refused = program.run("policy", "apply", str(directory / "wrong.yaml"), "--lab", pair.name)
    assert (refused.returncode, "wrong.yaml:3" in refused.stderr) == (2, True), refused.stderr
    program.succeeds("policy", "remove", "--lab", pair.name)
    after = reaches(pair, ams, bra)

    assert before == after == {"icmp": True, "netserver": True, "iperf3": True}
    assert closed == {"icmp": False, "netserver": True, "iperf3": False}
    assert back == {"icmp": False, "netserver": False, "iperf3": False}
    assert opened == {"icmp": True, "netserver": False, "iperf3": True}
    assert policy.TABLE not in tables(pair)


@pytest.mark.virtual
def test_an_overlay_that_enforces_nothing_says_so(lab: Lab) -> None:
    overlays.join(lab, "none", quiet)
    with pytest.raises(MinigtsError, match="overlay none enforces no policy; those that do: calico"):
        policy.apply(lab, policy.parse(OPEN, "open.yaml", [host.name for host in lab.plan.hosts]))


OF_CLOSED = {"icmp": False, "netserver": True, "iperf3": False}
"""What `CLOSED` lets through from ams to bra."""


@pytest.mark.virtual
@pytest.mark.nightly
def test_a_policy_outlives_restarts_power_cuts_and_a_kept_lab(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(program.state))
    up = ("up", str(TOPOLOGIES / "pair.yaml"), "--overlay", "calico", "--time", "virtual", "--certify", "quick")
    program.succeeds(*up)
    (tmp_path / "closed.yaml").write_text(CLOSED)
    program.succeeds("policy", "apply", str(tmp_path / "closed.yaml"))

    def now() -> dict[str, bool]:
        lab = lab_named("pair")
        ends = overlays.joined_overlay(lab)
        assert ends is not None
        return reaches(lab, ends.endpoints()["ams"], ends.endpoints()["bra"])

    def shown() -> object:
        (facts,) = json.loads(program.succeeds("status", "--json"))
        return facts["policy"]

    found = {"applied": now()}
    for host in ("bra", "ams"):  # the second leads the overlay
        program.succeeds("restart", host)
        found[f"{host} restarted"] = now()
    program.succeeds("kill", "bra")
    program.succeeds("start", "bra")
    found["bra off and on"] = now()
    program.succeeds("down", "--keep")
    assert "overlay calico, policy closed and" in " ".join(program.succeeds("status").split())
    program.succeeds(*up)
    found["kept"] = now()
    assert found == dict.fromkeys(found, OF_CLOSED)

    assert shown() == "closed"
    program.succeeds("policy", "remove")
    program.succeeds("restart", "bra")
    assert (shown(), now()) == (None, dict.fromkeys(OF_CLOSED, True))


EXPERIMENT = f"""\
name: two
title: Does the lab stay as it was?
topology: {TOPOLOGIES / "pair.yaml"}
overlays: [none, canal, vxlan-bare]
seed: 3
repetitions: 1
measurements:
  - {{name: latency, tool: ping, paths: [first-to-each], options: {{count: 1}}}}
"""


@pytest.mark.virtual
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_run_on_a_lab_gives_it_back_with_its_overlay_and_its_policy(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("open.yaml", OPEN), ("two.yaml", EXPERIMENT)):
        (tmp_path / name).write_text(text)
    program.succeeds("up", str(TOPOLOGIES / "pair.yaml"), "--overlay", "canal")
    program.succeeds("policy", "apply", str(tmp_path / "open.yaml"))
    monkeypatch.setenv("MINIGTS_STATE", str(program.state))
    lab = lab_named("pair")
    before = overlays.joined_overlay(lab)
    program.succeeds("run", str(tmp_path / "two.yaml"), "--lab", "pair", "--results", str(tmp_path / "results"))
    (made,) = (tmp_path / "results").iterdir()
    found = manifests.read(made).overlays
    assert {name: facts.policy.get("name") for name, facts in found.items()} == {
        "none": None,
        "canal": None,
        "vxlan-bare": None,
    }
    now = overlays.joined_overlay(lab)
    assert before is not None and now is not None and now.name == before.name == "canal"
    in_force = policy.policy_in_force(lab)
    assert in_force is not None and in_force.name == "open"
    assert reaches(lab, now.endpoints()["ams"], now.endpoints()["bra"]) == {
        "icmp": True,
        "netserver": False,
        "iperf3": True,
    }
    (tmp_path / "two.yaml").write_text(EXPERIMENT.replace("none, canal, vxlan-bare", "canal"))
    told = program.run("run", str(tmp_path / "two.yaml"), "--lab", "pair", "--results", str(tmp_path / "results"))
    assert (told.returncode, "leaving" in told.stderr, "joining again" in told.stderr) == (0, False, False)
    (last,) = (each for each in (tmp_path / "results").iterdir() if each != made)
    assert manifests.read(last).overlays["canal"].policy["name"] == "open"
