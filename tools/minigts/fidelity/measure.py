"""Measures a lab for its certificate, in less than ten seconds for a chain of six hosts.

It reads the settings of every host, and measures round trips and loss of every link and of paths that cover all links,
and the rate of every link.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from minigts import lab as labs
from minigts import paths
from minigts.dataplane.round_trip import echo_s_at_lowest_rate
from minigts.errors import CommandFailed, HostFailed, reading_from
from minigts.fidelity import host_settings, sample, trains
from minigts.fidelity.certificate import (
    Certificate,
    CertificateRow,
    loss_row,
    loss_rows,
    rate_row,
    rtt_row,
    settings_row,
)
from minigts.fidelity.host_load import recording, taints
from minigts.fidelity.sample import MOST_AT_ONCE_MBIT, Extent
from minigts.foreign import Foreign, to_parse, whole_number
from minigts.judge import tolerances
from minigts.judge.silence import explain_silence, question
from minigts.judge.throughput import ceiling_in_words
from minigts.lab import Lab, Record, current, events, link_states, shown_links
from minigts.lab.calibration import RoundTrips, probe
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.tools import iperf3_tcp, ping
from minigts.tools.base import ParseError
from minigts.tools.cpu_bound import is_modelled
from minigts.topology.frames import tcp_ceiling_mbit
from minigts.topology.plan.elements import Direction, Host, Link, Path, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.tcp import goodput

InTime = Callable[[], bool]
"""Whether there is time left to measure something again."""
FILE = paths.CERTIFICATE
LIMIT_BYTES = 16 << 20
OF_A_CERTIFICATE = documents.Bounds(elements=500_000, bytes=LIMIT_BYTES)

PROBES = 120
LOSSY_PROBES, LOSSY_INTERVAL_S = 1500, 0.002
FARTHEST_APART_S = 0.05
ASKED_FIRST_MS = 200.0
"""Over a longer round trip one echo request is sent first: it waits until the hosts at both ends have resolved each
other's hardware address, as otherwise half of the probes would."""
PROBE_PATIENCE_MS = 1500.0
"""Longer round trips are measured with ping: the probe waits only 2 s for the last replies. ping prints whole
milliseconds there, less than a thousandth of such a round trip."""
LONGEST_PINGS_S = 60.0
LOSES_ALL = "it is set to lose everything in a direction, so nothing can come back"
NO_ONE_ROUND_TRIP = "some packets come at once, twice or in slots, so there is no one round trip to judge"
NO_WAY = "unreachable (os error"
"""The probe's message where a host has no route to another, as when its interface is down."""
NOTHING_CAME = "no echo request came back over it"
ATTEMPTS = 3
"""How often at most a figure outside its tolerance is measured, since the machine may have been busy for a moment."""
BUDGET_S = 7.5
"""How many seconds after the beginning nothing is measured again, so that a certificate takes at most ten seconds; on a
machine that stays busy it says so. In virtual time only a rate is measured again, and for longer."""

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


def certify(lab: Lab, say: Progress, *, bringing_up: bool = False, extent: Extent = "full") -> Certificate:
    """Measure the lab against its plan and later changes of its links, and write certificate.json to its run
    directory. A `quick` one measures a sample of the links, and names it. Raises what `Provider.run` raises.

    Nothing is set. A link that is cut is named; neither it nor a path over it is measured. At the end links that use
    random numbers begin them anew, unless a host's settings differ from the plan: in a lab that has just come up the
    same ones, as if nothing had been sent, and later those of another setting.

    A lab is calibrated again only while it is being brought up, and if round trips are shorter than declared because
    the machine was busier during calibration.

    In virtual time everything is measured once, as it would be the same again, and no load is recorded.
    """
    started_s = lab.provider.now_s()
    with recording(lab.provider.processes(), lab.plan.time) as machine:
        in_time = _within(BUDGET_S)
        record = lab.read_record()
        as_set = current.current_lab(lab, record)
        every = labs.used_links(as_set.plan, record)
        whole = every if extent == "full" else sample.choose_links(every)
        over = covering(labs.whole_paths(as_set.plan, record))[: None if whole == every else sample.PATHS]
        round_trips = tuple(_round_trips(as_set, whole, over, say, in_time))
        if bringing_up and current.link_carrier(lab) is None and any(row.too_fast for row in round_trips):
            say("certificate: faster than declared; the emulator's own latency, again")
            labs.calibrate(lab, bringing_up=True)
            record = lab.read_record()
            round_trips = tuple(_round_trips(as_set, whole, over, say, in_time))
        set_so = tuple(settings(lab, say))
        round_trips = _why_silent(as_set.plan, whole, over, round_trips)
        dumb = frozenset(row.subject for row in round_trips if row.quantity == "RTT" and row.measured is None)
        rows = (*set_so, *round_trips, *_losses(as_set, whole, say, dumb), *_rates(as_set, whole, say, in_time, dumb))
    record = lab.read_record()  # somebody may have set links meanwhile
    if current.drawing(lab.plan, record) and all(row.ok for row in set_so):
        if bringing_up and not record.times_set and not record.altered:
            labs.reshape(lab, record)
        else:
            labs.draw_next(lab)
    certificate = Certificate(
        lab=lab.name,
        provider=record.provider,
        measured_at=datetime.now(UTC),
        emulator_overhead_ms=record.emulator_overhead_ms,
        rows=rows,
        seconds=round(lab.provider.now_s() - started_s, 2),
        busy=taints(machine.load),
        cut=_not_measured(lab.plan, record),
        off=_off(lab.plan, record),
        changed=_changed(lab.plan, record),
        storm=tuple(link_states.storms(lab)),
        kernels={each.name: each.kernel for each in lab.plan.machines if each.kernel},
        sample=() if whole == every else tuple(link.name for link in whole),
        links=0 if whole == every else len(every),
    )
    keep(lab, certificate)
    return certificate


