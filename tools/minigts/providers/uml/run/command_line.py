"""One User-Mode Linux kernel: its command line, its process, and its files. Standard library only."""

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
from minigts.providers.agent import lab_processes
from minigts.providers.agent.lab_processes import Process

MODULE_BENCHMARKS = ("raid6_init", "raid6_select_algo", "register_xor_blocks", "calibrate_xor_blocks")
"""Benchmarks for software RAID that run at boot, by their names in kernels 6.1 to 7.2; together they take 1 s."""

SPARE_INTERFACES = (
    "fb_tunnels=initns",
    "dummy.numdummies=0",
    "ifb.numifbs=0",
    "bonding.max_bonds=0",
    "mac80211_hwsim.radios=0",
)
"""Without these settings built-in drivers would make unwanted interfaces in every namespace."""
VECTOR_DEPTH = 128
VIRTIO_NETWORK, VIRTIO_CONSOLE = 1, 3
"""Device numbers of the virtio specification, section 5."""
WITHOUT_SENT_INTERRUPTS = ("virtio_net.napi_tx=0",)
"""Switches off the interrupt after a frame was sent, since the clock takes a frame at the moment it is sent."""
ONE_PROCESSOR = "a uml kernel has one processor"
CACHE_MB, WRITE_US = 16, 1000
"""The size of a disk's cache, and how long a write and a flush take with one, in µs of the lab's time
(provision/kernel/patches/0030-a-disk-fails.patch). The kernel has to know of its virtual time before it takes them."""
RETURNED = "returned"
LENT_MODULES = "modules"
"""The directory with modprobe's files, in the kernel's directory and in the one that a guest may mount."""
DISK = "disk/disk.cow"
"""A host's disk, relative to its directory; only the directory of the disk is open to its kernel."""
RECORD, RECORD_LIMIT_BYTES = paths.KERNELS, 1 << 20
SHARED = Path("/dev/shm")
"""The directory in which a kernel's memory lies."""
HOSTFS = "init_hostfs"
"""The kernel's initialization of hostfs, by which a guest can mount a directory of this machine."""


@dataclass(frozen=True)
class Connection:
    """A kernel's connection to the clock."""

    number: int
    seed: int
    call_ns: int
    """The modelled duration of a system call in ns; 0 means that none is modelled."""
    descriptors: list[int]
    """The kernel's ends of calendar, console and ports, in this order."""


class KernelPort(NamedTuple):
    """A kernel's end of a link, or of its way out of the lab. It accepts no packets larger than its MTU."""

    mac: str
    mtu: int = 1500
    between_kernels: bool = False
    """Whether the other end is also a UML kernel, so that segmentation and checksums may be left to it."""
    name: str = ""
    """The interface's name on the host; empty for its way out."""
    tag: int = 0
    """Its VLAN on the trunk of the kernel that its light host shares; 0: it is a card of its own."""


@dataclass(frozen=True)
class GuestKernel:
    """The settings of one kernel. Paths such as `console` and `disk` are relative to the run directory."""

    name: str
    memory_mb: int
    ports: tuple[KernelPort, ...]
    """The ports in the order of the plan's; the port of a way out is the last."""
    writes_base: bool = False
    """Whether it writes to the base image itself, as it does only while an image is made."""
    group: str = ""
    """The control group for it and all that it starts; empty for the group of the process that starts it."""
    base: str = ""
    """The path of the file system that it starts from; empty for the lab's image."""
    way_out: str = ""
    """The program behind its last port that leads out of the lab; empty if every port belongs to a link."""
    number: int = 0
    """Its number on the lab's clock, which stays the same as long as it is in the lab."""
    kernel: str = ""
    """The directory of its kernel; empty for the lab's."""
    kernel_name: str = ""
    """The name of that kernel when the host was first started."""
    shadow_mb: int = 0
    """The private memory that this kernel maps for its own records, beside what any may have."""
    within: str = ""
    """The machine whose kernel it shares, for a light host, which has none of its own; empty for all others."""
    trunk: bool = False
    """Whether its kernel is one that light hosts share. It has no ports then, and is no host of the plan's."""
    first_disk: str = ""
    """The path of what its disk is when the host first starts, for a disk with a cache; empty for one without, which
    begins with nothing that differs from its file system."""

    @property
    def console(self) -> str:
        """The file with its console's output, which no guest can write to."""
        return console(self.name)

    @property
    def control(self) -> str:
        return f"hosts/{self.name}/{paths.CONTROL_SOCKET}"

    @property
    def own(self) -> str:
        """A directory for the kernel's own files."""
        return f"hosts/{self.name}/own"

    @property
    def shared(self) -> str:
        """A directory that the guest may read from by hostfs."""
        return f"shared/{self.name}"

    @property
    def returned(self) -> str:
        """The part of `shared` that the guest may write files to."""
        return f"{self.shared}/{RETURNED}"

    @property
    def disk(self) -> str:
        return f"hosts/{self.name}/{DISK}"


@dataclass(frozen=True)
class Directories:
    """Descriptors of directories that a kernel inherits, and by which its arguments name files in them.

    The arguments contain no path of this machine, since a comma or a space would split it, and sockets' paths would be
    too long.
    """

    rundir: int
    base: int
    """The directory of the base image."""
    shared: int
    """The directory that the guest may mount by hostfs."""
    memory: int


def descriptor_path(descriptor: int, path: str = "") -> str:
    """A path below the directory that is open as `descriptor`, for a process that inherits the descriptor."""
    return f"/proc/self/fd/{descriptor}/{path}"


