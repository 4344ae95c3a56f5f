"""Why a link is as it is: what is declared, what should be set now, what its two hosts show, and what was measured.

`explain` asks the lab and changes nothing; `explained` is pure, and names the likely answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from minigts.dataplane import shaping
from minigts.dataplane.reached import DOWN, NO_INTERFACE
from minigts.errors import MinigtsError
from minigts.fidelity import host_settings, measure
from minigts.fidelity.certificate import Row
from minigts.fidelity.host_load import recording, taints
from minigts.fidelity.host_settings import HostSettings
from minigts.lab import DECLARED, Lab, Record, Settings, links
from minigts.providers.base import Restarts
from minigts.topology.link_settings import AT_RECEIVER, AT_SENDER, Shaping
from minigts.topology.parts import End, Host, Link, Switch
from minigts.topology.plan import Plan
from minigts.topology.setting import Amount, Setting

Cause = Literal[
    "no-answer",
    "broken-off",
    "settings",
    "cut",
    "changed",
    "experiment",
    "nothing-taken-off",
    "calibration",
    "busy",
    "measured",
    "not-measured",
    "none",
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quantity(_Frozen):
    """One setting of one direction of a link. None: not limited, not set; for `shown`, also not to be read."""

    source: str
    target: str
    name: str
    """Its word in the topology language."""
    unit: str
    declared: Amount | None
    wanted: Amount | None
    """What should be set now: less the emulator's own latency, as it was cut, as an experiment has set it."""
    shown: Amount | None
    """What the host's kernel shows, or the wire that its port sends into."""
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
    """Its global addresses, in a lab that has them."""
    fact: str
    """`eth1: MTU 1500, on are rx-checksumming, …`"""


class Measured(_Frozen):
    """What was measured of the link, and when."""

    rows: tuple[Row, ...]
    at: datetime | None
    """None where the certificate does not say."""
    source: Literal["certificate", "now"]
    current: bool = True
    """Whether the lab's links are set as they were then."""
    busy: tuple[str, ...] = ()
    """What else the machine did meanwhile, if it was enough to doubt the figures."""


class Explanation(_Frozen):
    """One link of one lab, and the likely answer to why it is not as expected."""

    lab: str
    provider: str
    link: str
    ends: tuple[str, str]
    quantities: tuple[Quantity, ...]
    emulator_overhead_ms: float
    """The emulator's own one-way latency over a link, taken off every delay."""
    carried: bool
    """Whether the link has rate and delay of its own, so that nothing is set on its hosts and nothing taken off."""
    cut: bool
    settings: Settings
    """What an experiment has set of every link."""
    interfaces: tuple[Interface, ...]
    differences: tuple[str, ...]
    """What the hosts show that should be otherwise now: `bra eth1: delay is 50 ms, declared 8.75 ms`."""
    unread: dict[str, str]
    """By host why nothing could be read from it."""
    measured: Measured | None
    cause: Cause
    answer: str


@dataclass(frozen=True)
class _Evidence:
    """What the answer rests on."""

    lab: str
    link: Link
    record: Record
    differences: Sequence[str]
    unread: Mapping[str, str]
    measured: Measured | None
    delays_ms: Sequence[float]
    carried: bool
    reopens: bool
    """Whether an interface that is down comes up again without its host's start."""

    @property
    def cut(self) -> bool:
        return self.link.name in self.record.cut


def explain(lab: Lab, link: Link, *, measuring: bool = False) -> Explanation:
    """Read the link's two hosts back, and say what was measured: by the certificate, or `measuring` it now.

    Nothing is set. A link that is cut is not measured. A host that does not answer is named.
    """
    record, wires = lab.read_record(), links.read_wires(lab)
    shown: dict[str, HostSettings] = {}
    unread: dict[str, str] = {}
    for machine in _ends(lab.plan, link):
        try:
            shown[machine.name] = host_settings.read_back(lab, machine, record, wires)
        except MinigtsError as error:
            unread[machine.name] = str(error)
    whole = link.name not in record.cut and not unread
    measured = _measured_now(lab, link) if measuring and whole else _certified(lab, link)
    carried = links.carrier(lab) is not None
    reopens = carried or not isinstance(lab.provider, Restarts)  # in real time a kernel's port cannot be opened twice
    return explained(lab.name, lab.plan, link, record, shown, unread, measured, carried=carried, reopens=reopens)


