"""Provider `uml` in virtual time: the kernels and their links share one virtual clock."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.dataplane import wire
from minigts.dataplane.wire import Wire, WireState
from minigts.errors import CommandFailed, EnvironmentLacks, HostFailed
from minigts.language.interface_names import port_name
from minigts.machine.parallel import NoTurn, Together, Turn, together, turn_of_this_thread
from minigts.machine.progress import Progress
from minigts.providers.agent import client, lab_processes, lent_turn
from minigts.providers.agent.patience import Conditions
from minigts.providers.base import CommandResult, SentFrame, Supports, Tap
from minigts.providers.course import RecordedCourse, course_request
from minigts.providers.uml import memory
from minigts.providers.uml.build import build_all, provenance
from minigts.providers.uml.clock import client as clock_client
from minigts.providers.uml.clock import tap as clock_tap
from minigts.providers.uml.clock.process import LONGEST_TURN_ALONE_S, LONGEST_TURN_S, ClockOrder, layout
from minigts.providers.uml.provider import UmlProvider
from minigts.providers.uml.run import booting, command_line
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan import chance, reseed
from minigts.topology.plan.plan import Plan

COMPUTES = re.compile(rb"time-travel: ([!-~]{1,40}\[\d{1,10}\]) computes at ")
"""A kernel's message about a program that has used ten seconds of processor time without a system call
(provision/kernel/patches/0006-spinning-programs-give-way.patch)."""

ORDER_DISK = 'echo "$2" >"/sys/module/ubd/parameters/$1"'
ORDER_TIMEOUT_S = 20.0
BOOT_LOOK_S, LONGEST_BOOT_S = 0.05, 120.0
"""By how much the lab's time passes between two looks at whether a restarted host is up, and the longest boot."""


