"""How long chains of bare hosts take to come up, configured and shaped, and to go down, with their processor time and
memory.

The program's own start, calibration and certificate are left out; `bench/run bringup` has those. Processor time is that
of the lab's own processes and of this one, without other programs of the machine.
"""

from __future__ import annotations

import itertools
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
LAB = "name: bench\ntime: {time}\ndefaults: {{host: {{light: {light}}}, link: {{rtt: 10ms, rate: 50mbit}}}}\n{shape}\n"
SHAPES = {"chain": "chain: {{hosts: {hosts}}}", "star": "star: {{clients: {clients}}}"}
Shape = Literal["chain", "star"]
Kind = Literal["full", "light"]
CONFIGURING, CALIBRATING = "configuring ", "measuring "
HEADS = ("", ">answer, s", ">configured, s", ">down, s", ">processor until configured, s", ">MiB a host")


def measure(hosts: int, clock: Time, shape: Shape, *, light: bool) -> dict[str, float]:
    """The figures of one lab, from its start until it is down."""
    shaped = SHAPES[shape].format(hosts=hosts, clients=hosts - 1)
    text = LAB.format(time=clock, light=str(light).lower(), shape=shaped)
    plan = parse(text, shape, beside=UserFiles(stage.PROJECT))
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
    arguments.add_argument("--kinds", nargs="+", choices=get_args(Kind), default=["full"])
    arguments.add_argument("--shape", choices=get_args(Shape), default="chain")
    chosen = arguments.parse_args()
    figures = stage.Figures("hosts", chosen.topology)
    found: dict[str, Any] = {}
    for hosts, kind in itertools.product(chosen.hosts, chosen.kinds):
        light = kind == "light"
        called = f"{hosts} light hosts" if light else f"{hosts} hosts"
        console.note(called)
        runs = [measure(hosts, chosen.time, chosen.shape, light=light) for _ in range(chosen.runs)]
        found[called] = {"runs": runs, "median": medians(runs)}
    rows = ((called, *(f"{value:.2f}" for value in each["median"].values())) for called, each in found.items())
    tables.show_table(f"Bare hosts in {chosen.time} time, medians of {chosen.runs}", HEADS, rows)
    figures.write(chosen.out, {"time": chosen.time, "hosts": found})


if __name__ == "__main__":
    stage.perform(main)