def certificate_after_up(lab: Lab, say: Progress) -> Certificate:
    """The certificate of a lab that `up` has returned: the present one if it still holds, otherwise a new one."""
    return valid_certificate(lab) or certify(lab, say, bringing_up=not (lab.rundir / FILE).exists())


def keep(lab: Lab, certificate: Certificate) -> None:
    """Write the certificate to the lab's directory."""
    lab.put(FILE, certificate.model_dump_json(indent=1) + "\n")


def _within(seconds: float) -> InTime:
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() < deadline


def _may_differ(lab: Lab, in_time: InTime) -> bool:
    """Whether measuring again may give another figure, and there is time for it."""
    return lab.plan.time == "real" and in_time()


def valid_certificate(lab: Lab) -> Certificate | None:
    """The lab's certificate of all links; None when its links have been changed since it was measured, and where only
    a sample was measured."""
    certificate = last(lab)
    whole = certificate is not None and not certificate.sample
    return certificate if certificate is not None and whole and holds_still(certificate, lab) else None


def last(lab: Lab) -> Certificate | None:
    """The certificate that was measured last, even if links have been changed since; None where none can be read."""
    try:
        return documents.model(paths.read_whole(lab.rundir / FILE, LIMIT_BYTES), Certificate, OF_A_CERTIFICATE)
    except (OSError, ValueError):
        return None


def holds_still(certificate: Certificate, lab: Lab) -> bool:
    """Whether links are set as they were when the certificate was measured, and no host has been restarted since."""
    if _started_since(lab, certificate.measured_at):
        return False
    record = lab.read_record()
    now = (record.emulator_overhead_ms, _not_measured(lab.plan, record), _changed(lab.plan, record))
    return (certificate.emulator_overhead_ms, certificate.cut, certificate.changed) == now


def _started_since(lab: Lab, moment: datetime) -> bool:
    """Whether a host or switch was started after `moment`."""
    started = [each for each in events.read(lab.rundir) if each.get("event") in ("started", "restarted")]
    return any(str(each.get("time")) > moment.isoformat(timespec="milliseconds") for each in started)


def _changed(plan: Plan, record: Record) -> tuple[str, ...]:
    return tuple(f"{name} ({change.in_words})" for name, change in labs.changed_links(plan, record).items())


def covering(among: Sequence[Path]) -> list[Path]:
    """Paths of several hops that together cover every link of all such paths, the longest first."""
    chosen: list[Path] = []
    passed: set[str] = set()
    for path in sorted(among, key=lambda path: -path.hops):
        if path.reachable and path.hops > 1 and not passed.issuperset(path.links):
            chosen.append(path)
            passed.update(path.links)
    return chosen


def settings(lab: Lab, say: Progress) -> Iterator[CertificateRow]:
    """A row for each machine: how its kernel's settings, and the wires of its links, differ from the plan."""
    say("certificate: reading back what is set")
    record, wires = lab.read_record(), shown_links.read_wires(lab)

    def row_of(machine: Host | Switch) -> CertificateRow:
        shown = host_settings.read_back(lab, machine, record, wires)
        different = host_settings.differences(lab.plan, machine, record, shown)
        facts = [*(shown.fact(port) for port in machine.ports), *shown.facts_of_kernel]
        return settings_row(machine.name, different, facts)

    yield from lab.on_each(lab.machines_on(record), row_of).values()


