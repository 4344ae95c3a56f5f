"""How far a lab can be trusted: what was declared against what is measured, over the underlay.

For each host the shaping read back from its kernel, for each pair that the underlay connects the round-trip time, for
each link loss and rate. The result is a certificate: JSON for programs, a table for people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as FilePath

from pydantic import BaseModel, ConfigDict, JsonValue

from minigts import shaping
from minigts.calibration import probe
from minigts.errors import CommandFailed
from minigts.experiments.parsers import ParseError, iperf3_tcp
from minigts.lab import Lab
from minigts.topology.plan import Host, Path, Plan, Switch
from minigts.topology.tolerance import tolerance_ms

Say = Callable[[str], None]

PROBES = 50
PROBE_INTERVAL_S = 0.004
ATTEMPTS = 3
"""A round-trip time outside its tolerance is measured again: the machine may have been busy for a moment."""

LOSSLESS_PROBES, LOSSY_PROBES = 200, 1500
LOSS_INTERVAL_S = 0.002
LOSS_TOLERANCE_POINTS = 0.1
FEWEST_LOSSES = 10
"""Loss is judged when at least this many losses are to be expected: fewer say nothing of the share."""
DEVIATES = 2.576
"""Standard deviations within which 99 of 100 samples lie."""

RATE_TOLERANCE_SHARE = 0.05
RATE_PORT = 5299
RATE_S, SLOW_START_S = 1, 1
LONG_SLOW_START_S = 3
"""Over many hops: TCP doubles its window once a round trip, and after it leaves slow start grows more slowly."""
PATH_TOLERANCE_SHARE = 0.15


class Row(BaseModel):
    """One quantity of one path, link or host. `measured` is None when nothing was; `ok` is None when what was measured
    cannot judge what was declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str
    quantity: str
    unit: str
    declared: float
    measured: float | None
    tolerance: float
    ok: bool | None
    note: str = ""

    def in_words(self) -> str:
        measured = "nothing" if self.measured is None else f"{self.measured:g} {self.unit}"
        verdict = {True: "ok", False: "outside", None: "not judged"}[self.ok]
        return f"{measured}, declared {self.declared:g} ± {self.tolerance:.3g} {self.unit}: {verdict}"


class Certificate(BaseModel):
    """Every row measured on one lab at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lab: str
    provider: str
    own_latency_ms: float
    """The emulator's own one-way latency over a link, which was taken off the delays."""
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing lies outside its tolerance; what could not be judged does not count against the lab."""
        return all(row.ok is not False for row in self.rows)

    def in_words(self) -> dict[str, JsonValue]:
        """For people, by subject and quantity; shaping that is as declared is left to the verdict."""
        outside = sum(row.ok is False for row in self.rows)
        verdict = "all within tolerance" if self.ok else f"{outside} of {len(self.rows)} outside the tolerance"
        shown = [row for row in self.rows if row.quantity != "shaping" or not row.ok]
        words: dict[str, JsonValue] = {f"{row.subject} {row.quantity}": row.in_words() for row in shown}
        return {"verdict": verdict} | words

    def write(self, path: FilePath) -> None:
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def check(lab: Lab, say: Say, *, expectations: bool = True) -> Certificate:
    """Measure the lab and, unless told otherwise, what its topology file expects of it.

    Leaves certificate.json in the run directory too. Raises what `Provider.run` raises.
    """
    rows = (*_shaping(lab, say), *_rtts(lab, say), *_losses(lab, say), *_rates(lab, say))
    if expectations:
        rows = (*rows, *_expected(lab, rows, say))
    record = lab.record
    made = Certificate(lab=lab.name, provider=record.provider, own_latency_ms=record.own_latency_ms, rows=rows)
    made.write(lab.rundir / "certificate.json")
    return made


def rtt_tolerance_ms(declared_ms: float, jitter_ms: float = 0.0) -> float:
    """How far a median RTT may lie from the sum of its segments; `jitter_ms` is that of the whole round trip."""
    return tolerance_ms(declared_ms) + jitter_ms / 4


def judge_loss(lost: int, sent: int, declared_percent: float) -> tuple[bool | None, float]:
    """Whether `lost` of `sent` agrees with what was declared, and the tolerance in points.

    The tolerance is what chance allows 99 of 100 samples, and never less than 0.1 points. None for a declared loss of
    which so few probes would lose next to none.
    """
    share = declared_percent / 100
    chance_points = 100 * DEVIATES * math.sqrt(share * (1 - share) / sent)
    tolerance = max(LOSS_TOLERANCE_POINTS, chance_points)
    if share and sent * share < FEWEST_LOSSES:
        return None, tolerance
    return abs(100 * lost / sent - declared_percent) <= tolerance, tolerance


def _shaping(lab: Lab, say: Say) -> Iterator[Row]:
    """How many settings each host's kernel shows that differ from the plan; there must be none."""
    say("reading back the shaping")
    own_latency_ms = lab.record.own_latency_ms

    def differences(machine: Host | Switch) -> list[str]:
        shown = lab.provider.run(machine.name, ["tc", "-j", "qdisc", "show"], timeout_s=10).stdout
        return [text for port in machine.ports for text in shaping.differences(port, shown, own_latency_ms)]

    for name, found in lab.on_every_machine(differences).items():
        yield Row(
            subject=name,
            quantity="shaping",
            unit="differences",
            declared=0,
            measured=len(found),
            tolerance=0,
            ok=not found,
            note="; ".join(found),
        )


