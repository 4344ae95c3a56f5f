"""The supervisor: the process that starts a lab's User-Mode Linux kernels, and holds the lines to their agents.

It runs as `python -m minigts.providers.uml.run.supervisor RUNDIR [PARENT]`; with PARENT, a process id, it ends with
that process. It reads RUNDIR/launch.json, writes RUNDIR/supervisor.json before it starts anything, and listens on
hosts/NAME/control.sock for clients (agent/agent_line.py). A client's commands end when it disconnects. All kernels end
with the supervisor, which ends when RUNDIR is deleted. Standard library only, so that it starts fast and stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from minigts import paths
from minigts.errors import MinigtsError
from minigts.machine import affinity, cgroups, contained, locks, shell
from minigts.machine.contained import Namespaces
from minigts.providers.agent import ended, lab_processes, protocol
from minigts.providers.agent.agent_line import AgentHost, SupervisedProcess
from minigts.providers.agent.own_directory import OwnDirectory
from minigts.providers.uml.clock.process import ClockOrder, ClockProcess
from minigts.providers.uml.run import bounds, confinement, forked
from minigts.providers.uml.run import console as consoles
from minigts.providers.uml.run.command_line import (
    LENT_MODULES,
    Directories,
    GuestKernel,
    KernelPort,
    alteration_file,
    attachment_arguments,
    clock_arguments,
    command_line,
    descriptor_path,
    frozen,
    memory_directory,
    record,
    restart_file,
)
from minigts.providers.uml.run.confinement import ConfinementRule
from minigts.providers.uml.run.console import Console
from minigts.providers.uml.run.slirp import WayOut

UNLIMITED_WINDOW = 1 << 40
"""The window of a line through the clock. The clock buffers what the host has no room for, and cannot report what it
has read, since a frame of its own could land within one of the host's."""
GROUPS_S = 5.0
"""How long control groups are waited for that are still busy with a process which has ended."""
COPY_S = 60.0
SOCKET_BUFFER_BYTES = 4 << 20
BUFFER_OPTIONS = ((32, socket.SO_SNDBUF), (33, socket.SO_RCVBUF))
"""SO_SNDBUFFORCE and SO_RCVBUFFORCE, which Python does not define and by which root may exceed net.core.wmem_max
(socket(7)), each with the option for other users."""


End: TypeAlias = "tuple[str, str]"
"""An end of a link or of a way out: its machine, and its port's MAC address."""


@dataclass(frozen=True)
class Launch:
    """What the supervisor is to start. `links` holds the (machine, port index) of both ends of each link."""

    boot_directory: Path
    """The directory with `linux` and its libraries, for machines without a kernel of their own."""
    base: Path
    machines: tuple[GuestKernel, ...]
    links: tuple[tuple[tuple[str, int], tuple[str, int]], ...]
    clock: ClockOrder | None = None
    """The clock that carries the links and gives the kernels their time; None if they use this machine's time."""
    instead: tuple[str, ...] = ()
    """A command to run instead of each kernel, with the descriptor of its control line as last argument; else empty."""
    programs: str = ""
    """The key of the layer with an overlay's programs, from which hosts start that have no layer of their own."""
    arguments: tuple[str, ...] = ()
    """Further arguments of each kernel."""
    origin: str = ""
    """The run directory of the lab of which this one is a fork; empty for a lab whose kernels are started."""
    seed: int = 0
    """What the fork's random numbers depend on; 0: they are those that the origin's will be."""

    def base_of(self, machine: GuestKernel) -> Path:
        """The file system that a machine starts from."""
        return Path(machine.base) if machine.base else self.base

    def boot_of(self, machine: GuestKernel) -> Path:
        """The directory with `linux` of a machine."""
        return Path(machine.kernel) if machine.kernel else self.boot_directory

    @property
    def kernels(self) -> tuple[GuestKernel, ...]:
        """The machines with a kernel of their own."""
        return tuple(machine for machine in self.machines if not machine.within)

    def sharing(self, kernel: str) -> tuple[GuestKernel, ...]:
        """The light hosts that share a machine's kernel."""
        return tuple(machine for machine in self.machines if machine.within == kernel)

    @classmethod
    def read(cls, path: Path) -> Launch:
        return lab_processes.read_launch(path, cls._build)

    @classmethod
    def _build(cls, raw: Any) -> Launch:
        machines = tuple(
            GuestKernel(**{**machine, "ports": tuple(KernelPort(*port) for port in machine["ports"])})
            for machine in raw["machines"]
        )
        links = tuple(((a[0], a[1]), (b[0], b[1])) for a, b in raw["links"])
        clock = None if raw["clock"] is None else ClockOrder(**raw["clock"])
        return cls(
            Path(raw["boot_directory"]),
            Path(raw["base"]),
            machines,
            links,
            clock,
            tuple(raw["instead"]),
            raw.get("programs", ""),
            tuple(raw.get("arguments", ())),
            raw.get("origin", ""),
            raw.get("seed", 0),
        )

    def write(self, path: Path) -> None:
        content = {
            "boot_directory": str(self.boot_directory),
            "base": str(self.base),
            "machines": [asdict(machine) for machine in self.machines],
            "links": self.links,
            "clock": None if self.clock is None else asdict(self.clock),
            "instead": self.instead,
            "programs": self.programs,
            "arguments": self.arguments,
            **({"origin": self.origin, "seed": self.seed} if self.origin else {}),
        }
        paths.write_whole(path, json.dumps(content))


