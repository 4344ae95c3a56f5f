"""Hosts and links that come into a lab that is up, and leave it, in both times: the others run on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from live.conftest import quiet, state_directory
from live.exact import EXACT_MS
from live.program import Program
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.foreign import user_text
from minigts.lab import Lab, calibration, edit
from minigts.providers.agent import lab_processes
from minigts.topology.edit import add_host, remove_host
from minigts.topology.read.load import parse

CHAIN = "name: altered\ndefaults: {link: {rate: 50mbit}}\nchain: {hosts: [ams, bra, lju, mil], link: {rtt: 10ms}}\n"
BUSY_MS = 3.0
"""What a busy machine may add in real time."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("virtual", marks=pytest.mark.virtual),
        pytest.param("real", marks=[pytest.mark.alone, pytest.mark.nightly]),
    ],
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    state = tmp_path_factory.mktemp("altered")
    with state_directory(state):
        made = labs.up(parse(CHAIN, "altered.yaml", time=request.param), "uml", None, quiet)
        yield made
        labs.down(made)


@pytest.fixture
def program(lab: Lab) -> Program:
    return Program(lab.rundir.parents[1])


def off_ms(lab: Lab, source: str, target: str) -> float:
    """How far the round trip lies from the plan's, as the lab is now."""
    plan = lab.reopened.plan
    path, address = plan.path(source, target), plan.host(target).address
    calibration.probe(lab.provider, source, address, count=1)  # neighbours ask for each other's MAC first
    measured = calibration.probe(lab.provider, source, address, count=10)
    return measured.median_ms - echo_ms(plan, path) if lab.time == "virtual" else min(measured.rtts_ms) - path.rtt_ms


def allowed_ms(lab: Lab) -> float:
    return EXACT_MS if lab.time == "virtual" else BUSY_MS


def test_a_host_comes_in_while_the_others_talk(lab: Lab, program: Program) -> None:
    lab.provider.run("mil", ["iperf3", "-s", "-D", "-1"], timeout_s=120)
    client = ["iperf3", "-J", "-c", lab.plan.host("mil").address, "-t", "12", "-b", "1M"]
    with ThreadPoolExecutor(1) as beside:
        talk = beside.submit(lab.provider.run, "lju", client, timeout_s=120, check=False)
        time.sleep(1)
        said = program.run("add", "host", "par", "ams", "rtt=6ms", "rate=20mbit", "memory=256MB")
        spoken = talk.result()
    assert said.returncode == 0, said.stderr
    assert "started again: ams" in said.stderr
    assert "error" not in json.loads(user_text(spoken.stdout))
    assert lab.reopened.plan.host("par").memory_mb == 256
    assert abs(off_ms(lab, "par", "mil")) <= allowed_ms(lab)
    assert abs(off_ms(lab, "mil", "par")) <= allowed_ms(lab)


def test_its_link_can_be_set_and_a_second_one_gives_another_way(lab: Lab, program: Program) -> None:
    program.succeeds("set", "par-ams", "delay=10ms")
    program.succeeds("add", "link", "par", "mil", "rtt=4ms")
    assert lab.read_record().changed["par-ams"].delay_ms == 10
    assert lab.reopened.plan.path("par", "mil").hops == 1
    assert abs(off_ms(lab, "par", "mil")) <= allowed_ms(lab)
    assert abs(off_ms(lab, "lju", "par")) <= allowed_ms(lab)
    if lab.time == "virtual":
        certificate = json.loads(program.succeeds("check", "--json", "--quick"))
        assert {row["subject"] for row in certificate["rows"]} >= {"par-ams", "par-mil"}
    program.succeeds("set", "par-ams", "--reset")


def test_a_link_goes_and_the_way_is_the_one_there_was(lab: Lab, program: Program) -> None:
    said = program.run("remove", "link", "par-mil")
    assert (said.returncode, "started again: mil, par" in said.stderr) == (0, True), said.stderr
    assert {link.name for link in lab.reopened.plan.links}.isdisjoint({"par-mil", "mil-par"})
    assert lab.reopened.plan.path("par", "mil").hops > 1
    assert abs(off_ms(lab, "par", "mil")) <= allowed_ms(lab)
    needed = program.run("remove", "link", "par-ams")
    assert (needed.returncode, "Traceback" in needed.stderr) == (2, False)
    assert set(lab.reopened.state_of_hosts().values()) == {"answers"}


def test_what_cannot_be_changes_nothing(lab: Lab, program: Program) -> None:
    before = lab.provider.kernels()  # type: ignore[attr-defined]
    for words in (["add", "host", "par", "ams"], ["add", "link", "ams", "lon"], ["remove", "host", "lon"]):
        refused = program.run(*words)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    kept = program.run("down", "--keep")
    assert (kept.returncode, "cannot be kept" in kept.stderr) == (2, True)
    assert lab.provider.kernels() == before  # type: ignore[attr-defined]


def test_both_hosts_boot_while_others_wait_in_the_same_program(lab: Lab) -> None:
    """The link's two ends boot one after the other; who waits for the first must not keep the second from it."""
    if lab.time == "real":
        pytest.skip("there nobody waits for a turn")
    now = lab.reopened
    more = add_host(now.plan, "waits", "bra", {"rtt": "2ms"})
    with now.provider.together() as pool:
        argv = ["ping", "-q", "-i", "0.1", "-c", "200", now.plan.host("mil").address]
        talk = pool.start(partial(now.provider.run, "lju", argv, timeout_s=120, check=False))
        assert edit.alter(now, more, quiet) == {"bra", "waits"}
        assert " 0% packet loss" in talk.result().stdout
    again = now.reopened
    edit.alter(again, remove_host(again.plan, "waits"), quiet)


def test_what_leaves_is_gone_and_routes_go_where_they_went(lab: Lab, program: Program) -> None:
    program.succeeds("remove", "host", "par")
    assert not (lab.rundir / "hosts" / "par").exists()
    assert "par" not in lab.provider.kernels()  # type: ignore[attr-defined]
    assert abs(off_ms(lab, "ams", "mil")) <= allowed_ms(lab)
    routes = user_text(lab.provider.run("lju", ["ip", "route"], timeout_s=120).stdout)
    assert "10.255.0.5" not in routes
    events = [json.loads(line) for line in program.succeeds("events").splitlines()]
    told = [
        (each["event"], each.get("host", each.get("link"))) for each in events if each["event"] in ("added", "removed")
    ]
    assert [each for each in told if each[1] != "waits"] == [
        *(("added", "par"), ("added", "par-mil")),
        *(("removed", "par-mil"), ("removed", "par")),
    ]


def test_whoever_is_killed_while_adding_leaves_nothing_that_down_does_not_take(lab: Lab, program: Program) -> None:
    if lab.time == "real":
        pytest.skip("once is enough")
    adding = program.start("add", "host", "rom", "mil", "rtt=2ms")
    deadline = time.monotonic() + 60
    while not (lab.rundir / "hosts" / "rom").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(adding.pid, signal.SIGKILL)
    adding.wait()
    program.succeeds("down")
    assert lab_processes.marked_pids(lab.rundir) == []
    assert not lab.rundir.exists()