def _rtts(lab: Lab, say: Say) -> Iterator[Row]:
    """One path after the other: hosts share processors, and two at once would not be as one alone."""
    plan = lab.plan
    ways = [
        (_pair(path), path.source, _address(plan, path), path.rtt_ms, path.links)
        for path in plan.paths
        if path.reachable
    ] + [
        (link.name, link.ends[0], plan.far_address(link), link.rtt_ms, (link.name,))
        for link in plan.links
        if not plan.joins_hosts(link)
    ]
    for count, (subject, source, address, declared_ms, links) in enumerate(ways, 1):
        say(f"round trips: path {count} of {len(ways)}")
        tolerance = rtt_tolerance_ms(declared_ms, _jitter_ms(plan, links))
        measured = _median_rtt_ms(lab, source, address, declared_ms, tolerance)
        yield Row(
            subject=subject,
            quantity="RTT",
            unit="ms",
            declared=declared_ms,
            measured=measured,
            tolerance=round(tolerance, 4),
            ok=measured is not None and abs(measured - declared_ms) <= tolerance,
        )


def _median_rtt_ms(lab: Lab, source: str, address: str, declared_ms: float, tolerance: float) -> float | None:
    """The median RTT, the first that is within the tolerance or the last tried; None when nothing comes back."""
    median = None
    for _ in range(ATTEMPTS):
        seen = probe(lab.provider, source, address, count=PROBES, interval_s=PROBE_INTERVAL_S)
        if not seen.rtts_ms:
            return None
        median = round(seen.median_ms, 4)
        if abs(median - declared_ms) <= tolerance:
            break
    return median


def _losses(lab: Lab, say: Say) -> Iterator[Row]:
    """Echo requests over each link: a loss on the way there and one on the way back look the same."""
    for link in lab.plan.links:
        say(f"loss: {link.name}")
        there_and_back = round(100 * (1 - (1 - link.loss_percent / 100) ** 2), 6)
        count = LOSSY_PROBES if link.loss_percent else LOSSLESS_PROBES
        seen = probe(lab.provider, link.ends[0], lab.plan.far_address(link), count=count, interval_s=LOSS_INTERVAL_S)
        lost = seen.sent - len(seen.rtts_ms)
        ok, tolerance = judge_loss(lost, seen.sent, there_and_back)
        yield Row(
            subject=link.name,
            quantity="loss",
            unit="%",
            declared=there_and_back,
            measured=round(100 * lost / seen.sent, 4),
            tolerance=round(tolerance, 4),
            ok=ok,
            note="there and back" if ok is not None else f"there and back; {seen.sent} probes are too few to judge",
        )


def _rates(lab: Lab, say: Say) -> Iterator[Row]:
    """TCP over each link that has a rate, first end to second, against what the rate leaves for payload."""
    for link in lab.plan.links:
        ceiling = link.tcp_ceiling_mbit
        if link.rate_mbit is None or ceiling is None:
            continue
        say(f"rate: {link.name}")
        measured, note = None, "TCP gives way to loss"
        if not link.loss_percent:
            measured, note = _tcp_mbit(lab, *link.ends, lab.plan.far_address(link), SLOW_START_S)
        tolerance = RATE_TOLERANCE_SHARE * ceiling
        within = measured is not None and abs(measured - ceiling) <= tolerance
        yield Row(
            subject=link.name,
            quantity="TCP",
            unit="Mbit/s",
            declared=ceiling,
            measured=measured,
            tolerance=round(tolerance, 4),
            ok=None if link.loss_percent else within,
            note=note,
        )


