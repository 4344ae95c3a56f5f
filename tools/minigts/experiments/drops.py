"""Packets that the hosts' delays dropped by themselves: a host was starved, or a delay ran full. None was declared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minigts.dataplane import shaping
from minigts.fidelity.host_load import Recording, recording
from minigts.lab import Lab
from minigts.topology.plan import Host, Switch

SHOW = ("tc", "-s", "-j", "qdisc", "show")
TIMEOUT_S = 30.0


class Drops:
    """Counts a lab's drops from one block to the next. `expected` while links are set so that delays may run full."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.expected = False
        self._before = self._now()

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """As `host_load.recording`, with what the lab's hosts dropped; they are asked when the block has ended."""
        with recording(self._lab.provider.processes()) as machine:
            yield machine
        now = self._now()
        dropped, self._before = max(0, now - self._before), now
        if machine.load is not None and not self.expected:
            machine.load = machine.load.model_copy(update={"dropped": dropped})

    def _now(self) -> int:
        return sum(self._lab.on_every_machine(self._of).values())

    def _of(self, machine: Host | Switch) -> int:
        shown = self._lab.provider.run(machine.name, SHOW, timeout_s=TIMEOUT_S).stdout
        return sum(shaping.dropped(port, shown) for port in machine.ports)
