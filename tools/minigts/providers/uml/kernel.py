"""One User-Mode Linux kernel: its command line, its process, and where its memory lies. Standard library only."""

from __future__ import annotations

import json
import mmap
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from minigts import paths
from minigts.errors import HostFailed
from minigts.language import documents
from minigts.machine.proc import parent
from minigts.providers.agent import process
from minigts.providers.agent.process import Process

MODULE_BENCHMARKS = ("raid6_init", "raid6_select_algo", "register_xor_blocks", "calibrate_xor_blocks")
"""Start-up measurements for software RAID, under their names in kernels 6.1 to 7.2; together they cost 1 s a boot."""

SPARE_INTERFACES = ("fb_tunnels=initns", "dummy.numdummies=0", "ifb.numifbs=0")
"""A kernel that has its drivers built in would make interfaces that nobody asked for, in every namespace."""
VECTOR_DEPTH = 128
VIRTIO_NETWORK, VIRTIO_CONSOLE = 1, 3
"""Device numbers of the virtio specification, section 5."""
WITHOUT_SENT_INTERRUPTS = ("virtio_net.napi_tx=0",)
"""The clock takes a frame in the moment in which it is sent; there is nothing to be told afterwards."""
ONE_PROCESSOR = "a uml kernel has one processor"
RETURNED = "returned"
DISK = "disk.cow"
RECORD, RECORD_LIMIT_BYTES = "kernels.json", 1 << 20
HOSTFS = "init_hostfs"
"""What makes a directory of this machine one that a guest can mount."""


@dataclass(frozen=True)
class Connection:
    """How a kernel joins the clock."""

    number: int
    seed: int
    call_ns: int
    """What a system call takes; 0: nothing that is modelled."""
    descriptors: list[int]
    """Its ends of calendar, console and ports, in this order."""


class Port(NamedTuple):
    """A kernel's end of a link, or of the way out. It takes no frame of more than its MTU."""

    mac: str
    mtu: int = 1500
    between_kernels: bool = False
    """Whether the other end is a kernel like this one, so that segments and checksums may be left to it."""


@dataclass(frozen=True)
class GuestKernel:
    """What one kernel is started with. Paths in `console` and `disk` are relative to the run directory."""

    name: str
    memory_mb: int
    ports: tuple[Port, ...]
    """In the order of the host's own."""
    writes_base: bool = False
    """Whether it writes to the base image itself, as only the image's own making does."""
    group: str = ""
    """The control group that it and all below it are in; empty: that of whoever starts it."""
    base: str = ""
    """The path of the file system that it starts from; empty: that of the lab."""
    way_out: str = ""
    """The program that its last port leads to, and by that out of the lab; empty: every port is of a link."""
    number: int = 0
    """What a clock knows it by: as long as it is in the lab it is the same."""

    @property
    def console(self) -> str:
        """Where no guest can write."""
        return console(self.name)

    @property
    def control(self) -> str:
        return f"hosts/{self.name}/control.sock"

    @property
    def own(self) -> str:
        """A directory for what the kernel makes for itself."""
        return f"hosts/{self.name}/own"

    @property
    def shared(self) -> str:
        """A directory that the guest may read from by hostfs."""
        return f"shared/{self.name}"

    @property
    def returned(self) -> str:
        """The part of it that the guest may write files to."""
        return f"{self.shared}/{RETURNED}"

    @property
    def disk(self) -> str:
        return f"hosts/{self.name}/{DISK}"


@dataclass(frozen=True)
class Directories:
    """Descriptors of directories that a kernel inherits, and by which it names what is in them.

    So no path of this machine stands in its arguments: a comma or a space would part it there, and the names of its
    sockets would be too long.
    """

    rundir: int
    base: int
    """Where the base image lies."""
    shared: int
    """What the guest may mount by hostfs."""
    memory: int


def through(descriptor: int, path: str = "") -> str:
    """A path below a directory that is open as `descriptor`, for a process that has inherited it."""
    return f"/proc/self/fd/{descriptor}/{path}"


def command_line(
    machine: GuestKernel, base: str, attachments: Sequence[str], inherited: Directories, *, hostfs: bool
) -> list[str]:
    """The arguments of `linux`, which must inherit the descriptors named here. `base` is the base image's file name;
    `attachments` are those for its control line and its links.

    Without `hostfs` the guest can mount no directory of this machine.
    """
    image = through(inherited.base, base)
    off = MODULE_BENCHMARKS if hostfs else (*MODULE_BENCHMARKS, HOSTFS)
    return [
        "./linux",
        f"mem={machine.memory_mb}M",
        f"ubd0={image}" if machine.writes_base else f"ubd0={through(inherited.rundir, machine.disk)},{image}",
        "root=/dev/ubda",
        "rw",
        "init=/usr/lib/minigts/agent",
        "con=null",
        "con0=null,fd:1",
        "quiet",
        "seccomp=auto",
        *SPARE_INTERFACES,
        f"uml_dir={through(inherited.rundir, machine.own)}/",
        "umid=uml",
        f"hostfs={through(inherited.shared)}",
        f"initcall_blacklist={','.join(off)}",
        *attachments,
    ]


