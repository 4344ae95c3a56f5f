"""A modelled processor, fitted to published rates of plain machines and held against those of containers.

No hosts are started. The data are docs/published/gts-2016-throughput.csv (Hermans and de Niet, University of Amsterdam,
2016, appendix Point-to-Point Throughput Measurements). Two numbers are fitted by least squares to the 18 rows of plain
machines: what a frame takes, by TCP, and what a datagram's calls take, by UDP. The rows of containers are held out.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import stage
from minigts.cli import screen

DATA = stage.PROJECT / "docs" / "published" / "gts-2016-throughput.csv"
FRAMES_OF_A_SEGMENT = 1.5
"""A segment, and half an acknowledgement: Linux acknowledges every second one."""
CALLS_OF_A_DATAGRAM = 3
"""Of iperf3's sender: it writes, and looks at the clock and whether there is something to read."""
DATAGRAM_BYTES, UDP_HEADERS_BYTES, TCP_HEADERS_BYTES = 1470, 28, 52
"""iperf 2's datagram; IPv4 with UDP, and with TCP and its timestamps."""
MTU = {"vm": 1500, "libnetwork": 1450, "flannel": 1450, "weave": 1410}


@dataclass(frozen=True)
class Row:
    """Rates in Mbit/s of payload."""

    circuit: str
    network: str
    tcp_mbit: float
    tcp_model_mbit: float
    udp_mbit: float
    udp_model_mbit: float


@dataclass(frozen=True)
class Model:
    """In microseconds."""

    frame_us: float
    datagram_us: float

    def tcp_mbit(self, network: str) -> float:
        return (MTU[network] - TCP_HEADERS_BYTES) * 8 / (FRAMES_OF_A_SEGMENT * self.frame_us)

    def udp_mbit(self, network: str) -> float:
        frames = -(-(DATAGRAM_BYTES + UDP_HEADERS_BYTES - 20) // ((MTU[network] - 20) // 8 * 8))
        return DATAGRAM_BYTES * 8 / max(self.datagram_us, frames * self.frame_us)


def fitted(rows: list[dict[str, str]]) -> Model:
    """The least squares of one unknown are a mean: of the time a segment takes, and of the time a datagram takes."""
    plain = [row for row in rows if row["platform"] == "vm"]
    segment_us = statistics.fmean((MTU["vm"] - TCP_HEADERS_BYTES) * 8 / float(row["tcp_mbit"]) for row in plain)
    datagram_us = statistics.fmean(DATAGRAM_BYTES * 8 / float(row["udp_mbit"]) for row in plain)
    return Model(segment_us / FRAMES_OF_A_SEGMENT, datagram_us)


def compared(rows: list[dict[str, str]], model: Model) -> list[Row]:
    result = []
    for row in rows:
        network = "vm" if row["platform"] == "vm" else row["instance"]
        rates = float(row["tcp_mbit"]), model.tcp_mbit(network), float(row["udp_mbit"]), model.udp_mbit(network)
        result.append(Row(row["circuit"], network, *rates))
    return result


def error_percent(measured: float, model: float) -> float:
    return 100 * (model / measured - 1)


def show(rows: list[Row], model: Model) -> None:
    columns = ("rows of", "rows", "TCP", "off by", "UDP", "off by")
    call_us = model.datagram_us / CALLS_OF_A_DATAGRAM
    screen.show_table(f"processor: {{frame: {model.frame_us:.1f}us, call: {call_us:.1f}us}}", columns, lines(rows))


def lines(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    for network in MTU:
        of_it = [row for row in rows if row.network == network]
        yield (
            "plain machines, fitted" if network == "vm" else f"{network}, held out",
            str(len(of_it)),
            f"{of_it[0].tcp_model_mbit:.1f} Mbit/s",
            off([error_percent(row.tcp_mbit, row.tcp_model_mbit) for row in of_it]),
            f"{of_it[0].udp_model_mbit:.1f} Mbit/s",
            off([error_percent(row.udp_mbit, row.udp_model_mbit) for row in of_it]),
        )


def off(errors: list[float]) -> str:
    return f"{min(errors):+.0f} to {max(errors):+.0f} %, median {statistics.median(errors):+.0f}"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="where the figures go, as JSON")
    given = words.parse_args()
    with DATA.open(newline="") as file:
        published = list(csv.DictReader(file))
    model = fitted(published)
    rows = compared(published, model)
    show(rows, model)
    given.out.mkdir(parents=True, exist_ok=True)
    content = {"model": asdict(model), "rows": [asdict(row) for row in rows]}
    (given.out / "fit.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    stage.perform(main)
