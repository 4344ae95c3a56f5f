"""Provider `uml`: every host is a User-Mode Linux kernel, a process of the user's; it needs neither root nor KVM."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TypedDict, TypeVar

from minigts import paths
from minigts.artifacts import kernels
from minigts.errors import CommandFailed, EnvironmentLacks, HostFailed, MinigtsError
from minigts.foreign import Foreign
from minigts.machine import limits
from minigts.machine.proc import is_stopped, stat_fields
from minigts.machine.progress import Progress
from minigts.providers import gateway, processor_share
from minigts.providers.agent import ended, lab_processes
from minigts.providers.agent.patience import Conditions
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.base import CARRIERS, Carrier, DoctorFinding, Share, Supports, WorkOfHost
from minigts.providers.uml import conditions, doctor, facts, light, memory
from minigts.providers.uml.build import (
    export,
    image,
    journals,
    kernel_build,
    layers,
    package_images,
    program_images,
    provenance,
    user_images,
)
from minigts.providers.uml.build.kernel_build import FullKernel
from minigts.providers.uml.run import booting, command_line, confinement, console, disks, forked, slirp, stubs, transfer
from minigts.providers.uml.run.command_line import ONE_PROCESSOR, GuestKernel, KernelPort
from minigts.providers.uml.run.console import MOST_BYTES
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan.elements import CACHED, Machine
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.addresses import GATEWAY_MAC

T = TypeVar("T")
MODULES = PurePosixPath("/usr/lib/modules")
SYNC_TIMEOUT_S = 20.0
CARRIER_TIMEOUT_S = 20.0
SET_CARRIERS = """
while [ $# -gt 0 ]; do
  case $2 in 1) state=on ;; *) state=off ;; esac
  [ "$(cat "/sys/class/net/$1/carrier")" = "$2" ] || ip link set dev "$1" carrier "$state"
  shift 2
