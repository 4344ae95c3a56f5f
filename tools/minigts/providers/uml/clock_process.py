"""The program that tells a lab's kernels their time and carries their links: how the supervisor starts and feeds it.

Standard library only, as the supervisor.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigts.machine import shell
from minigts.providers.agent import process, sockets
from minigts.providers.uml import confinement
from minigts.providers.uml.kernel import Connection, GuestKernel

SOCKET = "clock.sock"
"""Where the clock listens for clients, in the run directory, which is where the supervisor works."""
LAB = "clock.json"
EPOCH_NS = 1_767_225_600 * 10**9
"""1 January 2026: the time of day at which every lab on a clock of its own begins, but for one that goes on."""


@dataclass(frozen=True)
class ClockOrder:
    """`wires`: for each (machine, port) what it sends into, by the names that the clock has for it."""

    program: str
    wires: tuple[dict[str, Any], ...]
    processors: dict[str, dict[str, float]]
    """What a modelled processor takes, by host; the others take no time."""
    seed: int = 1
    """Of the kernels' random numbers; each host draws its own."""
    at_once: int = 0
    """How many kernels may run side by side; 0: as many as there are processors."""
    epoch_ns: int = EPOCH_NS
    """The time of day at which it begins."""


class Clock:
    """The running clock of a lab. It ends with the supervisor, or when it is closed."""

    def __init__(
        self,
        order: ClockOrder,
        machines: Sequence[GuestKernel],
        links: Sequence[tuple[tuple[str, int], tuple[str, int]]],
        rundir: Path,
    ) -> None:
        self._numbers = {machine.name: number for number, machine in enumerate(machines)}
        self._seed = order.seed
        self._calls_ns = [int(order.processors.get(machine.name, {}).get("call_ns", 0)) for machine in machines]
        lab = {
            "epoch_ns": order.epoch_ns,
            "at_once": order.at_once,
            "hosts": [
                {"name": each.name, "ports": each.macs, "processor": order.processors.get(each.name)}
                for each in machines
            ],
            "links": [[(self._numbers[name], port) for name, port in ends] for ends in links],
            "wires": [
                {"host": self._numbers[one["host"]], "port": one["port"], "wire": one["wire"]} for one in order.wires
            ],
        }
        (rundir / LAB).write_text(json.dumps(lab))
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as stack, (rundir / "clock.log").open("ab") as log:
            stack.callback(theirs.close)
            listener = stack.enter_context(sockets.listening(SOCKET))
            own = os.open(rundir / LAB, os.O_RDONLY)
            stack.callback(os.close, own)
            self.process = shell.start(
                [order.program, f"/proc/self/fd/{own}", str(theirs.fileno()), str(listener.fileno())],
                output=log.fileno(),
                pass_fds=(own, theirs.fileno(), listener.fileno()),
                env={process.MARK: str(rundir)},
                new_session=False,
                dies_with_parent=True,
                before_exec=confinement.prepare(
                    [confinement.may_run(Path(order.program).parent), confinement.may_read(rundir / LAB)]
                ),
            )

    @contextmanager
    def connect(self, machine: GuestKernel, line: socket.socket) -> Iterator[Connection]:
        """Announce a kernel that is about to start, whose control line ends in `line`. Its ends are open within."""
        number = self._numbers[machine.name]
        pairs = [socket.socketpair() for _ in range(2 + len(machine.macs))]
        try:
            clocks = [ours.fileno() for ours, _ in pairs]
            descriptors = [clocks[0], line.fileno(), *clocks[1:]]
            socket.send_fds(self._control, [json.dumps({"host": number}).encode()], descriptors)
            yield Connection(
                number, self._seed * 1000 + number, self._calls_ns[number], [theirs.fileno() for _, theirs in pairs]
            )
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()

    def close(self) -> None:
        self._control.close()
        self.process.kill()
        self.process.wait()
