"""The rates of a lab's links, measured with TCP or by trains of frames, for its certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from minigts.errors import CommandFailed
from minigts.fidelity import round_trips, shown_settings, trains
from minigts.fidelity.certificate import (
    CertificateRow,
    rate_row,
)
from minigts.fidelity.sample import MOST_AT_ONCE_MBIT
from minigts.foreign import parser_text
from minigts.judge import tolerances
from minigts.judge.throughput import ceiling_in_words
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.tools import iperf3_tcp
from minigts.tools.base import ParseError
from minigts.tools.cpu_bound import is_modelled
from minigts.topology.frames import tcp_ceiling_mbit
from minigts.topology.plan.elements import Direction, Link
from minigts.topology.tcp import goodput

NOTHING_CAME = "no echo request came back over it"

RATE_PORT = 5300
"""The first of the ports for measuring rates; each link has its own."""

RATE_S = 1

THIN_MBIT = 2.4
"""The rate below which a link counts as thin: a second carries less than 200 full frames, and the smallest default
queue, 64 kB, takes more than a fifth of a second."""

LEAST_QUEUE_BYTES = 10 * 1514
"""The smallest queue with which TCP fills a link; the queue must also hold what the rate sends in a round trip."""

THIN_QUEUES = 100
"""A thin link, and one that seemed outside its tolerance, is measured for this many times what fills its queue: when a
lost segment arrives again, up to a queue's worth of data is delivered at once. In real time this would take minutes, so
there a thin link is not judged."""

SLOW_START_ROUND_TRIPS = 30

SLOW_START_QUEUES = 6
"""The slow start in times of a full queue: at a thin link a round trip takes as long as the queue."""

SERVE = """\
while ss -Hltn "sport = :$0" | grep -q .; do sleep 0.01; done
iperf3 -s -1 -D -p "$0" --idle-timeout 30
until ss -Hltn "sport = :$0" | grep -q .; do sleep 0.01; done
"""

SERVER_TIMEOUT_S = 45.0


@dataclass(frozen=True)
class MeasuredPath:
    """The path over which TCP is measured: from one host to an address of another."""

    source: str
    target: str
    address: str
    rtt_ms: float
    port: int = RATE_PORT
    queue_s: float = 0.0
    """The seconds that a full queue takes to be sent."""

    seconds: float = RATE_S
    """How long is measured. For less than a second, what the client has sent counts; otherwise what the server has
    received."""


@dataclass(frozen=True)
class _OneWay:
    """One direction of a link: `end` 0 is from its first end to its second, 1 the other."""

    link: Link
    end: int = 0
    for_both: bool = True
    """Whether its measurement stands for both directions."""

    @property
    def figures(self) -> Direction:
        return self.link.ways[self.end]

    @property
    def ends(self) -> tuple[str, str]:
        first, second = self.link.ends
        return (second, first) if self.end else (first, second)

    @property
    def name(self) -> str:
        """`ams to bra`; empty where it stands for both directions."""
        return "" if self.for_both else " to ".join(self.ends)


def rows(
    lab: Lab, whole: Sequence[Link], say: Progress, in_time: round_trips.InTime, dumb: frozenset[str]
) -> Iterator[CertificateRow]:
    """Rows of the links' rates. In virtual time a train of frames measures each fast link, alone. The others carry TCP
    from their first end to the second, several links at once; a link outside its tolerance is measured again alone.
    Where the directions have different rates, the second follows the first, so that they do not disturb each other.
    Links that are `dumb`, over which no echo came back, are not measured: no client would reach the server.
    """
    rated = [way for link in whole for way in _rated(link)]
    yield from (_judged_rate(lab, way, None, *_why_dumb(way)) for way in rated if way.link.name in dumb)
    fast = {link.name for link in whole if trains.measures(lab, link, round_trips.path_of(link))} - dumb
    for link in whole:
        if link.name in fast:
            say(f"certificate: rate of {link.name}")
            yield trains.row(lab, link)
    unfilled = {link.name for link in whole if not lab.plan.is_filled(round_trips.path_of(link))} - dumb
    for way in rated:
        if way.link.name in unfilled:
            shapings = lab.plan.directions(way.link)
            why = next(why for shaping in shapings if (why := shaping.why_not_filled) is not None)
            yield _judged_rate(lab, way, None, why, judged=False)
    ways = [way for way in rated if way.link.name not in dumb | fast | unfilled]
    for end in (0, 1):
        for batch in _batches([way for way in ways if way.end == end and not way.link.lossy]):
            names = ", ".join(way.name or way.link.name for way in batch)
            say(f"certificate: rate of {names}")
            with lab.provider.together() as pool:
                rows = pool.all([partial(_rate_row, lab, way) for way in batch])
            for way, first in zip(batch, rows, strict=True):
                yield first if first.ok is not False else _rate_row_alone(lab, way, first, say, in_time)
    for way in ways:
        if way.link.lossy:
            why = "TCP gives way to loss" if way.figures.loss_percent else "acknowledgements are lost on the way back"
            yield _judged_rate(lab, way, None, why, judged=False)


def _why_dumb(way: _OneWay) -> tuple[str, bool]:
    """Why a link over which no echo came back is not measured, and whether that counts against the lab."""
    return (
        (round_trips.LOSES_ALL, False) if round_trips.loses_all(round_trips.path_of(way.link)) else (NOTHING_CAME, True)
    )


def _rated(link: Link) -> Iterator[_OneWay]:
    """The directions whose rate is measured: one for both where it is the same."""
    there, back = link.ways
    if there.rate_mbit == back.rate_mbit:
        yield from () if there.rate_mbit is None else (_OneWay(link),)
    else:
        yield from (_OneWay(link, 0, for_both=False), _OneWay(link, 1, for_both=False))


def _rate_row_alone(
    lab: Lab, way: _OneWay, row: CertificateRow, say: Progress, in_time: round_trips.InTime
) -> CertificateRow:
    """The row of a link measured again: in real time as the machine may have been busy, in virtual time for so long
    that what a retransmission delivers at once at the end is a small part. Where the hosts' buffers and not the link
    were the limit, it is not measured again."""
    if (by_windows := _by_windows(lab, way, row)) is not None:
        return by_windows
    if lab.plan.time == "virtual":
        say(f"certificate: rate of {way.name or way.link.name}, for longer")
        row = _rate_row(lab, way, longer=True)
        return row if row.ok is not False else _by_windows(lab, way, row) or row
    tries = 1
    while not row.ok and tries < round_trips.ATTEMPTS and round_trips.may_differ(lab, in_time):
        say(f"certificate: rate of {way.name or way.link.name}, again")
        row, tries = _rate_row(lab, way), tries + 1
    return row


def _by_windows(lab: Lab, way: _OneWay, row: CertificateRow) -> CertificateRow | None:
    """A row outside its tolerance, judged by what the hosts' windows carry; None where these can fill the link."""
    if row.measured is None or row.declared * way.link.rtt_ms * 1000 / 8 < shown_settings.LEAST_BYTES:
        return None
    window = shown_settings.tcp_window(lab, *way.ends)
    high, low = goodput(row.declared, window, way.link.rtt_ms)
    tolerance = tolerances.rate(lab.plan)
    if low is None or low >= row.declared - tolerance.distance(row.declared):
        return None
    low = max(0.0, low - tolerance.distance(low))
    return row.model_copy(
        update={
            "ok": low <= row.measured <= high + tolerance.distance(high),
            "note": window.describe(way.link.rtt_ms),
            "wanted": ceiling_in_words(high, low),
        }
    )


