"""The highest rate of its links with which a row of hosts keeps to its plan in real time, by the number of hosts.

A lab of each kind is brought up and certified several times; its links have a round trip of 10 ms. A kind passes when
every certificate was within the usual tolerances. In virtual time every rate passes, however slowly, so nothing is
measured there.
"""

from __future__ import annotations

from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.fidelity.measure import certify
from minigts.topology.read.load import parse


def outside(hosts: int, rate_mbit: int) -> list[str]:
    """The figures of one lab that are outside their tolerance."""
    text = f"name: row\nchain: {{hosts: {hosts}, link: {{rtt: 10ms, rate: {rate_mbit}mbit}}}}\n"
    with stage.lab_of(parse(text, "row.yaml", time="real")) as lab:
        rows = certify(lab, lambda _: None, bringing_up=True).rows
    return [f"{row.subject} {row.quantity} {row.measured}" for row in rows if row.ok is False]


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--hosts", type=int, nargs="+", default=[2, 6, 20], metavar="N")
    arguments.add_argument("--rates", type=int, nargs="+", default=[50, 100, 200, 500], metavar="MBIT")
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    figures = stage.Figures("carries", chosen.topology)
    found: list[dict[str, Any]] = []
    for hosts in chosen.hosts:
        for rate in chosen.rates:
            runs = [outside(hosts, rate) for _ in range(chosen.runs)]
            found.append({"hosts": hosts, "rate_mbit": rate, "outside": runs})
            console.note(f"{hosts} hosts, {rate} Mbit/s: {sum(not run for run in runs)} of {chosen.runs} within")
    shown = [
        (
            f"{hosts}",
            *(f"{sum(not run for run in row['outside'])} of {chosen.runs}" for row in found if row["hosts"] == hosts),
        )
        for hosts in chosen.hosts
    ]
    columns = ("hosts", *(f">{rate} Mbit/s" for rate in chosen.rates))
    tables.show_table("certificates within their tolerances, in real time", columns, shown)
    figures.write(chosen.out, {"kinds": found})


if __name__ == "__main__":
    stage.perform(main)
