"""The findings of `minigts doctor` for the provider `uml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from minigts.artifacts.digests import Proof
from minigts.providers.base import DoctorFinding
from minigts.providers.uml.build import build_all
from minigts.providers.uml.build.image import Room
from minigts.providers.uml.facts import MachineFacts
from minigts.providers.uml.run import bounds
from minigts.providers.uml.run.confinement import SCOPES_FROM

MEMORY_NEEDED_MB = 512
MEMORY_WANTED_MB = 3072
"""Six hosts with Docker need some 2 GiB together, and the machine itself needs the rest."""
STAYS_MB = 700
"""The room that an image occupies on the disk, by du(1)."""
SOCKET_BUFFER_BYTES = 4 * 2**20
OPEN_FILES = 1024
MAKE_GROUPS = "allow control groups with `pids`, as systemd-run --user --scope -p Delegate=yes does, or user namespaces"


def findings(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """All findings for a machine with these facts, for real and virtual time. Pure."""
    yield from kernel_findings(facts)
    yield facts.limits
    yield facts.way_out
    yield _virtual_time(facts)
    if facts.proofs:
        yield _bytes(facts.proofs)
    if facts.kernels:
        yield DoctorFinding("kernels by name", "ok", "; ".join(facts.kernels.values()))
    if facts.unproven:
        remedy = "compare its figures with a proven one's; for that: minigts kernel remove, minigts image remove"
        yield DoctorFinding("sources", "note", f"not proven: {'; '.join(facts.unproven)}", remedy)


def _bytes(proofs: Mapping[str, Proof]) -> DoctorFinding:
    """Whether the built parts are those that figures can be compared with byte for byte."""
    name, unproven = "built parts", {word: proof for word, proof in proofs.items() if not proof.proven}
    if not unproven:
        return DoctorFinding(name, "ok", f"{', '.join(proofs)}: proven, they have the expected bytes")
    proven = [f"{word} proven" for word in proofs if word not in unproven]
    said = "; ".join([*(f"{word} {proof}" for word, proof in unproven.items()), *proven])
    remedy = "figures are still right, but not those of other machines to the last byte; docs/virtual-time.md says more"
    return DoctorFinding(name, "note", said, remedy)


def kernel_findings(facts: MachineFacts) -> Iterator[DoctorFinding]:
    """The findings for kernels of User-Mode Linux alone. Pure."""
    yield _processor(facts)
    yield _system_calls(facts)
    yield _confinement(facts)
    yield _apart(facts)
    yield _processes(facts)
    yield _shm(facts)
    yield _memory(facts)
    yield _cores(facts)
    yield _socket_buffers(facts)
    yield _open_files(facts)
    if facts.shared:
        yield DoctorFinding("shared cache", "ok", f"{facts.shared}; what it lacks is built into your own")
    if facts.image_ready:
        yield DoctorFinding("image", "ok", "built; nothing else is needed")
        return
    when = "the first up, run or test does that, in a minute or two"
    cost = f"{STAYS_MB} MB stay; without a network: minigts image import FILE"
    yield DoctorFinding("image", "ok", f"not built yet: {when}; {cost}")
    yield from map(_disk, facts.disks)
    yield from _packages(facts)
    if not facts.root:
        yield _namespaces(facts)


def _processor(facts: MachineFacts) -> DoctorFinding:
    if (facts.system, facts.machine) == ("Linux", "x86_64"):
        return DoctorFinding("processor", "ok", "x86-64 Linux")
    remedy = "use an x86-64 Linux machine, or a virtual one"
    return DoctorFinding("processor", "missing", f"needs x86-64 Linux; this is {facts.machine} {facts.system}", remedy)


def _system_calls(facts: MachineFacts) -> DoctorFinding:
    """How a UML kernel intercepts the system calls of its guest's programs."""
    name = "system calls"
    if facts.seccomp and facts.listener:
        return DoctorFinding(name, "ok", "can be caught by a seccomp filter")
    if facts.seccomp:
        way = "has only ptrace, some two times slower" if facts.ptrace else "cannot run"
        meaning = f"the full kernel, of virtual time, {way}: no process here may listen to another's seccomp filter"
        remedy = "use Linux 5.14 or later; in a container, a seccomp profile that allows seccomp(2) and its listeners"
        return DoctorFinding(name, "slow", meaning, remedy)
    if facts.ptrace:
        meaning = "can be caught by ptrace only: some two times slower than by a seccomp filter"
        return DoctorFinding(name, "slow", meaning, "use a kernel with CONFIG_SECCOMP_FILTER")
    meaning = "a UML kernel intercepts those of its programs by seccomp or ptrace; both are forbidden here"
    remedy = "sudo sysctl -w kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE"
    return DoctorFinding(name, "missing", meaning, remedy)