done
"""
"""A script that gives interfaces a carrier (1) or takes it (0), where they are not so already."""
STOP_DEADLINE_S = 10.0
ARGUMENTS = "MINIGTS_KERNEL_ARGUMENTS"
"""The environment variable with further arguments of each kernel, separated by blanks. For tests of minigts."""


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
                "a kernel by name",
                "an image of its own",
                "name servers",
                "an interface eth0",
                CARRIERS,
            }
        ),
        {
            "several processors": ONE_PROCESSOR,
            "the queue discipline pie": "its hosts' kernel is built without it (provision/kernel/config)",
        },
    )
    _share = Share()
    _carried: tuple[Path, PurePosixPath] | None = None

    def missing(self) -> list[str]:
        return command_line.missing() + image.missing()

    def findings(self) -> Iterable[DoctorFinding]:
        return doctor.findings(facts.gather())

    def prepare(self, progress: Progress, meanwhile: Callable[[], object] | None = None) -> None:
        image.ensure(progress)

    def part_directories(self) -> Mapping[str, Path]:
        return provenance.lab_parts(self.rundir) or {
            **provenance.new_lab_parts(virtual=False),
            **provenance.named_kernels(),
        }

    def conditions(self) -> Mapping[str, str]:
        return conditions.kernel_conditions(list(command_line.running(self.rundir).values()))

    def is_built(self) -> bool:
        return image.present() is not None

    def parts_key(self) -> str:
        return export.parts_key()

    def pack(self, target: Path, progress: Progress) -> str:
        return export.export(target, (), progress).sha256

    def unpack(self, packed: str, sha256: str | None, progress: Progress) -> tuple[str, ...]:
        return tuple(part.place for part in export.take(packed, progress, sha256))

    def require_room(self, plan: Plan, overlays: Sequence[str]) -> None:
        memory.require_ports(plan)
        memory.require_memory(memory.kernels_of(plan), overlays)

    def forecast(self, plan: Plan, overlay: str) -> tuple[str, ...]:
        return memory.forecast(plan, overlay)

    def limit_to(self, share: Share) -> None:
        self._share = share

    def carry(self, programs: Path, place: PurePosixPath) -> None:
        if self._carried is None or paths.size_bytes(programs) > paths.size_bytes(self._carried[0]):
            self._carried = (programs, place)

    def up(self, plan: Plan, progress: Progress) -> None:
        starts = lab_processes.supervisor(self.rundir) is None
        if starts:
            refuse_share(plan, self._share)
            gateway.require(plan)
            self.require_room(plan, [memory.BARE])  # the caller checks the room for overlays
            kept = disks.read(self.rundir)
            launch = self._launch(plan, progress, None if kept is None else kept.programs)
            if kept is not None:
                disks.require_fit(kept, launch, self.rundir)
                launch = going_on(launch, kept)
            groups, whole = processor_share.make(plan, self.rundir), processor_share.limit_lab(self._share, self.rundir)
            booting.start(self.rundir, _limited(launch, groups), on_disks=kept is not None, groups=whole)
        try:
            launch = Launch.read(self.rundir / lab_processes.LAUNCH)
            names = [machine.name for machine in launch.kernels]
            booting.wait(self, names, progress)
            full = kernel_build.present()
            if starts:
                self._make_light_hosts(plan, launch, progress)
                self._tell_what_is_built_in(plan, names, full)
        except MinigtsError:
            lab_processes.end(self.rundir)
            raise

    def _make_light_hosts(self, plan: Plan, launch: Launch, progress: Progress) -> None:
        kernels = [machine.name for machine in launch.kernels if machine.trunk]
        if not kernels:
            return
        progress(f"making {len(launch.machines) - len(launch.kernels)} light hosts in {len(kernels)} kernels")
        with self.together() as pool:
            pool.all([partial(light.make, self, plan, launch, kernel) for kernel in kernels])

    @cached_property
    def _within(self) -> Mapping[str, str]:
        """By its name, the machine whose kernel a light host shares."""
        launch = Launch.read(self.rundir / lab_processes.LAUNCH)
        return {machine.name: machine.within for machine in launch.machines if machine.within}

    def kernel_of(self, host: str) -> str:
        """The machine whose kernel a host has: itself, unless it is a light one of a lab that was started."""
        try:
            return self._within.get(host, host)
        except (OSError, MinigtsError):
            return host

    def _launch(self, plan: Plan, progress: Progress, kept_programs: str | None) -> Launch:
        """What the supervisor is to start for the plan; missing parts and layers are built now. `kept_programs` is the
        layer's key that a kept lab's disks are on; None for a new lab."""
        ready, full = image.ensure(progress), kernel_build.present()
        boot = ready.boot if full is None else full.directory
        return self._launch_on(plan, ready, boot, progress, kept_programs)

    def _launch_on(
        self, plan: Plan, ready: image.Image, boot: Path, progress: Progress, kept_programs: str | None
    ) -> Launch:
        layered = {**package_images.roots(plan, ready, progress), **user_images.roots(plan, ready, progress)}
        programs = kept_programs or ""
        if kept_programs is None and self._carried is not None:
            programs = program_images.layer(*self._carried, ready, progress)
        return _with_journals(launch_of(plan, ready, boot, layered, programs), plan, progress)

    def _tell_what_is_built_in(self, plan: Plan, names: Sequence[str], full: FullKernel | None) -> None:
        """Copy the list of built-in modules to hosts, so that `modprobe` of one succeeds. Kernels with hostfs get the
        list from the supervisor.
        """
        if confinement.version() > 0:
            return

        named = {one.name: kernels.find(one.kernel) for one in plan.machines if one.kernel}

        def tell(name: str) -> None:
            own = named.get(name, full)
            if own is not None:
                self.put(name, own.modules, MODULES / own.modules.name)

        with self.together() as pool:
            pool.all([partial(tell, name) for name in names])

    def archive_of(self, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], T]) -> T:
        returned = self.rundir / "shared" / host / command_line.RETURNED
        has_own = (self.rundir / "hosts" / host).is_dir() and self.kernel_of(host) == host
        if has_own and transfer.can_return(returned):
            return transfer.archive_of(self, host, returned, source, read)
        return super().archive_of(host, source, read)

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        if not (self.rundir / "hosts" / host).is_dir():
            raise HostFailed(f"there is no host {host} in this lab")
        shared = self.rundir / "shared" / host if self.kernel_of(host) == host else None
        return transfer.unpack_on(self, host, shared, above, write)

    def logs(self, host: str) -> Mapping[str, Path]:
        host = self.kernel_of(host)
        return {**super().logs(host), ended.LOG: ended.log(self.rundir, host), slirp.LOG: slirp.log(self.rundir, host)}

    def _conditions(self, host: str) -> Conditions:
        command_line.require_not_paused(self.rundir, host)
        return Conditions(
            is_held=partial(self._is_held, host),
            is_stopped=_StoppedKernel(self.rundir, partial(self.kernel_of, host)).is_stopped,
            remedy=f"minigts restart {host}",
            ailment=partial(self._lack_of_memory, host),
        )

    def _lack_of_memory(self, host: str) -> str:
        """A clause if a host that does not answer lacks memory, as far as this machine shows."""
        if told := console.memory_lack_in_words(self.memory_kills(host)):
            return told
        machines = {each.name: each for each in Launch.read(self.rundir / lab_processes.LAUNCH).machines}
        kernel = self.kernel_of(host)
        pid = self._running().get(kernel)
        return "" if pid is None else console.memory_in_use(pid, machines[kernel].memory_mb)

    def memory_kills(self, host: str) -> tuple[str, ...]:
        return console.memory_victims(self._console(host))

    def _console(self, host: str) -> bytes:
        """The output of the host's console; empty if there is none."""
        try:
            return paths.read_whole(self.rundir / command_line.console(self.kernel_of(host)), MOST_BYTES)
        except OSError:
            return b""

    def _is_held(self, host: str) -> bool:
        return command_line.pause_file(self.rundir, host).exists() or command_line.frozen(self.rundir).exists()

    def carriers_lack(self) -> str:
        launch = Launch.read(self.rundir / lab_processes.LAUNCH)
        if launch.boot_directory.is_relative_to(launch.base.parent):
            return "the hosts' kernel is Debian's, whose interfaces keep their carrier: minigts setup uml, and up again"
        return ""

    def set_carriers(self, carriers: Sequence[Carrier]) -> None:
        def set_of(host: str) -> None:
            own = [(each.interface, str(int(each.on))) for each in carriers if each.machine == host]
            argv = ["sh", "-euc", SET_CARRIERS, "sh", *itertools.chain.from_iterable(own)]
            self.run(host, argv, timeout_s=CARRIER_TIMEOUT_S)

        with self.together() as pool:
            pool.all([partial(set_of, host) for host in sorted({each.machine for each in carriers})])

    def restart(self, host: str) -> None:
        """See `Restarts`. A crashed kernel is started again, too, without what it had not yet written to its disk."""
        if lab_processes.supervisor(self.rundir) is None:
            raise HostFailed("the lab's supervisor has ended")
        self._write_disk(host)
        lab_processes.remove(command_line.pause_file(self.rundir, host))
        command_line.have_restarted(self.rundir, host)
        (self.rundir / "hosts" / host / paths.CONTROL_SOCKET).unlink(missing_ok=True)
        command_line.end(self.rundir, host)
        self._wait_until_up(host)

    def _wait_until_up(self, host: str) -> None:
        booting.wait(self, [host], lambda _: None)

    def require_room_for(self, plan: Plan) -> None:
        memory.require_ports(plan)
        known = {machine.name for machine in Launch.read(self.rundir / lab_processes.LAUNCH).kernels}
        memory.require_memory([each for each in memory.kernels_of(plan) if each.name not in known], [memory.BARE])

    def alter(self, plan: Plan, progress: Progress) -> frozenset[str]:
        self.require_room_for(plan)
        before = Launch.read(self.rundir / lab_processes.LAUNCH)
        after = _with_journals(altered_launch(before, plan), plan, progress)
        known = {machine.name: machine for machine in before.machines}
        new = [machine.name for machine in after.machines if machine.name not in known]
        again = [each.name for each in after.machines if each.name in known and each.ports != known[each.name].ports]
        there = {path.name for path in (self.rundir / "hosts").iterdir()}
        gone = (known.keys() | there) - {machine.name for machine in after.machines}
        running = self._running()
        for name in (*gone, *again):
            if name in running:
                self.kill(name)
        self._lay(plan, after)
        for name in new:
            (self.rundir / "hosts" / name).mkdir(parents=True, exist_ok=True)
        self._tell_supervisor(after)
        for name in gone:
            for directory in ("hosts", "shared", "consoles"):
                paths.remove_tree(self.rundir / directory / name)
        started = [*new, *(name for name in again if name in running)]
        progress(f"starting {', '.join(started)}" if started else "no host is started")
        for name in again:
            if name in running:
                command_line.have_restarted(self.rundir, name)
        booting.wait(self, started, progress)
        full = kernel_build.present()
        self._tell_what_is_built_in(plan, new, full)
        return frozenset(started)

    def _lay(self, plan: Plan, launch: Launch) -> None:
        """Tell the clock, if there is one, the new hosts and links; the kernels at changed links do not run."""

    def _tell_supervisor(self, launch: Launch) -> None:
        """Have the supervisor read a new launch.json; return when it has, and has started the new machines."""
        launch.write(self.rundir / lab_processes.LAUNCH)
        told = command_line.alteration_file(self.rundir)
        told.touch()
        deadline = time.monotonic() + STOP_DEADLINE_S
        while told.exists():
            if lab_processes.supervisor(self.rundir) is None or time.monotonic() > deadline:
                raise HostFailed("the lab's supervisor does not answer")
            time.sleep(0.01)

    def kill(self, host: str) -> None:
        self._write_disk(host)
        self._end(host)

    def _end(self, host: str) -> None:
        lab_processes.remove(command_line.pause_file(self.rundir, host))
        command_line.restart_file(self.rundir, host).unlink(missing_ok=True)
        command_line.end(self.rundir, host)
        deadline = time.monotonic() + STOP_DEADLINE_S
        while host in self._running():
            if time.monotonic() > deadline:
                raise HostFailed(f"the kernel of {host} does not end")
            time.sleep(0.02)
        (self.rundir / "hosts" / host / paths.CONTROL_SOCKET).unlink(missing_ok=True)

    def pause(self, host: str) -> None:
        """See `Power`. The pause is recorded first, so that every wait for the host knows of it."""
        command_line.mark(command_line.pause_file(self.rundir, host))
        self._let_time_pass(host, pauses=True)

    def resume(self, host: str) -> None:
        self._let_time_pass(host, pauses=False)
        lab_processes.remove(command_line.pause_file(self.rundir, host))

    def _let_time_pass(self, host: str, *, pauses: bool) -> None:
        number = signal.SIGSTOP if pauses else signal.SIGCONT
        pid = self._running().get(host)
        if pid is None or not lab_processes.send_if(pid, number, lambda: self._running().get(host) == pid):
            raise HostFailed(f"the kernel of {host} does not run")

    def note(self, into: Path) -> datetime | None:
        """See `KeepsDisks`. For a lab that has been taken down in order, this is the note that was made then."""
        kept = None
        if (self.rundir / lab_processes.LAUNCH).exists():
            launch = Launch.read(self.rundir / lab_processes.LAUNCH)
            kept = disks.kept_note(launch, self._time_ns(launch))
        kept = kept or disks.read(self.rundir)
        if kept is None:
            raise HostFailed(f"lab {self.rundir.name} does not run, and its run directory has no note of its disks")
        disks.write(kept, into)
        return kept.time_of_day

    def _time_ns(self, launch: Launch) -> int | None:
        """The `time_ns` of `disks.Kept`."""
        return None

    def disks(self) -> Mapping[str, Path]:
        hosts = sorted(path for path in (self.rundir / "hosts").glob("*") if path.is_dir())
        found = {path.name: path / command_line.DISK for path in hosts}
        return {host: path for host, path in found.items() if path.is_file() and not path.is_symlink()}

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """See `KeepsDisks`. The supervisor stops the kernels, and lets them run when this process releases its lock."""
        self._write_disks()
        file = command_line.frozen(self.rundir)
        with file.open("wb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX)
                self._wait_until_stopped()
                yield
            finally:
                file.unlink(missing_ok=True)

    def _wait_until_stopped(self) -> None:
        deadline = time.monotonic() + STOP_DEADLINE_S
        while running := [name for name, pid in self._running().items() if not is_stopped(pid)]:
            if time.monotonic() > deadline:
                raise HostFailed(f"{', '.join(running)} did not stop for its disk to be copied")
            time.sleep(0.01)

    def _write_disks(self) -> None:
        """Have every host write out its disk; the disk of a host that does not answer stays as it is."""
        with self.together() as pool:
            pool.all([partial(self._write_disk, name) for name in self.disks()])

    def _write_disk(self, host: str) -> None:
        """Have a host write out its disk, unless its process is stopped, which would stop the lab's time, too."""
        if _StoppedKernel(self.rundir, lambda: host).is_stopped():
            return
        with contextlib.suppress(HostFailed, CommandFailed):
            self.run(host, ["sync"], timeout_s=SYNC_TIMEOUT_S)

    def kernels(self) -> dict[str, int]:
        """The process of each host's kernel; the stub processes of its programs are its children. Light hosts share
        theirs."""
        running, within = self._running(), self._within
        own = {name: pid for name, pid in running.items() if name not in within.values()}
        return {**own, **{host: running[kernel] for host, kernel in within.items() if kernel in running}}

    def _running(self) -> dict[str, int]:
        """The process of each kernel that runs, by its machine."""
        return command_line.running(self.rundir)

    def work(self) -> dict[str, WorkOfHost]:
        return stubs.work(self._running())

    def program(self, process: int) -> Foreign:
        return stubs.program_of(process)

    def down(self) -> None:
        forked.forget_shared(self.rundir)
        left = lab_processes.end(self.rundir)
        problems: list[Exception] = [MinigtsError(text) for text in [*left, *processor_share.remove(self.rundir)]]
        if problems:
            raise ExceptionGroup(f"lab {self.rundir.name} is not down", problems)


class _StoppedKernel:
    """Examines the process of a host's kernel. It is looked up only once, since a lab may have hundreds of hosts."""

    def __init__(self, rundir: Path, kernel: Callable[[], str]) -> None:
        self._rundir, self._kernel = rundir, kernel
        self._pid: int | None = None

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process."""
        if self._pid is None or not stat_fields(self._pid):
            self._pid = command_line.running(self._rundir).get(self._kernel())
        return self._pid is not None and stat_fields(self._pid)[:1] == ["T"]


def refuse_share(plan: Plan, share: Share) -> None:
    """Raise EnvironmentLacks when single hosts are limited besides the whole lab, or when the share of memory is too
    small for the plan."""
    if plan.limited and share.processors is not None:
        raise EnvironmentLacks("hosts with `cpus:` below 1 have their own control groups: leave --processors out")
    if share.memory_mb is not None:
        room = limits.MemoryLimit("--memory", share.memory_mb, share.memory_mb, "raise --memory")
        memory.require_memory(memory.kernels_of(plan), [plan.overlay], [room])


def going_on(launch: Launch, kept: disks.Kept) -> Launch:
    """The launch with a clock that begins at the moment at which the kept disks were last written."""
    if launch.clock is None or kept.time_ns is None:
        return launch
    return replace(launch, clock=replace(launch.clock, epoch_ns=kept.time_ns))


def _limited(launch: Launch, groups: Mapping[str, Path]) -> Launch:
    """The launch with these machines in their control groups."""
    machines = (replace(each, group=str(groups.get(each.name, ""))) for each in launch.machines)
    return replace(launch, machines=tuple(machines))


def launch_of(plan: Plan, ready: image.Image, boot: Path, layered: Mapping[str, Path], programs: str = "") -> Launch:
    """The launch of a plan on an image. `layered` holds the file systems of machines that do not start from the image,
    and `programs` is the key of the layer from which all other hosts start; empty for none.

    Raises EnvironmentLacks, and InputError for a kernel that is not on this machine.
    """
    program = gateway.require(plan)
    machines = tuple(
        GuestKernel(
            one.name,
            one.memory_mb,
            _ports(plan, one),
            base=str(layered.get(one.name, _base(plan, one, programs))),
            way_out=program if one in plan.ways_out else "",
            number=number,
            **_kernel(one),
        )
        for number, one in enumerate(plan.machines)
    )
    arguments = tuple(os.environ.get(ARGUMENTS, "").split())
    machines = light.seats_of(machines, plan.sharing)
    return Launch(boot, ready.root, machines, _links(plan), programs=programs, arguments=arguments)


def _with_journals(launch: Launch, plan: Plan, progress: Progress) -> Launch:
    """The launch in which hosts whose disk has a cache have a file system with a journal."""
    return journals.equip(launch, {host.name for host in plan.hosts if host.disk == CACHED}, progress)


class _OwnKernel(TypedDict, total=False):
    kernel: str
    kernel_name: str
    shadow_mb: int


def _kernel(one: Machine) -> _OwnKernel:
    """What GuestKernel has of a machine's own kernel; nothing for the lab's. Raises InputError."""
    if not one.kernel:
        return {}
    found = kernels.find(one.kernel)
    return {"kernel": str(found.directory), "kernel_name": one.kernel, "shadow_mb": found.shadow_mb}


def _base(plan: Plan, one: Machine, programs: str) -> str:
    return str(layers.root(programs)) if programs and one in plan.hosts else ""


def altered_launch(launch: Launch, plan: Plan) -> Launch:
    """The launch with the machines and links of the plan; machines that it had already change only their ports."""
    before = {machine.name: machine for machine in launch.machines}
    numbers = itertools.count(1 + max((machine.number for machine in launch.machines), default=-1))
    machines = tuple(
        replace(before[one.name], ports=_ports(plan, one))
        if one.name in before
        else GuestKernel(
            one.name,
            one.memory_mb,
            _ports(plan, one),
            base=_base(plan, one, launch.programs),
            number=next(numbers),
            **_kernel(one),
        )
        for one in plan.machines
    )
    return replace(launch, machines=machines, links=_links(plan))


def _ports(plan: Plan, one: Machine) -> tuple[KernelPort, ...]:
    ways_out = [KernelPort(GATEWAY_MAC)] if one in plan.ways_out else []
    return (*(KernelPort(port.mac, port.mtu, between_kernels=True, name=port.name) for port in one.ports), *ways_out)


def _links(plan: Plan) -> tuple[tuple[tuple[str, int], tuple[str, int]], ...]:
    ends: dict[str, list[tuple[str, int]]] = {link.name: [] for link in plan.links}
    for one in plan.machines:
        for index, port in enumerate(one.ports):
            ends[port.link].append((one.name, index))
    return tuple((pair[0], pair[1]) for pair in ends.values())
