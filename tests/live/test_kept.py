"""Labs whose disks outlive them: kept, saved and restored; and what kills on the way leave."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from live.conftest import skip_without_programs
from live.program import TOPOLOGIES, Program, Traces, kernels, kills_at_random, until

pytestmark = [pytest.mark.uml, pytest.mark.nightly]
PAIR = str(TOPOLOGIES / "pair.yaml")
UP = ("up", PAIR, "--overlay", "none", "--time", "virtual")
REAL_UP = ("up", PAIR, "--overlay", "none", "--time", "real")
NODE = "curl -s --unix-socket /run/docker.sock http://docker/info | jq -r .Swarm.NodeID"
REACH = "ping -q -c 1 -W 5 bra >/dev/null && echo reached"
BOOT_S = 120.0
"""More than a boot and a Swarm that comes again take of the lab's own time."""


def on(program: Program, host: str, script: str, lab: str = "pair") -> str:
    return program.succeeds("exec", "--lab", lab, host, "--", "sh", "-c", script).strip()


def time_of_day(program: Program, lab: str = "pair") -> float:
    return float(on(program, "ams", "date +%s.%N", lab))


def state(program: Program) -> dict[str, object]:
    (lab,) = json.loads(program.succeeds("status", "--json"))
    assert isinstance(lab, dict)
    return lab


@pytest.mark.virtual
def test_a_kept_lab_goes_on_with_its_disks_links_and_time(program: Program, traces: Traces) -> None:
    program.succeeds(*UP)
    on(program, "ams", "echo kept >/root/file")
    program.succeeds("link", "ams", "bra", "down")
    before_s = time_of_day(program)
    traces.look()
    program.succeeds("down", "--keep")
    assert kernels(program) == {}
    assert state(program)["state"] == "kept"
    assert "lab pair is kept" in program.run("exec", "ams", "--", "true").stderr
    program.succeeds(*UP)
    assert state(program)["cut"] == ["ams-bra"]
    assert before_s < time_of_day(program) < before_s + BOOT_S
    assert on(program, "ams", "cat /root/file; find /root/file -newermt now") == "kept"
    program.succeeds("link", "ams", "bra", "up")
    assert on(program, "ams", REACH) == "reached"
    traces.look()
    program.succeeds("down")
    assert traces.left() == []


@pytest.mark.virtual
@pytest.mark.compiled
def test_an_overlay_comes_up_again_on_kept_disks(program: Program) -> None:
    """One whose hosts share a store; the next test has one whose engines do. Its programs may have to be built first,
    which takes longer than a command may here."""
    skip_without_programs("flannel")
    program.succeeds("up", PAIR, "--overlay", "flannel", "--time", "virtual")
    program.succeeds("down", "--keep")
    program.succeeds("up", PAIR, "--time", "virtual")
    reaches_over(program, "flannel")


def reaches_over(program: Program, overlay: str) -> None:
    assert state(program)["overlay"] == overlay
    ends = json.loads((program.rundir("pair") / "overlay.json").read_text())["ends"]
    argv = ("exec", "--container", "ams", "--", "ping", "-q", "-c", "1", "-W", "5", ends["bra"]["ADDRESS"])
    assert " 0% packet loss" in program.succeeds(*argv)


@pytest.mark.virtual
def test_a_swarm_on_kept_disks_is_the_same_swarm(program: Program) -> None:
    program.succeeds("up", PAIR, "--overlay", "swarm", "--time", "virtual")
    nodes = [on(program, host, NODE) for host in ("ams", "bra")]
    program.succeeds("down", "--keep")
    kept = state(program)
    assert (kept["state"], kept["overlay"]) == ("kept", "swarm")
    program.succeeds("up", PAIR, "--time", "virtual")
    assert [on(program, host, NODE) for host in ("ams", "bra")] == nodes
    assert len(set(nodes)) == 2
    reaches_over(program, "swarm")