class VirtualUmlProvider(UmlProvider):
    """See `providers.base.Provider` and `CarriesLinks`. The lab's time passes only while a client waits for a host."""

    about = "one User-Mode Linux kernel a host, all on a clock of the lab's own"
    supports = Supports(
        (UmlProvider.supports.features - {"a share of a processor", "a way out"})
        | {"a modelled processor", "light hosts", "accurate ECN", "a disk with a cache"},
        UmlProvider.supports.why_not,
    )

    def missing(self) -> list[str]:
        """What real time needs; if all of that is there, what virtual time needs besides."""
        lacks = build_all.missing()
        return super().missing() or ([build_all.lack_in_words(lacks)] if lacks else [])

    def prepare(self, progress: Progress, meanwhile: Callable[[], object] | None = None) -> None:
        build_all.ensure(progress, meanwhile)

    def is_built(self) -> bool:
        return super().is_built() and not build_all.uncompiled_products()

    def part_directories(self) -> Mapping[str, Path]:
        return provenance.lab_parts(self.rundir) or {
            **provenance.new_lab_parts(virtual=True),
            **provenance.named_kernels(),
        }

    def up(self, plan: Plan, progress: Progress) -> None:
        """All hosts begin in step. In a replicate each is then paused until its clock has its own phase."""
        starts = lab_processes.supervisor(self.rundir) is None
        super().up(plan, progress)
        phases_s = reseed.phases_s(plan) if starts else {}
        if not phases_s:
            return
        with self.together() as pool:
            began_s = self.now_s()
            for name in phases_s:
                self.pause(name)
            pool.all([partial(self._goes_on, name, began_s + phase_s) for name, phase_s in phases_s.items()])

    def _wait_until_up(self, host: str) -> None:
        """With a turn, the host is given its first command at a moment that does not depend on this machine: time
        passes by BOOT_LOOK_S until the clock has heard its agent greet."""
        if not lent_turn.number():
            super()._wait_until_up(host)
            return
        number = self._numbers()[host]

        def pass_time() -> None:
            latest_s = self.now_s() + LONGEST_BOOT_S
            while not clock_client.has_come_up(self.rundir, number):
                if self.now_s() > latest_s:
                    raise HostFailed(f"it has not come up in {LONGEST_BOOT_S:g} s of the lab's time")
                self.sleep_until(self.now_s() + BOOT_LOOK_S)

        booting.wait_with_a_turn(self, host, pass_time)

    def _goes_on(self, host: str, moment_s: float) -> None:
        self.sleep_until(moment_s)
        self.resume(host)

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """See `Provider.run`. `timeout_s` and the result's `seconds` are in the lab's time."""
        try:
            clock = clock_client.ClockClient(self.rundir)
        except HostFailed as error:
            raise HostFailed(f"host {host} is not running: {error}") from error
        with clock, lent_turn.waiting() as (turn, late_s):
            if late_s:
                clock_client.sleep_until(self.rundir, clock.now_s() + late_s, turn)
            started_s = clock.now_s()
            result = self._run(
                host,
                argv,
                timeout_s=timeout_s,
                check=check,
                stdin=stdin,
                on_output=on_output,
                turn=turn,
            )
            return replace(result, seconds=clock.now_s() - started_s)

    def run_side_by_side(
        self, commands: Mapping[str, Sequence[str]], *, timeout_s: float
    ) -> Mapping[str, CommandResult | HostFailed]:
        found: dict[str, CommandResult | HostFailed] = {}
        sides: list[client.SideCommand] = []
        for host, argv in commands.items():
            try:
                sides.append(client.SideCommand(host, argv, self._new_turn(), self._conditions(host)))
            except HostFailed as error:
                found[host] = error
        try:
            caller = turn_of_this_thread() or lent_turn.borrow() or NoTurn()
            ended = client.run_side_by_side(self.rundir, sides, timeout_s=timeout_s, caller=caller)
        finally:
            for side in sides:
                side.turn.end()
        return found | dict(zip((side.host for side in sides), ended, strict=True))

    def fork(self, plan: Plan, into: Path, seed: int) -> None:
        launch = Launch.read(self.rundir / paths.LAUNCH)
        if launch.clock is None or any(each.group for each in launch.machines):
            raise EnvironmentLacks("a lab whose hosts have a share of a processor each does not fork")
        memory.require_memory(memory.kernels_of(plan), [memory.BARE])
        clock = replace(launch.clock, recorded_ns=None, seed=chance.forked_seed(launch.clock.seed, seed))
        other = type(self)(into)
        booting.start(into, replace(launch, clock=clock, origin=str(self.rundir), seed=seed))
        running = self._running()
        for name in sorted(running):
            if command_line.pause_file(self.rundir, name).exists():
                command_line.mark(command_line.pause_file(into, name))
        booting.wait_for_fork(other, sorted(running))

    def cut_power(self, host: str, seed: int) -> None:
        self._order_disk(host, "power_cut", str(seed))
        self._end(host)

    def delay_disk(self, host: str, more_ms: float) -> None:
        own_us = next(command_line.WRITE_US if each.first_disk else 0 for each in self._kernels() if each.name == host)
        more_us = round(more_ms * 1000)
        self._order_disk(host, "late_us", f"{more_us},{own_us + more_us}")

    def fail_disk(self, host: str, reads_percent: float, writes_percent: float, seed: int) -> None:
        reads, writes = (round(share * 10_000) for share in (reads_percent, writes_percent))
        self._order_disk(host, "errors", f"{reads},{writes},{seed}")

    def _order_disk(self, host: str, what: str, order: str) -> None:
        """Give the kernel of a host an order for its disk (provision/kernel/patches/0030-a-disk-fails.patch)."""
        try:
            self.run(host, ["sh", "-euc", ORDER_DISK, "sh", what, order], timeout_s=ORDER_TIMEOUT_S)
        except CommandFailed as error:
            raise HostFailed(f"the kernel of {host} refuses an order for its disk, {what}={order}: {error}") from error

    def _turn(self) -> int | None:
        return lent_turn.number()

    def _conditions(self, host: str) -> Conditions:
        return replace(super()._conditions(host), clock=self._watch)

    def _watch(self) -> clock_client.ClockWatch:
        return clock_client.ClockWatch(self.rundir)

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, host, argv, paced=True, conditions=self._conditions(host))

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        conditions = self._conditions(host)
        return client.converse(self.rundir, host, argv, paced=True, terminal=terminal, conditions=conditions)

    def computing(self, host: str) -> tuple[str, ...]:
        return tuple(found.decode() for found in COMPUTES.findall(self._console(host)))

    def now_s(self) -> float:
        return clock_client.now_s(self.rundir)

    def _let_time_pass(self, host: str, *, pauses: bool) -> None:
        clock_client.pause(self.rundir, self._numbers()[host], pauses=pauses)

    def sleep_until(self, moment_s: float) -> None:
        with lent_turn.waiting() as (turn, _):
            clock_client.sleep_until(self.rundir, moment_s, turn)

    def together(self) -> AbstractContextManager[Together]:
        return together(self._new_turn, lent_turn.borrow)

    def _new_turn(self) -> Turn:
        try:
            return clock_client.ClockTurn(self.rundir)
        except HostFailed:  # without a clock each call reports its own host's error
            return NoTurn()

    def set_wires(self, wires: Mapping[tuple[str, str], Wire]) -> None:
        machines = {machine.name: machine for machine in self._kernels()}
        clock_client.set_wires(
            self.rundir,
            [
                {
                    "host": machines[machine].number,
                    "port": _port(machines[machine], interface),
                    "wire": one.numbers,
                }
                for (machine, interface), one in wires.items()
            ],
        )

    def wires(self) -> Mapping[tuple[str, str], WireState]:
        machines = {machine.number: machine for machine in self._kernels()}
        return {
            _end(machines[one["host"]], one["port"]): WireState(
                wire=Wire(**one["wire"]),
                frames=one["frames"],
                bytes=one["bytes"],
                dropped=one["dropped"],
                lost=one["lost"],
                queued=one.get("queued", 0),
                overrun=one.get("overrun", 0),
            )
            for one in clock_client.wires(self.rundir)
        }

    def storms(self) -> Mapping[tuple[str, str], int]:
        machines = {machine.number: machine for machine in self._kernels()}
        try:
            found = clock_client.storms(self.rundir)
        except HostFailed:  # a clock that has ended has seen none
            return {}
        return {_end(machines[one["host"]], one["port"]): one["dropped"] for one in found}

    def tap(self) -> Tap:
        launch = Launch.read(self.rundir / paths.LAUNCH)
        assert launch.clock is not None, "it has virtual time"
        machines = {machine.number: machine for machine in launch.machines}
        return _Tap(clock_tap.ClockTap(self.rundir), machines, launch.clock.epoch_ns)

    def course(self) -> RecordedCourse:
        found = clock_client.course(self.rundir)
        ports = {machine.name: _ports_by_name(machine) for machine in self._kernels()}
        hosts = (each.model_copy(update={"ports": ports.get(each.name, ())}) for each in found.hosts)
        return found.model_copy(update={"hosts": tuple(hosts)})

    def recording(self) -> Path:
        return self.rundir / paths.RECORDING

    def _launch(self, plan: Plan, progress: Progress, kept_programs: str | None) -> Launch:
        kept = course_request()
        ready = build_all.ensure(progress)
        order = ClockOrder(
            program=str(ready.clock.program),
            wires=_wires(plan),
            processors={host.name: host.processor.model_dump() for host in plan.hosts if host.processor is not None},
            seed=chance.kernel_seed(plan),
            longest_turn_s=LONGEST_TURN_S if len(plan.machines) > 1 else LONGEST_TURN_ALONE_S,
            marks_ns=kept.every_ns,
            recorded_ns=kept.recorded,
        )
        launch = self._launch_on(plan, ready.image, ready.kernel.directory, progress, kept_programs)
        return replace(launch, clock=order)

    def _lay(self, plan: Plan, launch: Launch) -> None:
        assert launch.clock is not None, "it has virtual time"
        order = replace(launch.clock, wires=_wires(plan))
        clock_client.set_topology(self.rundir, layout(order, launch.machines, launch.links))

    def _time_ns(self, launch: Launch) -> int | None:
        assert launch.clock is not None, "it has virtual time"
        with clock_client.ClockClient(self.rundir) as clock:
            return launch.clock.epoch_ns + clock.now_ns()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """See `KeepsDisks`. The lab's clock stands still while this thread has a turn and does not wait."""
        with self.together():
            self._write_disks()
            yield

    def _numbers(self) -> dict[str, int]:
        """The clock's number of each machine."""
        return {machine.name: machine.number for machine in self._kernels()}

    def _kernels(self) -> Sequence[GuestKernel]:
        try:
            return Launch.read(self.rundir / paths.LAUNCH).machines
        except OSError as error:
            raise HostFailed("the lab is not up") from error