def _batches(rated: Sequence[_OneWay]) -> Iterator[list[_OneWay]]:
    """Groups of links that the processor can carry together, or of one link."""
    batch: list[_OneWay] = []
    for way in rated:
        if batch and sum(each.figures.rate_mbit or 0 for each in (*batch, way)) > MOST_AT_ONCE_MBIT:
            yield batch
            batch = []
        batch.append(way)
    if batch:
        yield batch


def _rate_row(lab: Lab, way: _OneWay, *, longer: bool = False) -> CertificateRow:
    link, plan = way.link, lab.plan
    address, shaping = plan.far_address(link, 1 - way.end), plan.directions(link)[way.end]
    queue_s = (shaping.queue_bytes or 0) * 8 / ((shaping.rate_mbit or math.inf) * 1e6)
    thin = (shaping.rate_mbit or math.inf) < THIN_MBIT
    needed_bytes = max(LEAST_QUEUE_BYTES, (shaping.rate_mbit or 0) * 1e3 / 8 * link.rtt_ms)
    longer = longer or (thin and plan.time == "virtual")
    seconds = max(RATE_S, math.ceil(THIN_QUEUES * queue_s)) if longer else RATE_S
    measured, note = tcp_mbit(
        lab, MeasuredPath(*way.ends, address, link.rtt_ms, RATE_PORT + link.index, queue_s, seconds)
    )
    why = ""
    if is_modelled(plan, round_trips.path_of(link)):
        why = "a modelled processor may be the limit"
    elif not plan.keeps_order(round_trips.path_of(link)):
        why = "TCP gives way to what comes out of order, twice, or in slots"
    elif way.figures.unacknowledged:
        why = "acknowledgements may be the limit: the reverse direction is too slow for one of every segment"
    elif (shaping.queue_bytes or 0) < needed_bytes:
        why = f"a queue of {shaping.queue_bytes} bytes is too short for TCP to fill the link"
    elif thin and plan.time == "real":
        why = f"a rate below {THIN_MBIT} Mbit/s would have to be measured for minutes"
    return _judged_rate(lab, way, measured, note or why, judged=not why)