class Kernels:
    """All kernels of a lab, with both ends of every link.

    The ends stay open when a kernel ends, so that it can be started again on its links. Frames that arrive for a kernel
    that has ended are dropped.
    """

    def __init__(self, launch: Launch, rundir: Path) -> None:
        self._launch, self._rundir = launch, rundir
        self._machines = {machine.name: machine for machine in launch.kernels}
        self._ends: dict[End, socket.socket] = {}
        self._forked: forked.ForkedClock | None = None
        self._clock: ClockProcess | None = None
        if launch.clock is not None and launch.origin:
            self._clock = self._forked = forked.ForkedClock(
                launch.clock, launch.kernels, rundir, Path(launch.origin), launch.seed
            )
        elif launch.clock is not None:
            self._clock = ClockProcess(launch.clock, launch.machines, launch.links, rundir)
        self._make_ends()
        self._inside, self._groups = contained.namespaces(), bounds.Groups(rundir)
        self._ways_out: list[SupervisedProcess] = []
        for machine in launch.machines:
            if machine.way_out:
                made = WayOut(machine.way_out, rundir, machine.name, self._inside)
                self._ways_out += made.processes
                self._ends[machine.name, machine.ports[-1].mac] = made.end
        self._running: dict[str, AgentHost] = {}
        self._consoles: dict[str, Console] = {}
        self._stopped = False
        self._mourned = set[str]()
        """The hosts of whose kernels it is recorded why they ended. One that the clock drops may panic before it is
        killed, which is no reason."""
        self._serving: list[asyncio.Task[None]] = []
        self._reports = set[str]()

    def _make_ends(self) -> None:
        """Make both ends of each new link, and close those of links that no longer exist."""
        links = self._launch.links if self._clock is None else ()
        pairs = [tuple((name, self._machines[name].ports[port].mac) for name, port in link) for link in links]
        for first, second in pairs:
            if first not in self._ends:
                self._ends[first], self._ends[second] = _link()
        left = {end for pair in pairs for end in pair} | {
            (machine.name, machine.ports[-1].mac) for machine in self._machines.values() if machine.way_out
        }
        for end in self._ends.keys() - left:
            asyncio.get_running_loop().remove_reader(self._ends[end])
            self._ends.pop(end).close()

    def start_all(self, clock_ended: Callable[[], None] = lambda: None) -> None:
        """Start all kernels, or have those of a fork. `clock_ended` is called when the clock has ended by itself."""
        if self._clock is not None:
            self._clock.listen(self._lost, clock_ended)
        for name in self._machines:
            if self._forked is None:
                self._start(name)
            elif (kernel := self._forked.kernels.get(name)) is not None:
                self._take_over(name, kernel)

    def _take_over(self, name: str, kernel: forked.ForkedKernel) -> None:
        """Have a kernel that the origin's has forked."""
        self._consoles[name] = kernel.console
        machine = self._machines[name]
        self._attend_to(
            machine,
            AgentHost(
                name,
                kernel.process,
                kernel.line,
                UNLIMITED_WINDOW,
                kernel.console.take,
                last_channel=kernel.last_channel,
            ),
        )

    async def attend(self) -> None:
        """Every 0.2 s: collect ended kernels, restart those that are to run again, and stop or continue all kernels as
        clients ask by files. What fails for one host is reported in supervisor.log, and no other host notices."""
        while True:
            self._attempt("the lab", self._stop_or_continue)
            self._attempt("the lab", self._alter)
            for name in tuple(self._running):
                self._attempt(name, partial(self._look_after, name))
            await asyncio.sleep(0.2)

    def _attempt(self, whose: str, act: Callable[[], None]) -> None:
        """Report an error of `act` once, however often it comes."""
        try:
            act()
        except (OSError, MinigtsError) as error:
            if (report := f"{whose}: {error}") not in self._reports:
                self._reports.add(report)
                sys.stderr.write(f"{report}\n")

    def _look_after(self, name: str) -> None:
        self._consoles[name].take()
        if self._running[name].process.poll() is not None:
            self._ended(name)

    async def end_all(self) -> None:
        for host in self._running.values():
            host.process.kill()
        for program in self._ways_out:
            program.kill()
        if self._clock is not None:
            self._clock.close()
        await asyncio.gather(*self._serving)
        started = [*(host.process for host in self._running.values()), *self._ways_out]
        while any(each.poll() is None for each in started):
            await asyncio.sleep(0.01)
        self._groups.remove()
        for console in self._consoles.values():
            console.close()

    def _stop_or_continue(self) -> None:
        wanted = locks.is_locked(frozen(self._rundir))
        if wanted != self._stopped:
            self._stopped = wanted
            for host in self._running.values():
                host.process.send_signal(signal.SIGSTOP if wanted else signal.SIGCONT)

    def _alter(self) -> None:
        """Apply a changed launch.json if a client has asked for it; the client has ended the machines that change."""
        told = alteration_file(self._rundir)
        if not told.exists():
            return
        try:
            self._launch = Launch.read(self._rundir / lab_processes.LAUNCH)
        except MinigtsError as error:
            sys.stderr.write(f"{error}\n")
        self._machines = {machine.name: machine for machine in self._launch.kernels}
        for name in self._running.keys() - self._machines.keys():
            gone = self._running.pop(name).process
            gone.kill()
            gone.wait()
            self._consoles.pop(name).close()
        self._make_ends()
        for name in self._machines.keys() - self._running.keys():
            self._start(name)
        told.unlink(missing_ok=True)

    def _start(self, name: str) -> None:
        machine = self._machines[name]
        for end in self._ends_of(name):
            asyncio.get_running_loop().remove_reader(end)
        own = [end.fileno() for end in self._ends_of(name)]
        if name in self._consoles:
            self._consoles.pop(name).close()
        (self._rundir / machine.console).parent.mkdir(parents=True, exist_ok=True)
        console = self._consoles[name] = Console(self._rundir / machine.console)
        console.begin()
        ended.forget(self._rundir, name)
        self._mourned.discard(name)
        held = Held(self._inside, self._groups.make(name, machine.group), console)
        self._attend_to(machine, _start_kernel(machine, self._launch, self._rundir, own, self._clock, held))

    def _attend_to(self, machine: GuestKernel, host: AgentHost) -> None:
        self._running[machine.name] = host
        host.on_fault = partial(self._end_for, host, "by its supervisor")
        kernels = {each: host.process.pid for each, host in self._running.items() if not self._launch.instead}
        record(self._rundir, kernels)
        sharing = {each.control: each.name for each in self._launch.sharing(machine.name)} if machine.trunk else {}
        self._serving.append(asyncio.create_task(host.serve(machine.control, sharing)))

    def _lost(self, number: int, why: str) -> None:
        """End the kernel of a host that the clock has dropped because it broke the clock's protocol."""
        for machine in self._launch.machines:
            if machine.number == number and machine.name in self._running:
                self._end_for(self._running[machine.name], "by the clock", why)

    def _end_for(self, host: AgentHost, by: str, why: str) -> None:
        if self._running.get(host.name) is host:
            self._mourned.add(host.name)
            self._note_end(host.name, f"{by}: {why}")
            host.process.kill()

    def _note_end(self, name: str, why: str) -> None:
        """Record why a host was ended, and, by its console, whether its memory had run out."""
        lack = consoles.memory_lack_in_words(consoles.memory_victims(self._consoles[name].output()))
        lack = lack or consoles.memory_in_use(self._running[name].process.pid, self._machines[name].memory_mb)
        ended.note(self._rundir, name, f"{why}; {lack}" if lack else why)

    def _ended(self, name: str) -> None:
        asked = restart_file(self._rundir, name)
        if asked.exists():
            asked.unlink()
            self._start_again(name)
            return
        if name not in self._mourned and (why := self._consoles[name].panic()):
            self._note_end(name, f"by its own kernel, which panicked: {why}")
        self._mourned.add(name)
        for end in self._ends_of(name):
            asyncio.get_running_loop().add_reader(end, _throw_away, end)

    def _start_again(self, name: str) -> None:
        """Start a host's kernel anew. If that fails, the host's record says why, for whoever waits for it."""
        try:
            self._start(name)
        except (OSError, MinigtsError) as error:
            self._mourned.add(name)
            ended.note(self._rundir, name, f"and could not be started again: {error}")
            raise

    def _ends_of(self, name: str) -> list[socket.socket]:
        return [] if self._clock is not None else [self._ends[name, port.mac] for port in self._machines[name].ports]


