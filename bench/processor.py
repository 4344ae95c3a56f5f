"""What a host's processor carries in real time, beside what a modelled processor predicts.

pair    two hosts without a rate between them, in real time and in virtual time with `processor: {frame, call}`, over
        plain hosts and over Swarm: datagrams of three sizes as fast as they can be sent, TCP, TCP in writes of 1 KB
hops    the chain of six without rates, in virtual time with the same processor: TCP and datagrams over one to five hops

The user fits two numbers: `--call` so that the datagrams sent agree, `--frame` so that TCP does. All other rows follow
from them. Real-time figures need an idle machine; virtual ones do not.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.experiment_language.model import MEASUREMENTS
from minigts.experiments import commands
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.tools import TOOLS
from minigts.tools.base import PathUnderTest
from minigts.tools.columns import SENT
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.time import Time

AS_FAST_AS_IT_CAN = "2gbit"
TIMES: tuple[Time, ...] = ("real", "virtual")


@dataclass(frozen=True)
class Flow:
    """`datagram_bytes` is None for TCP, whose program then writes `write_bytes` at a time, or its usual 128 KB."""

    name: str
    datagram_bytes: int | None = None
    write_bytes: int | None = None

    def mbit(self, lab: Lab, ends: Mapping[str, Endpoint], path: Path, seconds: int) -> tuple[float, float]:
        """The rate that was sent, and the rate that arrived, in Mbit/s."""
        source, target = ends[path.source], ends[path.target]
        options: dict[str, str] = {"duration": f"{seconds}s"}
        if self.datagram_bytes:
            options |= {"rate": AS_FAST_AS_IT_CAN, "datagram": f"{self.datagram_bytes}B"}
        else:
            options |= {"omit": "1s"}
        tool = "iperf3-udp" if self.datagram_bytes else "iperf3-tcp"
        what = MEASUREMENTS[tool].model_validate(
            {"name": TOOLS[tool].usual_name, "tool": tool, "paths": ("first-to-each",), "options": options}
        )
        way = PathUnderTest(target.address, target.mtu, commands.underlay_mtu(lab.plan), path)
        argv = commands.command(what, source, way, lab.provider.pace_s)
        argv += ("-l", str(self.write_bytes)) if self.write_bytes else ()
        said = lab.provider.run(path.source, argv, timeout_s=commands.timeout_s(what, path))
        seen = TOOLS[tool].read(user_text(said.stdout), user_text(said.stderr))
        return seen.extra[SENT.name], seen.value

    def in_its_unit(self, mbit: float) -> float:
        """Datagrams per second; for TCP, Mbit/s."""
        return mbit * 1e6 / 8 / self.datagram_bytes if self.datagram_bytes else mbit


FLOWS = (
    Flow("UDP, 16 bytes: datagrams a second", 16),
    Flow("UDP, 1470 bytes: datagrams a second", 1470),
    Flow("UDP, 4400 bytes: datagrams a second", 4400),
    Flow("TCP: Mbit/s"),
    Flow("TCP, 1 KB a write: Mbit/s", write_bytes=1024),
)
OVER_HOPS = (FLOWS[1], FLOWS[3])


def plan_in(time: Time, shape: str, chosen: argparse.Namespace) -> Plan:
    """The plan of two hosts or a chain; `shape` is a line of the topology language."""
    model = f"defaults: {{host: {{processor: {{frame: {chosen.frame}, call: {chosen.call}}}}}}}\n"
    return parse(f"name: processor\n{model if time == 'virtual' else ''}{shape}\n", "processor.yaml", time=time)


def pair(chosen: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for time in TIMES:
        delay = "{delay: 20us}" if time == "virtual" else "{}"
        with stage.lab_of(plan_in(time, f"pair: {{hosts: [left, right], link: {delay}}}", chosen)) as lab:
            for overlay in chosen.overlays:
                ends = overlays.join(lab, overlay, console.note)
                found.setdefault(overlay, {})[time] = list(flows(lab, ends, overlay, chosen))
    return found


def flows(lab: Lab, ends: Mapping[str, Endpoint], overlay: str, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for flow in FLOWS:
        console.note(f"pair: {lab.plan.time} time, {overlay}: {flow.name}")
        tries = chosen.tries if lab.plan.time == "real" else 1
        seen = [flow.mbit(lab, ends, lab.plan.paths[0], chosen.seconds) for _ in range(tries)]
        sent, arrived = ([flow.in_its_unit(each) for each in column] for column in zip(*seen, strict=True))
        yield {"flow": flow.name, "sent": sent, "arrived": arrived}


def hops(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with stage.lab_of(plan_in("virtual", "chain: {hosts: 6, link: {rtt: 2ms}}", chosen)) as lab:
        first = lab.plan.hosts[0].name
        for overlay in chosen.overlays:
            ends = overlays.join(lab, overlay, console.note)
            for flow in OVER_HOPS:
                console.note(f"hops: {overlay}: {flow.name}")
                paths = [lab.plan.path(first, host.name) for host in lab.plan.hosts[1:]]
                seen = [flow.in_its_unit(flow.mbit(lab, ends, path, chosen.seconds)[1]) for path in paths]
                found.append({"overlay": overlay, "flow": flow.name, "arrived": seen})
    return found


def show_pair(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> None:
    for overlay, by_time in found.items():
        rows = [
            [real["flow"], *(spread(each[what]) for what in ("sent", "arrived") for each in (real, virtual))]
            for real, virtual in zip(by_time["real"], by_time["virtual"], strict=True)
        ]
        heads = ("flow", ">sent, real", ">sent, model", ">arrived, real", ">arrived, model")
        tables.show_table(f"A pair over {overlay}: least, median, most", heads, rows)


def show_hops(found: list[dict[str, Any]]) -> None:
    rows = [[each["overlay"], each["flow"], *(f"{one:.0f}" for one in each["arrived"])] for each in found]
    tables.show_table("The modelled processor, by hops: what arrives", ("over", "flow", *map(str, range(1, 6))), rows)


def spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.0f}"
    return ", ".join(f"{each:.0f}" for each in (min(values), statistics.median(values), max(values)))


def main() -> None:
    arguments = stage.parser(__doc__, "lan-unlimited.yaml")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("parts", nargs="*", metavar="PART", help="pair, hops; both if none is named")
    arguments.add_argument("--frame", default="3us", help="the model's time of a frame")
    arguments.add_argument("--call", default="16us", help="the model's time of a call")
    arguments.add_argument("--overlays", nargs="+", default=["none", "swarm"])
    arguments.add_argument("--tries", type=int, default=5, help="measurements of each flow in real time")
    arguments.add_argument("--seconds", type=int, default=1, help="seconds of each flow")
    chosen = arguments.parse_args()
    parts: Mapping[str, tuple[Callable[..., Any], Callable[[Any], None]]]
    parts = {"pair": (pair, show_pair), "hops": (hops, show_hops)}
    if unknown := [part for part in chosen.parts if part not in parts]:
        arguments.error(f"no part {unknown[0]!r}; parts are {', '.join(parts)}")
    for name in chosen.parts or parts:
        figures = stage.Figures(f"processor-{name}", chosen.topology)
        measure, show = parts[name]
        found = measure(chosen)
        show(found)
        figures.write(chosen.out, {name: found})


if __name__ == "__main__":
    stage.perform(main)
