"""Host load: what is read from /proc, and what of it taints a sample."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_lab import host_load as load_of

from minigts.dataplane import shaping
from minigts.fidelity import host_load
from minigts.fidelity.host_load import taints
from minigts.topology.read.load import parse

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, *, used: int, waited_ns: int, parent: int = 1) -> None:
    task = proc / str(pid) / "task" / str(pid)
    task.mkdir(parents=True, exist_ok=True)
    # The name may hold blanks and brackets; utime, stime, cutime and cstime are the 14th to 17th fields.
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {used} 1 2 3 20 0 3 0 99\n")
    (task / "schedstat").write_text(f"5000000000 {waited_ns} 17\n")


def machine(proc: Path, *, busy: int, steal: int, stalled_us: int | None) -> None:
    proc.mkdir(exist_ok=True)
    (proc / "stat").write_text(f"cpu  {busy} 0 0 1000 7 0 0 {steal} 0 0\ncpu0 1 2\n")
    if stalled_us is not None:
        (proc / "pressure").mkdir(exist_ok=True)
        (proc / "pressure/cpu").write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\nfull 0\n")


def test_what_others_use_is_all_that_is_used_less_the_labs_own(tmp_path: Path) -> None:
    machine(tmp_path, busy=1000, steal=0, stalled_us=0)
    process(tmp_path, 10, used=100, waited_ns=0)
    process(tmp_path, 11, used=50, waited_ns=10**9, parent=10)
    before = host_load.snapshot([10], tmp_path)
    machine(tmp_path, busy=1100, steal=5, stalled_us=40_000)
    process(tmp_path, 10, used=120, waited_ns=10**7)
    process(tmp_path, 11, used=60, waited_ns=10**9, parent=10)
    process(tmp_path, 12, used=0, waited_ns=10**7, parent=11)
    process(tmp_path, 13, used=500, waited_ns=10**9)
    after = replace(host_load.snapshot([10], tmp_path), at_s=before.at_s + 1)  # in less than its digits
    seen = host_load.load_between(before, after, 1.5)
    own_s = (20 + 10 + 6) * TICK_S  # the new child brings what its own ended children used
    assert seen.own_cores * seen.seconds == pytest.approx(own_s, rel=0.05)
    assert seen.foreign_cores * seen.seconds == pytest.approx(100 * TICK_S - own_s, rel=0.05)
    assert seen.waited_cores * seen.seconds == pytest.approx(0.02, rel=0.05)
    assert seen.steal_cores * seen.seconds == pytest.approx(5 * TICK_S, rel=0.05)
    assert seen.cpu_stalled is not None
    assert seen.memory_stalled is None


def test_a_process_that_ends_while_it_is_looked_at_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` ended with code 3, as a hostile host's processes ended then."""
    machine(tmp_path, busy=1000, steal=0, stalled_us=None)
    process(tmp_path, 10, used=100, waited_ns=10**9)

    def gone(whole: Callable[..., Any]) -> Callable[..., Any]:
        def listing(path: Any) -> Any:
            if str(path).endswith("task"):
                raise FileNotFoundError(path)
            return whole(path)

        return listing

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, gone(getattr(os, name)))
    assert host_load.snapshot([10], tmp_path).waited_s == {}


def test_the_time_in_which_memory_was_waited_for_is_a_share(tmp_path: Path) -> None:
    machine(tmp_path, busy=10, steal=0, stalled_us=0)
    memory = tmp_path / "pressure/memory"
    memory.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull 0\n")
    before = host_load.snapshot([], tmp_path)
    memory.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=30000\nfull 0\n")
    after = replace(host_load.snapshot([], tmp_path), at_s=before.at_s + 2)
    seen = host_load.load_between(before, after, 0.0)
    assert (seen.memory_stalled, seen.cpu_stalled) == (0.015, 0)


def test_the_lateness_of_a_timer_is_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose sleeps of 10 ms take 35 ms."""
    now_s = [100.0]
    timer = host_load._Timer()

    def sleep(seconds: float) -> None:
        now_s[0] += seconds + 0.025
        timer._stopped.set()

    monkeypatch.setattr(host_load.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(host_load.time, "sleep", sleep)
    timer._tick()
    assert timer._worst_s == pytest.approx(0.025)
    timer._thread.start()
    assert timer.stop() == pytest.approx(25.0)


def test_a_machine_without_pressure_or_control_groups_has_a_load_all_the_same(tmp_path: Path) -> None:
    machine(tmp_path, busy=10, steal=0, stalled_us=None)
    found = host_load.load_between(host_load.snapshot([], tmp_path), host_load.snapshot([], tmp_path), 0.0)
    assert (found.cpu_stalled, found.memory_stalled, found.throttled_s) == (None, None, None)


@pytest.mark.parametrize(
    ("membership", "file", "text"),
    [
        ("0::/lab", "lab/cpu.stat", "usage_usec 9\nthrottled_usec 250000\n"),
        ("3:cpuset:/\n2:cpu,cpuacct:/lab\n0::/", "cpu/lab/cpu.stat", "nr_throttled 1\nthrottled_time 250000000\n"),
    ],
)
def test_throttling_is_read_in_both_versions_of_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, membership: str, file: str, text: str
) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text(membership + "\n")
    (groups / file).parent.mkdir(parents=True)
    (groups / file).write_text(text)
    monkeypatch.setattr(host_load, "CONTROL_GROUPS", groups)
    machine(proc, busy=0, steal=0, stalled_us=None)
    assert host_load.snapshot([], proc).throttled_s == 0.25


def test_this_machines_load_is_recorded() -> None:
    with host_load.recording([]) as recorded:
        sum(range(3_000_000))
    assert recorded.load is not None
    assert recorded.load.own_cores > 0
    assert recorded.load.seconds > 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ()),
        ({"foreign_cores": 1.5}, ("other programs used 1.50 processors",)),
        ({"steal_cores": 0.3}, ("other guests of the outer machine took 0.30 processors",)),
        ({"memory_stalled": None, "throttled_s": None}, ()),
        ({"memory_stalled": 0.1}, ("processes waited for memory 10% of the time",)),
        ({"throttled_s": 0.05}, ("the control group was throttled for 0.050 s",)),
        ({"own_cores": 2.0, "lag_ms": 4.0, "dropped": 0}, ()),
        ({"dropped": 3}, ("delays of the hosts ran full and dropped 3 packets",)),
    ],
)
def test_a_sample_is_tainted_by_what_others_did_and_not_by_its_own_load(
    changed: dict[str, float | None], reason: tuple[str, ...]
) -> None:
    assert taints(load_of(**changed)) == reason


def test_a_delay_drops_nothing_by_itself_and_what_is_declared_does_not_count() -> None:
    shown = '[{"kind": "netem", "dev": "ifb-eth1", "drops": 4}, {"kind": "tbf", "dev": "eth1", "drops": 9}]'
    lossless, lossy = (
        parse(f"name: x\npair: {{link: {{rtt: 5ms, rate: 1mbit{loss}}}}}\n", "f").hosts[0].ports[0]
        for loss in ("", ", loss: 1%")
    )
    assert (shaping.dropped_packets(lossless, shown), shaping.dropped_packets(lossy, shown)) == (4, 0)


def test_without_a_load_nothing_is_said() -> None:
    assert taints(None) == ()