def _throw_away(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        if not end.recv(1 << 16, socket.MSG_DONTWAIT):  # the program at the other end of a way out has ended
            asyncio.get_running_loop().remove_reader(end)


@dataclass(frozen=True)
class Held:
    """A kernel's namespaces and control group, and its console."""

    inside: Namespaces
    group: Path | None
    console: Console


def _start_kernel(
    machine: GuestKernel, launch: Launch, rundir: Path, links: list[int], clock: ClockProcess | None, held: Held
) -> AgentHost:
    """Start a kernel, which can reach only its own files (confinement.py), or, unconfined, the command `instead`."""
    ours, theirs = socket.socketpair()
    with ExitStack() as stack:
        stack.callback(theirs.close)
        if clock is None:
            own = [theirs.fileno(), *links]
            control, *ports = contained.descriptor_numbers(own)
            words = attachment_arguments(machine, control, ports)
        else:
            connection = stack.enter_context(clock.connect(machine, theirs))
            own = connection.descriptors
            words = clock_arguments(replace(connection, descriptors=contained.descriptor_numbers(own)))
        members = [cgroups.join(Path(group)) for group in (machine.group, held.group) if group not in ("", None)]
        for member in members:
            stack.callback(os.close, member)
        environment = {lab_processes.MARK: str(rundir)}
        kernel: SupervisedProcess
        if launch.instead:
            kernel = shell.start(
                [*launch.instead, str(theirs.fileno())],
                output=held.console.descriptor,
                pass_fds=own,
                env=environment,
                cwd=launch.boot_directory,
                new_session=False,
                dies_with_parent=True,
                before_exec=_each(*(partial(cgroups.enter, member) for member in members)),
            )
        else:
            opened, base = _inherited(machine, launch, rundir, stack), launch.base_of(machine)
            pass_fds = (*own, *astuple(opened))
            inherited = Directories(*contained.descriptor_numbers(pass_fds)[len(own) :])
            kernel = contained.start(
                command_line(
                    machine, base.name, (*words, *launch.arguments), inherited, hostfs=confinement.version() > 0
                ),
                output=held.console.descriptor,
                pass_fds=pass_fds,
                env={**environment, "LD_LIBRARY_PATH": ".", "TMPDIR": descriptor_path(inherited.memory)},
                cwd=launch.boot_of(machine),
                inside=held.inside,
                before_exec=_each(
                    *(partial(cgroups.enter, member) for member in members),
                    bounds.kernel_bounds(machine.memory_mb, base, held.inside, machine.shadow_mb).enter,
                    confinement.prepare(_rules(machine, launch, rundir, opened)),
                ),
            )
        if clock is not None:
            # Linux puts a process that a message wakes on the sender's processor. So all kernels would gather on the
            # clock's processor, and neighbours on a link would run one after the other.
            affinity.hold_to_one(kernel.pid, connection.number)
            clock.tell_process(machine, kernel.pid)
    return AgentHost(
        machine.name, kernel, ours, protocol.WINDOW if clock is None else UNLIMITED_WINDOW, held.console.take
    )


def _each(*acts: Callable[[], None]) -> Callable[[], None]:
    """One function that calls these in order, in a kernel's process before it executes the kernel."""

    def act() -> None:
        for each in acts:
            each()

    return act


def _inherited(machine: GuestKernel, launch: Launch, rundir: Path, stack: ExitStack) -> Directories:
    """Open the directories that a kernel inherits; `stack` closes them."""
    # The pid file of an earlier kernel goes: it holds the same id, since each is the first process of its namespace.
    paths.remove_tree(rundir / machine.own)
    for directory in (machine.own, machine.shared, machine.returned, str(Path(machine.disk).parent)):
        (rundir / directory).mkdir(parents=True, exist_ok=True)
    if machine.first_disk and not (rundir / machine.disk).exists():
        shell.run(
            ["cp", "--sparse=always", "--reflink=auto", machine.first_disk, str(rundir / machine.disk)],
            timeout_s=COPY_S,
        )
    lent = rundir / machine.shared / LENT_MODULES
    if (launch.boot_of(machine) / LENT_MODULES).is_dir() and not lent.exists():
        _lend(launch.boot_of(machine) / LENT_MODULES, lent)
    memory = Path(tempfile.mkdtemp(prefix="minigts-", dir=memory_directory() or rundir))
    directories = (rundir, launch.base_of(machine).parent, rundir / machine.shared, memory)
    try:
        return Directories(*(_opened(path, stack) for path in directories))
    finally:
        memory.rmdir()  # unnamed files can still be made in it, but no others, so that nothing is ever left behind


def _lend(lent: Path, place: Path) -> None:
    """Copy a directory to `place`, with the run directory's modes."""
    place.mkdir()
    for each in lent.iterdir():
        if each.is_dir():
            _lend(each, place / each.name)
        else:
            shutil.copyfile(each, place / each.name)


def _opened(directory: Path, stack: ExitStack) -> int:
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


def _rules(machine: GuestKernel, launch: Launch, rundir: Path, inherited: Directories) -> list[ConfinementRule]:
    """Rules for all files that a kernel of User-Mode Linux opens."""
    base = launch.base_of(machine)
    return [
        confinement.may_run(launch.boot_of(machine)),
        confinement.may_write(base) if machine.writes_base else confinement.may_read(base),
        confinement.may_write((rundir / machine.disk).parent),
        confinement.may_keep_house(rundir / machine.own),
        confinement.may_read(rundir / machine.shared),
        confinement.may_write(rundir / machine.returned),
        confinement.may_write(Path(descriptor_path(inherited.memory))),
        *map(confinement.may_read, map(Path, ("/proc/cpuinfo", "/dev/random", "/dev/urandom"))),
        confinement.may_write(Path("/dev/null")),
    ]


def _link() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in pair:
        for forced, asked in BUFFER_OPTIONS:
            try:
                end.setsockopt(socket.SOL_SOCKET, forced, SOCKET_BUFFER_BYTES)
            except PermissionError:
                end.setsockopt(socket.SOL_SOCKET, asked, SOCKET_BUFFER_BYTES)
    return pair


async def supervise(rundir: Path) -> None:
    launch = Launch.read(rundir / lab_processes.LAUNCH)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    own = OwnDirectory(rundir)
    kernels = Kernels(launch, rundir)
    # Nobody can start a fork's clock again, and its kernels end with the origin's, as the clock does.
    kernels.start_all(stop.set if launch.origin else lambda: None)
    attending, watching = asyncio.create_task(kernels.attend()), asyncio.create_task(own.wait_until_gone())
    watching.add_done_callback(lambda _: stop.set())
    await stop.wait()
    attending.cancel()
    watching.cancel()
    await kernels.end_all()
    if not own.is_there:  # no `down` will remove what limits the whole lab
        cgroups.remove(cgroups.prefix(rundir), patience_s=GROUPS_S)


def _forget_environment() -> None:
    """Remove the caller's environment, so that kernels cannot read passwords in it, such as in the address of a Debian
    mirror."""
    for name in [name for name in os.environ if name not in ("PATH", lab_processes.MARK)]:
        del os.environ[name]


def main() -> None:
    rundir = Path(sys.argv[1])
    os.umask(0o077)
    _forget_environment()
    if len(sys.argv) > 2:
        shell.die_with_parent(int(sys.argv[2]))
    os.chdir(rundir)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    lab_processes.brand(rundir)
    lab_processes.record(rundir)
    try:
        asyncio.run(supervise(rundir))
    except MinigtsError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
