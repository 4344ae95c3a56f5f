"""Explains the state of a link: what is declared, what should be set now, what its two hosts show, what was measured.

`explain` reads from the lab and changes nothing; `explained` is pure, and names the likely answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from minigts.dataplane import filters, shaping
from minigts.dataplane.shown_state import DOWN, NO_INTERFACE
from minigts.errors import MinigtsError
from minigts.fidelity import kept_certificate, round_trips, shown_settings
from minigts.fidelity.certificate import CertificateRow
from minigts.fidelity.host_load import recording, taints
from minigts.fidelity.shown_settings import HostSettings
from minigts.lab import DECLARED, Lab, Record, Settings, current, link_states, outages, shown_links
from minigts.providers.base import Restarts
from minigts.topology.facts.links.queue import SIZES
from minigts.topology.frames import ETHERNET_HEADER_BYTES
from minigts.topology.link_setting import Amount, Setting
from minigts.topology.link_settings import AT_RECEIVER, AT_SENDER, Shaping
from minigts.topology.outage import Outage
from minigts.topology.plan.elements import Host, Link, Port, Switch
from minigts.topology.plan.plan import Plan

Cause = Literal[
    "no-answer",
    "broken-off",
    "settings",
    "cut",
    "blocked",
    "changed",
    "experiment",
    "nothing-taken-off",
    "calibration",
    "busy",
    "measured",
    "not-measured",
    "none",
]


_BY_BUCKET = ("rate_mbit", "rate_burst_bytes", "rate_excess", "blackhole_bytes")
"""The fields that a token bucket holds, or the action that drops where frames arrive."""
_BITS_A_MBIT = 1_000_000


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExplainedQuantity(_Frozen):
    """One setting of one direction of a link. None means not limited or not set; for `shown` also unreadable."""

    source: str
    target: str
    name: str
    """The setting's word in the topology language."""
    unit: str
    declared: Amount | None
    wanted: Amount | None
    """What should be set now, after subtracting the emulator's own latency, cuts, and changes by an experiment."""
    shown: Amount | None
    """What the host's kernel shows, or the wire that carries the link."""
    where: str
    """The host, the device and the queueing discipline: `bra ifb-eth1 netem`; or `ams eth1 wire`."""


class Interface(_Frozen):
    """A host's end of the link as its kernel shows it."""

    host: str
    port: str
    mtu: int | None
    gro: Literal["on", "off"]
    """Generic receive offload."""
    ipv6: tuple[str, ...] = ()
    """The interface's global IPv6 addresses, in a lab with IPv6."""
    fact: str
    """`eth1: MTU 1500, on are rx-checksumming, …`"""


class MeasuredLink(_Frozen):
    """The figures measured over the link, and when."""

    rows: tuple[CertificateRow, ...]
    at: datetime | None
    """None where the certificate does not say."""
    source: Literal["certificate", "now"]
    current: bool = True
    """Whether the lab's links are still set as they were then."""
    busy: tuple[str, ...] = ()
    """Other load on the machine meanwhile, if it was enough to doubt the figures."""


class Explanation(_Frozen):
    """The state of one link of one lab, and the likely reason why it is not as expected."""

    lab: str
    provider: str
    link: str
    ends: tuple[str, str]
    quantities: tuple[ExplainedQuantity, ...]
    emulator_overhead_ms: float
    """The emulator's own one-way latency over a link, in ms, which is subtracted from every delay."""
    carried: bool
    """Whether the wire itself has rate and delay, so that nothing is set on the hosts and nothing is subtracted."""
    cut: bool
    """Whether it is down, in whichever way."""
    outage: str
    """The way: `cut`, `down`, `down at ams`; empty if it is not."""
    settings: Settings
    """The settings that an experiment has given every link."""
    interfaces: tuple[Interface, ...]
    differences: tuple[str, ...]
    """How the hosts' settings differ from what should be set now: `bra eth1: delay is 50 ms, declared 8.75 ms`."""
    unread: dict[str, str]
    """Why nothing could be read from a host, by host."""
    measured: MeasuredLink | None
    cause: Cause
    answer: str


@dataclass(frozen=True)
class _Evidence:
    """The facts from which the answer follows."""

    lab: str
    link: Link
    record: Record
    differences: Sequence[str]
    unread: Mapping[str, str]
    measured: MeasuredLink | None
    delays_ms: Sequence[float]
    carried: bool
    reopens: bool
    """Whether an interface that is down can come up again without a restart of its host."""
    other_way: str | None = None
    """Why frames do not go over the link as the plan's paths do, if they do not."""

    @property
    def outage(self) -> Outage | None:
        return outages.outage(self.record, self.link.name)


