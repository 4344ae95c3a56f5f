"""What spoiled samples of a run: the guard's readings of the machine over all of it, and packets that were dropped
though nothing declares it: a host was starved, or its delay ran full; or a wire lost what it should have brought.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from minigts.dataplane import shaping, wire
from minigts.errors import reading_from
from minigts.experiments.matrix import Sample
from minigts.fidelity.host_load import LIMITS, LoadRecording, recording
from minigts.foreign import parser_text
from minigts.lab import Lab, shown_links
from minigts.results import store
from minigts.results.schema import Guard
from minigts.topology.plan.elements import Host, Switch


def guard_summary(directory: Path, samples: Sequence[Sample]) -> Guard:
    """The limits, absent signals, and counts of tainted and repeated samples of a run."""
    results = [raw for sample in samples if (raw := store.good(directory, sample.id)) is not None]
    readings = [raw.machine for raw in results if raw.machine is not None]
    absent = [name for name in LIMITS if readings and all(getattr(each, name) is None for each in readings)]
    return Guard(
        limits=LIMITS,
        absent=tuple(absent),
        tainted=sum(bool(raw.tainted) for raw in results),
        repeated=sum(store.repeats(directory).values()),
    )


SHOW = ("tc", "-s", "-j", "qdisc", "show")
TIMEOUT_S = 30.0


class Drops:
    """Counts a lab's drops from one block to the next. They are `expected` while links are set so that delay queues may
    run full."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.expected = self._once = False
        self._before = self._now()

    def expect_once(self) -> None:
        """Expect drops in the block that is open, as a link is cut within it."""
        self._once = True

    @contextmanager
    def recording(self) -> Iterator[LoadRecording]:
        """As `host_load.recording`, with the drops of the lab's hosts, which are read when the block has ended."""
        with recording(self._lab.provider.processes()) as machine:
            yield machine
        now = self._now()
        dropped, self._before = max(0, now - self._before), now
        if machine.load is not None and not (self.expected or self._once):
            machine.load = machine.load.model_copy(update={"dropped": dropped})
        self._once = False

    def _now(self) -> int:
        if (wires := shown_links.read_wires(self._lab)) is None:
            return sum(self._lab.work_on_machines(self._of).values())
        modelled = any(host.processor is not None for host in self._lab.plan.hosts)
        return sum(
            wire.undeclared_losses(port, wires[machine.name][port.name], modelled=modelled)
            for machine in self._lab.plan.machines
            for port in machine.ports
        )

    def _of(self, machine: Host | Switch) -> int:
        shown = self._lab.provider.run(machine.name, SHOW, timeout_s=TIMEOUT_S).stdout
        with reading_from(machine.name, "what it shows of its links"):
            return sum(shaping.dropped_packets(port, parser_text(shown)) for port in machine.ports)