def explained(
    lab: str,
    plan: Plan,
    link: Link,
    record: Record,
    shown: Mapping[str, HostSettings],
    unread: Mapping[str, str],
    measured: Measured | None,
    *,
    carried: bool = False,
    reopens: bool = True,
) -> Explanation:
    """The same from what the hosts have shown and what was measured. Pure."""
    ports = [(machine, _port(machine, link)) for machine in _ends(plan, link)]
    differences = tuple(
        f"{machine.name} {difference}"
        for machine, port in ports
        if machine.name in shown
        for difference in host_settings.differences(plan, machine, record, shown[machine.name], port)
    )
    (first, there), (second, back) = ports
    delays_ms = (back.incoming.delay_ms, there.incoming.delay_ms)
    evidence = _Evidence(lab, link, record, differences, unread, measured, delays_ms, carried, reopens)
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
            for quantity in direction(one, other, record, shown)
        ),
        emulator_overhead_ms=record.emulator_overhead_ms,
        carried=carried,
        cut=evidence.cut,
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


def _port(machine: Host | Switch, link: Link) -> End:
    return next(port for port in machine.ports if port.link == link.name)


def _direction(
    sender: tuple[str, End], receiver: tuple[str, End], record: Record, shown: Mapping[str, HostSettings]
) -> Iterator[Quantity]:
    """Rate and queue are set where a direction begins; delay, jitter and loss where it ends."""
    (source, leaving), (target, arriving) = sender, receiver
    outgoing, incoming = links.port_now(leaving, record).outgoing, links.port_now(arriving, record).incoming
    delay_ms = shaping.added_delay_ms(incoming, record.emulator_overhead_ms)
    netem = incoming.model_copy(update={"delay_ms": delay_ms}) if shaping.holds_arrivals(incoming) else None
    rated, delayed = _read_back(leaving, shown.get(source)), _read_back(arriving, shown.get(target))
    for each in (*AT_SENDER, *AT_RECEIVER):
        declared, now, read = (
            (leaving.outgoing, outgoing, rated) if each.at_sender else (arriving.incoming, netem, delayed)
        )
        where = f"{source} {leaving.name} tbf" if each.at_sender else f"{target} {shaping.ifb(arriving)} netem"
        shows = None if read is None else read.settings[each.field]
        yield from _quantity(each, source, target, declared, now, shows, where)


def _carried_direction(
    sender: tuple[str, End], receiver: tuple[str, End], record: Record, shown: Mapping[str, HostSettings]
) -> Iterator[Quantity]:
    """All of it is the wire's that a direction begins with."""
    (source, leaving), (target, _) = sender, receiver
    outgoing = links.port_now(leaving, record).outgoing
    wires = None if source not in shown else shown[source].wires
    wire = None if wires is None else wires[leaving.name].wire
    for each in (*AT_SENDER, *AT_RECEIVER):
        shows = None if wire is None else wire.amount_of(each)
        yield from _quantity(each, source, target, leaving.outgoing, outgoing, shows, f"{source} {leaving.name} wire")


def _quantity(
    setting: Setting, source: str, target: str, declared: Shaping, now: Shaping | None, shows: Amount | None, where: str
) -> Iterator[Quantity]:
    """One row; none of a rare setting that is nowhere otherwise than by default."""
    is_declared = getattr(declared, setting.field)
    wanted = None if now is None else getattr(now, setting.field)
    if not setting.rare or any(each not in (None, setting.default) for each in (is_declared, wanted, shows)):
        yield Quantity(
            source=source,
            target=target,
            name=setting.word,
            unit=setting.unit,
            declared=is_declared,
            wanted=wanted,
            shown=shows,
            where=where,
        )


def _read_back(port: End, shown: HostSettings | None) -> shaping.ReadBack | None:
    return None if shown is None else shaping.read_back(port, shown.qdiscs)


def _interface(host: str, port: End, shown: HostSettings) -> Interface:
    mtu, gro = shown.mtus.get(port.name), shown.gro(port)
    return Interface(
        host=host, port=port.name, mtu=mtu, gro=gro, ipv6=shown.ipv6.get(port.name, ()), fact=shown.fact(port)
    )


def _certified(lab: Lab, link: Link) -> Measured | None:
    certificate = measure.last(lab)
    rows = () if certificate is None else tuple(row for row in certificate.rows if row.subject == link.name)
    if certificate is None or not rows:
        return None
    return Measured(
        rows=rows,
        at=certificate.measured_at,
        source="certificate",
        current=measure.holds_still(certificate, lab),
        busy=certificate.busy,
    )


def _measured_now(lab: Lab, link: Link) -> Measured:
    with recording(lab.provider.processes(), lab.plan.time) as machine:
        rows = tuple(measure.link_rows(lab, link))
    return Measured(rows=rows, at=datetime.now(UTC), source="now", busy=taints(machine.load))


