"""What a queue discipline in the sending host costs in virtual time: processor seconds for each virtual second of TCP.

Labs are chains of hosts with one rate on all links; TCP passes all of them. With `fifo` the wires have the queues, with
`bfifo` the hosts have them, below a tbf of one frame, so that nothing but their place differs. Processor time counts,
of the lab's kernels and of its clock: other work of the machine changes it little. Labs of one rate and number of hosts
run one after the other, and the ratio is that of a frame's cost to the first discipline's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from bench import stage
from bench.virtual import timing
from minigts.cli import console
from minigts.cli.views import tables
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

LIMIT_S = 3600.0


def chain(hosts: int, rate_mbit: int, discipline: str) -> Plan:
    names = ", ".join(f"h{number}" for number in range(hosts))
    link = f"{{delay: 5ms, rate: {rate_mbit}mbit, queue: {{discipline: {discipline}}}}}"
    return parse(
        f"name: q\nchain: {{hosts: [{names}], link: {link}, host: {{memory: 128MB}}}}\n", "chain.yaml", time="virtual"
    )


def sent(lab: Lab, seconds: float) -> float:
    """Send from the first host to the last; return the rate in Mbit/s."""
    first, last = lab.plan.hosts[0].name, lab.plan.hosts[-1].name
    argv = ["iperf3", "-c", last, "-t", f"{seconds:g}", "-J"]
    said = json.loads(user_text(lab.provider.run(first, argv, timeout_s=LIMIT_S).stdout))
    return float(said["end"]["sum_received"]["bits_per_second"]) / 1e6


def rows(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for hosts in chosen.hosts:
        for rate_mbit in chosen.rates:
            first_us: float | None = None
            for discipline in chosen.disciplines:
                console.note(f"{hosts} hosts, {rate_mbit} Mbit/s, {discipline}")
                with stage.lab_of(chain(hosts, rate_mbit, discipline)) as lab:
                    lab.provider.run(lab.plan.hosts[-1].name, ["iperf3", "-s", "-D"], timeout_s=LIMIT_S)
                    with timing(lab) as passed:
                        got_mbit = sent(lab, chosen.seconds)
                used_s = {group: each / passed.virtual_s for group, each in passed.processor_s.items()}
                frame_us = 1e6 * sum(passed.processor_s.values()) / passed.frames
                first_us = frame_us if first_us is None else first_us
                yield {
                    "hosts": hosts,
                    "rate_mbit": rate_mbit,
                    "discipline": discipline,
                    "got_mbit": round(got_mbit, 2),
                    "processor_s_per_virtual_s": {group: round(each, 4) for group, each in used_s.items()},
                    "processor_us_per_frame": round(frame_us, 2),
                    "of_the_first_discipline": round(frame_us / first_us, 3),
                }


def main() -> None:
    parser = stage.parser(__doc__, "chain6.yaml")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 6])
    parser.add_argument("--rates", type=int, nargs="+", default=[10, 100, 1000], help="Mbit/s")
    parser.add_argument("--disciplines", nargs="+", default=["fifo", "bfifo", "fq_codel"])
    parser.add_argument("--seconds", type=float, default=4.0)
    chosen = parser.parse_args()
    figures, found = stage.Figures("queues", chosen.topology), list(rows(chosen))
    figures.write(chosen.out, {"seconds": chosen.seconds, "rows": found})
    heads = (">hosts", ">Mbit/s", "discipline", ">TCP Mbit/s", ">kernels s", ">clock s", ">us a frame", ">ratio")
    tables.show_table("Processor seconds for each second of the lab", heads, [cells(each) for each in found])


def cells(each: dict[str, Any]) -> list[str]:
    used = each["processor_s_per_virtual_s"]
    shown = (each[key] for key in ("hosts", "rate_mbit", "discipline", "got_mbit"))
    spent = (f"{used['kernels']:.3f}", f"{used['clock']:.3f}", str(each["processor_us_per_frame"]))
    return [*map(str, shown), *spent, f"{each['of_the_first_discipline']:.2f}"]


if __name__ == "__main__":
    stage.perform(main)
