"""The cost of a plan by the number of hosts: processor time to make it from its file, its stored size, and processor
time to read it again and to compute from it one pair, one host, and all pairs.

No hosts are started. A row of hosts has the longest paths, a star the shortest; in the third shape all hosts are on a
switch.
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
from minigts.cli.views import tables
from minigts.results import manifest
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

T = TypeVar("T")
SHAPES: dict[str, Callable[[int], str]] = {
    "chain": lambda hosts: f"chain: {{hosts: {hosts}, link: {{rtt: 10ms, rate: 100mbit}}}}\n",
    "star": lambda hosts: f"star: {{clients: {hosts - 1}, link: {{rtt: 10ms, rate: 100mbit}}}}\n",
    "switch": lambda hosts: around_a_switch(hosts - 1),
}


def around_a_switch(hosts: int) -> str:
    names = [f"h{number}" for number in range(1, hosts + 1)]
    links = "".join(f"  - {{ends: [{name}, s1]}}\n" for name in names)
    return (
        f"hosts: {{{', '.join(f'{name}: ' for name in names)}}}\nswitches: {{s1: }}\n"
        f"defaults: {{link: {{rtt: 10ms, rate: 100mbit}}}}\nlinks:\n{links}"
    )


@dataclass(frozen=True)
class Row:
    """Medians of this process's processor time, in seconds."""

    shape: str
    hosts: int
    pairs: int
    made_s: float
    json_mb: float
    read_s: float
    path_s: float
    """The first pair that is asked for, from the first host to the last."""
    routes_s: float
    """The routes of one more host."""
    all_s: float
    """All pairs."""


def used_s(call: Callable[[], T]) -> tuple[float, T]:
    before = time.process_time()
    result = call()
    return time.process_time() - before, result


def take(shape: str, hosts: int, runs: int) -> Row:
    text = f"name: {shape}\n{SHAPES[shape](hosts)}"
    seconds: dict[str, list[float]] = {}

    def taken(what: str, call: Callable[[], T]) -> T:
        used, result = used_s(call)
        seconds.setdefault(what, []).append(used)
        return result

    for _ in range(runs):
        plan = taken("made_s", lambda: parse(text, f"{shape}.yaml"))
        document = plan.model_dump_json()
        again = taken("read_s", lambda: Plan.model_validate_json(document))  # noqa: B023 - called at once
        first, second, last = again.hosts[0].name, again.hosts[1].name, again.hosts[-1].name
        taken("path_s", lambda: again.path(first, last))  # noqa: B023
        taken("routes_s", lambda: again.routes_of(second))  # noqa: B023
        taken("all_s", lambda: sum(1 for host in again.hosts for _ in again.paths_from(host.name)))  # noqa: B023
    medians = {what: statistics.median(each) for what, each in seconds.items()}
    return Row(shape, hosts, plan.pairs, json_mb=len(document) / 1e6, **medians)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--hosts", type=int, nargs="+", default=[6, 100, 250, 1000], metavar="N")
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR")
    given = arguments.parse_args()
    parse("name: first\npair: {}\n", "first.yaml")  # the first one imports modules
    rows = [take(shape, hosts, given.runs) for shape in SHAPES for hosts in given.hosts]
    shown = [
        (
            row.shape,
            f"{row.hosts}",
            f"{row.pairs}",
            f"{row.made_s:.2f} s",
            f"{row.json_mb:.2f} MB",
            f"{row.read_s:.2f} s",
            f"{1000 * row.path_s:.1f} ms",
            f"{1000 * row.routes_s:.1f} ms",
            f"{row.all_s:.2f} s",
        )
        for row in rows
    ]
    columns = (
        "shape",
        ">machines",
        ">pairs",
        ">made in",
        ">stored",
        ">read in",
        ">a path",
        ">a host's routes",
        ">all paths",
    )
    tables.show_table("plans, by processor time", columns, shown)
    given.out.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": manifest.machine().model_dump(),
        "noise": manifest.noise().model_dump(),
        "plans": [asdict(row) for row in rows],
    }
    (given.out / "plan.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    stage.perform(main)
