"""TCP and UDP over one to five hops of a chain with shaped links, as a share of what the plan predicts.

It measures from the first host to each other one, over plain hosts and over Swarm, in turn: TCP as a share of the
ceiling that the links' rate leaves for payload; UDP offered at 80 % of the rate, as a share of what is offered.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.experiment_language.model import MEASUREMENTS, AnyMeasurement
from minigts.experiments import commands
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.tools import TOOLS, iperf3_tcp, iperf3_udp
from minigts.tools.base import PathUnderTest
from minigts.topology.plan.elements import Path

OVERLAYS = ("none", "swarm")
OMIT = "2s"
"""Time for slow start over 160 ms; the rest of a run shows the rate that TCP keeps."""


@dataclass(frozen=True)
class Sample:
    """One run of iperf3; rates in Mbit/s; `predicted` is the plan's ceiling or the offered rate."""

    overlay: str
    protocol: str
    hops: int
    measured: float
    predicted: float


def measurements(seconds: int) -> dict[str, AnyMeasurement]:
    options = {
        iperf3_tcp.TOOL: {"duration": f"{seconds}s", "omit": OMIT},
        iperf3_udp.TOOL: {"duration": f"{seconds}s", "rate": "80%", "datagram": "fit"},
    }
    return {
        tool.usual_name: MEASUREMENTS[tool.name].model_validate(
            {"name": tool.usual_name, "tool": tool.name, "paths": ("first-to-each",), "options": written}
        )
        for tool, written in options.items()
    }


def take(lab: Lab, ends: Mapping[str, Endpoint], overlay: str, path: Path, what: AnyMeasurement) -> Sample:
    source, target = ends[path.source], ends[path.target]
    way = PathUnderTest(target.address, target.mtu, commands.underlay_mtu(lab.plan), path)
    argv = commands.command(what, source, way, lab.provider.pace_s)
    said = lab.provider.run(path.source, argv, timeout_s=commands.timeout_s(what, path))
    measured = TOOLS[what.tool].read(user_text(said.stdout), user_text(said.stderr)).value
    predicted = commands.prediction(what, way)
    if predicted is None:
        raise MinigtsError("throughput: the topology's links need a rate")
    return Sample(overlay, what.name, path.hops, measured, predicted)


def measure(lab: Lab, overlay: str, seconds: int, repetitions: int) -> list[Sample]:
    """Measure every path and protocol once in each repetition, in random order."""
    ends = overlays.join(lab, overlay, console.note)
    first = lab.plan.hosts[0].name
    paths = [path for path in lab.plan.paths if path.source == first]
    samples = []
    for repetition in range(repetitions):
        round_ = [(path, what) for path in paths for what in measurements(seconds).values()]
        random.Random(repetition).shuffle(round_)
        console.note(f"{overlay}: repetition {repetition + 1} of {repetitions}")
        samples += [take(lab, ends, overlay, path, what) for path, what in round_]
    return samples


def summarise(samples: list[Sample]) -> list[dict[str, Any]]:
    """A row for each overlay, protocol and hop count, with the median and the lowest of the repetitions."""
    rows = []
    for cell in dict.fromkeys((s.overlay, s.protocol, s.hops) for s in sorted(samples, key=lambda s: s.hops)):
        these = [s for s in samples if (s.overlay, s.protocol, s.hops) == cell]
        median, predicted = statistics.median(s.measured for s in these), these[0].predicted
        rows.append(
            {
                "overlay": cell[0],
                "protocol": cell[1],
                "hops": cell[2],
                "median_mbit": round(median, 3),
                "lowest_mbit": round(min(s.measured for s in these), 3),
                "predicted_mbit": round(predicted, 3),
                "ratio": round(median / predicted, 4),
                "samples": len(these),
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table with a column for each hop count, and the two overlays' ratios below each other."""
    lines = dict.fromkeys((row["protocol"], row["overlay"]) for row in sorted(rows, key=lambda r: r["protocol"]))
    hops = sorted({row["hops"] for row in rows})
    found = {(row["protocol"], row["overlay"], row["hops"]): row for row in rows}
    cells = (
        (
            *line,
            f"{found[*line, hops[0]]['predicted_mbit']:.2f}",
            *(f"{found[*line, n]['median_mbit']:.2f} ({found[*line, n]['ratio']:.3f})" for n in hops),
        )
        for line in lines
    )
    heads = ("", "overlay", ">predicted", *(f">{n} hops" for n in hops))
    tables.show_table("Mbit/s received, and as a share of what the plan predicts", heads, cells)


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--seconds", type=int, default=4, help="seconds of each run after slow start")
    arguments.add_argument("--repetitions", type=int, default=3)
    chosen = arguments.parse_args()
    figures = stage.Figures("throughput", chosen.topology)
    with stage.lab_of(stage.plan_of(chosen.topology)) as lab:
        samples = [s for overlay in OVERLAYS for s in measure(lab, overlay, chosen.seconds, chosen.repetitions)]
    rows = summarise(samples)
    show(rows)
    figures.write(chosen.out, {"rows": rows})


if __name__ == "__main__":
    stage.perform(main)
