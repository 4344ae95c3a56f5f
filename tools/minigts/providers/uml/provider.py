"""Provider `uml`: every host a User-Mode Linux kernel, one process of the caller's; no root, no KVM."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

from minigts import paths
from minigts.errors import CommandFailed, EnvironmentLacks, HostFailed, MinigtsError
from minigts.machine import memory
from minigts.machine.proc import is_stopped, stat_fields
from minigts.providers import gateway, processor_share
from minigts.providers.agent import ended, process
from minigts.providers.agent.patience import Conditions
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.base import Finding, Share, Supports
from minigts.providers.uml import (
    capacity,
    carried,
    confinement,
    demand,
    disks,
    doctor,
    full_kernel,
    guest,
    image,
    kernel,
    layers,
    made_of,
    memory_lack,
    own_roots,
    packing,
    prerequisites,
    way_out,
)
from minigts.providers.uml.console import MOST_BYTES
from minigts.providers.uml.full_kernel import FullKernel
from minigts.providers.uml.kernel import ONE_PROCESSOR, GuestKernel, Port
from minigts.providers.uml.supervisor import Launch
from minigts.topology.gateway import MAC
from minigts.topology.parts import Machine
from minigts.topology.plan import Plan

MODULES = PurePosixPath("/usr/lib/modules")
SYNC_TIMEOUT_S = 20.0
STOP_DEADLINE_S = 10.0


class UmlProvider(AgentProvider):
    """See `providers.base.Provider`. The run directory holds every socket, disk and log of the lab."""

    name = "uml"
    about = "one User-Mode Linux kernel a host; no root, no KVM"
    engine: Literal["docker", "namespace"] = "docker"
    supports = Supports(
        frozenset(
            {
                "a share of a processor",
                "memory of its own",
                "a way out",
                "sysctls of a kernel of its own",
                "packages",
                "an image of its own",
            }
        ),
        {"several processors": ONE_PROCESSOR},
    )
    _share = Share()

    def missing(self) -> list[str]:
        return kernel.missing() + image.missing()

    def findings(self) -> Iterable[Finding]:
        return doctor.findings(prerequisites.gather())

    def prepare(self, progress: Callable[[str], None]) -> None:
        image.ensure(progress)

    def made_of(self) -> Mapping[str, Path]:
        return made_of.of_lab(self.rundir) or made_of.of_a_new_lab(virtual=False)

    def is_built(self) -> bool:
        return image.present() is not None

    def pack(self, target: Path, progress: Callable[[str], None]) -> str:
        return carried.export(target, (), progress).sha256

    def unpack(self, packed: Path, sha256: str, progress: Callable[[str], None]) -> None:
        carried.load(packed, progress, sha256)

    def require_room(self, plan: Plan, overlays: Sequence[str]) -> None:
        capacity.require_ports(plan)
        demand.require(demand.of_plan(plan), overlays)

    def foresight(self, plan: Plan, overlay: str) -> tuple[str, ...]:
        return capacity.foresight(plan, overlay)

    def hand(self, share: Share) -> None:
        self._share = share

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        names = [machine.name for machine in plan.machines]
        starts = process.supervisor(self.rundir) is None
        if starts:
            refuse_share(plan, self._share)
            gateway.require(plan)
            self.require_room(plan, [demand.BARE])  # an overlay, which may be another than the plan's, is the caller's
            kept = disks.read(self.rundir)
            launch = self._launch(plan, progress)
            if kept is not None:
                disks.require_fit(kept, launch, self.rundir)
                launch = going_on(launch, kept)
            groups, whole = processor_share.make(plan, self.rundir), processor_share.of_lab(self._share, self.rundir)
            guest.start(self.rundir, _limited(launch, groups), on_disks=kept is not None, groups=whole)
        try:
            guest.wait(self, names, progress)
            full = full_kernel.present()
            if starts and full is not None:
                self._tell_what_is_built_in(names, full)
        except MinigtsError:
            process.end(self.rundir)
            raise

    def _launch(self, plan: Plan, progress: Callable[[str], None]) -> Launch:
        """What the supervisor is to start for the plan; what that takes is built now if it must be."""
        ready, full = image.ensure(progress), full_kernel.present()
        layered = {**layers.roots(plan, ready, progress), **own_roots.roots(plan, ready, progress)}
        return launch_of(plan, ready, ready.boot if full is None else full.directory, layered)

    def _tell_what_is_built_in(self, names: Sequence[str], full: FullKernel) -> None:
        """So that a script may load a module and need not know that it is there already. A kernel that has hostfs is
        lent it by the supervisor.
        """
        if confinement.version() > 0:
            return

        def tell(name: str) -> None:
            self.put(name, full.modules, MODULES / full.modules.name)

        with self.together() as company:
            company.all([partial(tell, name) for name in names])

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        if not (self.rundir / "hosts" / host).is_dir():
            raise HostFailed(f"there is no host {host} in this lab")
        packing.put(self, host, self.rundir / "shared" / host, source, target)

    def get(self, host: str, source: PurePosixPath, target: Path) -> None:
        returned = self.rundir / "shared" / host / kernel.RETURNED
        if (self.rundir / "hosts" / host).is_dir() and packing.can_return(returned):
            packing.get(self, host, returned, source, target)
        else:
            super().get(host, source, target)

    def logs(self, host: str) -> Mapping[str, Path]:
        before = self.rundir / "hosts" / host / "console.log"  # of a lab that was brought up by a minigts of before
        console = {"console.log": before} if before.exists() else super().logs(host)
        return {**console, ended.LOG: ended.log(self.rundir, host), way_out.LOG: way_out.log(self.rundir, host)}

    def _conditions(self, host: str) -> Conditions:
        kernel.require_not_paused(self.rundir, host)
        return Conditions(
            is_held=partial(self._is_held, host),
            is_stopped=_StoppedKernel(self.rundir, host).is_stopped,
            remedy=f"minigts restart {host}",
            ailment=partial(self._lack_of_memory, host),
        )

    def _lack_of_memory(self, host: str) -> str:
        """What is known of it on this machine, for one that does not answer."""
        if told := memory_lack.in_words(self.ended_for_memory(host)):
            return told
        machines = {each.name: each for each in Launch.read(self.rundir / process.LAUNCH).machines}
        pid = self.kernels().get(host)
        return "" if pid is None else memory_lack.in_use(pid, machines[host].memory_mb)

    def ended_for_memory(self, host: str) -> tuple[str, ...]:
        return memory_lack.ended(self._console(host))

    def _console(self, host: str) -> bytes:
        """What the host's console has said; nothing where there is none."""
        try:
            return paths.read_whole(self.rundir / kernel.console(host), MOST_BYTES)
        except OSError:
            return b""

    def _is_held(self, host: str) -> bool:
        return kernel.paused(self.rundir, host).exists() or kernel.standstill(self.rundir).exists()

    def restart(self, host: str) -> None:
        """A kernel that has crashed is started again, too; what it had not yet written to its disk is lost."""
        if process.supervisor(self.rundir) is None:
            raise HostFailed("the lab's supervisor has ended")
        self._write_disk(host)
        process.remove(kernel.paused(self.rundir, host))
        kernel.again(self.rundir, host).touch()
        (self.rundir / "hosts" / host / "control.sock").unlink(missing_ok=True)
        kernel.end(self.rundir, host)
        guest.wait(self, [host], lambda _: None)

    def alter(self, plan: Plan, progress: Callable[[str], None]) -> frozenset[str]:
        capacity.require_ports(plan)
        before = Launch.read(self.rundir / process.LAUNCH)
        after = altered(before, plan)
        known = {machine.name: machine for machine in before.machines}
        new = [machine.name for machine in after.machines if machine.name not in known]
        again = [each.name for each in after.machines if each.name in known and each.ports != known[each.name].ports]
        gone = known.keys() - {machine.name for machine in after.machines}
        demand.require([each for each in demand.of_plan(plan) if each.name in new], [demand.BARE])
        running = self.kernels()
        for name in (*gone, *again):
            if name in running:
                self.kill(name)
        self._lay(plan, after)
        for name in new:
            (self.rundir / "hosts" / name).mkdir(parents=True, exist_ok=True)
        self._tell_supervisor(after)
        for name in gone:
            for directory in ("hosts", "shared", "consoles"):
                shutil.rmtree(self.rundir / directory / name, ignore_errors=True)
        started = [*new, *(name for name in again if name in running)]
        progress(f"starting {', '.join(started)}" if started else "no host is started")
        for name in again:
            if name in running:
                kernel.again(self.rundir, name).touch()
        guest.wait(self, started, progress)
        full = full_kernel.present()
        if new and full is not None:
            self._tell_what_is_built_in(new, full)
        return frozenset(started)

    def _lay(self, plan: Plan, launch: Launch) -> None:
        """Tell whatever carries the links which there are from now on, and that none of their ends is running."""

    def _tell_supervisor(self, launch: Launch) -> None:
        """Returns when it goes by that: new machines are started."""
        launch.write(self.rundir / process.LAUNCH)
        told = kernel.altered(self.rundir)
        told.touch()
        deadline = time.monotonic() + STOP_DEADLINE_S
        while told.exists():
            if process.supervisor(self.rundir) is None or time.monotonic() > deadline:
                raise HostFailed("the lab's supervisor does not answer")
            time.sleep(0.01)

    def kill(self, host: str) -> None:
        self._write_disk(host)
        process.remove(kernel.paused(self.rundir, host))
        kernel.again(self.rundir, host).unlink(missing_ok=True)
        kernel.end(self.rundir, host)
        deadline = time.monotonic() + STOP_DEADLINE_S
        while host in self.kernels():
            if time.monotonic() > deadline:
                raise HostFailed(f"{host} does not end")
            time.sleep(0.02)
        (self.rundir / "hosts" / host / "control.sock").unlink(missing_ok=True)

    def pause(self, host: str) -> None:
        """It is noted first: whoever waits for the host from then on knows of it."""
        noted = kernel.paused(self.rundir, host)
        noted.parent.mkdir(mode=0o700, exist_ok=True)
        noted.touch(mode=0o600)
        self._let_time_pass(host, pauses=True)

    def resume(self, host: str) -> None:
        self._let_time_pass(host, pauses=False)
        process.remove(kernel.paused(self.rundir, host))

    def _let_time_pass(self, host: str, *, pauses: bool) -> None:
        number = signal.SIGSTOP if pauses else signal.SIGCONT
        pid = self.kernels().get(host)
        if pid is None or not process.send_if(pid, number, lambda: self.kernels().get(host) == pid):
            raise HostFailed(f"the kernel of {host} does not run")

    def note(self, into: Path) -> datetime | None:
        """Of a lab that was ended in order the note that was made then."""
        kept = None
        if (self.rundir / process.LAUNCH).exists():
            launch = Launch.read(self.rundir / process.LAUNCH)
            kept = disks.kept_of(launch, self._time_ns(launch))
        kept = kept or disks.read(self.rundir)
        if kept is None:
            raise HostFailed(f"lab {self.rundir.name} does not run, and nothing was noted of it")
        disks.write(kept, into)
        return kept.time_of_day

    def _time_ns(self, launch: Launch) -> int | None:
        """See `disks.Kept`."""
        return None

    def disks(self) -> Mapping[str, Path]:
        found = (path for path in self.rundir.glob(f"hosts/*/{kernel.DISK}"))
        return {path.parent.name: path for path in sorted(found) if path.is_file() and not path.is_symlink()}

    @contextlib.contextmanager
    def standstill(self) -> Iterator[None]:
        """Kernels are stopped by the supervisor, who lets them run again when this process lets go of the file."""
        self._write_disks()
        file = kernel.standstill(self.rundir)
        with file.open("wb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX)
                self._wait_until_stopped()
                yield
            finally:
                file.unlink(missing_ok=True)

    def _wait_until_stopped(self) -> None:
        deadline = time.monotonic() + STOP_DEADLINE_S
        while running := [name for name, pid in self.kernels().items() if not is_stopped(pid)]:
            if time.monotonic() > deadline:
                raise HostFailed(f"{', '.join(running)} did not stop for its disk to be copied")
            time.sleep(0.01)

    def _write_disks(self) -> None:
        """One that does not answer has its disk as it was left."""
        with self.together() as company:
            company.all([partial(self._write_disk, name) for name in self.disks()])

    def _write_disk(self, host: str) -> None:
        """Unless its process is stopped: it would hold up the others' time, too."""
        if _StoppedKernel(self.rundir, host).is_stopped():
            return
        with contextlib.suppress(HostFailed, CommandFailed):
            self.run(host, ["sync"], timeout_s=SYNC_TIMEOUT_S)

    def kernels(self) -> dict[str, int]:
        """The process of this machine that is each host's kernel; its guests' programs are below it."""
        return kernel.running(self.rundir)

    def down(self) -> None:
        left = process.end(self.rundir)
        problems: list[Exception] = [MinigtsError(text) for text in [*left, *processor_share.remove(self.rundir)]]
        if problems:
            raise ExceptionGroup(f"lab {self.rundir.name} is not down", problems)


class _StoppedKernel:
    """Looks at the process of a host's kernel, and for it once: a lab may have hundreds."""

    def __init__(self, rundir: Path, host: str) -> None:
        self._rundir, self._host = rundir, host
        self._pid: int | None = None

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it."""
        if self._pid is None or not stat_fields(self._pid):
            self._pid = kernel.running(self._rundir).get(self._host)
        return self._pid is not None and stat_fields(self._pid)[:1] == ["T"]


def refuse_share(plan: Plan, share: Share) -> None:
    """Raises EnvironmentLacks where hosts of the plan are limited beside the whole lab, or have not the memory."""
    if plan.limited and share.processors is not None:
        raise EnvironmentLacks("hosts with `cpus:` below 1 have control groups of their own: hand no --processors")
    if share.memory_mb is not None:
        room = memory.Limit("--memory", share.memory_mb, share.memory_mb, "hand the lab more by --memory")
        demand.require(demand.of_plan(plan), [plan.overlay], [room])


def going_on(launch: Launch, kept: disks.Kept) -> Launch:
    """With a clock that goes on from the moment at which the disks were written last."""
    if launch.clock is None or kept.time_ns is None:
        return launch
    return replace(launch, clock=replace(launch.clock, epoch_ns=kept.time_ns))


def _limited(launch: Launch, groups: Mapping[str, Path]) -> Launch:
    """With these machines in control groups."""
    machines = (replace(each, group=str(groups.get(each.name, ""))) for each in launch.machines)
    return replace(launch, machines=tuple(machines))


def launch_of(plan: Plan, ready: image.Image, boot: Path, layered: Mapping[str, Path]) -> Launch:
    """`layered` has the file systems of the machines that start from another than the image's.

    Raises EnvironmentLacks.
    """
    program = gateway.require(plan)
    machines = tuple(
        GuestKernel(
            one.name,
            one.memory_mb,
            _ports(plan, one),
            base=str(layered.get(one.name, "")),
            way_out=program if one in plan.ways_out else "",
            number=number,
        )
        for number, one in enumerate(plan.machines)
    )
    return Launch(boot, ready.root, machines, _links(plan))


def altered(launch: Launch, plan: Plan) -> Launch:
    """With the machines and links of the plan; what was started already stays what it is, but for its ports."""
    before = {machine.name: machine for machine in launch.machines}
    numbers = itertools.count(1 + max((machine.number for machine in launch.machines), default=-1))
    machines = tuple(
        replace(before[one.name], ports=_ports(plan, one))
        if one.name in before
        else GuestKernel(one.name, one.memory_mb, _ports(plan, one), number=next(numbers))
        for one in plan.machines
    )
    return replace(launch, machines=machines, links=_links(plan))


def _ports(plan: Plan, one: Machine) -> tuple[Port, ...]:
    ways_out = [Port(MAC)] if one in plan.ways_out else []
    return (*(Port(port.mac, port.mtu, between_kernels=True) for port in one.ports), *ways_out)


def _links(plan: Plan) -> tuple[tuple[tuple[str, int], tuple[str, int]], ...]:
    ends: dict[str, list[tuple[str, int]]] = {link.name: [] for link in plan.links}
    for one in plan.machines:
        for index, port in enumerate(one.ports):
            ends[port.link].append((one.name, index))
    return tuple((pair[0], pair[1]) for pair in ends.values())