def command_line(
    machine: GuestKernel, base: str, attachments: Sequence[str], inherited: Directories, *, hostfs: bool
) -> list[str]:
    """The arguments of `linux`, which must inherit the descriptors in them. `base` is the base image's file name;
    `attachments` are the arguments for its control line and its links.

    Without `hostfs` the guest can mount no directory of this machine.
    """
    image = descriptor_path(inherited.base, base)
    off = MODULE_BENCHMARKS if hostfs else (*MODULE_BENCHMARKS, HOSTFS)
    cache = (f"ubd.write_cache={CACHE_MB}", f"ubd.late_us=0,{WRITE_US}") if machine.first_disk else ()
    return [
        "./linux",
        f"mem={machine.memory_mb}M",
        f"ubd0={image}" if machine.writes_base else f"ubd0={descriptor_path(inherited.rundir, machine.disk)},{image}",
        "root=/dev/ubda",
        "rw",
        "init=/usr/lib/minigts/agent",
        "con=null",
        "con0=null,fd:1",
        "quiet",
        "seccomp=auto",
        *SPARE_INTERFACES,
        f"uml_dir={descriptor_path(inherited.rundir, machine.own)}/",
        "umid=uml",
        f"hostfs={descriptor_path(inherited.shared)}",
        f"initcall_blacklist={','.join(off)}",
        *attachments,
        *cache,
    ]


def attachment_arguments(machine: GuestKernel, control_fd: int, link_fds: Sequence[int]) -> list[str]:
    """The arguments for a kernel's control line, a serial line, and its links, on these descriptors."""
    links = [
        f"vec{index}:transport=fd,fd={fd},depth={VECTOR_DEPTH},mac={port.mac},mtu={port.mtu},vnet={port.between_kernels:d}"
        for index, (fd, port) in enumerate(zip(link_fds, machine.ports, strict=True))
    ]
    return [f"ssl0=fd:{control_fd},fd:{control_fd}", *links]


def clock_arguments(connection: Connection) -> list[str]:
    """The arguments that connect a kernel's time, its control line and its links to a clock."""
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


def restart_file(rundir: Path, host: str) -> Path:
    """The file that has the supervisor start a host's kernel again once it has ended; no guest can write there."""
    return rundir / "again" / host


def have_restarted(rundir: Path, host: str) -> None:
    """Have the supervisor start a host's kernel again as soon as it has ended."""
    mark(restart_file(rundir, host))


def mark(file: Path) -> None:
    """Make an empty file, and the directory that it is in, for nobody else."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.touch(mode=0o600)


def console(host: str) -> str:
    """The file with the output of a host's console, relative to the run directory."""
    return f"consoles/{host}/{paths.CONSOLE_LOG}"


def pause_file(rundir: Path, host: str) -> Path:
    """The file that marks a host as paused by the user, in a directory that no guest can write to."""
    return rundir / "paused" / host


def require_not_paused(rundir: Path, host: str) -> None:
    """Raise HostFailed for a paused host, which would not answer before it is resumed."""
    if pause_file(rundir, host).exists():
        raise HostFailed(f"{host} is paused: minigts resume {host}")


def alteration_file(rundir: Path) -> Path:
    """The file that has the supervisor read launch.json again; the supervisor removes it afterwards."""
    return rundir / "altered"


def frozen(rundir: Path) -> Path:
    """The file that keeps all kernels of a lab stopped while a process holds a lock on it (flock(2)). The kernels run
    again when that process ends, also after a crash.
    """
    return rundir / "standstill"


def end(rundir: Path, host: str) -> None:
    """Kill one host's kernel, like a power cut."""
    pid = running(rundir).get(host)
    if pid is not None:
        lab_processes.send_if(pid, signal.SIGKILL, lambda: running(rundir).get(host) == pid)


def record(rundir: Path, kernels: Mapping[str, int]) -> None:
    """Record the supervisor's processes that are running kernels, since what kernels say about themselves cannot be
    trusted. A kernel that another lab's has forked is that one's child, and not the supervisor's.
    """
    found = {name: (pid, lab_processes.started_ticks(pid), parent(pid)) for name, pid in kernels.items()}
    started = {name: each for name, each in found.items() if None not in each}
    paths.write_whole(rundir / RECORD, json.dumps(started))


def running(rundir: Path) -> dict[str, int]:
    """The process id of each host's kernel that is recorded and is a running child of whoever started it."""
    supervisor = lab_processes.supervisor(rundir)
    if supervisor is None:
        return {}
    try:
        recorded = documents.document(paths.read_whole(rundir / RECORD, RECORD_LIMIT_BYTES))
        kernels = {
            str(name): (Process(int(pid), int(started)), int(above[0]) if above else supervisor)
            for name, (pid, started, *above) in recorded.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: each.pid for name, (each, above) in kernels.items() if each.runs and parent(each.pid) == above}


def missing() -> list[str]:
    """What this machine lacks to run a kernel, one sentence each; memory.py checks its memory."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return [f"User-Mode Linux runs on x86-64 Linux only; this is {platform.machine()} {platform.system()}"]
    if memory_directory() is None:
        if not os.access(SHARED, os.W_OK):
            return [
                f"{SHARED} is not there, or not writable: sudo mkdir -p {SHARED}; sudo mount -t tmpfs tmpfs {SHARED}"
            ]
        return [f"{SHARED} does not allow execution, or has no room: sudo mount -o remount,rw,exec {SHARED}"]
    return []


def memory_directory(candidates: Sequence[Path] = (SHARED,)) -> Path | None:
    """The first directory whose files can be mapped as executable, as a kernel needs for its memory; None if none."""
    return next((directory for directory in candidates if _maps_executable(directory)), None)


def _maps_executable(directory: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            os.truncate(file.fileno(), mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True
