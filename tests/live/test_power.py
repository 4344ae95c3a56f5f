"""A host whose power is cut, off for a while and started again, in both times."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from live.program import Program, until
from minigts import lab as labs
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.read.load import parse

CHAIN = "name: power\ndefaults: {link: {rate: 50mbit}}\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms}}\n"


@pytest.fixture(
    scope="module",
    params=[pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("real", marks=pytest.mark.nightly)],
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    state = tmp_path_factory.mktemp("power")
    with state_directory(state):
        made = labs.up(parse(CHAIN, "power.yaml", time=request.param), "uml", None, quiet)
        overlays.join(made, "none", quiet)
        Program(state).succeeds("kill", "bra")
        yield made
        labs.down(made)


@pytest.fixture
def program(lab: Lab) -> Program:
    return Program(lab.rundir.parents[1])


def test_it_is_off_and_says_so(lab: Lab, program: Program) -> None:
    (shown,) = json.loads(program.succeeds("status", "--json"))
    assert shown["hosts"] == {"ams": "answers", "bra": "off", "lju": "answers"}
    assert "bra is off; to start it: minigts start bra" in program.succeeds("status")
    for words in (["exec", "bra", "true"], ["kill", "bra"]):
        refused = program.run(*words)
        assert (refused.returncode != 0, "bra is off: minigts start bra" in refused.stderr) == (True, True)
    refused = program.run("start", "ams")
    assert (refused.returncode, "ams is not off" in refused.stderr) == (2, True)
    assert set(lab.provider.kernels()) == {"ams", "lju"}  # type: ignore[attr-defined]


def test_what_passes_it_is_lost_and_not_measured(lab: Lab, program: Program) -> None:
    argv = ["ping", "-c", "1", "-W", "1", lab.plan.host("lju").address]
    assert lab.provider.run("ams", argv, timeout_s=60, check=False).code == 1
    certificate = json.loads(program.succeeds("check", "--json", "--quick"))
    assert certificate["cut"] == ["ams-bra", "bra-lju"]


def test_up_leaves_it_off(lab: Lab) -> None:
    labs.up(lab.plan, "uml", lab.name, quiet)
    assert lab.read_record().off == {"bra"}


def test_started_again_it_has_its_links_as_they_were_set_meanwhile(lab: Lab, program: Program) -> None:
    program.succeeds("set", "ams-bra", "delay=20ms")
    program.succeeds("start", "bra")
    assert set(lab.state_of_hosts().values()) == {"answers"}
    said = user_text(
        lab.provider.run("ams", ["ping", "-c", "4", "-i", "0.2", lab.plan.host("lju").address], timeout_s=60).stdout
    )
    shortest_ms = float(said.rsplit(" = ", 1)[1].split("/")[0])
    assert 50 <= shortest_ms < 52 if lab.time == "virtual" else 49 <= shortest_ms < 60
    assert json.loads(program.succeeds("status", "--json"))[0]["cut"] == []


def clock_s(lab: Lab, host: str) -> float:
    return float(user_text(lab.provider.run(host, ["date", "+%s.%N"], timeout_s=60).stdout))


@pytest.mark.nightly
def test_paused_it_stands_still_and_goes_on(lab: Lab, program: Program) -> None:
    ahead_s = clock_s(lab, "bra") - clock_s(lab, "ams")
    program.succeeds("pause", "bra")
    assert json.loads(program.succeeds("status", "--json"))[0]["hosts"]["bra"] == "paused"
    assert "bra is paused; to resume it: minigts resume bra" in program.succeeds("status")
    for words in (["exec", "bra", "true"], ["kill", "bra"], ["pause", "bra"], ["down", "--keep"]):
        refused = program.run(*words)
        assert (refused.returncode != 0, "minigts resume bra" in refused.stderr) == (True, True), words
    argv = ["ping", "-c", "1", "-W", "2", lab.plan.host("lju").address]
    assert lab.provider.run("ams", argv, timeout_s=60, check=False).code == 1
    program.succeeds("set", "ams-bra", "delay=1ms")
    program.succeeds("resume", "bra")
    assert set(lab.state_of_hosts().values()) == {"answers"}
    assert lab.provider.run("ams", argv, timeout_s=60).code == 0
    behind_s = ahead_s - (clock_s(lab, "bra") - clock_s(lab, "ams"))
    assert 1.5 < behind_s < 10 if lab.time == "virtual" else abs(behind_s) < 0.5  # in real time its kernel catches up
    assert program.run("resume", "bra").returncode == 2


def test_a_connection_outlives_a_pause(lab: Lab) -> None:
    lab.provider.run("bra", ["iperf3", "-s", "-1", "-D"], timeout_s=60)
    argv = ["iperf3", "-c", lab.plan.host("bra").address, "-t", "6", "-i", "1", "-J"]

    def pauses() -> None:
        for act in (labs.pause, labs.resume):
            lab.provider.run("ams", ["sleep", "2"], timeout_s=60)
            act(lab, "bra")

    with lab.provider.together() as pool:
        said, _ = pool.all([lambda: user_text(lab.provider.run("ams", argv, timeout_s=60).stdout), pauses])
    assert isinstance(said, str)
    told = json.loads(said)
    mbit = [each["sum"]["bits_per_second"] / 1e6 for each in told["intervals"]]
    assert "error" not in told
    assert min(mbit) < 5 < max(mbit[-2:])


@pytest.mark.nightly
def test_hosts_come_and_go_while_another_is_off(lab: Lab, program: Program) -> None:
    """The one that is off gets its port more, routes and measuring end as it is started."""
    program.succeeds("kill", "bra")
    said = program.run("add", "host", "par", "bra", "rtt=2ms")
    assert said.returncode == 0, said.stderr
    now = lab.reopened
    assert (now.read_record().off, now.read_record().unsettled) == ({"bra"}, frozenset())
    assert set(now.provider.kernels()) == {"ams", "lju", "par"}  # type: ignore[attr-defined]
    joined = overlays.joined_overlay(now)
    assert joined is not None
    assert set(joined.ends) == {"ams", "bra", "lju", "par"}
    program.succeeds("start", "bra")
    argv = ["ping", "-c", "1", "-W", "2", now.plan.host("par").address]
    assert lab.provider.run("ams", argv, timeout_s=60).code == 0
    program.succeeds("kill", "ams")
    program.succeeds("remove", "host", "par")
    program.succeeds("start", "ams")
    assert set(lab.reopened.state_of_hosts().values()) == {"answers"}


FULL = "echo 1 >/proc/sys/vm/panic_on_oom; mount -t tmpfs -o size=2G full /mnt; cat /dev/zero >/mnt/full"


@pytest.mark.nightly
def test_a_kernel_that_has_panicked_says_of_what(lab: Lab, program: Program) -> None:
    assert program.run("exec", "lju", "--", "sh", "-c", FULL).returncode != 0
    assert until(lambda: "panicked" in program.succeeds("status"))
    refused = program.run("exec", "lju", "--", "true")
    assert (refused.returncode, "lju was ended by its own kernel, which panicked: Out of memory" in refused.stderr) == (
        1,
        True,
    ), refused.stderr
    program.succeeds("restart", "lju")
    assert lab.reopened.state_of_hosts()["lju"] == "answers"


def test_a_host_is_started_again_beside_one_that_has_ended_by_itself(lab: Lab, program: Program) -> None:
    """Root had the kernel of lju ended; `restart ams` then failed, since it waited for lju."""
    program.run("exec", "lju", "--", "sh", "-c", FULL)
    assert until(lambda: "panicked" in program.succeeds("status"))
    program.succeeds("restart", "ams")
    (shown,) = json.loads(program.succeeds("status", "--json"))
    assert shown["hosts"]["ams"] == "answers"
    assert "lju was ended by its own kernel" in shown["hosts"]["lju"]
    program.succeeds("restart", "lju")
    assert set(lab.reopened.state_of_hosts().values()) == {"answers"}
