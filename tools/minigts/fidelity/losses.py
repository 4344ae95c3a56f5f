"""What the links of a lab lose, counted with echo requests for its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minigts.errors import HostFailed, reading_from
from minigts.fidelity import round_trips
from minigts.fidelity.certificate import (
    CertificateRow,
    loss_row,
    loss_rows,
)
from minigts.foreign import Foreign, whole_number
from minigts.lab import Lab
from minigts.lab.calibration import EchoReplies
from minigts.machine.progress import Progress
from minigts.topology.plan.elements import Link

LOSSY_PROBES, LOSSY_INTERVAL_S = 1500, 0.002


def rows(lab: Lab, whole: Sequence[Link], say: Progress, dumb: frozenset[str]) -> Iterator[CertificateRow]:
    """Rows of links with a declared loss, except `dumb` ones, over which nothing came back.

    Where the two directions differ, each has a row: the far end's kernel counts the requests that arrive.
    """
    for link in whole:
        if link.name in dumb and not round_trips.loses_all(round_trips.path_of(link)):
            continue
        there, back = link.ways
        if link.lossy:
            say(f"certificate: loss of {link.name}")
        if link.lossy and any(way.duplicate_percent for way in lab.plan.directions(link)):
            echoes = _lossy_round_trips(lab, link)
            lost = loss_row(
                lab.plan, link.name, round_trips.path_of(link), echoes.sent - len(echoes.rtts_ms), echoes.sent
            )
            yield lost.model_copy(update={"ok": None, "note": "a duplicate may have come instead of what was lost"})
        elif link.lossy and there.loss_percent == back.loss_percent:
            echoes = _lossy_round_trips(lab, link)
            yield loss_row(
                lab.plan, link.name, round_trips.path_of(link), echoes.sent - len(echoes.rtts_ms), echoes.sent
            )
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


def _lossy_round_trips(lab: Lab, link: Link) -> EchoReplies:
    address, interval_s = (
        lab.plan.far_address(link),
        round_trips.interval_s(lab, round_trips.path_of(link), LOSSY_INTERVAL_S),
    )
    return round_trips.echoes(lab, link.ends[0], address, LOSSY_PROBES, interval_s, link.rtt_ms)
