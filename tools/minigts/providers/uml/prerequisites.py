"""What this machine has of what User-Mode Linux needs. Looks and tries; changes nothing that outlasts the look."""

from __future__ import annotations

import getpass
import mmap
import os
import platform
import resource
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from minigts.machine import memory
from minigts.machine.shell import run
from minigts.providers import system_packages
from minigts.providers.system_packages import Package
from minigts.providers.uml import confinement, image
from minigts.providers.uml.image import Room

SHM = Path("/dev/shm")
NAMESPACE_SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
)
TRACE = "c.ptrace(0, 0, 0, 0)"
"""PTRACE_TRACEME: Yama and a container's seccomp filter both show there (ptrace(2))."""
FILTER_CALLS = (
    "c.prctl(38, 1, 0, 0, 0)"  # PR_SET_NO_NEW_PRIVS
    " or c.prctl(22, 2, (ctypes.c_uint64 * 2)(1, ctypes.addressof(rule := ctypes.c_uint64(0x7FFF0000 << 32 | 6))))"
)
"""PR_SET_SECCOMP with a filter of one instruction, `return SECCOMP_RET_ALLOW` (seccomp(2), struct sock_fprog)."""
SO_SNDBUFFORCE = 32
"""socket(7); Python does not name it. Lets root pass net.core.wmem_max."""


@dataclass(frozen=True)
class Facts:
    """What was seen. Sizes are what is free now; `shm_free_mb` is None when nothing can be written to /dev/shm."""

    system: str
    machine: str
    root: bool
    user: str
    cores: int
    memory_free_mb: int
    open_files: int
    shm_free_mb: int | None
    shm_executable: bool
    image_ready: bool
    disks: tuple[Room, ...]
    """Where building the image needs room."""
    seccomp: bool
    """Whether a process may filter its own system calls, which a UML kernel prefers; `ptrace` is its other way."""
    ptrace: bool
    landlock: int
    """The version of Landlock, by which a process may give up files; 0 where it is absent or switched off."""
    socket_buffer_bytes: int
    """What a socket gets when 4 MiB are asked for."""
    namespaces_blocked_by: str
    """The sysctl setting that would allow user namespaces; empty when they are allowed."""
    subordinate_ids: bool
    can_install: bool
    """Whether the launcher can install packages: apt is here, and root or sudo."""
    packages: tuple[Package, ...]
    """What building the image takes."""


def gather() -> Facts:
    """Look at this machine."""
    root, user = os.geteuid() == 0, _user()
    return Facts(
        system=platform.system(),
        machine=platform.machine(),
        root=root,
        user=user,
        cores=len(os.sched_getaffinity(0)),
        memory_free_mb=min((limit.free_mb for limit in memory.limits() if limit.name != str(SHM)), default=0),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        shm_free_mb=shutil.disk_usage(SHM).free >> 20 if os.access(SHM, os.W_OK) else None,
        shm_executable=_executable(SHM),
        image_ready=image.present() is not None,
        disks=image.room(),
        seccomp=_succeeds(FILTER_CALLS),
        ptrace=_succeeds(TRACE),
        landlock=confinement.version(),
        socket_buffer_bytes=_socket_buffer_bytes(4 * 2**20),
        namespaces_blocked_by=_namespaces_blocked_by(),
        subordinate_ids=all(_has_range(Path(file), user) for file in ("/etc/subuid", "/etc/subgid")),
        can_install=shutil.which("apt-get") is not None and (root or shutil.which("sudo") is not None),
        packages=system_packages.of(Path(__file__).parent, root=root),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def _read(path: Path) -> str:
    """A file's text, stripped; empty when it is absent or closed to us."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _executable(folder: Path) -> bool:
    """Whether a file there can be mapped to be run; a noexec mount refuses."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True


def _succeeds(call: str) -> bool:
    """Whether an expression of libc calls gives 0 in a child, on which it may leave its mark."""
    child = f"import ctypes, os; c = ctypes.CDLL(None); os._exit(0 if ({call}) == 0 else 1)"
    return run([sys.executable, "-ISc", child], timeout_s=20, check=False).code == 0


def _socket_buffer_bytes(wanted: int) -> int:
    """The buffer that a Unix socket gets. The kernel doubles what was asked for (socket(7)); this undoes that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, wanted)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2


def _namespaces_blocked_by() -> str:
    for name, off, remedy in NAMESPACE_SWITCHES:
        if _read(Path("/proc/sys") / name) == off:
            return remedy
    # Ubuntu restricts them by AppArmor, but lets programs that have a profile of their own through.
    restricted = _read(Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) == "1"
    if restricted and not Path("/etc/apparmor.d/mmdebstrap").exists():
        return "kernel.apparmor_restrict_unprivileged_userns=0"
    return ""


def _has_range(file: Path, user: str) -> bool:
    """Whether a line such as `alice:100000:65536` gives the user at least 65536 ids (subuid(5))."""
    rows = (line.split(":") for line in _read(file).splitlines())
    owners = (user, str(os.geteuid()))
    return any(len(row) == 3 and row[0] in owners and row[2].isdigit() and int(row[2]) >= 65536 for row in rows)
