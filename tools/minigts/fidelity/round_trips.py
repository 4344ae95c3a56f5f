"""Round trips over the links and paths of a lab, measured with echo requests for its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from minigts.dataplane.round_trip import echo_s_at_lowest_rate
from minigts.errors import CommandFailed
from minigts.fidelity.certificate import (
    CertificateRow,
    loss_row,
    rtt_row,
)
from minigts.foreign import parser_text
from minigts.judge.silence import explain_silence, question
from minigts.lab import Lab, link_states
from minigts.lab.calibration import EchoReplies, probe
from minigts.machine.progress import Progress
from minigts.tools import ping
from minigts.tools.base import ParseError
from minigts.topology.plan.elements import Link, Path
from minigts.topology.plan.plan import Plan

InTime = Callable[[], bool]
"""Whether there is time left to measure something again."""

PROBES = 120

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

ATTEMPTS = 3
"""How often at most a figure outside its tolerance is measured, since the machine may have been busy for a moment."""


def may_differ(lab: Lab, in_time: InTime) -> bool:
    """Whether measuring again may give another figure, and there is time for it."""
    return lab.plan.time == "real" and in_time()


def covering(among: Sequence[Path]) -> list[Path]:
    """Paths of several hops that together cover every link of all such paths, the longest first."""
    chosen: list[Path] = []
    passed: set[str] = set()
    for path in sorted(among, key=lambda path: -path.hops):
        if path.reachable and path.hops > 1 and not passed.issuperset(path.links):
            chosen.append(path)
            passed.update(path.links)
    return chosen


def rows(
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


def explained_rows(
    plan: Plan, whole: Sequence[Link], over: Sequence[Path], rows: tuple[CertificateRow, ...]
) -> tuple[CertificateRow, ...]:
    """The rows; those of round trips without any answer name the machines that explain them best."""
    links = {link.name: path_of(link) for link in whole}
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
    yield from _path_rows(lab, link.name, path_of(link), lab.plan.far_address(link), in_time)


def path_rows(lab: Lab, name: str, path: Path, in_time: InTime = lambda: True) -> Iterator[CertificateRow]:
    """Round trips over a path from end to end, and their loss if none is declared."""
    yield from _path_rows(lab, name, path, lab.plan.address_over(path), in_time)


def path_of(link: Link) -> Path:
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
        echoes(lab, path.source, address, 1, lab.provider.pace_s, path.rtt_ms)
    for _ in range(ATTEMPTS):
        found = echoes(lab, path.source, address, PROBES, _apart_s(lab, path), path.rtt_ms)
        row = rtt_row(lab.plan, name, path, found.rtts_ms)
        if row.ok or not found.rtts_ms or not lab.plan.keeps_order(path) or not may_differ(lab, in_time):
            break
    if not found.rtts_ms and loses_all(path):
        yield row.model_copy(update={"ok": None, "note": LOSES_ALL})
        return
    if not found.sent:
        yield row.model_copy(update={"note": f"{path.source} has no route to {address}"})
        return
    yield row if lab.plan.keeps_order(path) else row.model_copy(update={"ok": None, "note": NO_ONE_ROUND_TRIP})
    if not path.lossy:
        yield loss_row(lab.plan, name, path, found.sent - len(found.rtts_ms), found.sent)


def _asks_neighbours(lab: Lab, path: Path) -> bool:
    """Whether the ends of a long path may not have resolved each other's hardware address: a link's, or those of a
    path over switches. On a path over hosts each link has been measured before."""
    return path.rtt_ms > ASKED_FIRST_MS and (path.hops == 1 or bool(lab.plan.switches)) and not loses_all(path)


def loses_all(path: Path) -> bool:
    return any(way.loss_percent >= link_states.ALL_PERCENT for way in path.ways)


def _pings(lab: Lab, host: str, address: str, count: int, interval_s: float, rtt_ms: float) -> EchoReplies:
    """Round trips by ping(8), for those of seconds."""
    interval_s = max(interval_s, min(rtt_ms / 1000, LONGEST_PINGS_S) / count)
    patience_s = math.ceil(3 * rtt_ms / 1000)
    argv = ["ping", "-n", "-c", str(count), "-i", f"{interval_s:g}", "-W", str(patience_s), address]
    said = lab.provider.run(host, argv, timeout_s=count * interval_s + 2 * patience_s + 30, check=False)
    try:
        found = ping.parse(parser_text(said.stdout), parser_text(said.stderr))
    except ParseError:
        return EchoReplies(count, ())
    return EchoReplies(found.sent, found.replies_ms)


def echoes(lab: Lab, host: str, address: str, count: int, interval_s: float, rtt_ms: float = 0.0) -> EchoReplies:
    """Round trips of echo requests over a path of `rtt_ms`; none are sent where the host has no route."""
    if rtt_ms > PROBE_PATIENCE_MS:
        return _pings(lab, host, address, count, interval_s, rtt_ms)
    try:
        return probe(lab.provider, host, address, count=count, interval_s=interval_s)
    except CommandFailed as error:
        if NO_WAY not in error.err:
            raise
        return EchoReplies(0, ())


def interval_s(lab: Lab, path: Path, usual_s: float | None = None) -> float:
    """The seconds between probes: the provider's pace, or longer so that no probe waits for the previous one."""
    usual_s = lab.provider.pace_s if usual_s is None else usual_s
    return max(usual_s, 2 * echo_s_at_lowest_rate(lab.plan, path))


def _apart_s(lab: Lab, path: Path) -> float:
    """As `_interval_s`, and so far apart that jitter rarely lets a probe catch up with the previous one, for which it
    would wait on a link that keeps the order. In real time at most `FARTHEST_APART_S`, for the certificate's sake."""
    ways = [end.outgoing for end in lab.plan.ends_on(path) if end.outgoing.jitter_order == "kept"]
    apart_s = 2 * max((way.jitter_ms for way in ways), default=0.0) / 1000
    return max(interval_s(lab, path), apart_s if lab.plan.time == "virtual" else min(apart_s, FARTHEST_APART_S))