def explain(lab: Lab, link: Link, *, measuring: bool = False) -> Explanation:
    """Read the link's two hosts back and explain its state, with the certificate's figures or, `measuring`, new ones.

    Nothing is set. A link that is cut, or that the spanning tree blocks, is not measured. A host that does not answer
    is named.
    """
    record, wires = lab.read_record(), shown_links.read_wires(lab)
    shown: dict[str, HostSettings] = {}
    unread: dict[str, str] = {}
    for machine in _ends(lab.plan, link):
        try:
            shown[machine.name] = shown_settings.read_back(lab, machine, record, wires)
        except MinigtsError as error:
            unread[machine.name] = str(error)
    used = link.name not in record.cut and link.name not in link_states.other_ways(lab.plan, record)
    whole = used and not unread
    measured = _measured_now(lab, link) if measuring and whole else _certified(lab, link)
    carried = current.link_carrier(lab) is not None
    reopens = carried or not isinstance(lab.provider, Restarts)  # in real time a kernel's port cannot be opened twice
    return compose_explanation(
        lab.name, lab.plan, link, record, shown, unread, measured, carried=carried, reopens=reopens
    )


def compose_explanation(
    lab: str,
    plan: Plan,
    link: Link,
    record: Record,
    shown: Mapping[str, HostSettings],
    unread: Mapping[str, str],
    measured: MeasuredLink | None,
    *,
    carried: bool = False,
    reopens: bool = True,
) -> Explanation:
    """As `explain`, from what the hosts have shown and what was measured. Pure."""
    ports = [(machine, _port(machine, link)) for machine in _ends(plan, link)]
    differences = tuple(
        f"{machine.name} {difference}"
        for machine, port in ports
        if machine.name in shown
        for difference in shown_settings.differences(plan, machine, record, shown[machine.name], port)
    )
    (first, there), (second, back) = ports
    delays_ms = (back.incoming.delay_ms, there.incoming.delay_ms)
    other_way = link_states.other_ways(plan, record).get(link.name)
    evidence = _Evidence(lab, link, record, differences, unread, measured, delays_ms, carried, reopens, other_way)
    direction = _carried_direction if carried else _direction
    cause, answer = _answer(evidence)
    return Explanation(
        lab=lab,
        provider=record.provider,
        link=link.name,
        ends=link.ends,
        quantities=tuple(
            quantity
            for one, other in (((first.name, there), (second.name, back)), ((second.name, back), (first.name, there)))
            for quantity in direction(plan, one, other, record, shown)
        ),
        emulator_overhead_ms=record.emulator_overhead_ms,
        carried=carried,
        cut=evidence.outage is not None,
        outage="" if evidence.outage is None else evidence.outage.in_words,
        settings=record.settings,
        interfaces=tuple(
            _interface(machine.name, port, shown[machine.name]) for machine, port in ports if machine.name in shown
        ),
        differences=differences,
        unread=dict(unread),
        measured=measured,
        cause=cause,
        answer=answer,
    )


def _ends(plan: Plan, link: Link) -> tuple[Host | Switch, Host | Switch]:
    return plan.machine(link.ends[0]), plan.machine(link.ends[1])


def _port(machine: Host | Switch, link: Link) -> Port:
    return next(port for port in machine.ports if port.link == link.name)


def _direction(
    plan: Plan,
    sender: tuple[str, Port],
    receiver: tuple[str, Port],
    record: Record,
    shown: Mapping[str, HostSettings],
) -> Iterator[ExplainedQuantity]:
    """The rows of a direction whose sender sets rate and queue, and whose receiver sets delay, jitter and loss."""
    (source, leaving), (target, arriving) = sender, receiver
    leaving_now, arriving_now = (current.port_now(plan, port, record) for port in (leaving, arriving))
    outgoing, incoming = leaving_now.outgoing, arriving_now.incoming
    delay_ms = shaping.added_delay_ms(incoming, record.emulator_overhead_ms)
    netem = incoming.model_copy(update={"delay_ms": delay_ms}) if shaping.holds_arrivals(incoming) else None
    rated, delayed = _read_back(leaving_now, shown.get(source)), _read_back(arriving_now, shown.get(target))
    there = shown.get(target)
    dropping = None if there is None or there.filters is None else filters.police_figures(arriving, there.filters)
    for each in (*AT_SENDER, *AT_RECEIVER):
        declared, now, read = (
            (leaving.outgoing, outgoing, rated) if each.at_sender else (arriving.incoming, netem, delayed)
        )
        of_sender = "tbf" if each.tc is not None else outgoing.queue_discipline
        where = f"{source} {leaving.name} {of_sender}" if each.at_sender else f"{target} {shaping.ifb(arriving)} netem"
        shows = None if read is None else read.settings[each.field]
        if each.field in SIZES and outgoing.polices:
            now = outgoing.model_copy(update=dict.fromkeys(SIZES))  # nothing waits: the excess is dropped
        if each.field in _BY_BUCKET:
            shows, by_receiver = _bucket(each.field, outgoing, rated, dropping)
            where = f"{target} {arriving.name} police" if by_receiver else where
        yield from _quantity(each, source, target, declared, now, shows, where)


