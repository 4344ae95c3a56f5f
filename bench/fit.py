"""A modelled processor, fitted to published rates of plain machines and compared with those of containers.

No hosts are started. The data are docs/published/gts-2016-throughput.csv (Hermans and de Niet, University of Amsterdam,
2016, appendix Point-to-Point Throughput Measurements). Two numbers are fitted by least squares to the 18 rows of plain
machines: the time of a frame, by TCP, and the time of a datagram's calls, by UDP. The rows of containers are held out.

Then it computes from the containers' rows the time that encapsulation would have to take for each frame: each row is
compared with the plain machines of the same circuit and instance. `--rows` prints every residual.
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
from minigts.cli.views import tables

DATA = stage.PROJECT / "docs" / "published" / "gts-2016-throughput.csv"
FRAMES_OF_A_SEGMENT = 1.5
"""The frames of a segment: itself, and half an acknowledgement, since Linux acknowledges every second segment."""
CALLS_OF_A_DATAGRAM = 3
"""The calls of iperf3's sender: it writes, reads the clock, and checks for input."""
DATAGRAM_BYTES, UDP_HEADERS_BYTES, TCP_HEADERS_BYTES = 1470, 28, 52
"""The payload of iperf 2's datagrams, in bytes; the headers of IPv4 with UDP, and with TCP and its timestamps."""
MTU = {"vm": 1500, "libnetwork": 1450, "flannel": 1450, "weave": 1410}


@dataclass(frozen=True)
class Row:
    """Rates of payload in Mbit/s."""

    circuit: str
    network: str
    tcp_mbit: float
    tcp_model_mbit: float
    udp_mbit: float
    udp_model_mbit: float


@dataclass(frozen=True)
class Model:
    """The times of the model in microseconds."""

    frame_us: float
    datagram_us: float

    def tcp_mbit(self, network: str) -> float:
        return (MTU[network] - TCP_HEADERS_BYTES) * 8 / (FRAMES_OF_A_SEGMENT * self.frame_us)

    def udp_mbit(self, network: str) -> float:
        return DATAGRAM_BYTES * 8 / max(self.datagram_us, frames(network) * self.frame_us)


@dataclass(frozen=True)
class Encapsulation:
    """The time that the encapsulation of a frame would have to take, in microseconds, by each circuit of a network."""

    network: str
    by_udp_us: list[float]
    by_tcp_us: list[float]


def frames(network: str) -> int:
    """The number of frames of a datagram."""
    return -(-(DATAGRAM_BYTES + UDP_HEADERS_BYTES - 20) // ((MTU[network] - 20) // 8 * 8))


def encapsulations(rows: list[dict[str, str]]) -> Iterator[Encapsulation]:
    """The time of encapsulation: what a datagram or a segment over the overlay takes beyond as many plain ones as it
    has frames."""
    plain = {(row["instance"], row["circuit"]): row for row in rows if row["platform"] == "vm"}
    for network in (each for each in MTU if each != "vm"):
        by_udp, by_tcp = [], []
        for row in rows:
            if (row["platform"], row["instance"]) == ("container", network):
                beside = plain[network, row["circuit"]]
                datagram_us = DATAGRAM_BYTES * 8 / float(beside["udp_mbit"])
                by_udp.append(DATAGRAM_BYTES * 8 / float(row["udp_mbit"]) / frames(network) - datagram_us)
                segments_us = [segment_us(each, name) for each, name in ((row, network), (beside, "vm"))]
                by_tcp.append((segments_us[0] - segments_us[1]) / FRAMES_OF_A_SEGMENT)
        yield Encapsulation(network, by_udp, by_tcp)


def segment_us(row: dict[str, str], network: str) -> float:
    return (MTU[network] - TCP_HEADERS_BYTES) * 8 / float(row["tcp_mbit"])


def fitted(rows: list[dict[str, str]]) -> Model:
    """Least squares of one unknown are a mean: of a segment's time, and of a datagram's time."""
    plain = [row for row in rows if row["platform"] == "vm"]
    of_a_segment_us = statistics.fmean(segment_us(row, "vm") for row in plain)
    datagram_us = statistics.fmean(DATAGRAM_BYTES * 8 / float(row["udp_mbit"]) for row in plain)
    return Model(of_a_segment_us / FRAMES_OF_A_SEGMENT, datagram_us)


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
    tables.show_table(f"processor: {{frame: {model.frame_us:.1f}us, call: {call_us:.1f}us}}", columns, lines(rows))


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


def show_rows(rows: list[Row]) -> None:
    columns = ("network", "circuit", "TCP, Mbit/s", "model", "off by", "UDP, Mbit/s", "model", "off by")
    tables.show_table("residuals", columns, (residual(row) for row in rows))


def residual(row: Row) -> tuple[str, ...]:
    pairs = (row.tcp_mbit, row.tcp_model_mbit), (row.udp_mbit, row.udp_model_mbit)
    figures = ((f"{real:.1f}", f"{model:.1f}", f"{error_percent(real, model):+.0f} %") for real, model in pairs)
    return (row.network, row.circuit, *(each for three in figures for each in three))


def show_encapsulations(found: list[Encapsulation]) -> None:
    columns = ("network", "by UDP, us: least, median, most", "by TCP")
    lines = ((each.network, spread(each.by_udp_us), spread(each.by_tcp_us)) for each in found)
    tables.show_table("what a frame's encapsulation would have to take", columns, lines)


def spread(values: list[float]) -> str:
    return ", ".join(f"{each:+.1f}" for each in (min(values), statistics.median(values), max(values)))


def off(errors: list[float]) -> str:
    return f"{min(errors):+.0f} to {max(errors):+.0f} %, median {statistics.median(errors):+.0f}"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures, as JSON"
    )
    words.add_argument("--rows", action="store_true", help="print each row's residual")
    given = words.parse_args()
    with DATA.open(newline="") as file:
        published = list(csv.DictReader(file))
    model = fitted(published)
    rows = compared(published, model)
    show(rows, model)
    if given.rows:
        show_rows(rows)
    found = list(encapsulations(published))
    show_encapsulations(found)
    given.out.mkdir(parents=True, exist_ok=True)
    content = {
        "model": asdict(model),
        "rows": [asdict(row) for row in rows],
        "encapsulation": [asdict(each) for each in found],
    }
    (given.out / "fit.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    stage.perform(main)
