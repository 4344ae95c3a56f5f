"""Host load: other load on this machine while something was measured, and which samples it has spoilt.

It comes from two snapshots of /proc and a timer thread between them. A figure that a machine does not offer
(pressure-stall information, a control group's throttling) is None. Sources: proc(5); Documentation/accounting/psi.rst
and scheduler/sched-stats.rst. The limits were found by measurement: `bench/run guard` loads the machine during a random
half of its samples; docs/evidence/trust-measured.md has its figures.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts.machine.proc import PROC, TICKS_PER_SECOND, family, text_of, used_s
from minigts.topology.time import Time

CONTROL_GROUPS = Path("/sys/fs/cgroup")
TICK_S = 0.01
"""The period in seconds of the timer whose lag is measured; a shorter one would keep a core from sleeping."""
_BUSY = (0, 1, 2, 5, 6)
"""The indexes of user, nice, system, irq and softirq in a line of /proc/stat; user includes guests."""
_STEAL = 7
LIMITS = {
    "foreign_cores": 0.25,
    "steal_cores": 0.05,
    "memory_stalled": 0.02,
    "throttled_s": 0.005,
    "dropped": 0,
}
"""The limits, in the units of `HostLoad`, above which a figure taints the sample."""
WORDS = {
    "foreign_cores": "other programs used {:.2f} processors",
    "steal_cores": "other guests of the outer machine took {:.2f} processors",
    "memory_stalled": "processes waited for memory {:.0%} of the time",
    "throttled_s": "the control group was throttled for {:.3f} s",
    "dropped": "delays of the hosts ran full and dropped {} packets",
}


class HostLoad(BaseModel):
    """The load in one span of time on this machine. Processor use is in cores: 0.5 is half of one, all the time.

    None is what the machine does not offer. `foreign_cores` is what programs other than the lab and this one used;
    `waited_cores` how long the lab's processes waited for a processor; `cpu_stalled` and `memory_stalled` the share of
    the time in which some process of the machine waited for either; `lag_ms` the worst lateness of a 10 ms timer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float
    cores: int
    foreign_cores: float
    own_cores: float
    waited_cores: float
    steal_cores: float
    lag_ms: float
    cpu_stalled: float | None = None
    memory_stalled: float | None = None
    throttled_s: float | None = None
    dropped: int | None = None
    """Packets that the hosts' delays dropped though no loss was declared; None when it was not read."""


@dataclass(frozen=True)
class Snapshot:
    """Counters since boot, in seconds. `waited_s` is by thread."""

    at_s: float
    busy_s: float
    steal_s: float
    own_s: float
    waited_s: Mapping[int, float]
    cpu_stalled_s: float | None
    memory_stalled_s: float | None
    throttled_s: float | None


@dataclass
class LoadRecording:
    """The result of `recording`: `load` is set when the block has ended, and stays None in virtual time."""

    load: HostLoad | None = None


@contextmanager
def recording(roots: Iterable[int], time: Time = "real") -> Iterator[LoadRecording]:
    """Record this machine's load during a block. The processes `roots` and all their children are the lab's.

    This process does not count as foreign; its children do, unless they are the lab's. Nothing is recorded in virtual
    `time`, whose figures do not depend on the machine's load.
    """
    record, own, timer = LoadRecording(), tuple(roots), _Timer()
    if time == "virtual":
        yield record
        return
    before = snapshot(own)
    timer.start()
    try:
        yield record
    finally:
        lag_ms = timer.stop()
        record.load = load_between(before, snapshot(own), lag_ms)


def taints(load: HostLoad | None) -> tuple[str, ...]:
    """The reasons why a sample taken under this load is doubtful, a phrase each; empty when it is not."""
    if load is None:
        return ()
    values = {name: getattr(load, name) for name in LIMITS}
    return tuple(
        WORDS[name].format(value) for name, value in values.items() if value is not None and value > LIMITS[name]
    )


