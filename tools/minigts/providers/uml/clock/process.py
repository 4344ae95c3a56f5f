"""The process of a lab's clock, which the supervisor starts and tells about kernels.

Standard library only, like the supervisor.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from minigts import paths
from minigts.language import documents
from minigts.machine import shell
from minigts.providers.agent import lab_processes, sockets
from minigts.providers.agent.agent_line import SupervisedProcess
from minigts.providers.uml.run import confinement, system_calls
from minigts.providers.uml.run.command_line import Connection, GuestKernel

SOCKET = "clock.sock"
"""The socket on which the clock listens for clients, in the run directory, the supervisor's working directory."""
LAB = paths.CLOCK
LONGEST_TURN_S, LONGEST_TURN_ALONE_S = 60, 300
"""How much of a processor a kernel may use in a turn, or how long use none (turn.rs of the clock). One that is alone
holds nobody up: it may compute for long."""
EPOCH_NS = 1_767_225_600 * 10**9
"""1 January 2026: the time of day at which a lab with its own clock begins, unless it continues a kept lab."""


@dataclass(frozen=True)
class ClockOrder:
    """The settings of a lab's clock. `wires` holds a machine, a port and the wire that it sends into, by the clock's
    names."""

    program: str
    wires: tuple[dict[str, Any], ...]
    processors: dict[str, dict[str, float]]
    """The modelled processor of each host that has one; other hosts compute in no time."""
    seed: int = 1
    """The seed of the kernels' random numbers; each host draws different ones."""
    at_once: int = 0
    """How many kernels may run at the same time; 0 means as many as this machine has processors."""
    longest_turn_s: int = LONGEST_TURN_S
    """How much of a processor a kernel may use in a turn, in seconds, until it counts as stuck and is ended."""
    epoch_ns: int = EPOCH_NS
    """The time of day at which the lab begins, in nanoseconds since 1970."""
    marks_ns: int = 10**9
    """The time between two marks of the lab's course, in nanoseconds (course.py of providers)."""
    recorded_ns: tuple[int, int] | None = None
    """From when to when every event is recorded, in nanoseconds of the lab; None: never."""


Links: TypeAlias = "Sequence[tuple[tuple[str, int], tuple[str, int]]]"
"""For each link, the (machine, port index) of its two ends."""


def layout(order: ClockOrder, machines: Sequence[GuestKernel], links: Links) -> dict[str, Any]:
    """Hosts and links by number, for the clock; an unused number stands for a host without a name."""
    numbers = {machine.name: machine.number for machine in machines}
    hosts: list[dict[str, Any]] = [{"name": "", "ports": []} for _ in range(1 + max(numbers.values(), default=-1))]
    for each in machines:
        hosts[each.number] = {
            "name": each.name,
            "ports": [port.mac for port in each.ports],
            "processor": order.processors.get(each.name),
            "trunk": each.trunk,
        }
        if each.within:
            tags = [port.tag for port in each.ports]
            hosts[each.number]["within"] = {"kernel": numbers[each.within], "tags": tags}
    return {
        "hosts": hosts,
        "links": [[(numbers[name], port) for name, port in ends] for ends in links],
        "wires": [{"host": numbers[one["host"]], "port": one["port"], "wire": one["wire"]} for one in order.wires],
    }


class ClockProcess:
    """The running clock of a lab. It ends with the supervisor, or when it is closed."""

    def __init__(
        self,
        order: ClockOrder,
        machines: Sequence[GuestKernel],
        links: Links,
        rundir: Path,
    ) -> None:
        self._order = order
        self._numbers = itertools.count(1)
        self._starts: dict[int, int] = {}
        course = {"every_ns": order.marks_ns}
        if order.recorded_ns is not None:
            course["from_ns"], course["until_ns"] = order.recorded_ns
        lab = {
            "epoch_ns": order.epoch_ns,
            "at_once": order.at_once,
            "longest_turn_s": order.longest_turn_s,
            "course": course,
            **layout(order, machines, links),
        }
        (rundir / LAB).write_text(json.dumps(lab))
        self.process: SupervisedProcess
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as stack, (rundir / "clock.log").open("ab") as log:
            stack.callback(theirs.close)
            listener = stack.enter_context(sockets.listening(SOCKET))
            own = os.open(rundir / LAB, os.O_RDONLY)
            stack.callback(os.close, own)
            recording = (
                [] if order.recorded_ns is None else [stack.enter_context((rundir / paths.RECORDING).open("wb"))]
            )
            given = [theirs.fileno(), listener.fileno(), *(file.fileno() for file in recording)]
            self.process = shell.start(
                [order.program, f"/proc/self/fd/{own}", *map(str, given)],
                output=log.fileno(),
                pass_fds=(own, *given),
                env={lab_processes.MARK: str(rundir)},
                new_session=False,
                dies_with_parent=True,
                before_exec=confinement.prepare(
                    [confinement.may_run(Path(order.program).parent), confinement.may_read(rundir / LAB)],
                    calls=system_calls.CLOCK,
                ),
            )

    @contextmanager
    def connect(self, machine: GuestKernel, line: socket.socket) -> Iterator[Connection]:
        """A context that announces a kernel about to start, whose control line ends in `line`. The kernel's descriptors
        are open within it."""
        number, call_ns = machine.number, int(self._order.processors.get(machine.name, {}).get("call_ns", 0))
        pairs = [socket.socketpair() for _ in range(2 + (1 if machine.trunk else len(machine.ports)))]
        try:
            clocks = [ours.fileno() for ours, _ in pairs]
            descriptors = [clocks[0], line.fileno(), *clocks[1:]]
            start = self._starts[number] = next(self._numbers)
            socket.send_fds(self._control, [json.dumps({"host": number, "start": start}).encode()], descriptors)
            yield Connection(
                number, self._order.seed * 1000 + number, call_ns, [theirs.fileno() for _, theirs in pairs]
            )
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()

    def tell_process(self, machine: GuestKernel, process: int) -> None:
        """Tell the clock which process the machine's kernel is, that was connected last: it looks what that uses."""
        told = {"host": machine.number, "start": self._starts[machine.number], "process": process}
        self._control.send(json.dumps(told).encode())

    def listen(self, lost: Callable[[int, str], None], ended: Callable[[], None] = lambda: None) -> None:
        """Have `lost` called with the number of each host that the clock drops, and the reason; its kernel must be
        ended. `ended` is called when the clock has ended by itself."""
        asyncio.get_running_loop().add_reader(self._control, self._hear, lost, ended)

    def _hear(self, lost: Callable[[int, str], None], ended: Callable[[], None]) -> None:
        try:
            said = self._control.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:  # the clock has ended
            asyncio.get_running_loop().remove_reader(self._control)
            ended()
            return
        told = documents.document(said)
        if self._starts.get(told["host"]) == told["start"]:
            lost(told["host"], told["why"])

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self.process.kill()
        self.process.wait()
