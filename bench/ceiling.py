"""What one link carries in real time, and what two namespaces of one kernel carry to each other over a veth.

A link without delay and rate joins two hosts, as it is and with its offloads on. In turn with it the bench measures a
veth pair within the first host: TCP, datagrams of 1400 bytes at the highest rate, and echo requests. All use the same
programs and kernel, so that the ratio is the cost of leaving the kernel. Both ends of a veth share the one processor of
their kernel; a link's ends have one each.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.topology.read.load import parse

PAIR = "name: ceiling\npair: {hosts: [left, right], link: {}}\n"
PORT = "5301"
ENDS = {"near": "192.0.2.1", "far": "192.0.2.2"}
"""The veth pair: the names of its two namespaces and of the ports in them, and addresses for documentation."""
PACE_S = 0.003


@dataclass(frozen=True)
class Way:
    """A way from programs of `source` to `address`, where a server of iperf3 answers; `prefix` enters a namespace.
    `offloads` are those of the ports at both ends of the link; "" without a link."""

    name: str
    source: str
    address: str
    offloads: str = ""
    prefix: tuple[str, ...] = ()


@contextmanager
def ways(lab: Lab) -> Iterator[tuple[Way, ...]]:
    """All ways, with their servers. At the end neither servers nor namespaces are left."""
    left, right = lab.plan.hosts
    run = lab.provider.run
    for name in ENDS:
        run(left.name, ("ip", "netns", "add", name), timeout_s=10)
    run(
        left.name,
        ("ip", "link", "add", "near", "netns", "near", "type", "veth", "peer", "far", "netns", "far"),
        timeout_s=10,
    )
    for name, address in ENDS.items():
        run(left.name, ("ip", "-n", name, "address", "add", f"{address}/24", "dev", name), timeout_s=10)
        run(left.name, ("ip", "-n", name, "link", "set", name, "up"), timeout_s=10)
    inside = ("ip", "netns", "exec")
    run(left.name, (*inside, "far", "iperf3", "--server", "--daemon", "--port", PORT), timeout_s=10)
    run(right.name, ("iperf3", "--server", "--daemon", "--port", PORT), timeout_s=10)
    yield (
        Way("link", left.name, right.address, "off"),
        Way("link, offloads on", left.name, right.address, "on"),
        Way("veth", left.name, ENDS["far"], prefix=(*inside, "near")),
    )


def switch_offloads(lab: Lab, way: Way) -> None:
    for host in lab.plan.hosts if way.offloads else ():
        for feature in ("tx", "tso"):
            lab.provider.run(host.name, ("ethtool", "-K", host.ports[0].name, feature, way.offloads), timeout_s=10)


def tcp_mbit(lab: Lab, way: Way, seconds: int) -> float:
    return float(_flow(lab, way, seconds)["end"]["sum_received"]["bits_per_second"]) / 1e6


def datagrams_a_second(lab: Lab, way: Way, seconds: int, size: int) -> float:
    """The datagrams that arrived, per second."""
    said = _flow(lab, way, seconds, "--udp", "--bitrate", "0", "--length", str(size))["end"]["sum"]
    return float(said["packets"] - said["lost_packets"]) / float(said["seconds"])


def _flow(lab: Lab, way: Way, seconds: int, *options: str) -> dict[str, Any]:
    argv = (*way.prefix, "iperf3", "--client", way.address, "--port", PORT, "--time", str(seconds), "--json", *options)
    said = lab.provider.run(way.source, argv, timeout_s=seconds + 30)
    found: dict[str, Any] = json.loads(user_text(said.stdout))
    return found


def round_trip_ms(lab: Lab, way: Way, count: int) -> float:
    seen = probe(lab.provider, way.source, way.address, count=count, interval_s=PACE_S, prefix=way.prefix)
    return seen.median_ms


def show(found: dict[str, dict[str, list[float]]]) -> None:
    rows = []
    for what, by_way in found.items():
        *links, veth = (statistics.median(values) for values in by_way.values())
        rows.append((what, *(spread(values) for values in by_way.values()), *(f"{each / veth:.2f}" for each in links)))
    heads = ("what", ">link", ">link, offloads on", ">veth", ">ratio", ">ratio, on")
    tables.show_table("A link between two kernels, and a veth in one: least, median, most", heads, rows)


def spread(values: list[float]) -> str:
    places = 3 if max(values) < 10 else 0
    return ", ".join(f"{each:.{places}f}" for each in (min(values), statistics.median(values), max(values)))


def main() -> None:
    arguments = stage.parser(__doc__, "lan-unlimited.yaml")
    arguments.add_argument("--tries", type=int, default=7, help="measurements of each way, in turn")
    arguments.add_argument("--seconds", type=int, default=3, help="seconds of each flow")
    arguments.add_argument("--count", type=int, default=500, help="echo requests in each try")
    arguments.add_argument("--size", type=int, default=1400, help="bytes of each datagram")
    chosen = arguments.parse_args()
    figures = stage.Figures("ceiling", chosen.topology)
    measures = {
        "TCP, Mbit/s": lambda lab, way: tcp_mbit(lab, way, chosen.seconds),
        f"datagrams of {chosen.size} bytes, a second": lambda lab, way: datagrams_a_second(
            lab, way, chosen.seconds, chosen.size
        ),
        "RTT, ms": lambda lab, way: round_trip_ms(lab, way, chosen.count),
    }
    with stage.lab_of(parse(PAIR, "ceiling.yaml", time="real")) as lab, ways(lab) as all_ways:
        found: dict[str, dict[str, list[float]]] = {what: {way.name: [] for way in all_ways} for what in measures}
        for attempt in range(chosen.tries):
            console.note(f"try {attempt + 1} of {chosen.tries}")
            for way in all_ways:
                switch_offloads(lab, way)
                for what, once in measures.items():
                    found[what][way.name].append(once(lab, way))
    show(found)
    figures.write(chosen.out, {"measured": found})


if __name__ == "__main__":
    stage.perform(main)
