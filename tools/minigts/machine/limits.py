"""How much memory, and how many processes and threads, this machine and its control groups still leave to this user."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minigts.machine.proc import PROC, text_of

NO_LIMIT_BYTES = 1 << 60
"""Version 1 of control groups shows a larger number where there is no limit."""
NO_OVERCOMMIT = "2"
"""With it Linux promises all processes together no more memory than CommitLimit, used or not (proc(5))."""
GROUP_FILES = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""For each version: the files with the limit and the use, and the field of memory.stat with the cached files not used
lately, which the kernel frees first."""


@dataclass(frozen=True)
class MemoryLimit:
    """A limit of memory, with what it leaves now and what it would leave if nothing ran; in MB of 2^20 bytes."""

    name: str
    free_mb: int
    whole_mb: int
    remedy: str


def memory_limits(proc: Path = PROC, shared: Path = Path("/dev/shm")) -> tuple[MemoryLimit, ...]:
    """Every limit of memory on this machine, the least free first. Limits that cannot be read are left out."""
    found = [*_memory_of_machine(proc), *_shared(shared), *_memory_of_groups(proc)]
    return tuple(sorted(found, key=lambda limit: limit.free_mb))


def _memory_of_machine(proc: Path) -> Iterator[MemoryLimit]:
    lines = dict(line.split(":", 1) for line in text_of(proc / "meminfo").splitlines() if ":" in line)
    try:
        free_mb, whole_mb = (int(lines[name].split()[0]) >> 10 for name in ("MemAvailable", "MemTotal"))
    except (KeyError, ValueError, IndexError):
        return
    yield MemoryLimit("this machine's memory", free_mb, whole_mb, "end other programs")
    if text_of(proc / "sys" / "vm" / "overcommit_memory").strip() != NO_OVERCOMMIT:
        return
    try:
        promised_mb, most_mb = (int(lines[name].split()[0]) >> 10 for name in ("Committed_AS", "CommitLimit"))
    except (KeyError, ValueError, IndexError):
        return
    remedy = "sudo sysctl -w vm.overcommit_memory=0"
    yield MemoryLimit("vm.overcommit_memory=2", max(0, most_mb - promised_mb), most_mb, remedy)


def _shared(shared: Path) -> Iterator[MemoryLimit]:
    """The room in the file system at `shared`, whether or not this user may write there."""
    try:
        state = os.statvfs(shared)
    except OSError:
        return
    free_mb, whole_mb = (blocks * state.f_frsize >> 20 for blocks in (state.f_bavail, state.f_blocks))
    remedy = f"sudo mount -o remount,size=SIZE {shared}, or start the container with --shm-size=SIZE"
    yield MemoryLimit(str(shared), free_mb, whole_mb, remedy)


def _memory_of_groups(proc: Path) -> Iterator[MemoryLimit]:
    """This process's control group and all above it, as far as they can be seen from here."""
    for kind, top, directory in group_directories(proc, "memory"):
        limit_file, used_file, idle = GROUP_FILES[kind]
        for group in (directory, *directory.parents):
            limit, used = _number(group / limit_file), _number(group / used_file)
            if limit is not None and used is not None and limit < NO_LIMIT_BYTES:
                fields = dict(line.split(" ", 1) for line in text_of(group / "memory.stat").splitlines() if " " in line)
                unused = int(fields.get(idle, "0"))
                free_mb = max(0, limit - used + unused) >> 20
                name = f"the limit of the control group {group}"
                yield MemoryLimit(name, free_mb, limit >> 20, "give the container or the service more memory")
            if group == top:
                break


def group_directories(proc: Path, limiting: str) -> Iterator[tuple[str, Path, Path]]:
    """For each hierarchy that may have the controller `limiting`, such as `memory`: its version, its mount point, and
    this process's directory in it."""
    lines = (line.split(":", 2) for line in text_of(proc / "self" / "cgroup").splitlines())
    own = {name: path for _, names, path in (line for line in lines if len(line) == 3) for name in names.split(",")}
    for line in text_of(proc / "self" / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if len(fields) < 5 or len(more) < 3 or more[0] not in GROUP_FILES:
            continue
        controller = "" if more[0] == "cgroup2" else limiting
        if controller not in own or (controller and controller not in more[2].split(",")):
            continue
        root, top = fields[3], Path(fields[4])
        below = own[controller].removeprefix(root if root != "/" else "").lstrip("/")
        # A container may see a path that does not exist in its mount: then its own group is the top.
        directory = top / below if (top / below).is_dir() else top
        yield more[0], top, directory


def _number(path: Path) -> int | None:
    digits = text_of(path).strip()
    return int(digits) if digits.isdigit() else None


@dataclass(frozen=True)
class ProcessLimit:
    """A limit on processes and threads: how many more may be started now, and how many there may be in total."""

    name: str
    free: int
    whole: int


def process_limits(proc: Path = PROC) -> tuple[ProcessLimit, ...]:
    """Every limit on processes and threads, the least free first. Limits that cannot be read are left out."""
    return tuple(
        sorted((*_user(proc), *_processes_of_machine(proc), *_processes_of_groups(proc)), key=lambda limit: limit.free)
    )


def _user(proc: Path) -> Iterator[ProcessLimit]:
    """RLIMIT_NPROC, which counts the user's threads and does not limit root (setrlimit(2))."""
    whole, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() == 0 or whole == resource.RLIM_INFINITY:
        return
    used = 0
    for process in proc.glob("[0-9]*"):
        fields = dict(line.split(":", 1) for line in text_of(process / "status").splitlines() if ":" in line)
        if fields.get("Uid", "").split()[:1] == [str(os.getuid())]:
            used += int(fields.get("Threads", "1"))
    yield ProcessLimit("this user's limit of processes (ulimit -u)", max(0, whole - used), whole)


def _processes_of_machine(proc: Path) -> Iterator[ProcessLimit]:
    """The limits of the whole machine. The fourth field of loadavg is `running/all` of its threads (proc(5))."""
    fields = text_of(proc / "loadavg").split()
    used = int(fields[3].partition("/")[2]) if len(fields) > 3 else 0
    for name in ("pid_max", "threads-max"):
        digits = text_of(proc / "sys" / "kernel" / name).strip()
        if digits.isdigit():
            yield ProcessLimit(f"this machine's kernel.{name}", max(0, int(digits) - used), int(digits))


def _processes_of_groups(proc: Path) -> Iterator[ProcessLimit]:
    """This process's control group and all above it, as far as they can be seen from here."""
    for _, top, directory in group_directories(proc, "pids"):
        for group in (directory, *directory.parents):
            whole, used = (text_of(group / name).strip() for name in ("pids.max", "pids.current"))
            if whole.isdigit() and used.isdigit():
                yield ProcessLimit(f"pids.max of the control group {group}", max(0, int(whole) - int(used)), int(whole))
            if group == top:
                break
