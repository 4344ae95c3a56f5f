"""In which kernel a Mininet network lives: this machine's own where that will do, else one of User-Mode Linux."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from minigts import paths
from minigts.machine import shell
from minigts.providers.agent import process, wire
from minigts.topology.plan import Plan

NAME = "kernel"
"""Of the one machine that the lab's supervisor runs: the kernel, or what stands for it."""
GROUP = "control-group"
"""The file in the run directory that names the lab's control group."""
SMALLEST_MB, LARGEST_MB = 512, 2048
ASKING_TIMEOUT_S = 20.0
SYSTEM_PYTHON = "/usr/bin/python3"
"""The one that Debian's package of Mininet is installed for."""
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
"""In namespaces that vanish with it. The line that fails names what is missing."""


def natively_missing() -> list[str]:
    """Why the network cannot live in this machine's own kernel: the first reason, a sentence; empty when it can."""
    return list(islice(_reasons(), 1))


def _reasons() -> Iterator[str]:
    """From the cheapest look to the dearest; each takes for granted that those before it found nothing."""
    if os.geteuid() != 0:
        yield "namespaces and switches are made by root"
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
    """What the one User-Mode Linux kernel gets: its machines' memory together, within limits, since they share it."""
    return min(LARGEST_MB, max(SMALLEST_MB, sum(machine.memory_mb for machine in plan.machines)))


def control_groups() -> Path | None:
    """Where control groups of version 2 are mounted."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)


def enclosure(rundir: Path) -> tuple[str, ...]:
    """What runs natively in place of a kernel: namespaces that hold all of the network and have no way out.

    Makes its control group and writes down which it is.
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
        *(str(wire.__file__), str(memory), str(group)),
    )


def remove_group(rundir: Path) -> None:
    """Take away a lab's control group; its processes have ended. Its name follows from the run directory: what is
    written down there only says that there is one.
    """
    if not os.path.lexists(rundir / GROUP):
        return
    groups = control_groups()
    group = None if groups is None else groups / _group_name(rundir)
    if group is not None and group.is_dir():
        for directory in sorted(group.rglob("*/"), reverse=True):
            directory.rmdir()
        group.rmdir()
    process.remove(rundir / GROUP)


def _group_name(rundir: Path) -> str:
    return f"minigts-{hashlib.sha256(str(rundir).encode()).hexdigest()[:12]}"