def _confinement(facts: MachineFacts) -> DoctorFinding:
    """Whether root in a guest is confined to the host's own files: see confinement.py."""
    name = "confinement"
    if facts.landlock == 0:
        meaning = "Landlock is absent or switched off: hosts get no hostfs, but what root in one loads into its kernel "
        remedy = "boot Linux 5.13 or later with landlock in `lsm=`; until then run in hosts only what you trust"
        return DoctorFinding(name, "note", f"{meaning}reads and writes your files", remedy)
    held = ["its own files", *(["no signal"] if facts.landlock >= 6 else []), *(["no socket"] if facts.seccomp else [])]
    return DoctorFinding(name, "ok", f"Landlock {facts.landlock} holds each host's kernel to {', '.join(held)}")


def _apart(facts: MachineFacts) -> DoctorFinding:
    """Which of this machine's processes a host's kernel can see: see machine/contained.py."""
    name, remedy = "pid namespaces", "in a container: --cap-add SYS_ADMIN; else allow user namespaces, or run as root"
    if facts.namespaces_restricted_by and not facts.root:
        remedy = f"sudo sysctl -w {facts.namespaces_restricted_by}"
    if not facts.apart.lacks:
        return DoctorFinding(
            name, "ok", "each host's kernel has its own: it sees nobody else's processes, and all of it ends at once"
        )
    if facts.landlock >= SCOPES_FROM:
        meaning = f"{facts.apart.lacks}: a host's kernel sees your processes, and `minigts down` ends what it started"
        return DoctorFinding(name, "ok", f"{meaning}; {remedy}")
    meaning = f"{facts.apart.lacks} and lacks Landlock 6: code in a host's kernel can signal your processes"
    return DoctorFinding(name, "note", meaning, f"{remedy}; or boot Linux 6.12 or later")


def _processes(facts: MachineFacts) -> DoctorFinding:
    """How many processes of this machine a host may use."""
    name = "processes of a host"
    if facts.counted:
        return DoctorFinding(name, "ok", f"at most {bounds.PROCESSES}, counted by {facts.counted}")
    meaning = f"as many as {'this machine has' if facts.root else 'you may have'}: no host has a limit of its own"
    return DoctorFinding(name, "ok", f"{meaning}; {MAKE_GROUPS}")


def _shm(facts: MachineFacts) -> DoctorFinding:
    size = "in a container: --shm-size=4g; else: sudo mount -o remount,size=4g /dev/shm"
    if facts.shm_free_mb is None:
        remedy = "sudo mkdir -p /dev/shm; sudo mount -t tmpfs tmpfs /dev/shm"
        return DoctorFinding("/dev/shm", "missing", "a guest keeps its memory there, and it is not writable", remedy)
    if not facts.shm_executable:
        remedy = "sudo mount -o remount,exec /dev/shm"
        return DoctorFinding("/dev/shm", "missing", "mounted noexec: a guest cannot run what is in its memory", remedy)
    have = f"{facts.shm_free_mb} MB free"
    if facts.shm_free_mb < MEMORY_NEEDED_MB:
        return DoctorFinding("/dev/shm", "missing", f"{have}: too little for one host", size)
    if facts.shm_free_mb < MEMORY_WANTED_MB:
        return DoctorFinding("/dev/shm", "slow", f"{have}: enough for small labs only", size)
    return DoctorFinding("/dev/shm", "ok", f"{have}, executable")


def _memory(facts: MachineFacts) -> DoctorFinding:
    limit = facts.memory
    have = f"{limit.free_mb} MB free by {limit.name}"
    if limit.free_mb < MEMORY_NEEDED_MB:
        return DoctorFinding("memory", "missing", f"{have}: too little for one host", limit.remedy)
    if limit.free_mb < MEMORY_WANTED_MB:
        meaning = f"{have}: six hosts with Docker need some 2 GiB"
        return DoctorFinding("memory", "slow", meaning, f"run smaller labs, or {limit.remedy}")
    return DoctorFinding("memory", "ok", have)