def _not_measured(plan: Plan, record: Record) -> tuple[str, ...]:
    dead = labs.dead_links(plan, record) | labs.other_ways(plan, record).keys()
    return tuple(link.name for link in plan.links if link.name in dead)


def _off(plan: Plan, record: Record) -> dict[str, str]:
    """For links that are not measured though nobody has cut them: which of their machines is off or paused, or why
    frames do not go over them as the plan's paths do."""
    found = {name: why for name, why in labs.other_ways(plan, record).items() if name not in record.cut}
    for link in plan.links:
        silent = [name for name in link.ends if name in record.silent]
        if silent and link.name not in record.cut:
            found[link.name] = " and ".join(f"{name} is {'off' if name in record.off else 'paused'}" for name in silent)
    return found


def _round_trips(
    lab: Lab, whole: Sequence[Link], over: Sequence[Path], say: Progress, in_time: InTime
) -> Iterator[CertificateRow]:
    """Rows of round trips over links and over paths, measured one after the other, since hosts share processors."""
    for link in whole:
        say(f"certificate: round trips over {link.name}")
        yield from link_rows(lab, link, in_time)
    for path in over:
        name = _name_of(path)
        say(f"certificate: round trips from {path.source} to {path.target}")
        yield from path_rows(lab, name, path, in_time)


def _why_silent(
    plan: Plan, whole: Sequence[Link], over: Sequence[Path], rows: tuple[CertificateRow, ...]
) -> tuple[CertificateRow, ...]:
    """The rows; those of round trips without any answer name the machines that explain them best."""
    links = {link.name: _path_of(link) for link in whole}
    measured = {**{_name_of(path): path for path in over}, **links}
    silent = {
        row.subject: measured[row.subject]
        for row in rows
        if row.quantity == "RTT" and row.measured is None and row.ok is False and not row.note
    }
    if not silent:
        return rows
    paths_of = {(path.source, path.target): path for path in reversed(silent.values())}
    why = {pair: each for each in explain_silence(plan, [*paths_of], paths_of) for pair in each.pairs}
    notes = {name: f"not reached: {question(why[path.source, path.target].machines)}" for name, path in silent.items()}
    return tuple(
        row.model_copy(update={"note": notes[row.subject]}) if row.subject in notes and row.quantity == "RTT" else row
        for row in rows
    )


def _name_of(path: Path) -> str:
    return f"{path.source}-{path.target}"


def link_rows(lab: Lab, link: Link, in_time: InTime = lambda: True) -> Iterator[CertificateRow]:
    """Round trips over a link from end to end, and their loss if none is declared."""
    yield from _path_rows(lab, link.name, _path_of(link), lab.plan.far_address(link), in_time)


def path_rows(lab: Lab, name: str, path: Path, in_time: InTime = lambda: True) -> Iterator[CertificateRow]:
    """Round trips over a path from end to end, and their loss if none is declared."""
    yield from _path_rows(lab, name, path, lab.plan.address_over(path), in_time)


def _path_of(link: Link) -> Path:
    """The link as a path; the plan's path between its ends may be a shorter one over other links."""
    return Path(
        source=link.ends[0],
        target=link.ends[1],
        links=(link.name,),
        reachable=True,
        rtt_ms=link.rtt_ms,
        rate_mbit=link.rate_mbit,
        tcp_ceiling_mbit=link.tcp_ceiling_mbit,
        loss_percent=link.loss_percent,
        back=link.back,
    )


def _path_rows(lab: Lab, name: str, path: Path, address: str, in_time: InTime) -> Iterator[CertificateRow]:
    if lab.plan.asks_controller(path) or _asks_neighbours(lab, path):
        # A controller installs a pair's flows at its first packet; until then every packet passes the controller.
        _probe(lab, path.source, address, 1, lab.provider.pace_s, path.rtt_ms)
    for _ in range(ATTEMPTS):
        echoes = _probe(lab, path.source, address, PROBES, _apart_s(lab, path), path.rtt_ms)
        row = rtt_row(lab.plan, name, path, echoes.rtts_ms)
        if row.ok or not echoes.rtts_ms or not lab.plan.in_order(path) or not _may_differ(lab, in_time):
            break
    if not echoes.rtts_ms and _loses_all(path):
        yield row.model_copy(update={"ok": None, "note": LOSES_ALL})
        return
    if not echoes.sent:
        yield row.model_copy(update={"note": f"{path.source} has no route to {address}"})
        return
    yield row if lab.plan.in_order(path) else row.model_copy(update={"ok": None, "note": NO_ONE_ROUND_TRIP})
    if not path.lossy:
        yield loss_row(lab.plan, name, path, echoes.sent - len(echoes.rtts_ms), echoes.sent)


