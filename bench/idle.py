"""Round trips between hosts without other work: is there a tail of late answers?

Two hosts have one link, once without delay and once with the delay of the topology file. Echo requests are so far apart
that both kernels go idle in between. Every round trip counts: the table shows the distribution, and how many were late
by more than 1 ms.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from bench import stage
from minigts.cli.views import tables
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

BARE = "name: bare\nchain: {hosts: 2, link: {}}\n"
LATE_MS = 1.0


def distribution(lab: Lab, shape: str, interval_ms: int, count: int) -> dict[str, Any]:
    """The figures of `count` round trips over the lab's first link, one every `interval_ms`."""
    link = lab.plan.links[0]
    seen = probe(lab.provider, link.ends[0], lab.plan.far_address(link), count=count, interval_s=interval_ms / 1000)
    ordered = sorted(seen.rtts_ms)
    return {
        "link": shape,
        "interval_ms": interval_ms,
        "sent": seen.sent,
        "answered": len(ordered),
        "min_ms": round(ordered[0], 4),
        "p50_ms": round(statistics.median(ordered), 4),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)], 4),
        "max_ms": round(ordered[-1], 4),
        "late": sum(rtt_ms > ordered[0] + LATE_MS for rtt_ms in ordered),
        "rtts_ms": [round(rtt_ms, 4) for rtt_ms in seen.rtts_ms],
    }


def measure(plans: Mapping[str, Plan], intervals_ms: list[int], count: int) -> tuple[str, list[dict[str, Any]]]:
    """The kernel's name, and a row for each plan and interval."""
    rows: list[dict[str, Any]] = []
    kernel = ""
    for shape, plan in plans.items():
        with stage.lab_of(plan) as lab:
            first = lab.plan.hosts[0].name
            kernel = user_text(lab.provider.run(first, ["uname", "-sr"], timeout_s=10).stdout).strip()
            rows += [distribution(lab, shape, interval_ms, count) for interval_ms in intervals_ms]
    return kernel, rows


def show(kernel: str, rows: list[dict[str, Any]]) -> None:
    cells = (
        (
            row["link"],
            f"{row['interval_ms']} ms",
            str(row["answered"]),
            *(f"{row[key]:.3f}" for key in ("min_ms", "p50_ms", "p99_ms", "max_ms")),
            f"{row['late']} ({100 * row['late'] / row['answered']:.1f} %)",
        )
        for row in rows
    )
    heads = ("link", ">every", ">answers", ">min ms", ">p50 ms", ">p99 ms", ">max ms", f">over min + {LATE_MS:g} ms")
    tables.show_table(f"Echo requests between idle hosts, {kernel}", heads, cells)


def main() -> None:
    arguments = stage.parser(__doc__, "pair.yaml")
    arguments.add_argument("--count", type=int, default=2000, help="echo requests for each line of the table")
    arguments.add_argument(
        "--intervals", type=int, nargs="+", default=[20, 100], metavar="MS", help="the time between two echo requests"
    )
    chosen = arguments.parse_args()
    figures = stage.Figures("idle", chosen.topology)
    plans = {"bare": parse(BARE, "bare.yaml"), chosen.topology.stem: stage.plan_of(chosen.topology)}
    kernel, rows = measure(plans, chosen.intervals, chosen.count)
    show(kernel, rows)
    figures.write(chosen.out, {"kernel": kernel, "rows": rows})


if __name__ == "__main__":
    stage.perform(main)
