"""A topology file that is edited while its lab runs, and `up` of it, in both times: what changes, and what runs on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from live.conftest import quiet, state_directory
from live.exact import EXACT_MS
from live.program import Program, until
from minigts import lab as labs
from minigts.dataplane.round_trip import echo_ms
from minigts.foreign import user_text
from minigts.lab import Lab, calibration
from minigts.topology.read.load import parse

FILE = """name: edited
defaults: {host: {memory: 256MB}}
hosts: {ams: , bra: , lju: }
links:
- {ends: [ams, bra], rtt: 10ms}
- {ends: [bra, lju], rtt: 20ms}
"""
SLOWER = FILE.replace("rtt: 10ms", "rtt: 30ms")
LARGER = SLOWER.replace("ams: ,", "ams: , par: ,") + "- {ends: [par, bra], rtt: 6ms}\n"
MOVED = LARGER.replace("[bra, lju], rtt: 20ms", "[par, lju], rtt: 4ms")
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
    with state_directory(tmp_path_factory.mktemp("edited")):
        made = labs.up(parse(FILE, "edited.yaml", time=request.param), "uml", None, quiet)
        yield made
        labs.down(made)


@pytest.fixture
def program(lab: Lab) -> Program:
    return Program(lab.rundir.parents[1])


@pytest.fixture
def up(lab: Lab, program: Program, tmp_path: Path) -> Callable[..., str]:
    """`minigts up` of a file with that text; what it printed."""

    def run(text: str, *options: str, code: int = 0) -> str:
        (tmp_path / "edited.yaml").write_text(text)
        done = program.run("up", str(tmp_path / "edited.yaml"), "--time", lab.time, *options)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done.stdout + done.stderr

    return run


def off_ms(lab: Lab, source: str, target: str) -> float:
    """How far the round trip lies from the plan's, as the lab is now."""
    plan = lab.reopened.plan
    path, address = plan.path(source, target), plan.host(target).address
    calibration.probe(lab.provider, source, address, count=1)  # neighbours ask for each other's MAC first
    measured = calibration.probe(lab.provider, source, address, count=10)
    return measured.median_ms - echo_ms(plan, path) if lab.time == "virtual" else min(measured.rtts_ms) - path.rtt_ms


def is_as_planned(lab: Lab, source: str, target: str) -> bool:
    return abs(off_ms(lab, source, target)) <= (EXACT_MS if lab.time == "virtual" else BUSY_MS)


def kernels(lab: Lab) -> dict[str, int]:
    return dict(lab.provider.kernels())  # type: ignore[attr-defined]


def test_a_link_is_set_under_traffic_after_a_dry_run_that_changes_nothing(lab: Lab, up: Callable[..., str]) -> None:
    before, kept = kernels(lab), lab.read_record()
    assert "~ link ams-bra delay 5 ms -> 15 ms" in up(SLOWER, "--dry-run")
    assert lab.read_record() == kept
    lab.provider.run("lju", ["iperf3", "-s", "-D", "-1"], timeout_s=120)
    client = ["iperf3", "-J", "-c", lab.plan.host("lju").address, "-t", "20", "-b", "1M"]
    with ThreadPoolExecutor(1) as beside:
        talk = beside.submit(lab.provider.run, "ams", client, timeout_s=120, check=False)
        time.sleep(1)
        said = up(SLOWER)
        spoken = talk.result()
    assert "error" not in json.loads(user_text(spoken.stdout))
    assert "lab edited is as the file says now" in said
    assert kernels(lab) == before
    assert lab.reopened.plan.path("ams", "lju").rtt_ms == 50
    assert is_as_planned(lab, "ams", "lju")


@pytest.mark.nightly
def test_hosts_and_links_come_and_go_and_the_second_up_has_nothing_to_do(lab: Lab, up: Callable[..., str]) -> None:
    before = kernels(lab)
    said = up(LARGER)
    assert "started again: bra" in said
    assert lab.reopened.plan.host("par").memory_mb == 256
    assert is_as_planned(lab, "par", "lju")
    said = up(MOVED)
    assert "- link bra-lju" in said
    assert is_as_planned(lab, "lju", "ams")
    assert lab.reopened.plan.host("lju").address == "10.255.0.3"
    assert kernels(lab)["ams"] == before["ams"]
    assert "lab edited is up as the file says" in up(MOVED, "--dry-run")
    up(FILE)
    assert set(kernels(lab)) == {"ams", "bra", "lju"}
    assert is_as_planned(lab, "ams", "lju")


def test_what_needs_a_new_lab_is_refused_and_nothing_changes(lab: Lab, up: Callable[..., str]) -> None:
    before, plan = kernels(lab), lab.reopened.plan
    kept = lab.reopened.read_record()
    text = SLOWER.replace("lju: }", "lju: {memory: 512MB}}")
    said = " ".join(up(text, code=2).split())
    assert "host lju: memory: a host gets its memory as it boots" in said
    assert "minigts down edited" in said
    assert "! host lju: memory" in up(text, "--dry-run")
    assert (kernels(lab), lab.reopened.plan, lab.reopened.read_record()) == (before, plan, kept)


STAGES: dict[str, Callable[[Lab, bool], bool]] = {
    "recorded": lambda lab, _: bool(lab.reopened.read_record().becoming),
    "started": lambda lab, comes: ("par" in kernels(lab)) == comes,
    "planned": lambda lab, comes: any(host.name == "par" for host in lab.reopened.plan.hosts) == comes,
}


@pytest.mark.nightly
@pytest.mark.parametrize("stage", STAGES)
def test_whoever_is_killed_while_applying_leaves_a_lab_with_which_the_next_up_goes_on(
    lab: Lab, program: Program, up: Callable[..., str], tmp_path: Path, stage: str
) -> None:
    """Host `par` comes where it is not there, and goes where it is."""
    if lab.time == "real":
        pytest.skip("once is enough")
    comes = "par" not in kernels(lab)
    text = MOVED if comes else FILE
    (tmp_path / "other.yaml").write_text(text)
    applying = program.start("up", str(tmp_path / "other.yaml"))
    reached = until(lambda: applying.poll() is not None or STAGES[stage](lab, comes))
    os.kill(applying.pid, signal.SIGKILL)
    applying.wait()
    assert reached
    assert lab.reopened.read_record().becoming
    assert "first an alteration that was interrupted is completed" in up(text, "--dry-run")
    up(text)
    record = lab.reopened.read_record()
    assert (record.becoming, record.unsettled) == ("", frozenset())
    assert set(lab.reopened.state_of_hosts().values()) == {"answers"}
    assert ("par" in kernels(lab), (lab.rundir / "hosts" / "par").exists()) == (comes, comes)
    assert is_as_planned(lab, "lju", "ams")
    if comes:
        assert is_as_planned(lab, "par", "ams")