def _cores(facts: MachineFacts) -> DoctorFinding:
    if facts.cores >= 2:
        return DoctorFinding("cores", "ok", f"{facts.cores}")
    meaning = "1: hosts wait for each other, which shows in jitter and in unshaped throughput"
    return DoctorFinding("cores", "slow", meaning, "shape links to 50 Mbit/s or less, or use a machine with more")


def _socket_buffers(facts: MachineFacts) -> DoctorFinding:
    have = f"{facts.socket_buffer_bytes // 1024} KiB"
    if facts.socket_buffer_bytes >= SOCKET_BUFFER_BYTES:
        return DoctorFinding("socket buffers", "ok", f"{have} a link")
    meaning = f"{have} a link: unshaped TCP reaches 0.8 Gbit/s instead of 2.2; links up to 100 Mbit/s are not slowed"
    remedy = f"sudo sysctl -w net.core.wmem_max={SOCKET_BUFFER_BYTES} net.core.rmem_max={SOCKET_BUFFER_BYTES}"
    return DoctorFinding("socket buffers", "slow", meaning, remedy)


def _open_files(facts: MachineFacts) -> DoctorFinding:
    have = f"{facts.open_files} at once"
    if facts.open_files >= OPEN_FILES:
        return DoctorFinding("open files", "ok", have)
    meaning = f"{have}: each link needs two, each host some more"
    return DoctorFinding("open files", "slow", meaning, f"ulimit -n {OPEN_FILES}")


def _disk(disk: Room) -> DoctorFinding:
    have = f"{disk.free_mb} MB free in {disk.directory}"
    if disk.enough:
        return DoctorFinding("disk", "ok", have)
    remedy = "make room there, or set XDG_CACHE_HOME to a directory with more"
    return DoctorFinding("disk", "missing", f"{have}: building the image takes {disk.needed_mb} MB", remedy)


def _packages(facts: MachineFacts) -> Iterator[DoctorFinding]:
    for package in facts.packages:
        command = f"sudo apt-get install {package.name}"
        if package.present:
            yield DoctorFinding(package.name, "ok", "installed")
        elif facts.can_install:
            yield DoctorFinding(package.name, "slow", "not installed yet: the first up, run or test does that", command)
        else:
            yield DoctorFinding(package.name, "missing", "not installed; building the image needs it", command)


def _virtual_time(facts: MachineFacts) -> DoctorFinding:
    name = "virtual time"
    if not facts.uncompiled:
        version = "" if facts.unproven or not facts.kernel else f", from Linux {facts.kernel}"
        return DoctorFinding(name, "ok", f"the full kernel and the clock are built{version}")
    them = build_all.product_names(facts.uncompiled)
    if facts.virtual_lacks:
        meaning = f"{them} cannot be built, so labs run only with --time real: {'; '.join(facts.virtual_lacks)}"
        return DoctorFinding(name, "slow", meaning, "remedy that, then run minigts kernel build")
    rooms = " and ".join(f"{each.needed_mb} MB in {each.directory}" for each in facts.virtual_disks)
    return DoctorFinding(
        name,
        "ok",
        f"not built yet: {them}; the first up, run or test does that, or minigts kernel build: {build_all.DURATION}, "
        f"{rooms} and up to {build_all.MEMORY_MB} MB of memory meanwhile; --time real needs neither",
    )


def _namespaces(facts: MachineFacts) -> DoctorFinding:
    name, use = "user namespaces", "building the image without root needs them"
    if facts.namespaces_blocked_by:
        remedy = f"sudo sysctl -w {facts.namespaces_blocked_by}; or build the image as root"
        return DoctorFinding(name, "missing", f"switched off; {use}", remedy)
    if not facts.subordinate_ids:
        remedy = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {facts.user}"
        return DoctorFinding(
            name, "missing", f"{facts.user} has no range in /etc/subuid and /etc/subgid; {use}", remedy
        )
    return DoctorFinding(name, "ok", "allowed, with a range of ids")
