"""What a plan costs by the number of hosts: processor time to make it from its file, its size as JSON, and processor
time to read that again.

No hosts are started. A row of hosts has the longest paths, a star the shortest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from bench import stage
from minigts.cli import screen
from minigts.results import manifest
from minigts.topology.load import parse
from minigts.topology.plan import Plan

T = TypeVar("T")
SHAPES: dict[str, Callable[[int], str]] = {
    "chain": lambda hosts: f"chain: {{hosts: {hosts}, link: {{rtt: 10ms, rate: 100mbit}}}}\n",
    "star": lambda hosts: f"star: {{clients: {hosts - 1}, link: {{rtt: 10ms, rate: 100mbit}}}}\n",
}


@dataclass(frozen=True)
class Row:
    """Medians; processor time of this process, in seconds."""

    shape: str
    hosts: int
    paths: int
    made_s: float
    json_mb: float
    read_s: float


def used_s(call: Callable[[], T]) -> tuple[float, T]:
    before = time.process_time()
    result = call()
    return time.process_time() - before, result


def take(shape: str, hosts: int, runs: int) -> Row:
    text = f"name: {shape}\n{SHAPES[shape](hosts)}"
    made, read = [], []
    for _ in range(runs):
        made_s, plan = used_s(lambda: parse(text, f"{shape}.yaml"))
        document = plan.model_dump_json()
        read_s, _ = used_s(lambda: Plan.model_validate_json(document))  # noqa: B023 - called at once
        made.append(made_s)
        read.append(read_s)
    size_mb = len(document) / 1e6
    return Row(shape, hosts, len(plan.paths), statistics.median(made), size_mb, statistics.median(read))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--hosts", type=int, nargs="+", default=[6, 50, 100, 250], metavar="N")
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR")
    given = arguments.parse_args()
    parse("name: first\npair: {}\n", "first.yaml")  # what is imported with the first one
    rows = [take(shape, hosts, given.runs) for shape in SHAPES for hosts in given.hosts]
    shown = [
        (
            row.shape,
            f"{row.hosts}",
            f"{row.paths}",
            f"{row.made_s:.2f} s",
            f"{row.json_mb:.2f} MB",
            f"{row.read_s:.2f} s",
        )
        for row in rows
    ]
    columns = ("shape", ">hosts", ">paths", ">made in", ">as JSON", ">read in")
    screen.show_table("plans, by processor time", columns, shown)
    given.out.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": manifest.machine().model_dump(),
        "noise": manifest.noise().model_dump(),
        "plans": [asdict(row) for row in rows],
    }
    (given.out / "plan.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    stage.perform(main)