@dataclass(frozen=True)
class _Tap:
    """See `providers.base.Tap`."""

    clock: clock_tap.ClockTap
    machines: Mapping[int, GuestKernel]
    epoch_ns: int

    def end(self) -> Sequence[SentFrame]:
        return [
            SentFrame(self.epoch_ns + each.leaves_ns, *_end(self.machines[each.host], each.port), each.content)
            for each in self.clock.end()
        ]

    def close(self) -> None:
        self.clock.close()


def _wires(plan: Plan) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"host": machine.name, "port": index, "wire": wire.wire_for(port.outgoing).numbers}
        for machine in plan.machines
        for index, port in enumerate(machine.ports)
    )


def _port(machine: GuestKernel, interface: str) -> int:
    """The clock's number of a port: its place among the machine's. Raises HostFailed where there is none."""
    for place, port in enumerate(machine.ports):
        if port.name == interface:
            return place
    raise HostFailed(f"{machine.name} has no interface {interface} of a link")


def _end(machine: GuestKernel, place: int) -> tuple[str, str]:
    """The machine, and the name of the port that has this number in the clock."""
    return machine.name, machine.ports[place].name


def _ports_by_name(machine: GuestKernel) -> tuple[str, ...]:
    """The names of a machine's ports in the clock's order, where they are not eth1, eth2, …"""
    names = tuple(port.name for port in machine.ports)
    return () if all(name == port_name(number) for number, name in enumerate(names, 1)) else names
