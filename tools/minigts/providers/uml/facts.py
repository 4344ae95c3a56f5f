"""Gathers the facts about this machine that User-Mode Linux depends on, and leaves no change behind."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from minigts import paths
from minigts.artifacts import digests, kernels
from minigts.artifacts.digests import Proof
from minigts.machine import cgroups, contained, limits
from minigts.machine.contained import Namespaces
from minigts.machine.limits import MemoryLimit
from minigts.machine.shell import run
from minigts.providers import gateway, processor_share, system_packages
from minigts.providers.base import DoctorFinding
from minigts.providers.system_packages import SystemPackage
from minigts.providers.uml.build import build_all, image, kernel_build, namespaces, provenance
from minigts.providers.uml.build.image import Room
from minigts.providers.uml.run import confinement
from minigts.providers.uml.run.command_line import SHARED, memory_directory

TRACE = "c.ptrace(0, 0, 0, 0)"
"""PTRACE_TRACEME, which fails if Yama or a container's seccomp filter forbids ptrace(2)."""
UNPRIVILEGED = "c.prctl(38, 1, 0, 0, 0)"
"""PR_SET_NO_NEW_PRIVS, which an unprivileged process has to set before it may filter its calls."""
ALLOW_ALL = "(ctypes.c_uint64 * 2)(1, ctypes.addressof(rule := ctypes.c_uint64(0x7FFF0000 << 32 | 6)))"
"""A filter of one instruction, `return SECCOMP_RET_ALLOW` (seccomp(2), struct sock_fprog)."""
FILTER_CALLS = f"{UNPRIVILEGED} or c.prctl(22, 2, {ALLOW_ALL})"
"""PR_SET_SECCOMP with that filter."""
LISTEN_CALLS = f"{UNPRIVILEGED} or c.syscall(317, 1, 8, {ALLOW_ALL}) < 0"
"""seccomp(2) with that filter and SECCOMP_FILTER_FLAG_NEW_LISTENER. A process may have only one such listener."""
HANDS_ON_FROM = (5, 14)
"""The first Linux that can add a descriptor to a listener's answer in one step (SECCOMP_ADDFD_FLAG_SEND)."""
SO_SNDBUFFORCE = 32
"""An option of socket(7) that Python does not define. It lets root exceed net.core.wmem_max."""

NO_MEMORY = MemoryLimit("this machine's memory", 0, 0, "end other programs")
"""Where no limit can be read."""


