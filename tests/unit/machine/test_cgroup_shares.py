"""A host's share of a processor: where it can be had, and where not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from minigts.errors import EnvironmentLacks, InputError
from minigts.machine import cgroups
from minigts.machine.cgroups import CgroupPlace
from minigts.providers import processor_share as of_a_lab
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

HALF = "name: x\ntime: real\nhosts: {a: {cpus: 0.5}, b: }\nlinks: [{ends: [a, b]}]\n"
HERE = cgroups.place()


def plan(text: str = HALF) -> Plan:
    return parse(text, "x")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Path]:
    """A /proc/self of a process in the group `lab`, with control groups mounted in directories that anybody may write
    to; their files are made when they are written."""

    def made(
        *mounts: str, cgroup: str = "3:cpuset:/\n2:cpu,cpuacct:/lab/inner\n0::/lab/inner\n", hands_on: str = "cpu"
    ) -> Path:
        proc, lines = tmp_path / "proc", []
        proc.mkdir()
        for kind in mounts:
            top = tmp_path / kind
            (top / "lab" / "inner").mkdir(parents=True)
            for group in (top, top / "lab") if kind == "cgroup2" else ():
                (group / "cgroup.subtree_control").write_text(f"memory {hands_on}\n")
            lines.append(f"none {top} {kind} rw,{'cpu,cpuacct' if kind == 'cgroup' else 'nsdelegate'} 0 0\n")
        (proc / "mounts").write_text("".join(["proc /proc proc rw 0 0\n", *lines]))
        (proc / "cgroup").write_text(cgroup)
        return proc

    return made


def test_the_first_version_has_it_beside_this_process(machine: Callable[..., Path], tmp_path: Path) -> None:
    found = cgroups.candidates(machine("cgroup"))
    assert next(found) == CgroupPlace(tmp_path / "cgroup" / "lab" / "inner", 1)
    group = CgroupPlace(tmp_path / "cgroup", 1).make("x", 0.05)
    assert (group / "cpu.cfs_quota_us").read_text() == "1000"
    assert (group / "cpu.cfs_period_us").read_text() == "20000"


def test_in_the_second_a_group_must_hand_the_controller_on(machine: Callable[..., Path], tmp_path: Path) -> None:
    found = [*cgroups.candidates(machine("cgroup2"))]
    assert found == [CgroupPlace(tmp_path / "cgroup2" / "lab", 2), CgroupPlace(tmp_path / "cgroup2", 2)]
    assert (found[0].make("x", 0.25) / "cpu.max").read_text() == "5000 20000"


@pytest.mark.parametrize("mounts", [(), ("cgroup2",)])
def test_a_machine_without_the_controller_says_so(machine: Callable[..., Path], mounts: tuple[str, ...]) -> None:
    said = cgroups.place(machine(*mounts, hands_on="pids"))
    assert said == "this machine has no control groups with the controller `cpu`"


def test_a_machine_that_does_not_let_says_where(machine: Callable[..., Path], tmp_path: Path) -> None:
    """As for a plain user: here a file is in the way of the group, which also stops root."""
    proc = machine("cgroup", cgroup="2:cpu:/\n")
    (tmp_path / "cgroup" / f"minigts-trial-{os.getpid()}").write_text("")
    said = cgroups.place(proc)
    assert said == f"no control group with a quota can be made in {tmp_path / 'cgroup'} (File exists)"


@pytest.mark.skipif(isinstance(HERE, str), reason=f"{HERE}")
def test_a_process_gets_its_share_and_no_more() -> None:
    assert isinstance(HERE, CgroupPlace)
    group = HERE.make("minigts-test-share", 0.25)
    try:
        member = cgroups.join(group)
        spin = "import time; end = time.time() + 1.5\nwhile time.time() < end: pass\nprint(time.process_time())"
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", spin],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: cgroups.enter(member),
        )
        share = float(done.stdout) / (time.monotonic() - begun)
        assert share <= 0.30
    finally:
        assert cgroups.remove("minigts-test-share") == []


@pytest.mark.skipif(isinstance(HERE, str), reason=f"{HERE}")
def test_a_group_whose_process_is_about_to_end_is_waited_for() -> None:
    assert isinstance(HERE, CgroupPlace)
    group = HERE.make("minigts-test-busy", 0.25)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as staying:
        (group / cgroups.MEMBERS).write_text(str(staying.pid))
        left = cgroups.remove("minigts-test-busy")
        assert len(left) == 1
        assert left[0].endswith("cannot be removed: Device or resource busy")
        Timer(0.3, staying.communicate).start()
        assert cgroups.remove("minigts-test-busy", patience_s=60.0) == []


def test_groups_of_a_lab_are_known_by_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "place", lambda: CgroupPlace(tmp_path, 1))
    monkeypatch.setattr(cgroups, "candidates", lambda _proc, _controller: iter([CgroupPlace(tmp_path, 1)]))
    made = of_a_lab.make(plan(), tmp_path / "one")
    other = of_a_lab.make(plan(), tmp_path / "two")["a"]
    assert set(made) == {"a"}
    for file in made["a"].iterdir():
        file.unlink()  # a control group's own files do not stand in the way
    assert of_a_lab.remove(tmp_path / "one") == []
    assert (made["a"].exists(), other.exists()) == (False, True)
    assert of_a_lab.remove(tmp_path / "two")[0].startswith(f"control group {other} cannot be removed")


def test_a_machine_that_cannot_refuses_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "place", lambda: "no such luck")
    with pytest.raises(EnvironmentLacks) as caught:
        of_a_lab.make(plan(), tmp_path)
    assert str(caught.value) == (
        "a with `cpus: 0.5`: cannot be limited here: no such luck; run minigts as root, where root may make control "
        "groups with a quota, or write `cpus: 1`"
    )
    assert of_a_lab.finding().meaning == f"refused: no such luck; for such topologies {of_a_lab.REMEDY}"
    assert of_a_lab.make(plan(HALF.replace("0.5", "1")), tmp_path) == {}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "1.5",
            "'1.5' is not a number of processors: write a whole number from 1 to 64, or a share of one, from 0.05 to",
        ),
        ("0.01", "'0.01' is not a number of processors"),
        ("half", "'half' is not a number of processors"),
        ("0", "'0' is not a number of processors"),
    ],
)
def test_what_is_no_number_of_processors(written: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(HALF.replace("0.5", written))


def test_in_virtual_time_a_share_is_refused_wherever_it_stands() -> None:
    text = "name: x\ntime: virtual\ndefaults: {host: {cpus: 0.5}}\npair: {host: {cpus: 0.25}}\n"
    with pytest.raises(InputError) as caught:
        plan(text)
    assert [problem.message.partition(":")[0] for problem in caught.value.problems] == [
        "defaults.host.cpus",
        "pair.host.cpus",
    ]


def test_the_plan_says_whole_processors_as_whole_numbers() -> None:
    assert [host.cpus for host in plan().hosts] == [0.5, 1]
    assert '"cpus": 1,' in plan().model_dump_json(indent=1)
    assert [host.name for host in plan().limited] == ["a"]
