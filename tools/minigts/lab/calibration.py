"""The emulator's own latency: by how much a link is slower than its declared delay. The shaping subtracts it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from minigts.dataplane.shaping import added_delay_ms
from minigts.errors import HostFailed, InputError, reading_from
from minigts.lab import current, link_states, links
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.lab.rundir import exclusive
from minigts.language import documents
from minigts.providers.base import Provider
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan

WINDOWS = 3
PROBES = 40
AGREEMENT_MS = 0.04
"""By how many ms per hop the two lowest windows may differ, which they do not on an idle machine."""
CALLS = 5
"""How often the windows are measured at most."""
PATHS = 4
"""How many paths are tried at most, where hosts do not answer."""
PROBE = "/usr/lib/minigts/probe"


class _Answer(BaseModel):
    sent: int
    rtts_us: list[float]


class NothingAnswers(HostFailed):
    """No path could be measured: echo requests have no answers, as where hosts filter them."""


@dataclass(frozen=True)
class EchoReplies:
    """The RTT in ms of every probe that was answered, in order of arrival, and the number of probes sent."""

    sent: int
    rtts_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.rtts_ms)


def probe(
    provider: Provider,
    host: str,
    address: str,
    *,
    count: int,
    interval_s: float | None = None,
    size_bytes: int | None = None,
    prefix: tuple[str, ...] = (),
) -> EchoReplies:
    """Send `count` echo requests from `host` to `address`, one each `interval_s` (default: the provider's pace), with
    `size_bytes` behind the ICMP header (default: 56). With an interval of 0 they are a train, whose round trips all
    count from its beginning; see provision/agent/src/probe.rs. Raises HostFailed.
    """
    pace_s = provider.pace_s if interval_s is None else interval_s
    size = () if size_bytes is None else (str(size_bytes),)
    argv = [*prefix, PROBE, address, str(count), str(pace_s), *size]
    said = provider.run(host, argv, timeout_s=count * pace_s + 30).stdout
    with reading_from(host, "what it says of its echo requests"):
        answer = documents.model(said, _Answer)
        return EchoReplies(answer.sent, tuple(rtt_us / 1000 for rtt_us in answer.rtts_us))


def emulator_overhead_ms(provider: Provider, plan: Plan, among: Sequence[Path], taken_off_ms: float = 0.0) -> float:
    """The emulator's own latency in ms: by how much the RTT over a path exceeds its declared RTT, per link and
    direction. It is 0 if no link has a delay from which it could be subtracted, or no two hosts reach each other.

    The RTT is the lowest of three windows' lower quartiles, since a busy machine only adds latency. While the two
    lowest windows disagree, three more are measured: what a busy machine adds must not be subtracted for good.

    The caller has shaped links as declared, less `taken_off_ms` of each delay. A provider makes all links alike, so one
    path stands for all: the one with the most hops, if possible without loss or jitter. Over many hops the latency of
    the two end hosts matters least. Where its end does not answer, paths to others are tried. Raises NothingAnswers.
    """
    paths = [path for path in among if path.reachable]
    if not paths or not any(link.rtt_ms > 0 for link in plan.links):
        return 0.0
    to_each: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: (_random(plan, path), -path.hops)):
        to_each.setdefault(path.target, path)
    tried = list(to_each.values())[:PATHS]
    for path in tried:
        found_ms = _overhead_over_ms(provider, plan, path, taken_off_ms)
        if found_ms is not None:
            return found_ms
    pairs = ", ".join(f"{path.source} to {path.target}" for path in tried)
    raise NothingAnswers(f"echo requests from {pairs} have no answers")


def _overhead_over_ms(provider: Provider, plan: Plan, path: Path, taken_off_ms: float) -> float | None:
    """As `emulator_overhead_ms`, over this path; None where it carries almost nothing."""
    delays_ms = plan.most_of(path, lambda end: added_delay_ms(end.outgoing, taken_off_ms))
    count = WINDOWS * PROBES
    quartiles_ms: list[float] = []
    for _ in range(CALLS):
        round_trips = probe(provider, path.source, plan.address_over(path), count=count)
        if len(round_trips.rtts_ms) < 2:
            return None
        quartiles_ms = sorted([*quartiles_ms, *_quartiles_ms(round_trips.rtts_ms)])
        if len(quartiles_ms) < 2 or quartiles_ms[1] - quartiles_ms[0] <= AGREEMENT_MS * path.hops:
            break
    return round(max(0.0, (quartiles_ms[0] - delays_ms) / (2 * path.hops)), 4)


def _quartiles_ms(rtts_ms: Sequence[float]) -> list[float]:
    """The lower quartile of every window in ms; RTTs after the last complete window are left out."""
    size = max(2, len(rtts_ms) // WINDOWS)
    starts = range(0, max(1, len(rtts_ms) - size + 1), size)
    return [statistics.quantiles(rtts_ms[start : start + size], n=4)[0] for start in starts]


def _random(plan: Plan, path: Path) -> bool:
    """Whether the path loses packets or delays them by chance, or has ways of different delays."""
    return (
        path.rtt_most_ms is not None
        or path.lossy
        or not plan.keeps_order(path)
        or any(port.incoming.jitter_ms > 0 for port in plan.ends_on(path))
    )


def calibrate(lab: Lab, *, bringing_up: bool = False) -> float:
    """Measure the emulator's own latency, and subtract it from every delay in place of the old value. Links that use
    random numbers then have those of another setting, but while the lab is being brought up.

    Return the new value in ms; 0 without measuring where wires keep the declared delay themselves. Raises InputError
    when every path has a cut link.
    """
    with exclusive(lab.rundir):
        if current.link_carrier(lab) is not None:
            return 0.0
        record = lab.read_record()
        given = record if bringing_up else record.counting(current.drawing(lab.plan, record))
        return calibrated_record(lab, given).emulator_overhead_ms


def calibrated_record(lab: Lab, record: Record) -> Record:
    """As `calibrate`, for a lab whose hosts shape and whose lock the caller holds; return the new record."""
    plan, paths = lab.plan, link_states.whole_paths(lab.plan, record)
    if not paths and plan.pairs:
        if not (cut := link_states.cut_links(plan, record)):
            why = "the way of each is decided by a controller, or passes a link that the spanning tree has blocked anew"
            raise InputError(f"no path of lab {lab.name} can be measured: {why}")
        raise InputError(f"every path of lab {lab.name} passes a cut link: {', '.join(cut)}")
    measured_ms = emulator_overhead_ms(lab.provider, plan, paths, record.emulator_overhead_ms)
    if measured_ms == record.emulator_overhead_ms:
        return record
    before, record = record, record.model_copy(update={"emulator_overhead_ms": measured_ms})
    every = frozenset(machine.name for machine in plan.machines)
    with links.settling(lab, before, record, every):
        links.reshape(lab, record)
    return record.model_copy(update={"unsettled": record.unsettled - every})