def snapshot(roots: Iterable[int], proc: Path = PROC) -> Snapshot:
    """The counters now. A process that ends meanwhile is left out."""
    counters = [int(word) / TICKS_PER_SECOND for word in text_of(proc / "stat").partition("\n")[0].split()[1:]]
    own_s = used_s(os.getpid(), proc, with_children=False)
    waited_s: dict[int, float] = {}
    for pid in family(roots, proc):
        own_s += used_s(pid, proc)
        waited_s.update(_waited_s(proc / str(pid) / "task"))
    return Snapshot(
        at_s=time.monotonic(),
        busy_s=sum(counters[index] for index in _BUSY),
        steal_s=counters[_STEAL] if len(counters) > _STEAL else 0.0,
        own_s=own_s,
        waited_s=waited_s,
        cpu_stalled_s=_stalled_s(proc / "pressure/cpu"),
        memory_stalled_s=_stalled_s(proc / "pressure/memory"),
        throttled_s=_throttled_s(proc / "self/cgroup"),
    )


def load_between(before: Snapshot, after: Snapshot, lag_ms: float) -> HostLoad:
    """The load between two snapshots. Ticks are coarse, so a negative difference counts as zero."""
    seconds = max(after.at_s - before.at_s, 1e-6)
    busy_s, own_s = after.busy_s - before.busy_s, after.own_s - before.own_s
    waited_s = sum(total - before.waited_s.get(thread, 0.0) for thread, total in after.waited_s.items())

    def share(later_s: float | None, earlier_s: float | None) -> float | None:
        return None if later_s is None or earlier_s is None else round((later_s - earlier_s) / seconds, 4)

    throttled_s = None
    if after.throttled_s is not None and before.throttled_s is not None:
        throttled_s = round(after.throttled_s - before.throttled_s, 6)
    return HostLoad(
        seconds=round(seconds, 4),
        cores=os.cpu_count() or 1,
        foreign_cores=round(max(0.0, busy_s - own_s) / seconds, 4),
        own_cores=round(max(0.0, own_s) / seconds, 4),
        waited_cores=round(max(0.0, waited_s) / seconds, 4),
        steal_cores=round((after.steal_s - before.steal_s) / seconds, 4),
        lag_ms=round(lag_ms, 3),
        cpu_stalled=share(after.cpu_stalled_s, before.cpu_stalled_s),
        memory_stalled=share(after.memory_stalled_s, before.memory_stalled_s),
        throttled_s=throttled_s,
    )


class _Timer:
    """Sleeps for 10 ms repeatedly, and keeps the worst lateness of its waking."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._worst_s = 0.0
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> float:
        """The worst lateness, in milliseconds."""
        self._stopped.set()
        self._thread.join()
        return self._worst_s * 1000

    def _tick(self) -> None:
        while not self._stopped.is_set():
            wanted = time.monotonic() + TICK_S
            time.sleep(TICK_S)
            self._worst_s = max(self._worst_s, time.monotonic() - wanted)


def _waited_s(tasks: Path) -> Iterator[tuple[int, float]]:
    """How long each thread was ready to run and did not, in seconds: the second word of its schedstat, in ns. None of a
    process that has ended."""
    try:
        threads = [*tasks.iterdir()]
    except OSError:
        return
    for thread in threads:
        words = text_of(thread / "schedstat").split()
        if len(words) == 3:
            yield int(thread.name), int(words[1]) / 1e9


def _stalled_s(pressure: Path) -> float | None:
    """The seconds stalled, from `some avg10=0.00 avg60=0.00 avg300=0.00 total=3089886825` in microseconds."""
    total = text_of(pressure).partition("\n")[0].partition("total=")[2]
    return int(total) / 1e6 if total.isdigit() else None


def _throttled_s(membership: Path) -> float | None:
    """How long this process's control group was throttled, in seconds; from `throttled_usec` in version 2, and
    `throttled_time` (nanoseconds) in version 1."""
    for line in text_of(membership).splitlines():
        _, controllers, group = line.split(":", 2)
        folder = CONTROL_GROUPS / ("cpu" if "cpu" in controllers.split(",") else "")
        if controllers and "cpu" not in controllers.split(","):
            continue
        facts = dict(row.split(" ", 1) for row in text_of(folder / group.lstrip("/") / "cpu.stat").splitlines())
        if "throttled_usec" in facts:
            return int(facts["throttled_usec"]) / 1e6
        if "throttled_time" in facts:
            return int(facts["throttled_time"]) / 1e9
    return None
