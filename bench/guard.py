"""Does the guard mark the samples that the machine has spoilt, and no others?

It takes short samples over a chain of six (round trips, TCP and UDP over its five hops). stress-ng disturbs a random
half of them with one to four busy processors, part of the time or all of it, or with writes to memory. For each sample
it records the guard's figures and verdict, and the difference of the sample from the plan. Then it prints how many
disturbed samples were not marked, how many others were, and how wrong both kinds are.

An undisturbed sample begins when other programs have just used almost nothing of the processors for a part of a second.
If they become busy during the sample, the guard is to see it, and its mark counts here as a false alarm.

The samples are stored one by one in <out>/guard.jsonl: the next call continues until there are as many as wanted.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.fidelity.host_load import LIMITS, HostLoad, recording, taints
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.machine import shell
from minigts.machine.proc import PROC, family, text_of, used_s
from minigts.tools import iperf3_tcp, iperf3_udp
from minigts.topology.plan.elements import Path as PlanPath

LOADS = (
    "--cpu 1",
    "--cpu 2",
    "--cpu 4",
    "--cpu 2 --cpu-load 50",
    "--vm 2 --vm-bytes 128m --vm-keep",
)
"""The arguments of stress-ng. Each is ended by its process id, and ends by itself after LOAD_S."""
LOAD_S = 30
SETTLE_S = 0.3
QUIET_CORES, LOOK_S, PATIENCE_S = 0.1, 0.25, 15.0
"""An undisturbed sample waits until other programs use no more processors than this, for a limited time."""
PORT = 5298
Used = dict[int, tuple[str, float]]
KINDS = ("RTT", "TCP", "UDP")
UNITS = {"RTT": "ms above the sum", "TCP": "% below the ceiling", "UDP": "% lost"}


def rtt_surplus_ms(lab: Lab, path: PlanPath) -> float:
    """The median's excess over the sum of the segments."""
    address = lab.plan.host(path.target).address
    return probe(lab.provider, path.source, address, count=120).median_ms - path.rtt_ms


def tcp_below_percent(lab: Lab, path: PlanPath) -> float:
    """TCP's shortfall from the plan's ceiling, in per cent of it."""
    assert path.tcp_ceiling_mbit is not None
    said = iperf3(lab, path)
    return 100 * (1 - iperf3_tcp.parse(said).received_mbit / path.tcp_ceiling_mbit)


def udp_lost_percent(lab: Lab, path: PlanPath) -> float:
    """The share of lost datagrams at 80 % of the rate."""
    assert path.rate_mbit is not None
    return iperf3_udp.parse(
        iperf3(lab, path, "-u", "-l", "1472", "-b", str(round(0.8e6 * path.rate_mbit)))
    ).lost_percent


def iperf3(lab: Lab, path: PlanPath, *more: str) -> str:
    address = lab.plan.host(path.target).address
    argv = ["iperf3", "-c", address, "-p", str(PORT), "-J", "-t", "1", *more]
    return user_text(lab.provider.run(path.source, argv, timeout_s=60).stdout)


TAKE: dict[str, Callable[[Lab, PlanPath], float]] = {
    "RTT": rtt_surplus_ms,
    "TCP": tcp_below_percent,
    "UDP": udp_lost_percent,
}


def schedule(samples: int, seed: int) -> list[str]:
    """The load of each sample: none for half of them, drawn by the seed; then the loads in turn."""
    drawn = random.Random(seed)
    half = samples // 2
    loads = [*([""] * (samples - half)), *(LOADS[number % len(LOADS)] for number in range(half))]
    drawn.shuffle(loads)
    return loads


@contextmanager
def disturbed(load: str) -> Iterator[None]:
    """Run stress-ng during the block; nothing without a load."""
    if not load:
        yield
        return
    argv = ["stress-ng", "--quiet", "--timeout", str(LOAD_S), *load.split()]
    process = shell.start(argv, output=subprocess.DEVNULL, new_session=False)
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for_quiet(lab: Lab) -> float:
    """Wait until other programs leave the processors alone; return how many processors they use in the end."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with recording(lab.provider.processes()) as machine:
            time.sleep(LOOK_S)
        assert machine.load is not None
        if machine.load.foreign_cores <= QUIET_CORES or time.monotonic() > deadline:
            return machine.load.foreign_cores


def used_by_others(lab: Lab) -> Used:
    """Every process that belongs neither to the lab nor to this bench: its name, and its processor seconds."""
    own = {os.getpid(), *family(lab.provider.processes())}
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        pid, name = int(stat.parent.name), text_of(stat).partition("(")[2].rpartition(")")[0]
        if name and pid not in own:
            found[pid] = (name, used_s(pid))
    return found


def names_of(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]], seconds: float
) -> dict[str, float]:
    """The cores that the three busiest programs used, by name, to be compared with the guard's figure."""
    cores: dict[str, float] = {}
    for pid, (name, used) in after.items():
        cores[name] = cores.get(name, 0.0) + (used - before.get(pid, (name, 0.0))[1]) / seconds
    most = sorted(cores.items(), key=lambda item: -item[1])[:3]
    return {name: round(value, 3) for name, value in most if value > 0}