def _bucket(
    field: str, now: Shaping, rated: shaping.ReadBack | None, dropping: Mapping[str, float] | None
) -> tuple[Amount | None, bool]:
    """What the kernels show of a rate, its credit and its excess, and of a black hole; and whether the receiver's
    `police` shows it, not the sender's `tbf`. `dropping` is what that action shows, None where it cannot be read."""
    if now.polices or field == "blackhole_bytes":
        return None if dropping is None else _dropped(dropping)[field], True
    if rated is None:
        return None, False
    if field == "rate_burst_bytes":  # without a credit tbf has some bytes of its own, which its rate needs
        return rated.burst_bytes if now.rate_burst_bytes else None, False
    if field == "rate_excess":
        return None if rated.settings["rate_mbit"] is None else "queue", False
    return rated.settings[field], False


def _dropped(action: Mapping[str, float]) -> Mapping[str, Amount | None]:
    """What an action `police` does, by field; without a rate it drops by size alone."""
    largest = int(action.get("mtu", 0))
    limited = 0 < largest < shaping.largest_frame(Shaping())
    return {
        "rate_mbit": action["rate"] / _BITS_A_MBIT if "rate" in action else None,
        "rate_burst_bytes": int(action["burst"]) if "burst" in action else None,
        "rate_excess": "drop" if "rate" in action else "queue",
        "blackhole_bytes": largest - ETHERNET_HEADER_BYTES if limited else None,
    }


def _carried_direction(
    plan: Plan,
    sender: tuple[str, Port],
    receiver: tuple[str, Port],
    record: Record,
    shown: Mapping[str, HostSettings],
) -> Iterator[ExplainedQuantity]:
    """The rows of a direction whose settings are all those of its wire."""
    (source, leaving), (target, _) = sender, receiver
    outgoing = current.port_now(plan, leaving, record).outgoing
    wires = None if source not in shown else shown[source].wires
    wire, on_host = None if wires is None else wires[leaving.name].wire, _read_back(leaving, shown.get(source))
    for each in (*AT_SENDER, *AT_RECEIVER):
        where = f"{source} {leaving.name} {'wire' if each.wire else outgoing.queue_discipline}"
        shows = None if wire is None else wire.amount_of(each)
        if not each.wire and on_host is not None:
            shows = on_host.settings[each.field]
        yield from _quantity(each, source, target, leaving.outgoing, outgoing, shows, where)


def _quantity(
    setting: Setting, source: str, target: str, declared: Shaping, now: Shaping | None, shows: Amount | None, where: str
) -> Iterator[ExplainedQuantity]:
    """One row; none for a rare setting that has its default everywhere."""
    is_declared = getattr(declared, setting.field)
    wanted = None if now is None else getattr(now, setting.field)
    if not setting.rare or any(each not in (None, setting.default) for each in (is_declared, wanted, shows)):
        yield ExplainedQuantity(
            source=source,
            target=target,
            name=setting.word,
            unit=setting.unit,
            declared=setting.display(is_declared),
            wanted=setting.display(wanted),
            shown=setting.display(shows),
            where=where,
        )


def _read_back(port: Port, shown: HostSettings | None) -> shaping.ReadBack | None:
    return None if shown is None else shaping.read_back(port, shown.qdiscs)


def _interface(host: str, port: Port, shown: HostSettings) -> Interface:
    mtu, gro = shown.mtus.get(port.name), shown.gro(port)
    return Interface(
        host=host, port=port.name, mtu=mtu, gro=gro, ipv6=shown.ipv6.get(port.name, ()), fact=shown.fact(port)
    )


def _certified(lab: Lab, link: Link) -> MeasuredLink | None:
    certificate = kept_certificate.last(lab)
    rows = () if certificate is None else tuple(row for row in certificate.rows if row.subject == link.name)
    if certificate is None or not rows:
        return None
    return MeasuredLink(
        rows=rows,
        at=certificate.measured_at,
        source="certificate",
        current=kept_certificate.holds_still(certificate, lab),
        busy=certificate.busy,
    )


def _measured_now(lab: Lab, link: Link) -> MeasuredLink:
    with recording(lab.provider.processes(), lab.plan.time) as machine:
        rows = tuple(round_trips.link_rows(lab, link))
    return MeasuredLink(rows=rows, at=datetime.now(UTC), source="now", busy=taints(machine.load))


