"""Measures a lab for its certificate, in less than ten seconds for a chain of six.

Settings of every host, round trips and loss of every link and of paths that cover all links, rate of every link.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from pydantic import ValidationError

from minigts import lab as labs
from minigts import paths
from minigts.errors import CommandFailed
from minigts.fidelity import host_settings
from minigts.fidelity.certificate import Certificate, Row, loss_row, rate_row, rtt_row, settings_row
from minigts.fidelity.host_load import recording, taints
from minigts.lab import Lab, links
from minigts.lab.calibration import RoundTrips, probe
from minigts.tools import iperf3_tcp
from minigts.tools.base import ParseError
from minigts.tools.processor import is_modelled
from minigts.topology.plan import Host, Link, Path, Switch

Say = Callable[[str], None]
InTime = Callable[[], bool]
"""Whether there is time left to measure something again."""
FILE = "certificate.json"
LIMIT_BYTES = 16 << 20

PROBES = 120
LOSSY_PROBES, LOSSY_INTERVAL_S = 1500, 0.002
ATTEMPTS = 3
"""What lies outside its tolerance is measured again, since the machine may have been busy for a moment…"""
BUDGET_S = 7.5
"""…but nothing after so much time, so that all is over in ten seconds: a machine that is busy for long gets a
certificate that says so. In virtual time nothing is measured again."""

RATE_PORT = 5300
"""And upwards, one for each link."""
RATE_S = 1
SLOW_START_ROUND_TRIPS = 30
SERVE = """\
while ss -Hltn "sport = :$0" | grep -q .; do sleep 0.01; done
iperf3 -s -1 -D -p "$0" --idle-timeout 30
until ss -Hltn "sport = :$0" | grep -q .; do sleep 0.01; done
"""
SERVER_TIMEOUT_S = 45.0
MOST_AT_ONCE_MBIT = 400.0
"""Links whose rates are measured at once carry no more than this together: the processor must not be the limit."""


@dataclass(frozen=True)
class MeasuredPath:
    """What TCP is measured over: from one host to an address of another."""

    source: str
    target: str
    address: str
    rtt_ms: float
    port: int = RATE_PORT


def certify(lab: Lab, say: Say, *, bringing_up: bool = False) -> Certificate:
    """Measure the lab and leave certificate.json in its run directory. Raises what `Provider.run` raises.

    Nothing is set: a link that is cut is named and not measured, and so is no path over it. Links that lose at random
    begin their random numbers anew at the end, as if nothing had been sent, unless somebody has set them otherwise.

    Only where the lab is being brought up, and round trips are shorter than declared since calibration met a busier
    machine than there is now, is it calibrated again.

    In virtual time everything is measured once, since it would be the same again, and nobody looks at the machine.
    """
    started_s = lab.provider.now_s()
    with recording(lab.provider.processes(), lab.plan.time) as machine:
        in_time = _within(BUDGET_S)
        round_trips = tuple(_round_trips(lab, say, in_time))
        if bringing_up and links.carrier(lab) is None and any(row.too_fast for row in round_trips):
            say("certificate: faster than declared; the emulator's own latency, again")
            labs.calibrate(lab)
            round_trips = tuple(_round_trips(lab, say, in_time))
        settings = tuple(_settings(lab, say))
        rows = (*settings, *round_trips, *_losses(lab, say), *_rates(lab, say, in_time))
    record = lab.record
    seeded = any(port.incoming.seed is not None for machine in lab.plan.machines for port in machine.ports)
    if seeded and all(row.ok for row in settings):
        labs.reshape(lab)
    certificate = Certificate(
        lab=lab.name,
        provider=record.provider,
        measured_at=datetime.now(UTC),
        emulator_overhead_ms=record.emulator_overhead_ms,
        rows=rows,
        seconds=round(lab.provider.now_s() - started_s, 2),
        busy=taints(machine.load),
        cut=tuple(labs.cut_links(lab)),
        changed=_changed(lab),
    )
    keep(lab, certificate)
    return certificate


def after_up(lab: Lab, say: Say) -> Certificate:
    """The certificate of a lab that `up` has returned: its own, or, for one that is new, the first."""
    return of(lab) or certify(lab, say, bringing_up=not (lab.rundir / FILE).exists())


def keep(lab: Lab, certificate: Certificate) -> None:
    """Write it down as the lab's own."""
    lab.put(FILE, certificate.model_dump_json(indent=1) + "\n")


