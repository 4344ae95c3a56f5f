"""Round trips over every pair of a chain, compared with the sum of the segments, and the emulator's own latency.

Over plain hosts and over Swarm, or over other overlays, it prints for each pair the median RTT of echo requests beside
the sum of the RTTs that the topology declares for the segments of the path. Every pair is measured in several rounds,
so that a single busy moment decides no figure. Then it measures the same chain without delays and rates: the rest is
the emulator's own latency, by hops.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.judge.tolerances import round_trip
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.overlays import Endpoint
from minigts.topology.plan.elements import Path
from minigts.topology.read.load import parse

BARE = "name: bare\nchain: {hosts: 6, link: {}}\n"


def median_rtt_ms(lab: Lab, ends: Mapping[str, Endpoint], path: Path, count: int) -> float:
    """The median round trip by the host's own probe, which enters only the network of a container."""
    source, target = ends[path.source], ends[path.target]
    seen = probe(lab.provider, path.source, target.address, count=count, prefix=source.network)
    return seen.median_ms


def measure_pairs(lab: Lab, overlay: str, count: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each pair, including paths of one hop: the median of the rounds' medians."""
    ends = overlays.join(lab, overlay, console.note)
    seen = [[median_rtt_ms(lab, ends, path, count) for path in lab.plan.paths] for _ in range(rounds)]
    rows: list[dict[str, Any]] = []
    for path, medians in zip(lab.plan.paths, zip(*seen, strict=True), strict=True):
        median_ms = statistics.median(medians)
        rows.append(
            {
                "overlay": overlay,
                "path": f"{path.source}-{path.target}",
                "hops": path.hops,
                "sum_of_segments_ms": path.rtt_ms,
                "median_ms": round(median_ms, 4),
                "medians_ms": [round(each, 4) for each in medians],
                "surplus_ms": round(median_ms - path.rtt_ms, 4),
                "tolerance_ms": round(round_trip(lab.plan, path).distance(path.rtt_ms), 4),
            }
        )
    return rows


def by_hops(rows: list[dict[str, Any]]) -> dict[int, float]:
    """The median over a chain's paths of equal length, in milliseconds."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        found[row["hops"]].append(row["median_ms"])
    return {hops: round(statistics.median(times), 4) for hops, times in sorted(found.items())}


def show(rows: list[dict[str, Any]]) -> None:
    def share(row: dict[str, Any]) -> float:
        return float(abs(row["surplus_ms"]) / row["tolerance_ms"])

    cells = (
        (
            row["overlay"],
            row["path"],
            str(row["hops"]),
            f"{row['sum_of_segments_ms']:.2f}",
            f"{row['median_ms']:.3f}",
            f"{row['surplus_ms']:+.3f}",
            f"±{row['tolerance_ms']:.2f}",
            f"{share(row):.2f}",
        )
        for row in rows
    )
    heads = ("overlay", "path", ">hops", ">sum ms", ">median ms", ">surplus ms", ">tolerance ms", ">share of it")
    tables.show_table("Median RTT against the sum of the segments", heads, cells)
    for overlay in dict.fromkeys(row["overlay"] for row in rows):
        worst = max((row for row in rows if row["overlay"] == overlay), key=share)
        console.out().print(
            f"worst over {overlay}: {worst['path']}, {worst['surplus_ms']:+.3f} ms, {share(worst):.2f} of the tolerance"
        )


def show_own(own: dict[str, dict[int, float]]) -> None:
    rows = ((overlay, *(f"{ms:.3f}" for ms in hops.values())) for overlay, hops in own.items())
    heads = ("overlay", *(f">{hops} hops, ms" for hops in next(iter(own.values()))))
    tables.show_table("\nRTT of the same chain without delay and rate: the emulator's own", heads, rows)


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument(
        "--overlays", nargs="+", default=["none", "swarm"], metavar="NAME", help="the overlays to measure"
    )
    arguments.add_argument("--count", type=int, default=100, help="echo requests for each pair and round")
    arguments.add_argument("--rounds", type=int, default=3, help="rounds over all pairs")
    chosen = arguments.parse_args()
    figures = stage.Figures("latency", chosen.topology)
    with stage.lab_of(stage.plan_of(chosen.topology)) as lab:
        taken_off_ms = lab.read_record().emulator_overhead_ms
        rows = [row for overlay in chosen.overlays for row in measure_pairs(lab, overlay, chosen.count, chosen.rounds)]
    with stage.lab_of(parse(BARE, "bare.yaml")) as lab:
        own = {
            overlay: by_hops(measure_pairs(lab, overlay, chosen.count, chosen.rounds)) for overlay in chosen.overlays
        }
    show(rows)
    show_own(own)
    figures.write(chosen.out, {"taken_off_each_delay_ms": taken_off_ms, "pairs": rows, "own_rtt_ms_by_hops": own})


if __name__ == "__main__":
    stage.perform(main)
