"""How long chains of bare hosts take to come up, configured and shaped, and to go down, with their processor time and
memory.

The program's own start, calibration and certificate are left out; `bench/run bringup` has those. Processor time is that
of the lab's own processes and of this one, without other programs of the machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any, Literal, get_args

from bench import memory, stage
from minigts import lab as labs
from minigts.cli import console
from minigts.cli.views import tables
from minigts.lab.rundir import lab_named
from minigts.machine.proc import used_s
from minigts.topology.read.load import parse
from minigts.topology.user_files import UserFiles

Time = Literal["virtual", "real"]
CHAIN = "name: bench\ntime: {time}\nchain: {{hosts: {hosts}, link: {{rtt: 10ms, rate: 50mbit}}}}\n"
CONFIGURING, CALIBRATING = "configuring ", "measuring "
HEADS = ("", ">answer, s", ">configured, s", ">down, s", ">processor until configured, s", ">MiB a host")


def measure(hosts: int, clock: Time) -> dict[str, float]:
    """The figures of one lab, from its start until it is down."""
    plan = parse(CHAIN.format(time=clock, hosts=hosts), "chain", beside=UserFiles(stage.PROJECT))
    said: list[tuple[float, str]] = []
    used: list[float] = []
    started, own_s = time.monotonic(), time.process_time()
    name = f"bench-{os.getpid()}"
    lab = lab_named(name)

    def processor_s() -> float:
        family = memory.family(memory.supervisor_of(lab), memory.children())
        return sum(map(used_s, family)) + time.process_time() - own_s

    def say(text: str) -> None:
        said.append((time.monotonic() - started, text))
        if text.startswith(CALIBRATING):
            used.append(processor_s())

    try:
        labs.up(plan, "uml", name, say)
        up_s = time.monotonic() - started
        processor = [*used, processor_s()][0]
        held = memory.memory(lab)["all"]
    finally:
        ends = time.monotonic()
        labs.down(lab)
    return {
        "answer": next(seconds for seconds, text in said if text.startswith(CONFIGURING)),
        "configured": next((seconds for seconds, text in said if text.startswith(CALIBRATING)), up_s),
        "down": time.monotonic() - ends,
        "processor": processor,
        "mib": held / hosts,
    }


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--hosts", nargs="+", type=int, default=[2, 6, 20, 50, 100])
    arguments.add_argument("--time", choices=get_args(Time), default="virtual")
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    figures = stage.Figures("hosts", chosen.topology)
    found: dict[str, Any] = {}
    for hosts in chosen.hosts:
        console.note(f"{hosts} hosts")
        runs = [measure(hosts, chosen.time) for _ in range(chosen.runs)]
        found[str(hosts)] = {"runs": runs, "median": medians(runs)}
    rows = ((f"{hosts} hosts", *(f"{value:.2f}" for value in each["median"].values())) for hosts, each in found.items())
    tables.show_table(f"Bare hosts in {chosen.time} time, medians of {chosen.runs}", HEADS, rows)
    figures.write(chosen.out, {"time": chosen.time, "hosts": found})


if __name__ == "__main__":
    stage.perform(main)
