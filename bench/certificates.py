"""The certificate of every topology that minigts brings, on every provider that works here, with all paths.

For each it prints the number of links and paths, the largest difference of a round trip from the sum of its segments,
the quantities outside the topology's tolerance, and the seconds of bring-up and measurement.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.fidelity.certificate import CertificateRow
from minigts.fidelity.measure import certify
from minigts.fidelity.round_trips import path_rows
from minigts.lab import Lab
from minigts.providers import registry
from minigts.topology.plan.plan import Plan


def providers() -> list[str]:
    """The providers that can run on this machine."""
    return [name for name in registry.names() if not registry.make(name, Path("nowhere")).missing()]


def with_all_paths(lab: Lab, rows: tuple[CertificateRow, ...]) -> tuple[CertificateRow, ...]:
    """The certificate's rows, and rows of the paths that it leaves out."""
    known = {row.subject for row in rows}
    more = [path for path in lab.plan.paths if path.reachable and path.hops > 1]
    left = [path for path in more if f"{path.source}-{path.target}" not in known]
    return (*rows, *(row for path in left for row in path_rows(lab, f"{path.source}-{path.target}", path)))


def measure(topology: Path, plan: Plan, provider: str) -> dict[str, Any]:
    started = time.monotonic()
    with stage.lab_of(plan, provider) as lab:
        up_s = time.monotonic() - started
        certificate = certify(lab, console.note, bringing_up=True)
        rows = with_all_paths(lab, certificate.rows)
    rtts = [row for row in rows if row.quantity == "RTT"]
    return {
        "topology": topology.name,
        "provider": provider,
        "links": len(plan.links),
        "paths": len(rtts),
        "up_s": round(up_s, 2),
        "certificate_s": certificate.seconds,
        "certificate_outside": sum(row.ok is False for row in certificate.rows),
        "emulator_overhead_ms": certificate.emulator_overhead_ms,
        "busy": certificate.busy,
        "rows": [row.model_dump() for row in rows],
    }


def show(found: list[dict[str, Any]]) -> None:
    cells = []
    for one in found:
        rows = [CertificateRow.model_validate(row) for row in one["rows"]]
        rtts = [row for row in rows if row.quantity == "RTT" and row.measured is not None]
        worst = max(rtts, key=lambda row: abs((row.measured or 0) - row.declared) / row.tolerance)
        outside = [f"{row.subject} {row.quantity}" for row in rows if row.ok is False]
        cells.append(
            (
                one["topology"].removesuffix(".yaml"),
                one["provider"],
                str(one["links"]),
                str(one["paths"]),
                f"{(worst.measured or 0) - worst.declared:+.3f} of ±{worst.tolerance:.2f} ms ({worst.subject})",
                f"{max((row.p99 or 0) - row.declared for row in rtts):.2f} ms",
                worst_rate(rows),
                ", ".join(outside) or "none",
                f"{one['certificate_s']:.1f} s",
            )
        )
    heads = ("topology", "provider", ">links", ">paths", ">furthest median RTT", ">p99 at most above")
    tables.show_table("Certificates", (*heads, ">furthest rate", "outside", ">certificate"), cells)


def worst_rate(rows: list[CertificateRow]) -> str:
    """The largest difference of TCP from its ceiling, in per cent."""
    shares = [row.measured / row.declared - 1 for row in rows if row.quantity == "TCP" and row.measured is not None]
    return f"{100 * max(shares, key=abs):+.2f} %" if shares else ""


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--only", nargs="*", default=[], metavar="NAME", help="only these topologies, by name")
    arguments.add_argument(
        "--providers", nargs="*", default=[], metavar="NAME", help="only these providers; default: all that work"
    )
    chosen = arguments.parse_args()
    figures = stage.Figures("certificates", Path("all"))
    shipped = sorted((stage.PROJECT / "topologies").glob("*.yaml"))
    files = [file for file in shipped if not chosen.only or file.stem in chosen.only]
    plans = [(file, stage.plan_of(file)) for file in files]
    found = [
        measure(file, plan, provider)
        for file, plan in plans
        for provider in chosen.providers or providers()
        if plan.time == "real" or registry.has_virtual_time(provider)
    ]
    show(found)
    figures.write(chosen.out, {"certificates": found})


if __name__ == "__main__":
    stage.perform(main)