@dataclass(frozen=True)
class MachineFacts:
    """The facts. Sizes are what is free now; `shm_free_mb` is None when /dev/shm is not writable."""

    system: str
    machine: str
    root: bool
    user: str
    cores: int
    memory: MemoryLimit
    """The limit of memory that leaves the least now."""
    open_files: int
    shm_free_mb: int | None
    shm_executable: bool
    image_ready: bool
    disks: tuple[Room, ...]
    """The file systems in which building the image needs room."""
    seccomp: bool
    """Whether a process may filter its own system calls, by which a UML kernel prefers to intercept them."""
    listener: bool
    """Whether that filter may pass calls on to another process, as the full kernel needs."""
    ptrace: bool
    """Whether ptrace, the alternative to seccomp, is allowed."""
    landlock: int
    """The version of Landlock; 0 where it is absent or switched off."""
    apart: Namespaces
    """Whether a host's kernel gets its own pid namespace."""
    counted: str
    """The mechanism that counts a host's processes; empty if there is none."""
    limits: DoctorFinding
    """Whether a host can be limited to a share of a processor."""
    way_out: DoctorFinding
    socket_buffer_bytes: int
    """The buffer that a socket gets when it asks for 4 MiB."""
    namespaces_blocked_by: str
    """The sysctl setting that would allow user namespaces; empty when they are allowed."""
    namespaces_restricted_by: str
    """The same for labs, whose programs have no profile of AppArmor."""
    subordinate_ids: bool
    can_install: bool
    """Whether the launcher can install packages: there is apt, and the user is root or has sudo."""
    packages: tuple[SystemPackage, ...]
    """The packages that building the image needs."""
    uncompiled: tuple[str, ...]
    """The names of the parts for virtual time that are not built yet."""
    virtual_disks: tuple[Room, ...]
    """The file systems in which building those parts, and the image if it is missing, needs room."""
    virtual_lacks: tuple[str, ...]
    """Why those parts cannot be built here, besides what the image needs; empty when they can."""
    kernel: str = ""
    """The version of the full kernel's source, if it is built."""
    unproven: tuple[str, ...] = ()
    """The parts that were built from a source that minigts was not proven on."""
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    """Whether each part that is built has the expected bytes."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """The kernels by name, each with what is to be known of it: its source, and whether it is proven or stale."""
    shared: str = ""
    """The cache that all users of this machine share; empty where there is none."""


class _Sources(TypedDict):
    kernel: str
    unproven: tuple[str, ...]
    proofs: Mapping[str, Proof]
    kernels: Mapping[str, str]


def gather() -> MachineFacts:
    """Gather the facts about this machine."""
    root = os.geteuid() == 0
    return MachineFacts(
        system=platform.system(),
        machine=platform.machine(),
        root=root,
        user=namespaces.user(),
        cores=len(os.sched_getaffinity(0)),
        memory=next((limit for limit in limits.memory_limits() if limit.name != str(SHARED)), NO_MEMORY),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        shm_free_mb=shutil.disk_usage(SHARED).free >> 20 if os.access(SHARED, os.W_OK) else None,
        shm_executable=memory_directory() is not None,
        image_ready=image.present() is not None,
        shared=str(paths.shared_cache() or ""),
        disks=image.room(),
        seccomp=_succeeds(FILTER_CALLS),
        listener=_linux() >= HANDS_ON_FROM and _succeeds(LISTEN_CALLS),
        ptrace=_succeeds(TRACE),
        landlock=confinement.version(),
        apart=(apart := contained.look()),
        counted=_counted(apart),
        limits=processor_share.finding(),
        way_out=gateway.finding(),
        socket_buffer_bytes=_socket_buffer_bytes(4 * 2**20),
        namespaces_blocked_by=namespaces.blocking_sysctl(),
        namespaces_restricted_by=namespaces.restricting_sysctl(),
        subordinate_ids=namespaces.has_ids(),
        can_install=shutil.which("apt-get") is not None and (root or shutil.which("sudo") is not None),
        packages=system_packages.listed_packages(Path(__file__).parent, root=root),
        uncompiled=tuple(each.name for each in build_all.uncompiled_products()),
        virtual_disks=build_all.room(),
        virtual_lacks=tuple(build_all.missing()),
        **_sources(),
    )


def _sources() -> _Sources:
    """The facts about the sources of the built parts."""
    full, ready = kernel_build.present(), image.present()
    unproven = [] if full is None or full.proven else [f"the full kernel is built from {full.version}"]
    if ready is not None and ready.unproven:
        unproven.append(f"the image has user-mode-linux {ready.unproven}")
    built = {word: digests.proof(directory) for word, directory in provenance.new_lab_parts(virtual=True).items()}
    named = {each.manifest.name: each for each in kernels.every()}
    return {
        "kernel": "" if full is None else full.version,
        "unproven": tuple(unproven),
        "proofs": {word: proof for word, proof in built.items() if proof is not None},
        "kernels": {name: f"{each.in_words}, {each.state}" for name, each in named.items()},
    }


def _counted(apart: Namespaces) -> str:
    """See `Facts.counted`."""
    if apart.counts_apart:
        return "a user namespace"
    found = cgroups.process_place()
    return "" if isinstance(found, str) else f"a control group in {found.parent}"


def _succeeds(call: str) -> bool:
    """Whether an expression of libc calls yields 0 in a child process, so that it cannot affect this one."""
    child = f"import ctypes, os; c = ctypes.CDLL(None); os._exit(0 if ({call}) == 0 else 1)"
    return run([sys.executable, "-ISc", child], timeout_s=20, check=False).code == 0


def _linux() -> tuple[int, ...]:
    """The first two numbers of this machine's Linux version; (0, 0) if it has no such version."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return tuple(map(int, found.groups())) if found else (0, 0)


def _socket_buffer_bytes(wanted: int) -> int:
    """The buffer that a Unix socket gets. The kernel doubles what was asked for (socket(7)); this undoes that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, wanted)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2