def _answer(evidence: _Evidence) -> tuple[Cause, str]:
    """The first cause that applies, in an order in which each would hide the next."""
    command = f"minigts link {' '.join(evidence.link.ends)}"
    if evidence.unread:
        host, reason = next(iter(evidence.unread.items()))
        if "minigts re" in reason:  # the message names the remedy itself: resume or restart
            return "no-answer", f"{host} does not answer: {reason.removeprefix(f'host {host} does not answer: ')}"
        return "no-answer", f"{host} does not answer ({reason}): minigts restart {host}"
    if evidence.differences:
        remedy = _remedy(evidence, f"{command} {evidence.outage.in_a_command if evidence.outage else 'up'}")
        more = ", and more" if len(evidence.differences) > 1 else ""
        if evidence.record.unsettled.intersection(evidence.link.ends):
            return (
                "broken-off",
                f"a command that set the links was interrupted ({evidence.differences[0]}{more}): {remedy}",
            )
        return "settings", (
            f"the hosts' settings are not the lab's; somebody has probably changed them ({evidence.differences[0]}"
            f"{more}): {remedy}"
        )
    return _deliberate(evidence, command) or _answer_of_measurement(evidence)


def _deliberate(evidence: _Evidence, command: str) -> tuple[Cause, str] | None:
    """The answer where the lab's record has a cut or changed settings for the link; None otherwise."""
    name = evidence.link.name
    if evidence.outage is not None:
        how = evidence.outage.in_words
        return "cut", f"{name} is {how}, so everything that is sent over it is lost; to restore it: {command} up"
    if evidence.other_way is not None:
        return "blocked", f"{name} is {evidence.other_way}: it was not measured"
    if (change := evidence.record.changed.get(name)) is not None:
        again = link_states.restoring_command(name)
        return "changed", f"{name} has other settings than declared ({change.in_words}); to restore them: {again}"
    if evidence.record.settings != DECLARED:
        return "experiment", (
            f"an experiment that is running or was interrupted has changed the links "
            f"({evidence.record.settings.in_words}); the next minigts run --lab {evidence.lab} begins by restoring them"
        )
    return None


def _remedy(evidence: _Evidence, again: str) -> str:
    """The command that sets the hosts again: `minigts link` where they differ (`mending`), and a restart for an
    interface that is gone."""
    by_start = (NO_INTERFACE,) if evidence.reopens else (NO_INTERFACE, DOWN)
    wrong = [text for text in evidence.differences if any(each in text for each in by_start)]
    hosts = [host for host in evidence.link.ends if any(text.startswith(f"{host} ") for text in wrong)]
    if hosts:
        return "; ".join(f"minigts restart {host}" for host in hosts) + " sets them again"
    return f"{again} sets them again"


def _answer_of_measurement(evidence: _Evidence) -> tuple[Cause, str]:
    """The answer where all settings are as they should be: it rests on the measurement."""
    measured = evidence.measured
    if measured is None:
        return "not-measured", "all is set as declared, and this link has not been measured yet: add --measure"
    if not measured.current:
        return "not-measured", (
            "all is set as declared, but the links had other settings when the certificate was measured: add --measure"
        )
    outside = [row for row in measured.rows if row.ok is False]
    if not outside:
        busy = f"; the machine was busy ({'; '.join(measured.busy)})" if measured.busy else ""
        return "none", f"all is set as declared, and what was measured lies within its tolerance{busy}"
    cause, reason = _reason(outside[0], measured, evidence)
    return cause, f"all is set as declared, but {outside[0].quantity} was measured as {outside[0].sentence()}: {reason}"


def _reason(row: CertificateRow, measured: MeasuredLink, evidence: _Evidence) -> tuple[Cause, str]:
    """Why a figure lies outside its tolerance though all is set as it should be."""
    overhead_ms = evidence.record.emulator_overhead_ms
    if evidence.carried:
        return "measured", "the wire is exactly as declared, so the hosts cause this; minigts check measures again"
    if row.too_fast:
        return (
            "calibration",
            "too much is subtracted from the delays, as the machine was busier during calibration; minigts calibrate",
        )
    if measured.busy:
        return "busy", f"the machine was busy ({'; '.join(measured.busy)}); measure again with --measure"
    if row.quantity != "RTT" or row.measured is None:
        return "measured", "no other load was seen on the machine; if --measure shows it again, minigts check"
    if min(evidence.delays_ms) < overhead_ms:
        return "nothing-taken-off", (
            f"the emulator itself takes {overhead_ms:.3f} ms in each direction, more than the declared delay, so it "
            f"cannot be subtracted"
        )
    return "calibration", (
        "the machine is slower than when the emulator's own latency was measured, though no other load was seen; "
        "if --measure shows it again, minigts calibrate"
    )
