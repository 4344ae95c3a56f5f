"""Memory and idle processor time of six hosts: bare, and with Docker, Swarm and a container on each; or with other
overlays.

A guest's memory is a file in /dev/shm that was unlinked as soon as it was open; its kernel and the guest's processes
map it. `pss` are the proportional set sizes of all processes of the lab (proc_pid_smaps(5)), which count a shared page
once; `file` are the blocks of those files, mapped or not; `all` is the figure to use: those blocks, and the processes'
other memory.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.lab import Lab
from minigts.machine.proc import PROC, shared_files_bytes, stat_fields, text_of, used_s
from minigts.providers.agent import lab_processes

MIB = 1 << 20
GROUPS = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")


def children() -> dict[int, list[int]]:
    """The processes of the machine, by parent."""
    found = defaultdict(list)
    for directory in PROC.glob("[0-9]*"):
        fields = stat_fields(int(directory.name))
        if fields:
            found[int(fields[1])].append(int(directory.name))
    return found


def family(pid: int, by_parent: dict[int, list[int]]) -> list[int]:
    return [pid, *(each for child in by_parent.get(pid, []) for each in family(child, by_parent))]


def kernels(lab: Lab) -> dict[str, list[int]]:
    """Each host's kernel, and the processes below it: a guest's processes are those of its kernel."""
    supervisor, by_parent, found = supervisor_of(lab), children(), {}
    for pid in by_parent[supervisor]:
        words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        named = re.search(r"/hosts/([^/]+)/disk/disk\.cow", words)
        if named:
            found[named[1]] = family(pid, by_parent)
    return found


def shares(pids: Iterable[int]) -> dict[str, int]:
    """Bytes by kind, summed over processes; a process that has ended meanwhile counts nothing."""
    total = dict.fromkeys(GROUPS, 0)
    for pid in pids:
        text = text_of(PROC / str(pid) / "smaps_rollup")
        for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE):
            if name in total:
                total[name] += int(kib) << 10
    return total


def memory(lab: Lab) -> dict[str, float]:
    """MiB of the whole lab."""
    hosts = kernels(lab)
    supervisor = supervisor_of(lab)
    pss = shares([supervisor, *(pid for pids in hosts.values() for pid in pids)])
    files = shared_files_bytes(pids[0] for pids in hosts.values())
    figures = {
        "pss": pss["Pss"],
        "pss_of_memory_files": pss["Pss_Shmem"],
        "file": files,
        "supervisor": shares([supervisor])["Pss"],
        "all": pss["Pss"] - pss["Pss_Shmem"] + files,
    }
    return {name: round(size / MIB, 1) for name, size in figures.items()}


def tasks(lab: Lab) -> int:
    """Processes and threads of this machine that belong to the lab: its supervisor and all below it."""
    return sum(len(list((PROC / str(pid) / "task").iterdir())) for pid in family(supervisor_of(lab), children()))


def supervisor_of(lab: Lab) -> int:
    found = lab_processes.supervisor(lab.rundir)
    if found is None:
        raise MinigtsError("the lab's supervisor has ended")
    return found


def idle_percent(lab: Lab, seconds: float) -> dict[str, float]:
    """Processor time of each host without work, in per cent of one core."""
    hosts = kernels(lab)
    before_s = {name: sum(map(used_s, pids)) for name, pids in hosts.items()}
    started = time.monotonic()
    time.sleep(seconds)
    passed_s = time.monotonic() - started
    return {name: round(100 * (sum(map(used_s, pids)) - before_s[name]) / passed_s, 2) for name, pids in hosts.items()}


def look(lab: Lab, seconds: float) -> dict[str, Any]:
    """The figures after a rest, when all that was started is idle."""
    console.note(f"resting {seconds:g} s, then watching as long")
    time.sleep(seconds)
    idle = idle_percent(lab, seconds)
    return {
        "mib": memory(lab),
        "tasks": tasks(lab),
        "idle_percent": idle,
        "idle_percent_mean": round(sum(idle.values()) / len(idle), 2),
    }


def show(found: dict[str, dict[str, Any]], hosts: int) -> None:
    kinds = tuple(next(iter(found.values()))["mib"])
    rows = (
        (
            what,
            *(f"{each['mib'][kind]:.0f}" for kind in kinds),
            f"{each['mib']['all'] / hosts:.0f}",
            f"{each['idle_percent_mean']:.2f}",
            str(each["tasks"]),
        )
        for what, each in found.items()
    )
    heads = (
        "",
        *(f">{kind.replace('_', ' ')}" for kind in kinds),
        ">all, a host",
        ">idle CPU %, a host",
        ">processes and threads",
    )
    tables.show_table(f"MiB of {hosts} hosts together", heads, rows)
    (bare, first), *more = ((name, each["mib"]["all"]) for name, each in found.items())
    if more:
        full, last = more[-1]
        console.out().print(f"{full} / {bare} = {last / first:.2f}; of 2 GiB {last / 2048:.2f}")


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument(
        "--overlays", nargs="+", default=["none", "swarm"], help="overlays; the table compares the last with the first"
    )
    arguments.add_argument("--seconds", type=float, default=10, help="seconds of rest, and then of measurement")
    chosen = arguments.parse_args()
    figures = stage.Figures("memory", chosen.topology)
    found = {}
    plan = stage.plan_of(chosen.topology)
    for overlay in chosen.overlays:
        # A lab of its own for each: a guest's memory file never shrinks.
        with stage.lab_of(plan) as lab:
            overlays.join(lab, overlay, console.note)
            found[overlay] = look(lab, chosen.seconds)
    show(found, len(plan.hosts))
    figures.write(chosen.out, found)


if __name__ == "__main__":
    stage.perform(main)
