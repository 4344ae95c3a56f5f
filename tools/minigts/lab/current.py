"""How every port of a lab should be set now.

A port is as its plan declares it, except for what lab.json records: its link may be cut or changed, and an experiment
may have set it while it measures. The emulator's own latency is subtracted where it is set (`links`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from minigts.dataplane import wire
from minigts.lab import outages
from minigts.lab.lab import Lab
from minigts.lab.record import DECLARED, Record
from minigts.providers.base import CarriesLinks
from minigts.topology import link_rules, opportunities
from minigts.topology.facts.links.queue import SIZES, declared_bytes, default_bytes
from minigts.topology.frames import ETHERNET_HEADER_BYTES
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import Shaping
from minigts.topology.plan import chance
from minigts.topology.plan.directions import derive_shaping, link_figures
from minigts.topology.plan.elements import Host, Link, Port, Switch
from minigts.topology.plan.plan import Plan

M = TypeVar("M", Host, Switch)

SHAPE_TIMEOUT_S = 60.0


def link_carrier(lab: Lab) -> CarriesLinks | None:
    """The provider, if its links have wires that shape; None where hosts shape."""
    return lab.provider if isinstance(lab.provider, CarriesLinks) else None


def port_now(plan: Plan, port: Port, record: Record) -> Port:
    """The port as it should be set now, before the emulator's own latency is subtracted."""
    now = _shaped(port, record)
    own = plan.own_end(port)
    outgoing = _drawn(plan, (port.link, own), port.outgoing, now.outgoing, record)
    incoming = _drawn(plan, (port.link, port.peer_host), port.incoming, now.incoming, record)
    return now.model_copy(update={"outgoing": outgoing, "incoming": incoming})


def _drawn(plan: Plan, way: tuple[str, str], declared: Shaping, now: Shaping, record: Record) -> Shaping:
    """A direction, a link and the end that sends, with the seed of its setting: as declared until it is set
    otherwise."""
    number = record.number_of(*way)
    if now.seed is None or (number == 0 and declared.seed is not None):
        return now
    return now.model_copy(update={"seed": chance.setting_seed(plan, *way, number)})


def _shaped(port: Port, record: Record) -> Port:
    """`port_now`, but for the seeds: a direction that uses random numbers, and whose topology declares none, has 0."""
    outgoing, incoming = port.outgoing, port.incoming
    if (change := record.changed.get(port.link)) is not None:
        sends, takes = change.fields_sent_to(port.peer_host), change.fields_sent_by(port.peer_host)
        declared_ms = outgoing.delay_ms + incoming.delay_ms
        rtt_ms = outgoing.model_copy(update=sends).delay_ms + incoming.model_copy(update=takes).delay_ms
        outgoing = _changed(outgoing, sends, (declared_ms, rtt_ms), port.mtu)
        incoming = _changed(incoming, takes, (declared_ms, rtt_ms), port.mtu)
    if record.settings.unlimited:
        no_rate = {"rate_mbit": None, "rate_peak_mbit": None, "trace": "", **dict.fromkeys(SIZES)}
        outgoing, incoming = (each.model_copy(update=no_rate) for each in (outgoing, incoming))
    elif (queue := record.settings.queue) and outgoing.rate_mbit is not None:
        outgoing = _changed(outgoing, queue, (0.0, 0.0), port.mtu)
    if port.link in record.cut:
        all_lost = {"loss_percent": 100.0, "burst_packets": 0.0}
        outgoing, incoming = (each.model_copy(update=all_lost) for each in (outgoing, incoming))
    return port.model_copy(update={"outgoing": outgoing, "incoming": incoming})