@pytest.mark.virtual
def test_a_saved_lab_is_restored_beside_the_one_that_goes_on(program: Program, traces: Traces) -> None:
    """And its clock stood still while it was saved."""
    program.succeeds(*UP)
    on(program, "bra", "echo saved >/root/file")
    before_s = time_of_day(program)
    on(program, "ams", "while :; do date +%s.%N; sleep 0.05; done >/root/times & sleep 2")
    program.succeeds("save", "one")
    noted_s = json.loads((program.state / "saved" / "one" / "kept.json").read_text())["time_ns"] / 1e9
    on(program, "ams", "pkill -f '[/]root/times'")
    on(program, "bra", "echo later >/root/file; sleep 200")
    program.succeeds("restore", "one", "--lab", "second")
    traces.look()
    assert on(program, "bra", "cat /root/file", "second") == "saved"
    assert on(program, "bra", "cat /root/file") == "later"
    assert before_s < time_of_day(program, "second") < before_s + BOOT_S
    assert time_of_day(program) > before_s + 200
    assert on(program, "ams", REACH, "second") == "reached"
    assert noted_s - 1 < float(on(program, "ams", "tail -n 1 /root/times", "second")) <= noted_s
    program.succeeds("down", "--all")
    (saved,) = json.loads(program.succeeds("saved", "--json"))
    assert (saved["name"], saved["lab"], saved["overlay"]) == ("one", "pair", "none")
    program.succeeds("saved", "--delete", "one")
    assert traces.left("saved") == []
    assert list((program.state / "saved").iterdir()) == []


def test_in_real_time_hosts_run_on_after_they_were_saved(program: Program, traces: Traces) -> None:
    """Also when who stopped them is killed; what was saved before is whole."""
    program.succeeds(*REAL_UP)
    on(program, "ams", "echo saved >/root/file; setsid sleep 5000124 >/dev/null 2>&1 </dev/null &")
    program.succeeds("save", "one")
    assert on(program, "ams", "pgrep -cx -f 'sleep 5000124'") == "1"
    assert not (program.rundir("pair") / "standstill").exists()
    on(program, "ams", "head -c 300000000 /dev/urandom >/root/much")
    traces.look()
    saving = program.start("save", "two")
    assert until(lambda: stopped(program) == [True, True])
    saving.send_signal(signal.SIGKILL)
    saving.communicate()
    assert until(lambda: stopped(program) == [False, False])
    assert on(program, "ams", REACH) == "reached"
    assert (program.rundir("pair") / "saving").exists()
    assert [each["name"] for each in json.loads(program.succeeds("saved", "--json"))] == ["one"]
    program.succeeds("down")
    assert traces.left("saved") == []
    program.succeeds("restore", "one")
    assert on(program, "ams", "cat /root/file") == "saved"
    assert on(program, "ams", REACH) == "reached"


@pytest.mark.timeout(900)
def test_a_save_killed_at_a_random_moment(tmp_path: Path) -> None:
    """One of those that `bench/run kills --victims save` does: nothing is left, and nothing lost."""
    done, (trial,) = kills_at_random(tmp_path, "--victims", "save", "--times", "1", "--seed", "48")
    assert trial["faults"] == [], done.stdout
    assert done.returncode == 0, done.stderr


def stopped(program: Program) -> list[bool]:
    """Of each kernel whether it is stopped."""
    pids = kernels(program).values()
    return [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T" for pid in pids]


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("stage", "mend"),
    [
        ("it is noted", "up"),
        ("the record says so", "up"),
        ("a kernel has ended", "up"),
        ("a kernel has ended", "down"),
    ],
)
def test_down_keep_killed(program: Program, traces: Traces, stage: str, mend: str) -> None:
    """The next `up` has the disks, whether the lab was kept already or is still up; `down` leaves nothing."""
    program.succeeds(*UP)
    on(program, "ams", "echo kept >/root/file; sync")
    traces.look()
    rundir = program.rundir("pair")
    keeping = program.start("down", "--keep")
    reached = {
        "it is noted": (rundir / "kept.json").exists,
        "the record says so": lambda: json.loads((rundir / "lab.json").read_text())["state"] == "kept",
        "a kernel has ended": lambda: len(kernels(program)) < 2,
    }[stage]
    while not reached() and keeping.poll() is None:
        pass
    os.kill(keeping.pid, signal.SIGKILL)
    keeping.communicate()
    if mend == "up":
        program.succeeds(*UP)
        assert on(program, "ams", "cat /root/file") == "kept"
        traces.look()
    program.succeeds("down", "pair")
    assert traces.left() == []