def _within(seconds: float) -> InTime:
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() < deadline


def _may_differ(lab: Lab, in_time: InTime) -> bool:
    """Whether measuring again may tell something else, and there is time for it."""
    return lab.plan.time == "real" and in_time()


def of(lab: Lab) -> Certificate | None:
    """The certificate that the lab has already; None when its links have been set otherwise since."""
    certificate = last(lab)
    return certificate if certificate is not None and holds_still(certificate, lab) else None


def last(lab: Lab) -> Certificate | None:
    """The certificate that was measured last, whatever has been set since; None where there is none to be read."""
    try:
        return Certificate.model_validate_json(paths.read_whole(lab.rundir / FILE, LIMIT_BYTES))
    except (OSError, ValidationError):
        return None


def holds_still(certificate: Certificate, lab: Lab) -> bool:
    """Whether links are set as they were when it was measured."""
    now = (lab.record.emulator_overhead_ms, tuple(labs.cut_links(lab)), _changed(lab))
    return (certificate.emulator_overhead_ms, certificate.cut, certificate.changed) == now


def _changed(lab: Lab) -> tuple[str, ...]:
    return tuple(f"{name} ({change.in_words})" for name, change in labs.changed_links(lab).items())


def covering(among: Sequence[Path]) -> list[Path]:
    """Paths of several hops that together pass every link that any such path passes, the longest first."""
    chosen: list[Path] = []
    passed: set[str] = set()
    for path in sorted(among, key=lambda path: -path.hops):
        if path.reachable and path.hops > 1 and not passed.issuperset(path.links):
            chosen.append(path)
            passed.update(path.links)
    return chosen


def _settings(lab: Lab, say: Say) -> Iterator[Row]:
    """Queueing disciplines, MTU and offloads as each host's kernel has them, and the wires that carry the links."""
    say("certificate: reading back what is set")
    record, wires = lab.record, links.read_wires(lab)

    def row_of(machine: Host | Switch) -> Row:
        shown = host_settings.read_back(lab, machine, wires)
        different = host_settings.differences(machine.ports, record, shown)
        return settings_row(machine.name, different, [shown.fact(port) for port in machine.ports])

    yield from lab.on_every_machine(row_of).values()


def _round_trips(lab: Lab, say: Say, in_time: InTime) -> Iterator[Row]:
    """One after the other: hosts share processors, and two at once would not be as one alone."""
    for link in labs.whole_links(lab):
        say(f"certificate: round trips over {link.name}")
        yield from link_rows(lab, link, in_time)
    for path in covering(labs.whole_paths(lab)):
        name = f"{path.source}-{path.target}"
        say(f"certificate: round trips from {path.source} to {path.target}")
        yield from path_rows(lab, name, path, in_time)


def link_rows(lab: Lab, link: Link, in_time: InTime = lambda: True) -> Iterator[Row]:
    """Round trips over a link from end to end, and their loss if none is declared."""
    yield from _path_rows(lab, link.name, _path_of(link), lab.plan.far_address(link), in_time)


def path_rows(lab: Lab, name: str, path: Path, in_time: InTime = lambda: True) -> Iterator[Row]:
    """Round trips over a path from end to end, and their loss if none is declared."""
    yield from _path_rows(lab, name, path, lab.plan.address_over(path), in_time)


def _path_of(link: Link) -> Path:
    """The link itself as a path: between its ends there may be another, shorter one."""
    return Path(
        source=link.ends[0],
        target=link.ends[1],
        links=(link.name,),
        reachable=True,
        rtt_ms=link.rtt_ms,
        rate_mbit=link.rate_mbit,
        tcp_ceiling_mbit=link.tcp_ceiling_mbit,
        loss_percent=link.loss_percent,
    )


def _path_rows(lab: Lab, name: str, path: Path, address: str, in_time: InTime) -> Iterator[Row]:
    if lab.plan.asks_controller(path):
        # A controller makes the pair's flows when it first sees it; until then each packet goes to it.
        probe(lab.provider, path.source, address, count=1)
    for _ in range(ATTEMPTS):
        echoes = probe(lab.provider, path.source, address, count=PROBES)
        row = rtt_row(lab.plan, name, path, echoes.rtts_ms)
        if row.ok or not echoes.rtts_ms or not _may_differ(lab, in_time):
            break
    yield row
    if not path.loss_percent:
        yield loss_row(lab.plan, name, path, echoes.sent - len(echoes.rtts_ms), echoes.sent)


