"""The kernel of a Mininet network: this machine's where possible, otherwise a User-Mode Linux kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from minigts import paths
from minigts.machine import shell
from minigts.providers.agent import lab_processes, protocol
from minigts.topology.plan.plan import Plan

NAME = "kernel"
"""The name of the only machine of the lab's supervisor: the kernel, or the namespaces that replace it."""
GROUP = "control-group"
"""The file in the run directory that names the lab's control group."""
SMALLEST_MB, LARGEST_MB = 512, 2048
ASKING_TIMEOUT_S = 20.0
SYSTEM_PYTHON = "/usr/bin/python3"
"""The Python for which Debian's package of Mininet is installed."""
PROGRAMS = (
    *("unshare", "nsenter", "ip", "tc", "ethtool", "ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "modprobe"),
    *("iperf3", "netserver", "netperf", "ping", "tcpdump", "jq"),
)
TRIAL = """
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
test -e /mnt/root/usr/bin/env
ip link add trial type veth peer name trial2
ip link add trial3 type ifb
tc qdisc add dev trial root tbf rate 1mbit burst 10kb limit 10kb
tc qdisc add dev trial2 root netem delay 1ms
"""
"""A script that runs in its own namespaces. The line that fails shows what is missing."""


def natively_missing() -> list[str]:
    """Why the network cannot be in this machine's kernel: the first reason, a sentence; empty when it can."""
    return list(islice(_reasons(), 1))


def _reasons() -> Iterator[str]:
    """The reasons, from the cheapest check to the most expensive; each assumes that the earlier ones found nothing."""
    if os.geteuid() != 0:
        yield "only root can make namespaces and switches"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if not Path("/sys/module/openvswitch").exists() and "modprobe" not in absent:
        asked = shell.run(["modprobe", "-qn", "openvswitch"], timeout_s=ASKING_TIMEOUT_S, check=False)
        if asked.code != 0:
            yield "this machine's kernel has no openvswitch"
    if absent:
        yield f"not installed: {', '.join(absent)}"
    asked = shell.run([SYSTEM_PYTHON, "-c", "import mininet.net"], timeout_s=ASKING_TIMEOUT_S, check=False)
    if asked.code != 0:
        yield "Mininet is not installed"
    if control_groups() is None:
        yield "control groups of version 2 are not mounted"
    argv = ["unshare", "--net", "--mount", "sh", "-exc", TRIAL]
    tried = shell.run(argv, timeout_s=ASKING_TIMEOUT_S, check=False)
    if tried.code != 0:
        steps = [line.removeprefix("+ ") for line in tried.stderr.splitlines() if line.startswith("+ ")]
        yield f"this machine's kernel refuses `{steps[-1] if steps else 'unshare'}`"


def memory_mb(plan: Plan) -> int:
    """Memory in MB of the User-Mode Linux kernel: the sum of its machines', within limits, since they share it."""
    return min(LARGEST_MB, max(SMALLEST_MB, sum(machine.memory_mb for machine in plan.machines)))


def control_groups() -> Path | None:
    """The mount point of control groups of version 2; None if they are not mounted."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)


def enclosure(rundir: Path) -> tuple[str, ...]:
    """The command that runs instead of a kernel: it makes namespaces that hold the whole network and have no way out.

    Makes the lab's control group, and records its path.
    """
    groups = control_groups()
    assert groups is not None, "natively_missing() was asked"
    group = groups / _group_name(rundir)
    paths.write_whole(rundir / GROUP, str(group))
    group.mkdir(exist_ok=True)
    memory = rundir / "enclosure"
    memory.mkdir(exist_ok=True)
    return (
        *("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"),
        *(SYSTEM_PYTHON, str(paths.project_root() / "provision" / "mininet" / "enclosure.py")),
        *(str(protocol.__file__), str(memory), str(group)),
    )


def remove_group(rundir: Path) -> None:
    """Remove a lab's control group, whose processes have ended. Its name follows from the run directory; the record
    there only shows that it was made.
    """
    if not os.path.lexists(rundir / GROUP):
        return
    groups = control_groups()
    group = None if groups is None else groups / _group_name(rundir)
    if group is not None and group.is_dir():
        for directory in sorted(group.rglob("*/"), reverse=True):
            directory.rmdir()
        group.rmdir()
    lab_processes.remove(rundir / GROUP)


def _group_name(rundir: Path) -> str:
    return f"minigts-{hashlib.sha256(str(rundir).encode()).hexdigest()[:12]}"