def _asks_neighbours(lab: Lab, path: Path) -> bool:
    """Whether the ends of a long path may not have resolved each other's hardware address: a link's, or those of a
    path over switches. On a path over hosts each link has been measured before."""
    return path.rtt_ms > ASKED_FIRST_MS and (path.hops == 1 or bool(lab.plan.switches)) and not _loses_all(path)


def _loses_all(path: Path) -> bool:
    return any(way.loss_percent >= link_states.ALL_PERCENT for way in path.ways)


def _pings(lab: Lab, host: str, address: str, count: int, interval_s: float, rtt_ms: float) -> RoundTrips:
    """Round trips by ping(8), for those of seconds."""
    interval_s = max(interval_s, min(rtt_ms / 1000, LONGEST_PINGS_S) / count)
    patience_s = math.ceil(3 * rtt_ms / 1000)
    argv = ["ping", "-n", "-c", str(count), "-i", f"{interval_s:g}", "-W", str(patience_s), address]
    said = lab.provider.run(host, argv, timeout_s=count * interval_s + 2 * patience_s + 30, check=False)
    try:
        found = ping.parse(to_parse(said.stdout), to_parse(said.stderr))
    except ParseError:
        return RoundTrips(count, ())
    return RoundTrips(found.sent, found.replies_ms)


def _probe(lab: Lab, host: str, address: str, count: int, interval_s: float, rtt_ms: float = 0.0) -> RoundTrips:
    """Round trips of echo requests over a path of `rtt_ms`; none are sent where the host has no route."""
    if rtt_ms > PROBE_PATIENCE_MS:
        return _pings(lab, host, address, count, interval_s, rtt_ms)
    try:
        return probe(lab.provider, host, address, count=count, interval_s=interval_s)
    except CommandFailed as error:
        if NO_WAY not in error.err:
            raise
        return RoundTrips(0, ())


def _losses(lab: Lab, whole: Sequence[Link], say: Progress, dumb: frozenset[str]) -> Iterator[CertificateRow]:
    """Rows of links with a declared loss, except `dumb` ones, over which nothing came back.

    Where the two directions differ, each has a row: the far end's kernel counts the requests that arrive.
    """
    for link in whole:
        if link.name in dumb and not _loses_all(_path_of(link)):
            continue
        there, back = link.ways
        if link.lossy:
            say(f"certificate: loss of {link.name}")
        if link.lossy and any(way.duplicate_percent for way in lab.plan.directions(link)):
            echoes = _lossy_round_trips(lab, link)
            lost = loss_row(lab.plan, link.name, _path_of(link), echoes.sent - len(echoes.rtts_ms), echoes.sent)
            yield lost.model_copy(update={"ok": None, "note": "a duplicate may have come instead of what was lost"})
        elif link.lossy and there.loss_percent == back.loss_percent:
            echoes = _lossy_round_trips(lab, link)
            yield loss_row(lab.plan, link.name, _path_of(link), echoes.sent - len(echoes.rtts_ms), echoes.sent)
        elif link.lossy:
            before = _echoes_counted(lab, link.ends[1])
            echoes = _lossy_round_trips(lab, link)
            arrived = _echoes_counted(lab, link.ends[1]) - before
            yield from loss_rows(lab.plan, link, echoes.sent, arrived, len(echoes.rtts_ms))


def _echoes_counted(lab: Lab, machine: str) -> int:
    """How many echo requests a machine has received since its start. Raises HostFailed.

    For IPv4 it is `InEchos` in /proc/net/snmp, whose lines `Icmp: InMsgs InErrors … InEchos …` and `Icmp: 12 0 … 9 …`
    have names and values; for IPv6 `Icmp6InEchos` in /proc/net/snmp6, which has a name and a value a line.
    """
    if lab.plan.family == "ipv6":
        return _echoes_of_ipv6(lab, machine)
    shown = lab.provider.run(machine, ["cat", "/proc/net/snmp"], timeout_s=10).stdout
    lines = [line.split() for line in shown.splitlines() if line.startswith("Icmp: ")]
    try:
        names, values = lines
        return whole_number(values[names.index(Foreign("InEchos"))])
    except (ValueError, KeyError) as error:
        raise HostFailed(f"{machine}: /proc/net/snmp does not count echo requests") from error