def _judged_rate(lab: Lab, way: _OneWay, measured: float | None, note: str, judged: bool) -> CertificateRow:
    mtu = lab.plan.mtu_of(way.link)
    ceiling_mbit = tcp_ceiling_mbit(way.figures.rate_mbit, None, mtu, family=lab.plan.family) or 0
    return rate_row(lab.plan, way.link.name, ceiling_mbit, measured, note, judged=judged, direction=way.name)


def serve(lab: Lab, host: str, port: int) -> None:
    """Start an iperf3 server on the host for one client. Raises CommandFailed.

    The server of the previous measurement may still run: in virtual time it ends only while the clock advances.
    """
    lab.provider.run(host, ["sh", "-c", SERVE, str(port)], timeout_s=SERVER_TIMEOUT_S)


def tcp_mbit(
    lab: Lab, way: MeasuredPath, *, least_slow_start_s: int = 1, least_round_trips: int = 0
) -> tuple[float | None, str]:
    """The TCP goodput in Mbit/s after slow start, over at least so many round trips; or None, and why."""
    settled_s = max(SLOW_START_ROUND_TRIPS * way.rtt_ms / 1000, SLOW_START_QUEUES * way.queue_s)
    slow_start_s = max(least_slow_start_s, math.ceil(settled_s))
    measured_s = max(way.seconds, math.ceil(least_round_trips * way.rtt_ms / 1000))
    argv = ("iperf3", "-c", way.address, "-p", str(way.port), "-J", "-t", str(measured_s), "-O", str(slow_start_s))
    try:
        serve(lab, way.target, way.port)
        said = lab.provider.run(way.source, argv, timeout_s=30 + slow_start_s + measured_s, check=False)
        return round(iperf3_tcp.parse(parser_text(said.stdout), parser_text(said.stderr)).received_mbit, 4), ""
    except (ParseError, CommandFailed) as error:
        return None, str(error)