def _losses(lab: Lab, say: Say) -> Iterator[Row]:
    """Links with a declared loss, with as many probes as its judgement needs, up to a limit."""
    lossy = [link for link in labs.whole_links(lab) if link.loss_percent]
    for link in lossy:
        say(f"certificate: loss of {link.name}")
        echoes = _lossy_round_trips(lab, link)
        lost = echoes.sent - len(echoes.rtts_ms)
        yield loss_row(lab.plan, link.name, _path_of(link), lost, echoes.sent)


def _lossy_round_trips(lab: Lab, link: Link) -> RoundTrips:
    address = lab.plan.far_address(link)
    return probe(lab.provider, link.ends[0], address, count=LOSSY_PROBES, interval_s=LOSSY_INTERVAL_S)


def _rates(lab: Lab, say: Say, in_time: InTime) -> Iterator[Row]:
    """TCP from first end to second, over several links at once; those outside their tolerance again, alone."""
    rated = [link for link in labs.whole_links(lab) if link.rate_mbit is not None]
    for batch in _batches([link for link in rated if not link.loss_percent]):
        say(f"certificate: rate of {', '.join(link.name for link in batch)}")
        with lab.provider.together() as company:
            rows = company.all([partial(_rate_row, lab, link) for link in batch])
        for link, first in zip(batch, rows, strict=True):
            yield first if first.ok else _rate_row_alone(lab, link, first, say, in_time)
    for link in rated:
        if link.loss_percent:
            yield rate_row(lab.plan, link.name, link.tcp_ceiling_mbit or 0, None, "TCP gives way to loss", judged=False)


def _rate_row_alone(lab: Lab, link: Link, row: Row, say: Say, in_time: InTime) -> Row:
    tries = 1
    while not row.ok and tries < ATTEMPTS and _may_differ(lab, in_time):
        say(f"certificate: rate of {link.name}, again")
        row, tries = _rate_row(lab, link), tries + 1
    return row


def _batches(rated: Sequence[Link]) -> Iterator[list[Link]]:
    """Together within what the processor carries, or one alone."""
    batch: list[Link] = []
    for link in rated:
        if batch and sum(each.rate_mbit or 0 for each in (*batch, link)) > MOST_AT_ONCE_MBIT:
            yield batch
            batch = []
        batch.append(link)
    if batch:
        yield batch


def _rate_row(lab: Lab, link: Link) -> Row:
    way = MeasuredPath(*link.ends, lab.plan.far_address(link), link.rtt_ms, RATE_PORT + link.index)
    measured, note = tcp_mbit(lab, way)
    modelled = is_modelled(lab.plan, _path_of(link))
    note = note or ("a modelled processor may be the limit" if modelled else "")
    return rate_row(lab.plan, link.name, link.tcp_ceiling_mbit or 0, measured, note, judged=not modelled)


def serve(lab: Lab, host: str, port: int) -> None:
    """Have iperf3 listen there for one client. Raises CommandFailed.

    The server of a measurement before may not have ended yet: in virtual time it ends only when something is asked.
    """
    lab.provider.run(host, ["sh", "-c", SERVE, str(port)], timeout_s=SERVER_TIMEOUT_S)


def tcp_mbit(lab: Lab, way: MeasuredPath, *, least_slow_start_s: int = 1) -> tuple[float | None, str]:
    """TCP goodput once it has left slow start, and why there is none."""
    slow_start_s = max(least_slow_start_s, math.ceil(SLOW_START_ROUND_TRIPS * way.rtt_ms / 1000))
    ask = ["iperf3", "-c", way.address, "-p", str(way.port), "-J", "-t", str(RATE_S), "-O", str(slow_start_s)]
    try:
        serve(lab, way.target, way.port)
        client = lab.provider.run(way.source, ask, timeout_s=30 + slow_start_s, check=False)
        return round(iperf3_tcp.parse(client.stdout, client.stderr).received_mbit, 4), ""
    except (ParseError, CommandFailed) as error:
        return None, str(error)