def _echoes_of_ipv6(lab: Lab, machine: str) -> int:
    shown = lab.provider.run(machine, ["cat", "/proc/net/snmp6"], timeout_s=10).stdout
    with reading_from(machine, "/proc/net/snmp6"):
        names, values = zip(*(line.split() for line in shown.splitlines()), strict=True)
        return whole_number(values[names.index(Foreign("Icmp6InEchos"))])


def _lossy_round_trips(lab: Lab, link: Link) -> RoundTrips:
    address, interval_s = lab.plan.far_address(link), _interval_s(lab, _path_of(link), LOSSY_INTERVAL_S)
    return _probe(lab, link.ends[0], address, LOSSY_PROBES, interval_s, link.rtt_ms)


def _interval_s(lab: Lab, path: Path, usual_s: float | None = None) -> float:
    """The seconds between probes: the provider's pace, or longer so that no probe waits for the previous one."""
    usual_s = lab.provider.pace_s if usual_s is None else usual_s
    return max(usual_s, 2 * echo_s_at_lowest_rate(lab.plan, path))


def _apart_s(lab: Lab, path: Path) -> float:
    """As `_interval_s`, and so far apart that jitter rarely lets a probe catch up with the previous one, for which it
    would wait on a link that keeps the order. In real time at most `FARTHEST_APART_S`, for the certificate's sake."""
    ways = [end.outgoing for end in lab.plan.ends_on(path) if end.outgoing.jitter_order == "kept"]
    apart_s = 2 * max((way.jitter_ms for way in ways), default=0.0) / 1000
    return max(_interval_s(lab, path), apart_s if lab.plan.time == "virtual" else min(apart_s, FARTHEST_APART_S))


def _rates(
    lab: Lab, whole: Sequence[Link], say: Progress, in_time: InTime, dumb: frozenset[str]
) -> Iterator[CertificateRow]:
    """Rows of the links' rates. In virtual time a train of frames measures each fast link, alone. The others carry TCP
    from their first end to the second, several links at once; a link outside its tolerance is measured again alone.
    Where the directions have different rates, the second follows the first, so that they do not disturb each other.
    Links that are `dumb`, over which no echo came back, are not measured: no client would reach the server.
    """
    rated = [way for link in whole for way in _rated(link)]
    yield from (_judged_rate(lab, way, None, *_why_dumb(way)) for way in rated if way.link.name in dumb)
    fast = {link.name for link in whole if trains.measures(lab, link, _path_of(link))} - dumb
    for link in whole:
        if link.name in fast:
            say(f"certificate: rate of {link.name}")
            yield trains.row(lab, link)
    unfilled = {link.name for link in whole if not lab.plan.is_filled(_path_of(link))} - dumb
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
    return (LOSES_ALL, False) if _loses_all(_path_of(way.link)) else (NOTHING_CAME, True)


def _rated(link: Link) -> Iterator[_OneWay]:
    """The directions whose rate is measured: one for both where it is the same."""
    there, back = link.ways
    if there.rate_mbit == back.rate_mbit:
        yield from () if there.rate_mbit is None else (_OneWay(link),)
    else:
        yield from (_OneWay(link, 0, for_both=False), _OneWay(link, 1, for_both=False))


def _rate_row_alone(lab: Lab, way: _OneWay, row: CertificateRow, say: Progress, in_time: InTime) -> CertificateRow:
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
    while not row.ok and tries < ATTEMPTS and _may_differ(lab, in_time):
        say(f"certificate: rate of {way.name or way.link.name}, again")
        row, tries = _rate_row(lab, way), tries + 1
    return row


def _by_windows(lab: Lab, way: _OneWay, row: CertificateRow) -> CertificateRow | None:
    """A row outside its tolerance, judged by what the hosts' windows carry; None where these can fill the link."""
    if row.measured is None or row.declared * way.link.rtt_ms * 1000 / 8 < host_settings.LEAST_BYTES:
        return None
    window = host_settings.tcp_window(lab, *way.ends)
    high, low = goodput(row.declared, window, way.link.rtt_ms)
    tolerance = tolerances.rate(lab.plan)
    if low is None or low >= row.declared - tolerance.of(row.declared):
        return None
    low = max(0.0, low - tolerance.of(low))
    return row.model_copy(
        update={
            "ok": low <= row.measured <= high + tolerance.of(high),
            "note": window.in_words(way.link.rtt_ms),
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
    if is_modelled(plan, _path_of(link)):
        why = "a modelled processor may be the limit"
    elif not plan.in_order(_path_of(link)):
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
        return round(iperf3_tcp.parse(to_parse(said.stdout), to_parse(said.stderr)).received_mbit, 4), ""
    except (ParseError, CommandFailed) as error:
        return None, str(error)
