"""The two connections of virtual machines: the UDP tunnels of links, and a bridge with taps.

It measures between the same two emulated or KVM machines, in turn, over their link, which here declares neither delay
nor rate, and over the management network, which is a bridge of libvirt. So both carry as much as they can. It measures
echo requests, TCP, and UDP at several rates: what arrives, what is lost, and how much of this machine's processors each
megabit takes.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.experiments.provider_comparison import Figure, traffic
from minigts.foreign import to_user
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.tools.base import PathUnderTest
from minigts.topology.read.load import parse

BARE = "name: bare\nhosts: {ams: {}, bra: {}}\nlinks: [{ends: [ams, bra]}]\n"
BRIDGED = "mgmt0"
PROBES = 300
MTU = 1500


def bridged_address(lab: Lab, host: str) -> str:
    """The machine's address in the management network, which `minigts` itself uses only for SSH."""
    said = to_user(lab.provider.run(host, ["ip", "-j", "-4", "address", "show", "dev", BRIDGED], timeout_s=30).stdout)
    (device,) = json.loads(said)
    return str(device["addr_info"][0]["local"])


def measure(lab: Lab, address: str, rates_mbit: list[float]) -> Iterator[Figure]:
    seen = probe(lab.provider, "ams", address, count=PROBES)
    yield "RTT, median", "ms", seen.median_ms
    yield "RTT, lowest", "ms", min(seen.rtts_ms)
    yield from traffic(lab, PathUnderTest(address, MTU, MTU, lab.plan.path("ams", "bra")), rates_mbit)


def show(rows: list[dict[str, Any]]) -> None:
    cells = [
        (row["quantity"], row["unit"], *(f"{statistics.median(row[way]):.3g}" for way in ("tunnel", "bridge")))
        for row in rows
    ]
    tables.show_table("Medians of the rounds", ("", "", ">UDP tunnel", ">bridge"), cells)


def main() -> None:
    arguments = stage.parser(__doc__, "pair.yaml")
    arguments.add_argument(
        "--rates", type=float, nargs="*", default=[20, 50, 100], metavar="MBIT", help="the offered rates of UDP"
    )
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    figures = stage.Figures("tunnels", Path("a pair without shaping"))
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: {"tunnel": [], "bridge": []})
    with stage.lab_of(parse(BARE, "bare"), "vagrant") as lab:
        ends = overlays.join(lab, overlays.UNDERLAY, console.note)
        ways = {"tunnel": ends["bra"].address, "bridge": bridged_address(lab, "bra")}
        for number in range(1, chosen.rounds + 1):
            for name, address in ways.items():
                console.note(f"round {number} of {chosen.rounds}: {name}")
                for quantity, unit, value in measure(lab, address, chosen.rates):
                    found[quantity, unit][name].append(value)
    rows = [{"quantity": quantity, "unit": unit, **values} for (quantity, unit), values in found.items()]
    show(rows)
    figures.write(chosen.out, {"rounds": chosen.rounds, "rows": rows})


if __name__ == "__main__":
    stage.perform(main)