def attached(machine: GuestKernel, control_fd: int, link_fds: Sequence[int]) -> list[str]:
    """The arguments for a serial line and links whose other ends are these descriptors."""
    links = [
        f"vec{index}:transport=fd,fd={fd},depth={VECTOR_DEPTH},mac={port.mac},mtu={port.mtu},vnet={port.between_kernels:d}"
        for index, (fd, port) in enumerate(zip(link_fds, machine.ports, strict=True))
    ]
    return [f"ssl0=fd:{control_fd},fd:{control_fd}", *links]


def attached_to_clock(connection: Connection) -> list[str]:
    """The arguments by which a kernel takes its time, its control line and its links from a clock."""
    calendar_fd, console_fd, *link_fds = connection.descriptors
    return [
        f"time-travel=ext:{connection.number}:fd:{calendar_fd}",
        f"virtio_uml.device=fd:{console_fd}:{VIRTIO_CONSOLE}",
        *(f"virtio_uml.device=fd:{fd}:{VIRTIO_NETWORK}" for fd in link_fds),
        *WITHOUT_SENT_INTERRUPTS,
        f"minigts_seed={connection.seed}",
        f"minigts_call={connection.call_ns}",
        "MINIGTS_LINE=/dev/hvc0",
    ]


def again(rundir: Path, host: str) -> Path:
    """The file that tells the supervisor to start a host's kernel again as soon as it has ended."""
    return rundir / "hosts" / host / "again"


def console(host: str) -> str:
    """The file that holds what a host's console has said, below the run directory."""
    return f"consoles/{host}/console.log"


def paused(rundir: Path, host: str) -> Path:
    """The file that says that its user lets no time pass for a host. No guest can write where it is."""
    return rundir / "paused" / host


def require_not_paused(rundir: Path, host: str) -> None:
    """Raises HostFailed for a host that is paused: it would answer when it is resumed, and not before."""
    if paused(rundir, host).exists():
        raise HostFailed(f"{host} is paused: minigts resume {host}")


def altered(rundir: Path) -> Path:
    """The file that tells the supervisor to go by another launch.json from now on; it removes it when it does."""
    return rundir / "altered"


def standstill(rundir: Path) -> Path:
    """The file that keeps all kernels of a lab stopped for as long as somebody holds a lock on it (flock(2)): so they
    run again when its holder ends, however it ends.
    """
    return rundir / "standstill"


def end(rundir: Path, host: str) -> None:
    """End one host's kernel at once, like a power cut."""
    pid = running(rundir).get(host)
    if pid is not None:
        process.send_if(pid, signal.SIGKILL, lambda: running(rundir).get(host) == pid)


def record(rundir: Path, kernels: Mapping[str, int]) -> None:
    """Write down which processes the supervisor has started as kernels, of those that have not ended: what they say of
    themselves may be a lie.
    """
    ticks = {name: process.started_ticks(pid) for name, pid in kernels.items()}
    started = {name: [kernels[name], since] for name, since in ticks.items() if since is not None}
    paths.write_whole(rundir / RECORD, json.dumps(started))


def running(rundir: Path) -> dict[str, int]:
    """The process id of each host's kernel, a child of the supervisor that runs."""
    supervisor = process.supervisor(rundir)
    if supervisor is None:
        return {}
    try:
        recorded = documents.document(paths.read_whole(rundir / RECORD, RECORD_LIMIT_BYTES))
        kernels = {str(name): Process(int(pid), int(started)) for name, (pid, started) in recorded.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: each.pid for name, each in kernels.items() if each.runs and parent(each.pid) == supervisor}


def missing() -> list[str]:
    """What this machine lacks to run a kernel, a sentence each; how many it has room for, demand.py says."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return [f"User-Mode Linux runs on x86-64 Linux only; this is {platform.machine()} {platform.system()}"]
    if memory_directory() is None:
        return ["/dev/shm must be writable and allow execution: sudo mount -o remount,rw,exec /dev/shm"]
    return []


def memory_directory(candidates: Sequence[Path] = (Path("/dev/shm"),)) -> Path | None:
    """The first directory whose files can be mapped executable, as a kernel's memory must be; None if there is none."""
    return next((directory for directory in candidates if _maps_executable(directory)), None)


def _maps_executable(directory: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            os.truncate(file.fileno(), mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True