def _answer(evidence: _Evidence) -> tuple[Cause, str]:
    """The first cause that is there, in the order in which each would hide the next."""
    command = f"minigts link {' '.join(evidence.link.ends)}"
    if evidence.unread:
        host, reason = next(iter(evidence.unread.items()))
        if "minigts re" in reason:  # it says itself what to do: resume, or restart
            return "no-answer", f"{host} does not answer: {reason.removeprefix(f'host {host} does not answer: ')}"
        return "no-answer", f"{host} does not answer ({reason}): minigts restart {host}"
    if evidence.differences:
        remedy = _remedy(evidence, f"{command} {'down' if evidence.cut else 'up'}")
        more = ", and more" if len(evidence.differences) > 1 else ""
        if evidence.record.unsettled.intersection(evidence.link.ends):
            return (
                "broken-off",
                f"a command that set the links was broken off ({evidence.differences[0]}{more}): {remedy}",
            )
        return "settings", (
            f"the hosts' settings are not the lab's, as if somebody had changed them there ({evidence.differences[0]}"
            f"{more}): {remedy}"
        )
    return _deliberate(evidence, command) or _answer_of_measurement(evidence)


def _deliberate(evidence: _Evidence, command: str) -> tuple[Cause, str] | None:
    """Where somebody has set the link otherwise than declared, and the lab's record knows."""
    name = evidence.link.name
    if evidence.cut:
        return "cut", f"{name} is cut, so that all that is sent over it is lost; whole again by: {command} up"
    if (change := evidence.record.changed.get(name)) is not None:
        again = links.as_declared(name)
        return "changed", f"{name} is set otherwise than declared ({change.in_words}); as declared by: {again}"
    if evidence.record.settings != DECLARED:
        return "experiment", (
            f"an experiment that runs or was broken off has set the links otherwise "
            f"({evidence.record.settings.in_words}); the next, minigts run --lab {evidence.lab}, begins by putting "
            f"them back"
        )
    return None


def _remedy(evidence: _Evidence, again: str) -> str:
    """`minigts link` sets its two hosts again where they differ (`mending`); an interface that is gone comes by a
    start alone."""
    by_start = (NO_INTERFACE,) if evidence.reopens else (NO_INTERFACE, DOWN)
    wrong = [text for text in evidence.differences if any(each in text for each in by_start)]
    hosts = [host for host in evidence.link.ends if any(text.startswith(f"{host} ") for text in wrong)]
    if hosts:
        return "; ".join(f"minigts restart {host}" for host in hosts) + " sets them again"
    return f"{again} sets them again"


def _answer_of_measurement(evidence: _Evidence) -> tuple[Cause, str]:
    """Where all settings are as they should be: what the measurement says."""
    measured = evidence.measured
    if measured is None:
        return "not-measured", "all is set as declared, and nothing was measured of this link yet: add --measure"
    if not measured.current:
        return "not-measured", (
            "all is set as declared, and the certificate is of links that were set otherwise: add --measure"
        )
    outside = [row for row in measured.rows if row.ok is False]
    if not outside:
        busy = f"; the machine was busy ({'; '.join(measured.busy)})" if measured.busy else ""
        return "none", f"all is set as declared, and what was measured lies within its tolerance{busy}"
    cause, reason = _reason(outside[0], measured, evidence)
    return cause, f"all is set as declared, but measured was {outside[0].quantity} {outside[0].in_words()}: {reason}"


def _reason(row: Row, measured: Measured, evidence: _Evidence) -> tuple[Cause, str]:
    """Why a figure lies outside its tolerance though all is set as it should be."""
    overhead_ms = evidence.record.emulator_overhead_ms
    if evidence.carried:
        return "measured", "the link takes just what is declared, so its hosts did this; minigts check measures again"
    if row.too_fast:
        return (
            "calibration",
            "too much is taken off the delays, since calibration met a busier machine; minigts calibrate",
        )
    if measured.busy:
        return "busy", f"the machine was busy ({'; '.join(measured.busy)}); measure again with --measure"
    if row.quantity != "RTT" or row.measured is None:
        return "measured", "nothing else was seen on the machine; if --measure says so again, minigts check"
    if min(evidence.delays_ms) < overhead_ms:
        return "nothing-taken-off", (
            f"the link takes {overhead_ms:.3f} ms a way by itself, more than is declared, and there is no delay that "
            f"this could be taken off"
        )
    return "calibration", (
        "the machine is slower than when the emulator's own latency was measured, though nothing else was seen on it; "
        "if --measure says so again, minigts calibrate"
    )
