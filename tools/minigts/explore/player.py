"""Plays faults on a lab, each at its moment of the lab's time, and notes them among the lab's events.

The player is one thread with a turn of its own on the lab's clock. So time stands still while it acts, and what takes
time, such as a host's boot, takes the lab's time alone. A later fault waits for an earlier act that is not over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event

from minigts import lab as labs
from minigts import overlays
from minigts.errors import BrokenOff, MinigtsError
from minigts.explore import histories
from minigts.explore.faults import ALL_PERCENT, Fault
from minigts.explore.kinds import OF_FRAMES, Kind
from minigts.lab import Lab, changes
from minigts.lab.rundir import is_locked
from minigts.machine.progress import Progress
from minigts.providers.base import DiskFaults
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan import link_names
from minigts.topology.plan.elements import Link

LOCKED_S = 0.01
"""How long the player waits, in seconds of the lab's time, before it looks again whether the lab's lock is free."""
COMMAND_S = 120.0
FULL = ".minigts-full"
"""The file in the root directory of a host that takes all room of its disk."""
FILL = """
free=$(stat -f -c %f /) size=$(stat -f -c %S /)
at=0 piece=$((free * size))
while [ "$piece" -ge 4096 ]; do
  if fallocate -o "$at" -l "$piece" "/$1" 2>/dev/null; then
    at=$((at + piece))
  else
    piece=$((piece / 8192 * 4096))
  fi
done
"""
"""A script that takes all room of the disk, root's own share too, without writing to it."""
EMPTY = 'rm -f "/$1"'
STEP = """
to=$(($(date +%s%N) + $1))
date -s "@$((to / 1000000000)).$(printf %09d $((to % 1000000000)))" >/dev/null
"""
"""A script that steps the time of day by $1 nanoseconds."""
SIGNAL = """
pkill "-$2" -x "$1" || { echo "no process is called $1" >&2; exit 1; }
"""
"""A script that sends all processes called $1 the signal $2."""
CONTINUE = 'pkill -CONT -x "$1" || true'
START = 'setsid sh -c "$1" </dev/null >>/var/log/started-again.log 2>&1 &'
"""A script that starts a line for sh in the background."""
RATE = """
perl -e 'my $how = "\\0" x 208;
    substr($how, 0, 4) = pack("L", 0x4002);       # ADJ_TICK, ADJ_FREQUENCY
    substr($how, 16, 8) = pack("q", $ARGV[1]);
    substr($how, 88, 8) = pack("q", $ARGV[0]);
    exit(syscall(159, $how) < 0)' "$1" "$2"
"""
"""A script that gives a host's clocks a rate: $1 microseconds a tick of 10 ms, and $2 parts of 2^-16 of a millionth."""
TICK_US, PPM_A_TICK, FREQUENCY_A_PPM = 10_000, 100, 1 << 16
PREEMPT = 'echo "$1" >/sys/module/minigts/parameters/preempt'
"""A script that has a host's kernel draw where programs wait: a seed, a share in millionths, the longest wait in ns."""
SHARES_A_PERCENT = 10_000
NS_PER_MS = 1e6
NS_PER_S = 1e9


_ENDS, _HALTS, _BEGINS = range(3)
"""The orders of acts of one moment."""


@dataclass(frozen=True)
class Halt:
    """A moment, in seconds after the test's begin, at which `act` is called while time stands still. The test ends
    there unless that returns True."""

    at_s: float
    act: Callable[[], bool]


@dataclass(order=True)
class _Act:
    """Something that is done `at_s` after the test's begin. Of the same moment, ends come first, then a halt."""

    at_s: float
    order: int
    number: int
    do: Callable[[], None] = field(compare=False)


