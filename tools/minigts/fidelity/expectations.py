"""What a topology file expects of its lab beyond the certificate: its `expect:`, measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minigts.fidelity.certificate import Certificate, Row, jitter_ms, rtt_tolerance_ms
from minigts.fidelity.measure import Say, Way, certify, keep, path_rows, tcp_mbit
from minigts.lab import Lab, whole_paths
from minigts.topology.plan import Plan

NO_FASTER_SHARE = 0.05
LONG_SLOW_START_S = 3
"""Over many hops: TCP doubles its window once a round trip, and after it leaves slow start grows more slowly."""
PATH_TOLERANCE_SHARE = 0.15


def check(lab: Lab, say: Say) -> Certificate:
    """The certificate, and what the file expects, all of it in certificate.json."""
    certificate = certify(lab, say)
    rows = (*certificate.rows, *_expected(lab, certificate.rows, say))
    made = certificate.model_copy(update={"rows": rows})
    keep(lab, made)
    return made


def _expected(lab: Lab, rows: Sequence[Row], say: Say) -> Iterator[Row]:
    wanted = {(key, value) for entry in lab.plan.expect for key, value in entry.items()}
    if ("latency", "sum-of-segments") in wanted:
        others = list(_other_paths(lab, rows, say))
        yield from others
        yield from _sums(lab.plan, [*rows, *others])
    if ("throughput", "within-ceiling") in wanted or ("throughput", "falls-with-hops") in wanted:
        by_hops = list(_tcp_by_hops(lab, say))
        if ("throughput", "within-ceiling") in wanted:
            yield from by_hops
        if ("throughput", "falls-with-hops") in wanted:
            yield from _falls(by_hops)


def _other_paths(lab: Lab, rows: Sequence[Row], say: Say) -> Iterator[Row]:
    """Round trips of the paths of several hops that the certificate has left out."""
    measured = {row.subject for row in rows if row.quantity == "RTT"}
    paths = [path for path in whole_paths(lab) if path.reachable and path.hops > 1]
    for path in paths:
        name = f"{path.source}-{path.target}"
        if name not in measured:
            say(f"round trips from {path.source} to {path.target}")
            yield from path_rows(lab, name, path)


def _sums(plan: Plan, rows: Sequence[Row]) -> Iterator[Row]:
    """Each path of several hops against the sum of what its segments measured."""
    measured = {row.subject: row.measured for row in rows if row.quantity == "RTT" and row.measured is not None}
    for path in plan.paths:
        name = f"{path.source}-{path.target}"
        known = [measured[link] for link in path.links if link in measured]
        if path.hops > 1 and name in measured and len(known) == path.hops:
            total = round(sum(known), 4)
            tolerance = rtt_tolerance_ms(plan.tolerances, total, jitter_ms(plan, path))
            yield Row(
                subject=name,
                quantity="RTT, sum of segments",
                unit="ms",
                declared=total,
                measured=measured[name],
                tolerance=round(tolerance, 4),
                ok=abs(measured[name] - total) <= tolerance,
            )


def _tcp_by_hops(lab: Lab, say: Say) -> Iterator[Row]:
    """TCP from the first host to each it reaches, by hops, against the plan's ceiling. Nothing where links lose."""
    first = lab.plan.hosts[0].name
    paths = [path for path in whole_paths(lab) if path.reachable and path.source == first and not path.loss_percent]
    for path in sorted(paths, key=lambda path: path.hops):
        if path.tcp_ceiling_mbit is None:
            continue
        say(f"throughput over {path.hops} hops")
        way = Way(path.source, path.target, lab.plan.address_over(path), path.rtt_ms)
        measured, note = tcp_mbit(lab, way, least_slow_start_s=LONG_SLOW_START_S)
        tolerance = PATH_TOLERANCE_SHARE * path.tcp_ceiling_mbit
        yield Row(
            subject=f"{path.source}-{path.target}",
            quantity=f"TCP over {path.hops} hops",
            unit="Mbit/s",
            declared=path.tcp_ceiling_mbit,
            measured=measured,
            tolerance=round(tolerance, 4),
            ok=measured is not None and abs(measured - path.tcp_ceiling_mbit) <= tolerance,
            note=note,
        )


def _falls(by_hops: Sequence[Row]) -> Iterator[Row]:
    """TCP over more hops is no faster than over fewer: each against the slowest before it."""
    slowest = None
    for row in by_hops:
        if slowest is not None and row.measured is not None:
            tolerance = NO_FASTER_SHARE * slowest
            yield row.model_copy(
                update={
                    "quantity": f"{row.quantity}, no faster than over fewer",
                    "declared": slowest,
                    "tolerance": round(tolerance, 4),
                    "ok": row.measured <= slowest + tolerance,
                }
            )
        if row.measured is not None:
            slowest = row.measured if slowest is None else min(slowest, row.measured)
