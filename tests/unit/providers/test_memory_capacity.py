"""How many labs fit: `minigts limits`."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Literal

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.machine import limits
from minigts.providers.uml import memory
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

PAIR = Path(__file__).parents[3] / "topologies" / "pair.yaml"


def test_what_leaves_the_fewest_labs_is_first() -> None:
    plan = load(PAIR, known_overlays=["none", "swarm"])
    roomy = limits.MemoryLimit("memory", 680, 1360, "")  # each of two kernels takes 34 MB
    first, second = memory.bounds(plan, "none", [roomy], [limits.ProcessLimit("ulimit", 65, 100)])
    assert (first.by, first.of_a_lab, first.labs, first.labs_at_most) == ("ulimit", 22, 2, 4)
    assert (second.by, second.of_a_lab, second.labs, second.labs_at_most) == ("memory", 68, 10, 20)
    (swarm,) = memory.bounds(plan, "swarm", [roomy], [])
    assert (swarm.by, swarm.of_a_lab, swarm.labs) == ("memory", 284, 2)


def test_a_control_group_bounds_processes(tmp_path: Path) -> None:
    group = tmp_path / "groups" / "lab"
    group.mkdir(parents=True)
    (group / "pids.max").write_text("100\n")
    (group / "pids.current").write_text("40\n")
    (group.parent / "pids.max").write_text("max\n")
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/lab\n")
    (proc / "self" / "mountinfo").write_text(f"30 20 0:26 / {group.parent} rw - cgroup2 cgroup2 rw\n")
    assert limits.ProcessLimit(f"pids.max of the control group {group}", 60, 100) in limits.process_limits(proc)


@pytest.mark.parametrize(("limit", "free"), [(100, 95), (5, 0), (3, 0)])
def test_a_users_own_limit_counts_their_threads_and_leaves_none_once_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, free: int
) -> None:
    for pid, user, threads in ((7, 1000, 4), (8, 1000, 1), (9, 0, 50)):
        (tmp_path / f"{pid}").mkdir()
        status = f"Uid:\t{user}\t{user}\t{user}\t{user}\nThreads:\t{threads}\n"
        (tmp_path / f"{pid}" / "status").write_text(status)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NPROC: (limit, limit)}.__getitem__)
    assert limits.process_limits(tmp_path) == (
        limits.ProcessLimit("this user's limit of processes (ulimit -u)", free, limit),
    )


def test_the_program_says_how_many() -> None:
    done = CliRunner().invoke(app, ["limits", str(PAIR), "--overlay", "swarm", "--json"])
    assert done.exit_code == 0
    bounds = json.loads(done.stdout)["bounds"]
    assert bounds
    assert [bound["labs"] for bound in bounds] == sorted(bound["labs"] for bound in bounds)
    assert {bound["of_a_lab"] for bound in bounds if bound["by"].startswith("memory")} <= {284}


def real_row(hosts: int, link: str) -> Plan:
    return parse(f"name: row\nchain: {{hosts: {hosts}, link: {link}}}\n", "row.yaml", time="real")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (real_row(2, "{rate: 501mbit}"), "Mbit/s: processors may limit"),
        (real_row(2, "{rtt: 1ms}"), "has links without a rate"),
        (real_row(21, "{rate: 1mbit}"), "hosts: processors may limit"),
    ],
)
def test_what_was_not_seen_to_be_carried_in_real_time_is_said_beforehand(plan: Plan, said: str) -> None:
    (line,) = memory.forecast(plan, "none", [])
    assert said in line
    assert "--time virtual" in line


def test_what_was_seen_to_be_carried_and_virtual_time_say_nothing_of_rates() -> None:
    assert not memory.forecast(real_row(2, "{rate: 500mbit}"), "none", [])
    assert not memory.forecast(real_row(20, "{rate: 500mbit}"), "none", [])
    assert not memory.forecast(load(PAIR, time="virtual", values={"links.rate": "10gbit"}), "none", [])


def test_how_many_labs_fit_is_said_beforehand() -> None:
    plan = load(PAIR)
    many, one, none = "room for 2 such labs with swarm: 500 MB each", "one such lab", "no such lab"
    for free, said in ((1000, many), (500, one), (400, none)):
        bound = memory.Bound("memory", "MB", 500, free, 2000)
        assert said in memory.forecast(plan, "swarm", [bound])[0]


def test_plan_says_it() -> None:
    done = CliRunner().invoke(app, ["plan", str(PAIR)])
    assert "room for" in done.stderr
    assert "room for" not in done.stdout


def with_links(count: int, time: Literal["virtual", "real"]) -> str:
    links = "".join("  - {ends: [h1, h2], rtt: 1ms}\n" for _ in range(count))
    return f"name: many\ntime: {time}\nhosts: {{h1: {{}}, h2: {{}}}}\nlinks:\n{links}"


@pytest.mark.parametrize(("time", "most"), [("virtual", 43), ("real", 48)])
def test_a_plan_with_more_links_than_a_machine_can_have_is_refused_beforehand(
    time: Literal["virtual", "real"], most: int, tmp_path: Path
) -> None:
    memory.require_ports(parse(with_links(most, time), "many.yaml"))
    file = tmp_path / "many.yaml"
    file.write_text(with_links(most + 1, time))
    for verb in ("plan", "up"):
        done = CliRunner().invoke(app, [verb, str(file)])
        assert done.exit_code == 2
        assert f"h1 has {most + 1} links" in done.output
        assert f"room for {most} at the most" in done.output