def take(lab: Lab, number: int, load: str) -> dict[str, Any]:
    """One sample: its load, its figure, and the guard's figures and verdict."""
    path, kind = max(lab.plan.paths, key=lambda path: path.hops), KINDS[number % len(KINDS)]
    before = None if load else wait_for_quiet(lab)
    others = used_by_others(lab)
    with disturbed(load), recording(lab.provider.processes()) as machine:
        error = TAKE[kind](lab, path)
    assert machine.load is not None
    return {
        "number": number,
        "kind": kind,
        "load": load,
        "before": before,
        "others": names_of(others, used_by_others(lab), machine.load.seconds),
        "error": round(error, 4),
        "readings": machine.load.model_dump(),
    }


def verdicts(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """Each sample with the guard's present verdict: limits may have changed since it was taken."""
    return [(row, taints(HostLoad.model_validate(row["readings"]))) for row in rows]


def show(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Print the results; return the counts."""
    judged = verdicts(rows)
    cells = []
    for load in ("", *LOADS):
        own = [(row, marks) for row, marks in judged if row["load"] == load]
        if own:
            foreign = [row["readings"]["foreign_cores"] for row, _ in own]
            marked = sum(bool(marks) for _, marks in own)
            cells.append(
                (load or "none", str(len(own)), str(marked), f"{statistics.median(foreign):.2f}", f"{min(foreign):.2f}")
            )
    tables.show_table("Samples by load", ("stress-ng", ">samples", ">marked", ">others' cores", ">least"), cells)
    wrong = []
    for kind in KINDS:
        for name, wanted in (("unmarked", False), ("marked", True)):
            errors = sorted(row["error"] for row, marks in judged if row["kind"] == kind and bool(marks) is wanted)
            if errors:
                wrong.append((f"{kind}, {UNITS[kind]}", name, str(len(errors)), *quantiles(errors)))
    heads = ("figure", "", ">samples", ">median", ">90 %", ">worst")
    tables.show_table("\nHow far samples are from the plan", heads, wrong)
    calm = [(row, marks) for row, marks in judged if not row["load"] and row["before"] <= QUIET_CORES]
    alarms = [row for row, marks in calm if marks]
    found = {
        "disturbed": sum(bool(row["load"]) for row in rows),
        "missed": sum(bool(row["load"]) and not marks for row, marks in judged),
        "undisturbed": len(calm),
        "marked": len(alarms),
        "others_at_work": sum(sum(row["others"].values()) > LIMITS["foreign_cores"] for row in alarms),
        "never_quiet": sum(not row["load"] for row in rows) - len(calm),
    }
    console.out().print(
        f"of {found['disturbed']} disturbed samples {found['missed']} were not marked; of {found['undisturbed']} that "
        f"began on a quiet machine {found['marked']} were, {found['others_at_work']} of them while the list of "
        f"processes shows others at work; {found['never_quiet']} found no quiet machine and do not count"
    )
    return found


def quantiles(ordered: Sequence[float]) -> tuple[str, str, str]:
    tenth = ordered[min(len(ordered) - 1, round(0.9 * (len(ordered) - 1)))]
    return f"{statistics.median(ordered):.3f}", f"{tenth:.3f}", f"{ordered[-1]:.3f}"


def kept(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> None:
    arguments = stage.parser(__doc__, "chain6-lan.yaml")
    arguments.add_argument("--samples", type=int, default=240, help="the number of all samples, half of them disturbed")
    arguments.add_argument(
        "--at-most", type=float, default=3600, metavar="SECONDS", help="the longest time of sampling in this call"
    )
    arguments.add_argument("--seed", type=int, default=2017)
    chosen = arguments.parse_args()
    file = chosen.out / "guard.jsonl"
    loads, rows = schedule(chosen.samples, chosen.seed), kept(file)
    figures = stage.Figures("guard", chosen.topology)
    deadline = time.monotonic() + chosen.at_most
    if len(rows) < chosen.samples:
        chosen.out.mkdir(parents=True, exist_ok=True)
        with stage.lab_of(stage.plan_of(chosen.topology)) as lab, file.open("a", encoding="utf-8") as stream:
            last = max(lab.plan.paths, key=lambda path: path.hops).target
            lab.provider.run(last, ["iperf3", "-s", "-D", "-p", str(PORT)], timeout_s=10)
            while len(rows) < chosen.samples and time.monotonic() < deadline:
                number = len(rows)
                try:
                    rows.append(take(lab, number, loads[number]))
                except MinigtsError as error:
                    console.note(f"sample {number}: {error}")
                    rows.append(take(lab, number, loads[number]))
                stream.write(json.dumps(rows[-1]) + "\n")
                stream.flush()
    figures.write(chosen.out, {**show(rows), "samples": rows})


if __name__ == "__main__":
    stage.perform(main)