def _changed(declared: Shaping, change: Mapping[str, Amount], rtts_ms: tuple[float, float], mtu: int) -> Shaping:
    """One direction of a link with `change` applied. Where rate or delay changes and the queue is not set, a queue that
    was sized for the declared ones is sized again, as is one in packets or in time; one that the topology gives in
    bytes stays. `rtts_ms` are the link's declared round trip and the one now. Where it needs a seed and has none, that
    is 0.
    """
    given = link_rules.apply(declared, change)
    before_ms, now_ms = rtts_ms
    rate_mbit = opportunities.mean_mbit(given.trace) if given.trace else given.rate_mbit
    otherwise = (rate_mbit, given.delay_ms) != (declared.rate_mbit, declared.delay_ms)
    derived = declared.queue_bytes == default_bytes(declared.rate_mbit, before_ms)
    if given.queue_packets is not None or given.queue_ms is not None:
        size_bytes = declared_bytes(given, rate_mbit, mtu + ETHERNET_HEADER_BYTES)
        given = given.model_copy(update={"queue_bytes": size_bytes})
    elif "queue_bytes" not in change and otherwise and (derived or rate_mbit is None):
        given = given.model_copy(update={"queue_bytes": default_bytes(rate_mbit, now_ms)})
    return derive_shaping(given, given.seed or 0)


def numbered_record(
    before: tuple[Plan, Record], after: tuple[Plan, Record], names: Collection[str] | None = None
) -> Record:
    """The record of `after`, in which each direction that it sets otherwise than `before` does has the next number of a
    setting, and no direction has a lower one than before. `names` are the links that may differ; None: all."""
    was, now = (_directions(*each, names) for each in (before, after))
    (_, old), (_, record) = before, after
    changed = [way for way, shaping in now.items() if was.get(way, shaping) != shaping]
    if not changed and record.times_set == old.times_set:
        return record
    least, given = old.counting(changed).times_set, record.times_set
    counts = {
        link: {end: max(each.get(link, {}).get(end, 0) for each in (least, given)) for end in ends}
        for link in {**least, **given}
        for ends in [{**least.get(link, {}), **given.get(link, {})}]
    }
    return record.model_copy(update={"times_set": counts})


def _directions(plan: Plan, record: Record, names: Collection[str] | None) -> dict[tuple[str, str], Shaping]:
    """How each direction of these links is set, without its seed, by the link and the end that sends."""
    return {
        (port.link, machine): _shaped(port, record).outgoing.model_copy(update={"seed": None})
        for machine, port in plan.sending(names)
    }


def drawing(plan: Plan, record: Record) -> list[tuple[str, str]]:
    """The directions that use random numbers now, as links and ends that send."""
    return [
        (port.link, name) for name, port in plan.sending() if port_now(plan, port, record).outgoing.seed is not None
    ]


def ports_now(plan: Plan, machine: Host | Switch, record: Record, only: Collection[str] | None) -> list[Port]:
    return [port_now(plan, port, record) for port in machine.ports if only is None or port.link in only]


def shapings_on_machine(plan: Plan, machine: Host | Switch, record: Record, names: Collection[str]) -> list[Shaping]:
    """What the machine itself has of these links where wires carry them."""
    return [wire.unshaped_port(port).outgoing for port in ports_now(plan, machine, record, names)]


def plan_now(plan: Plan, record: Record) -> Plan:
    """The plan with its links as they are set now, against which measurements are judged. Cut links count as whole."""
    if not record.changed:
        return plan
    whole = outages.up(record, record.cut).model_copy(update={"settings": DECLARED})

    def with_ports(machine: M) -> M:
        return machine.model_copy(update={"ports": tuple(port_now(plan, port, whole) for port in machine.ports)})

    hosts, switches = tuple(map(with_ports, plan.hosts)), tuple(map(with_ports, plan.switches))
    with_ends = plan.model_copy(update={"hosts": hosts, "switches": switches})
    return plan.set_to(hosts, switches, tuple(_link_now(with_ends, link) for link in plan.links))


def current_lab(lab: Lab, record: Record) -> Lab:
    """The lab with `plan_now` as its plan."""
    return Lab.known(lab.rundir, plan_now(lab.plan, record), lab.provider)


def _link_now(plan: Plan, link: Link) -> Link:
    """The link with its figures by the ports of `plan`, which are as they are set now."""
    return link.model_copy(update=link_figures(*plan.directions(link), plan.mtu_of(link), plan.family))