def _expected(lab: Lab, rows: Sequence[Row], say: Say) -> Iterator[Row]:
    """What the file's `expect:` adds to the rows that every lab gets."""
    wanted = {(key, value) for entry in lab.plan.expect for key, value in entry.items()}
    if ("latency", "sum-of-segments") in wanted:
        yield from _sums(lab.plan, rows)
    if ("throughput", "within-ceiling") in wanted or ("throughput", "falls-with-hops") in wanted:
        by_hops = list(_tcp_by_hops(lab, say))
        if ("throughput", "within-ceiling") in wanted:
            yield from by_hops
        if ("throughput", "falls-with-hops") in wanted:
            yield from _falls(by_hops)


def _sums(plan: Plan, rows: Sequence[Row]) -> Iterator[Row]:
    """Each path of several hops against the sum of what its segments measured."""
    measured = {row.subject: row.measured for row in rows if row.quantity == "RTT" and row.measured is not None}
    by_link = {
        link.name: measured.get(_pair(plan.path(*link.ends)) if plan.joins_hosts(link) else link.name)
        for link in plan.links
    }
    for path in plan.paths:
        segments = [by_link[name] for name in path.links]
        known = [rtt for rtt in segments if rtt is not None]
        if path.hops > 1 and _pair(path) in measured and len(known) == len(segments):
            total = round(sum(known), 4)
            tolerance = rtt_tolerance_ms(total, _jitter_ms(plan, path.links))
            yield Row(
                subject=_pair(path),
                quantity="RTT, sum of segments",
                unit="ms",
                declared=total,
                measured=measured[_pair(path)],
                tolerance=round(tolerance, 4),
                ok=abs(measured[_pair(path)] - total) <= tolerance,
            )


def _tcp_by_hops(lab: Lab, say: Say) -> Iterator[Row]:
    """TCP from the first host to each it reaches, by hops, against the plan's ceiling. Nothing where links lose."""
    first = lab.plan.hosts[0].name
    paths = [path for path in lab.plan.paths if path.reachable and path.source == first and not path.loss_percent]
    for path in sorted(paths, key=lambda path: path.hops):
        if path.tcp_ceiling_mbit is None:
            continue
        say(f"throughput over {path.hops} hops")
        measured, note = _tcp_mbit(lab, path.source, path.target, _address(lab.plan, path), LONG_SLOW_START_S)
        tolerance = PATH_TOLERANCE_SHARE * path.tcp_ceiling_mbit
        yield Row(
            subject=_pair(path),
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
            tolerance = RATE_TOLERANCE_SHARE * slowest
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


def _tcp_mbit(lab: Lab, source: str, target: str, address: str, slow_start_s: int) -> tuple[float | None, str]:
    """TCP goodput from one host to another, and why there is none."""
    serve = ["iperf3", "-s", "-1", "-D", "-p", str(RATE_PORT), "--idle-timeout", "30"]
    ask = ["iperf3", "-c", address, "-p", str(RATE_PORT), "-J", "-t", str(RATE_S), "-O", str(slow_start_s)]
    try:
        lab.provider.run(target, serve, timeout_s=10)
        said = lab.provider.run(source, ask, timeout_s=30, check=False)
        return round(iperf3_tcp(said.stdout, said.stderr).received_mbit, 4), ""
    except (ParseError, CommandFailed) as error:
        return None, str(error)


def _pair(path: Path) -> str:
    return f"{path.source}-{path.target}"


def _address(plan: Plan, path: Path) -> str:
    """Where the path's target answers: by its own address where routes lead there, else on the shared segment."""
    if plan.routing == "routed":
        return plan.host(path.target).address
    near = plan.neighbours(plan.host(path.source))
    return next(far.address for port, host, far in near if host.name == path.target and port.link == path.links[0])


def _jitter_ms(plan: Plan, links: Sequence[str]) -> float:
    """Declared jitter over these links, both ways."""
    ports = [port for machine in plan.machines for port in machine.ports if port.link in links]
    return sum(port.outgoing.jitter_ms for port in ports)