class Player:
    """Plays the faults of a seed from `begin_s` on, by the lab's clock. `until_s` after that it stops: time stands
    still, `stopped` is set and `why` says which limit it was; None: it never does. With `after` it goes on where that
    player was when it halted.
    """

    def __init__(
        self,
        lab: Lab,
        faults: Sequence[Fault],
        begin_s: float,
        until: tuple[float, str] | None,
        *,
        halt: Halt | None = None,
        after: Player | None = None,
    ) -> None:
        self._lab, self._begin_s = lab, begin_s
        self.halted_s = 0.0
        """When it halted, in seconds after the test's begin."""
        self._cut: dict[int, frozenset[str]] = {}
        """The links that each partition or flap has taken down, by the fault's number."""
        acts = [act for fault in faults for act in self._of(fault)]
        if after is not None:
            acts = [act for act in acts if (act.at_s, act.order) > (after.halted_s, _HALTS)]
            self._cut = dict(after._cut)
        if halt is not None:
            acts.append(_Act(halt.at_s, _HALTS, 0, lambda: self._halt(halt)))
        self._acts = sorted(acts)
        self._until = until
        self.stopped = Event()
        self.is_over = Event()
        """Whether the test has ended: what is broken off then has not failed."""
        self.begun, self.ended = Event(), Event()
        """Whether `play` has begun, and has come to its end."""
        self.why = ""

    def play(self) -> None:
        """Play until the end, or until `is_over`. Raises MinigtsError then."""
        self.begun.set()
        try:
            self._play()
        finally:
            self.ended.set()

    def _play(self) -> None:
        last_s = None if self._until is None else self._until[0]
        for act in self._acts:
            if last_s is not None and act.at_s >= last_s:
                break
            self._sleep_until(act.at_s)
            act.do()
        if self._until is not None:
            self._sleep_until(self._until[0])
            self._stop(self._until[1])

    def _sleep_until(self, at_s: float) -> None:
        if self.is_over.is_set():
            raise BrokenOff("the test has ended")
        provider, moment_s = self._lab.provider, self._begin_s + at_s
        left_s = moment_s - provider.now_s()
        if left_s > 0 and self._lab.time == "virtual":
            provider.sleep_until(moment_s)
        elif left_s > 0 and self.is_over.wait(left_s):
            raise BrokenOff("the test has ended")

    def _of(self, fault: Fault) -> list[_Act]:
        begin, end = self._both(fault)
        return [
            _Act(fault.at_s, _BEGINS, fault.number, lambda: self._do(fault, "fault", begin, at_s=fault.at_s)),
            _Act(fault.end_s, _ENDS, fault.number, lambda: self._do(fault, "fault over", end, at_s=fault.end_s)),
        ]

    def _wait_for_lock(self) -> None:
        """Wait until no other command changes the lab."""
        while is_locked(self._lab.rundir):
            self._lab.provider.sleep_until(self._lab.provider.now_s() + LOCKED_S)

    def _halt(self, halt: Halt) -> None:
        self._wait_for_lock()
        self.halted_s = halt.at_s
        if not halt.act():
            self._stop("it was to end there")

    def _stop(self, why: str) -> None:
        self.why = why
        self.stopped.set()
        self.is_over.wait()  # until then this thread's turn keeps the lab's time where it is

    def _do(self, fault: Fault, event: str, act: Callable[[], None], *, at_s: float) -> None:
        """Act, once no other command changes the lab. A fault that is impossible now, as to kill a host that the test
        has killed, is noted and left out."""
        self._wait_for_lock()
        about = {"number": fault.number, "what": fault.in_words}
        late_s = round(self._lab.provider.now_s() - self._begin_s - at_s, 6)
        self._lab.note({"event": event, **about, **({"late_s": late_s} if late_s > 0 else {})})
        try:
            act()
        except MinigtsError as error:
            if self.is_over.is_set():
                raise
            self._lab.note({"event": f"{event} failed", **about, "why": str(error).splitlines()[0]})

    def _both(self, fault: Fault) -> tuple[Callable[[], None], Callable[[], None]]:
        """What begins the fault, and what ends it."""
        lab, host = self._lab, fault.machines[0] if fault.machines else ""
        acts: dict[Kind, tuple[Callable[[], None], Callable[[], None]]] = {
            "partition": (lambda: self._part(fault), lambda: self._heal(fault)),
            "kill": (lambda: labs.kill(lab, host), lambda: start_again(lab, host)),
            "pause": (lambda: labs.pause(lab, host), lambda: labs.resume(lab, host)),
            "kill-process": (lambda: self._signal(host, fault), lambda: self._start(host, fault)),
            "slow-link": (lambda: self._slow(fault), lambda: self._set(fault, "delay_ms", None)),
            "flap": (lambda: self._flap(fault), lambda: self._join(fault)),
            "clock-skew": (lambda: self._step(host, fault.amount), lambda: self._step(host, -fault.amount)),
            "disk-full": (lambda: self._run(host, FILL, FULL), lambda: self._run(host, EMPTY, FULL)),
            "clock-rate": (lambda: self._rate(host, fault.amount), lambda: self._rate(host, 0.0)),
            "preempt": (lambda: self._preempt(host, fault), lambda: self._run(host, PREEMPT, "0 0 1")),
            "power-cut": (lambda: labs.kill(lab, host, fault.seed), lambda: start_again(lab, host)),
            "disk-error": (lambda: self._fail(host, fault, fault.amount), lambda: self._fail(host, fault, 0.0)),
            "disk-slow": (lambda: self._disk.delay_disk(host, fault.amount), lambda: self._disk.delay_disk(host, 0.0)),
        }
        if (field := OF_FRAMES.get(fault.kind)) is not None:
            return lambda: self._set(fault, field, fault.amount), lambda: self._set(fault, field, None)
        return acts[fault.kind]

    def _part(self, fault: Fault) -> None:
        if fault.way:
            self._lose_one_way(fault, ALL_PERCENT)
        else:
            self._take_down(fault, {link.name for link in self._apart(fault)}, SILENT)

    def _heal(self, fault: Fault) -> None:
        if fault.way:
            self._lose_one_way(fault, None)
        else:
            self._join(fault)

    def _apart(self, fault: Fault) -> list[Link]:
        """The links between the machines of a partition and all others."""
        return [link for link in self._lab.plan.links if len({*link.ends} & {*fault.machines}) == 1]

    def _lose_one_way(self, fault: Fault, percent: float | None) -> None:
        """Set what these links lose of one way of a partition; None: as declared."""
        for link in self._apart(fault):
            sender = next(end for end in link.ends if (end in fault.machines) == (fault.way == "out"))
            changes.update_settings(self._lab, link.name, {"loss_percent": percent}, sender)

    def _flap(self, fault: Fault) -> None:
        self._take_down(fault, {fault.link}, fault.outage)

    def _take_down(self, fault: Fault, names: set[str], how: Outage) -> None:
        """Take those of the links down that are up."""
        self._cut[fault.number] = frozenset(names - self._lab.read_record().cut)
        changes.set_whole(self._lab, self._cut[fault.number], up=False, how=how)

    def _join(self, fault: Fault) -> None:
        changes.set_whole(self._lab, self._cut.pop(fault.number, frozenset()), up=True)

    def _slow(self, fault: Fault) -> None:
        link = link_names.link_named(self._lab.plan, fault.link)
        for end, way in zip(link.ends, self._lab.plan.directions(link), strict=True):
            changes.update_settings(self._lab, link.name, {"delay_ms": way.delay_ms + fault.amount}, end)

    def _set(self, fault: Fault, field: str, value: float | None) -> None:
        changes.update_settings(self._lab, fault.link, {field: value})

    def _signal(self, host: str, fault: Fault) -> None:
        assert fault.process is not None
        self._run(host, SIGNAL, fault.process.program, fault.process.signal)

    def _start(self, host: str, fault: Fault) -> None:
        assert fault.process is not None
        if fault.process.signal == "STOP":
            self._run(host, CONTINUE, fault.process.program)
        if fault.process.restart is not None:
            self._run(host, START, fault.process.restart)

    @property
    def _disk(self) -> DiskFaults:
        assert isinstance(self._lab.provider, DiskFaults), "plans with faults of disks are for labs that have them"
        return self._lab.provider

    def _fail(self, host: str, fault: Fault, percent: float) -> None:
        reads, writes = (percent if fault.requests in ("all", which) else 0.0 for which in ("reads", "writes"))
        self._disk.fail_disk(host, reads, writes, fault.seed)

    def _step(self, host: str, by_s: float) -> None:
        self._run(host, STEP, str(round(by_s * NS_PER_S)))

    def _rate(self, host: str, percent: float) -> None:
        """Have the host's clocks run so much faster than the lab's."""
        ppm = percent * 10_000
        ticks = round(ppm / PPM_A_TICK)
        self._run(host, RATE, str(TICK_US + ticks), str(round((ppm - ticks * PPM_A_TICK) * FREQUENCY_A_PPM)))
        self._lab.note({"event": histories.RATE, "host": host, "percent": percent})

    def _preempt(self, host: str, fault: Fault) -> None:
        share, longest_ns = round(fault.amount * SHARES_A_PERCENT), round(fault.longest_ms * NS_PER_MS)
        self._run(host, PREEMPT, f"{fault.seed} {share} {longest_ns}")

    def _run(self, host: str, script: str, *words: str) -> None:
        self._lab.provider.run(host, ["sh", "-euc", script, "sh", *words], timeout_s=COMMAND_S)


def start_again(lab: Lab, host: str, say: Progress = lambda _: None) -> None:
    """Start a killed host again, with its `run:` commands, and join it to the overlay."""
    labs.restart(lab, host)
    overlays.rejoin(lab, host, say)
