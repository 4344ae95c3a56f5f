"""How every port of a lab should be set now; all shaping comes from here.

A port is as its plan declares it, except for what lab.json records: the emulator's own latency is subtracted from its
delay, its link may be cut or changed, and an experiment may have set it while it measures. This module also decides
where it is set: on the hosts, or on wires between them where the provider has such (`link_carrier`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias, TypeVar

from minigts.dataplane import shaping, wire
from minigts.dataplane.wire import WireState
from minigts.errors import HostFailed, InputError, reading_from
from minigts.foreign import Foreign, to_parse
from minigts.lab import calibration, carriers, outages
from minigts.lab.lab import Lab
from minigts.lab.record import DECLARED, Change, Record, Settings
from minigts.lab.rundir import exclusive
from minigts.language.problems import did_you_mean, listed, shown
from minigts.providers import supported
from minigts.providers.base import CarriesLinks, Provider, SeesStorms
from minigts.topology import disciplines, opportunities, rules
from minigts.topology.facts.links.queue import SIZES, declared_bytes, default_bytes
from minigts.topology.frames import ETHERNET_HEADER_BYTES
from minigts.topology.link_settings import BY_FIELD, Shaping
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan import chance
from minigts.topology.plan.elements import Host, Link, Path, Port, Switch
from minigts.topology.plan.path_totals import derive_shaping, link_figures
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import switched
from minigts.topology.routes.graph import connected_components
from minigts.topology.schedule import Moment
from minigts.topology.setting import Amount

M = TypeVar("M", Host, Switch)

SHAPE_TIMEOUT_S = 60.0
ALL_PERCENT = 100.0

Wires: TypeAlias = Mapping[str, WireState]
"""The state of the wire into which each port sends, by the port's name; see `providers.base.CarriesLinks`."""


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
        sends, takes = change.sent_to(port.peer_host), change.sent_by(port.peer_host)
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
    given = rules.apply(declared, change)
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


def redrawn_directions(lab: Lab, record: Record, machines: Iterable[Host | Switch]) -> list[tuple[str, str]]:
    """The directions whose random numbers begin anew when these machines are set up anew: where hosts shape, those that
    arrive there. Wires do not depend on machines."""
    if link_carrier(lab) is not None:
        return []
    ends = {(port.link, port.peer_host) for machine in machines for port in machine.ports}
    return [way for way in drawing(lab.plan, record) if way in ends]


def draw_next(lab: Lab) -> None:
    """Let every direction that uses random numbers begin those of another setting, as nothing that was sent before may
    be lost in the same way again."""
    with exclusive(lab.rundir):
        before = lab.read_record()
        ways = drawing(lab.plan, before)
        if ways:
            apply_record(lab, before, before.counting(ways), {link for link, _ in ways})


def set_ports(
    lab: Lab,
    record: Record,
    machines: Sequence[Host | Switch],
    only: Collection[str] | None = None,
    before: Record | None = None,
) -> None:
    """Set the ports of these machines as they should be now; `only` restricts it to the links named. A machine that is
    off is set when it is started. `before` is the record by which they are set, where that is known: then a direction
    that is the same in both is left alone, and its random numbers go on. A wire that is set so already always is.
    """
    set_wires(lab, record, machines, only)
    _set_machines(lab, record, machines, only, before)


def set_what_differs(lab: Lab, record: Record, machine: Host | Switch) -> None:
    """Set a machine's ports where they are not as they should be now; the random numbers of all others go on."""
    set_wires(lab, record, [machine])
    ports = _ports(lab.plan, machine, record, None)
    how = arrivals(lab.plan, machine, None, record, ports)
    if link_carrier(lab) is None:
        shown, overhead_ms = to_parse(_tc(lab, machine)), record.emulator_overhead_ms
        with reading_from(machine.name, "what it shows of its links"):
            kept = [port.name for port in ports if not shaping.arrivals_differ(port, shown, overhead_ms)]
        how = replace(how, kept=frozenset(kept))
    run_script(lab.provider, machine, script(lab, machine, record, how=how))


def _tc(lab: Lab, machine: Host | Switch, batch: str = "qdisc show\n") -> Foreign:
    """What `tc -j` of the machine shows after these commands; by themselves its queueing disciplines."""
    argv = ["tc", "-j", "-batch", "-"]
    return lab.provider.run(machine.name, argv, timeout_s=SHAPE_TIMEOUT_S, stdin=batch.encode()).stdout


def _set_machines(
    lab: Lab,
    record: Record,
    machines: Iterable[Host | Switch],
    only: Collection[str] | None = None,
    before: Record | None = None,
) -> None:
    machines = [machine for machine in machines if machine.name not in record.silent]

    def set_one(machine: Host | Switch) -> None:
        known = None if before is None or machine.name in before.unsettled else before
        ports = _ports(lab.plan, machine, record, only)
        how = arrivals(lab.plan, machine, known, record, ports)
        run_script(lab.provider, machine, script(lab, machine, record, only, how))

    lab.on_each(machines, set_one)
    carriers.set_carriers(lab, record, machines, only, before)


def set_wires(
    lab: Lab,
    record: Record,
    machines: Iterable[Host | Switch],
    only: Collection[str] | None = None,
    *,
    anew: bool = False,
) -> None:
    """The part of `set_ports` outside the machines: set the wires into which they send, where links have wires. Those
    that are set so already go on, with their random numbers, bursts and credit; with `anew` they begin again."""
    if (carries := link_carrier(lab)) is None:
        return
    chosen = [(machine.name, port) for machine in machines for port in _ports(lab.plan, machine, record, only)]
    wanted = {
        (name, port.name): wire.wire_for(port.outgoing, carrier=outages.has_carrier(lab.plan, port, record))
        for name, port in chosen
    }
    if wanted and not anew:
        there = carries.wires()
        wanted = {end: each for end, each in wanted.items() if end not in there or there[end].wire != each}
    if wanted:
        carries.set_wires(wanted)


def script(
    lab: Lab,
    machine: Host | Switch,
    record: Record,
    only: Collection[str] | None = None,
    how: shaping.Arrivals | None = None,
) -> str:
    """The part of `set_ports` on the machine itself, as a script for `sh -e`; None: its ports are not set yet."""
    ports = _ports(lab.plan, machine, record, only)
    offload = "".join(f"ethtool -K {port.name} gro on\n" for port in ports) if record.settings.gro == "on" else ""
    if link_carrier(lab) is not None:
        return shaping.script([wire.unshaped_port(port) for port in ports], carried=True) + offload
    how = arrivals(lab.plan, machine, None, record, ports) if how is None else how
    return shaping.script(ports, record.emulator_overhead_ms, how) + offload


def arrivals(
    plan: Plan, machine: Host | Switch, before: Record | None, record: Record, after: Sequence[Port]
) -> shaping.Arrivals:
    """How the machine is to set what its ports `after`, by `record`, do to arriving frames; `before` as in
    `set_ports`."""
    names = {port.name for port in after}
    own = [port for port in machine.ports if port.name in names]
    was = {} if before is None else {port.name: port_now(plan, port, before).incoming for port in own}
    same = before is not None and before.emulator_overhead_ms == record.emulator_overhead_ms
    return shaping.Arrivals(
        anew=frozenset(port.name for port in after if shaping.keeps_a_table(was.get(port.name), port.incoming)),
        kept=frozenset(port.name for port in after if same and was.get(port.name) == port.incoming),
    )


def _ports(plan: Plan, machine: Host | Switch, record: Record, only: Collection[str] | None) -> list[Port]:
    return [port_now(plan, port, record) for port in machine.ports if only is None or port.link in only]


def read_wires(lab: Lab) -> Mapping[str, Wires] | None:
    """The wires of every machine, read back; None where hosts shape.

    Raises HostFailed when a port has no wire.
    """
    if (carries := link_carrier(lab)) is None:
        return None
    shown = carries.wires()
    ports = [(machine.name, port.name) for machine in lab.plan.machines for port in machine.ports]
    missing = [" ".join(port) for port in ports if port not in shown]
    if missing:
        raise HostFailed(f"lab {lab.name} has no wires for the ports {', '.join(missing[:12])}")
    return {
        machine.name: {port.name: shown[machine.name, port.name] for port in machine.ports}
        for machine in lab.plan.machines
    }


def differences(
    plan: Plan, ports: Iterable[Port], record: Record, tc_json_text: str, wires: Wires | None = None
) -> list[str]:
    """How the shaping of a machine's ports differs from what it should be now, a sentence each. It compares the output
    of tc on the machine, and its wires, where there are any.
    """
    now = [port_now(plan, port, record) for port in ports]
    if wires is None:
        return [text for port in now for text in shaping.differences(port, tc_json_text, record.emulator_overhead_ms)]
    wrong = [text for port in now for text in _of_wire(plan, port, record, wires)]
    return wrong + [
        text for port in now for text in shaping.differences(wire.unshaped_port(port), tc_json_text, carried=True)
    ]


def _of_wire(plan: Plan, port: Port, record: Record, wires: Wires) -> list[str]:
    """How the wire of a port as it should be now differs from that, a sentence each."""
    return wire.differences(port, wires[port.name].wire, carrier=outages.has_carrier(plan, port, record))


@contextmanager
def settling(lab: Lab, before: Record, record: Record, machines: Collection[str]) -> Iterator[None]:
    """Write `record` in place of `before`; within the context the caller sets these machines accordingly.

    Meanwhile they are recorded as `unsettled`: after an interruption the next `up` sets them again.
    """
    meanwhile = record.model_copy(update={"unsettled": record.unsettled | set(machines)})
    lab.write(meanwhile, before)
    yield
    lab.write(record.model_copy(update={"unsettled": record.unsettled - set(machines)}), meanwhile)


def reshape(lab: Lab, record: Record) -> None:
    """Set delay and loss of every link as they should be now, and read all shaping back. All random numbers begin anew,
    as if nothing had been sent. Raises HostFailed when it differs."""
    wrong = _reshaped_wires(lab, record) if link_carrier(lab) is not None else _reshaped_machines(lab, record)
    if wrong:
        raise HostFailed("links are not shaped as declared:\n" + "\n".join(wrong))


def _reshaped_machines(lab: Lab, record: Record) -> list[str]:
    """`reshape` on the machines; the differences that were read back."""

    def reshape_and_read_back(machine: Host | Switch) -> list[str]:
        ports = _ports(lab.plan, machine, record, None)
        qdiscs = _tc(lab, machine, shaping.delays_again(ports, record.emulator_overhead_ms))
        with reading_from(machine.name, "what it shows of its links"):
            return [
                f"{machine.name}: {text}" for text in differences(lab.plan, machine.ports, record, to_parse(qdiscs))
            ]

    return [text for texts in lab.on_each(lab.machines_on(record), reshape_and_read_back).values() for text in texts]


def _reshaped_wires(lab: Lab, record: Record) -> list[str]:
    """`reshape` on the wires; the differences that were read back. No machine is asked."""
    set_wires(lab, record, lab.plan.machines, anew=True)
    return [
        f"{machine}: {text}"
        for machine, wires in (read_wires(lab) or {}).items()
        for port in _ports(lab.plan, lab.plan.machine(machine), record, None)
        for text in _of_wire(lab.plan, port, record, wires)
    ]


def set_for_experiment(lab: Lab, settings: Settings) -> None:
    """Set every link by `settings` for an experiment; `DECLARED` ends that. A cut link stays cut."""
    with exclusive(lab.rundir):
        before = lab.read_record()
        _set_all(lab, before, before.model_copy(update={"settings": settings}))


def set_back(lab: Lab, record: Record) -> None:
    """Give the lab an earlier record again, and set all links by it. The numbers of settings go on."""
    with exclusive(lab.rundir):
        _set_all(lab, lab.read_record(), record)


def _set_all(lab: Lab, before: Record, record: Record) -> None:
    record = numbered_record((lab.plan, before), (lab.plan, record))
    with settling(lab, before, record, [machine.name for machine in lab.plan.machines]):
        set_ports(lab, record, lab.plan.machines, before=before)


def set_links_up(lab: Lab, first: str, second: str, *, up: bool, how: Outage = SILENT) -> None:
    """Take every link between two machines down in that way, or with `up` bring it up, set as before. It stays so
    until the next change.

    Raises InputError when there is no such link, or `how` names a machine at none of its ends; EnvironmentLacks where
    the lab's links cannot go down so.
    """
    set_whole(lab, frozenset(link.name for link in links_between(lab.plan, first, second)), up=up, how=how)


def set_link_up(lab: Lab, name: str, *, up: bool, how: Outage = SILENT) -> None:
    """As `set_links_up`, for the one link of this name."""
    set_whole(lab, frozenset({link_named(lab.plan, name).name}), up=up, how=how)


def set_whole(lab: Lab, names: frozenset[str], *, up: bool, how: Outage = SILENT) -> None:
    """As `set_links_up`, for the links of these names, which the caller knows to exist, all at one moment."""
    if not up:
        for name in names:
            carriers.require(lab, name, how)
    with exclusive(lab.rundir):
        record = lab.read_record()
        after = outages.up(record, names) if up else outages.down(lab.plan, record, names, how)
        apply_record(lab, record, after, names)


def replace_settings(lab: Lab, first: str, second: str, change: Change) -> None:
    """Set every link between two machines to `change`; fields that are None become as declared. It stays so until the
    next change, and a cut link stays cut.

    Raises InputError when there is no such link.
    """
    names = frozenset(link.name for link in links_between(lab.plan, first, second))
    with exclusive(lab.rundir):
        record = lab.read_record()
        others = {name: each for name, each in record.changed.items() if name not in names}
        changed = others if change == Change() else {**others, **dict.fromkeys(sorted(names), change)}
        apply_record(lab, record, record.model_copy(update={"changed": changed}), names)


def require_effect(lab: Lab, first: str, second: str, change: Change) -> None:
    """Raises InputError or EnvironmentLacks where a field of `change` has no effect on a link between the two."""
    for link in links_between(lab.plan, first, second):
        given = {end: change.sent_by(end).keys() for end in link.ends}
        _require_possible(lab, link, set().union(*(change.sent_by(end).items() for end in link.ends)))
        _require_sense(lab.plan, link, change, given)


def update_settings(lab: Lab, name: str, update: Mapping[str, Amount | None], sender: str | None = None) -> Change:
    """Set these fields of a link, in both directions or only in the one in which `sender` sends; a value of None sets a
    field as declared, and all other fields stay. Return the link's `Change` then.

    Frames on the link and in its queues are not lost. Raises InputError before anything is changed: for an unknown link
    or end, or a queue without a rate.
    """
    link = link_named(lab.plan, name)
    carriers.require_end(link, sender)
    _require_possible(lab, link, [(field, value) for field, value in update.items() if value is not None])
    with exclusive(lab.rundir):
        record = lab.read_record()
        changed = _adjusted(lab.plan, record, link, update, sender)
        apply_record(lab, record, record.model_copy(update={"changed": changed}), [link.name], reading_back=True)
    return changed.get(link.name, Change())


def _require_possible(lab: Lab, link: Link, given: Iterable[tuple[str, Amount]]) -> None:
    """Raises InputError for a setting that exists only in the other time, EnvironmentLacks for one, or a value of one,
    that the provider does not support. `given` are the values by field."""
    for setting, value in ((BY_FIELD[field], value) for field, value in given if field in BY_FIELD):
        if setting.only not in (None, lab.time):
            raise InputError(f"{setting.word} exists only in {setting.only} time, and this lab runs in {lab.time} time")
        if setting.feature is not None:
            asked = supported.RequiredFeature(setting.feature, f"{link.name} with `{setting.word}`")
            supported.refuse(asked, lab.provider.name, lab.provider.supports)
        if (feature := setting.features.get(str(value))) is not None:
            asked = supported.RequiredFeature(feature, f"{link.name} with `{setting.word}: {value}`")
            supported.refuse(asked, lab.provider.name, lab.provider.supports)


def _adjusted(
    plan: Plan, record: Record, link: Link, update: Mapping[str, Amount | None], sender: str | None
) -> dict[str, Change]:
    senders = {end: sender in (None, end) for end in link.ends}
    change = record.changed.get(link.name, Change()).adjusted(senders, rules.complete(update))
    named = {name for name, value in update.items() if value is not None}
    _require_sense(plan, link, change, {end: named if chosen else set() for end, chosen in senders.items()})
    others = {name: each for name, each in record.changed.items() if name != link.name}
    return others if change == Change() else {**others, link.name: change}


def _require_sense(plan: Plan, link: Link, change: Change, named: Mapping[str, Set[str]]) -> None:
    """Raises InputError where the link cannot be set so. `named` has the fields that are set now, by the end that
    sends."""
    sent = {end: change.sent_by(end) for end in link.ends}
    wrong = [f"{link.name}: {each}" for each in rules.problems(rules.RuledLink.of_plan(plan, link).change(sent, named))]
    if wrong:
        raise InputError("\n".join(wrong))


def record_at(plan: Plan, record: Record, moment: Moment) -> Record:
    """The record after a schedule's change. Raises InputError. Pure."""
    link = link_named(plan, moment.link)
    if moment.up:
        after = outages.up(record, [link.name])
    elif moment.up is False:
        carriers.require_end(link, moment.lost_at)
        after = outages.down(plan, record, [link.name], moment.outage)
    else:
        after = record.model_copy(update={"changed": _adjusted(plan, record, link, moment.update, moment.sender)})
    return numbered_record((plan, record), (plan, after), [link.name])


def partition(lab: Lab, groups: Sequence[Collection[str]]) -> list[str]:
    """Cut every link between machines of different groups; return the links' names. Raises InputError before anything
    is changed: for an unknown machine, one in two groups, or groups that are still joined through other machines.
    """
    group_of = _groups(lab.plan, groups)
    apart = [link for link in lab.plan.links if _parts(link, group_of)]
    whole = whole_links(lab.plan, lab.read_record())
    for part in connected_components((), (link.ends for link in whole if link not in apart)):
        if len({group_of[name] for name in part if name in group_of}) > 1:
            others = listed(sorted({*part} - group_of.keys()))
            raise InputError(f"the groups are joined through machines that are in no group: {others}; add them to one")
    names = frozenset(link.name for link in apart)
    with exclusive(lab.rundir):
        record = lab.read_record()
        apply_record(lab, record, outages.down(lab.plan, record, names - record.cut, SILENT), names)
    return [link.name for link in apart]


def heal(lab: Lab) -> list[str]:
    """Mend every cut link, set as before the cut; return the links' names."""
    with exclusive(lab.rundir):
        record = lab.read_record()
        names = cut_links(lab.plan, record)
        apply_record(lab, record, outages.up(record, names), names)
    return names


def _groups(plan: Plan, groups: Sequence[Collection[str]]) -> dict[str, int]:
    known, found = [machine.name for machine in plan.machines], dict[str, int]()
    for number, names in enumerate(groups):
        for name in names:
            if name not in known:
                raise InputError(f"no machine {shown(name)}; there are {listed(known)}{did_you_mean(name, known)}")
            if found.setdefault(name, number) != number:
                raise InputError(f"{name} is in two groups; it can be in one")
    return found


def _parts(link: Link, group_of: Mapping[str, int]) -> bool:
    """Whether the link's ends are in different groups."""
    return len({group_of[end] for end in link.ends if end in group_of}) > 1


def restore_links(lab: Lab, before: Record) -> None:
    """Set every link whose cut or change differs from record `before` as it was then."""
    with exclusive(lab.rundir):
        record = lab.read_record()
        known = record.changed.keys() | before.changed.keys()
        other = outages.differing(before, record)
        other |= {name for name in known if record.changed.get(name) != before.changed.get(name)}
        if other:
            as_before = outages.same_outages(before, record.model_copy(update={"changed": before.changed}))
            apply_record(lab, record, as_before, other)


def apply_record(
    lab: Lab, before: Record, record: Record, names: Collection[str], *, reading_back: bool = False
) -> None:
    """Set the ends of these links by `record`, in place of `before`; the caller holds the lab's lock. `reading_back`
    takes time on the hosts, and prolongs a cut by it. A direction that is set otherwise gets the next number of a
    setting."""
    record = numbered_record((lab.plan, before), (lab.plan, record), names)
    ends = [machine for machine in lab.plan.machines if any(port.link in names for port in machine.ports)]
    with settling(lab, before, record, [machine.name for machine in ends]):
        if link_carrier(lab) is None:
            set_ports(lab, record, ends, names, before)
        else:  # mostly nothing changes on the hosts, and asking them would take time
            set_wires(lab, record, ends, names)
            of = lab.plan
            queues = [one for one in ends if _on_machine(of, one, before, names) != _on_machine(of, one, record, names)]
            _set_machines(lab, record, queues, names)
        if reading_back and (wrong := read_back(lab, record, ends, names)):
            raise HostFailed("links are not as they were set:\n" + "\n".join(wrong))


def _on_machine(plan: Plan, machine: Host | Switch, record: Record, names: Collection[str]) -> list[Shaping]:
    """What the machine itself has of these links where wires carry them."""
    return [wire.unshaped_port(port).outgoing for port in _ports(plan, machine, record, names)]


def read_back(lab: Lab, record: Record, machines: Sequence[Host | Switch], names: Collection[str]) -> list[str]:
    """How these machines' ports on the links named differ from what was set, a sentence each."""
    wires, wrong = read_wires(lab), []
    if wires is not None:
        ports = [(each, port) for each in machines for port in _ports(lab.plan, each, record, names)]
        wrong = [
            f"{each.name}: {text}"
            for each, port in ports
            for text in _of_wire(lab.plan, port, record, wires[each.name])
        ]
        machines = [
            each for each in machines if any(map(disciplines.is_in_host, _on_machine(lab.plan, each, record, names)))
        ]

    def look(machine: Host | Switch) -> list[str]:
        qdiscs = _tc(lab, machine)
        ports = [port for port in machine.ports if port.link in names]
        with reading_from(machine.name, "what it shows of its links"):
            shown = None if wires is None else wires[machine.name]
            return [f"{machine.name}: {text}" for text in differences(lab.plan, ports, record, to_parse(qdiscs), shown)]

    on = [machine for machine in machines if machine.name not in record.silent]
    return list(dict.fromkeys((*wrong, *(text for texts in lab.on_each(on, look).values() for text in texts))))


def links_between(plan: Plan, first: str, second: str) -> tuple[Link, ...]:
    """Every link between two machines, given in either order. Raises InputError when there is none."""
    joining = tuple(link for link in plan.links if set(link.ends) == {first, second})
    if not joining:
        others = ", ".join("-".join(link.ends) for link in plan.links)
        raise InputError(f"no link between {first} and {second}; links are {others}")
    return joining


def require_one_name(plan: Plan, first: str, second: str) -> None:
    """Raises InputError where two machines are named in place of their link."""
    machines = {each.name for each in plan.machines}
    if {first, second} <= machines:
        names = [link.name for link in links_between(plan, first, second)]
        raise InputError(f"{first} and {second} are hosts: name their link, {' or '.join(names)}")


def link_named(plan: Plan, name: str) -> Link:
    """The link of that name; the name's ends may be in either order. Raises InputError when there is none."""
    for link in plan.links:
        if link.name == name:
            return link
    turned = [link for link in plan.links if "-".join(reversed(link.ends)) == name]
    if len(turned) == 1:
        return turned[0]
    known = [link.name for link in plan.links]
    raise InputError(f"no link {shown(name)}; links are {listed(known)}{did_you_mean(name, known)}")


def calibrate(lab: Lab, *, bringing_up: bool = False) -> float:
    """Measure the emulator's own latency, and subtract it from every delay in place of the old value. Links that use
    random numbers then have those of another setting, but while the lab is being brought up.

    Return the new value in ms; 0 without measuring where wires keep the declared delay themselves. Raises InputError
    when every path has a cut link.
    """
    with exclusive(lab.rundir):
        if link_carrier(lab) is not None:
            return 0.0
        record = lab.read_record()
        given = record if bringing_up else record.counting(drawing(lab.plan, record))
        return calibrated_record(lab, given).emulator_overhead_ms


def calibrated_record(lab: Lab, record: Record) -> Record:
    """As `calibrate`, for a lab whose hosts shape and whose lock the caller holds; return the new record."""
    plan, paths = lab.plan, whole_paths(lab.plan, record)
    if not paths and plan.pairs:
        if not (cut := cut_links(plan, record)):
            why = "the way of each is decided by a controller, or passes a link that the spanning tree has blocked anew"
            raise InputError(f"no path of lab {lab.name} can be measured: {why}")
        raise InputError(f"every path of lab {lab.name} passes a cut link: {', '.join(cut)}")
    emulator_overhead_ms = calibration.emulator_overhead_ms(lab.provider, plan, paths, record.emulator_overhead_ms)
    if emulator_overhead_ms == record.emulator_overhead_ms:
        return record
    before, record = record, record.model_copy(update={"emulator_overhead_ms": emulator_overhead_ms})
    every = frozenset(machine.name for machine in plan.machines)
    with settling(lab, before, record, every):
        reshape(lab, record)
    return record.model_copy(update={"unsettled": record.unsettled - every})


def whole_links(plan: Plan, record: Record) -> tuple[Link, ...]:
    """The plan's links that are not cut, between machines that are on."""
    dead = dead_links(plan, record)
    return tuple(link for link in plan.links if link.name not in dead)


def used_links(plan: Plan, record: Record) -> tuple[Link, ...]:
    """The whole links over which frames go by the plan, which can be measured."""
    others = other_ways(plan, record)
    return tuple(link for link in whole_links(plan, record) if link.name not in others)


def whole_paths(plan: Plan, record: Record) -> tuple[Path, ...]:
    """The plan's paths that pass no link that is cut, and no machine that is off, on any of their ways, and that frames
    take."""
    dead = dead_links(plan, record) | other_ways(plan, record).keys()
    return tuple(path for path in plan.paths if dead.isdisjoint(path.crossed))


def dead_links(plan: Plan, record: Record) -> frozenset[str]:
    """The links that carry nothing: cut links, and links of machines that are off or paused."""
    return record.cut | {link.name for link in plan.links if not record.silent.isdisjoint(link.ends)}


BLOCKED = "blocked by the spanning tree"
TOLD = "under a controller in a ring of switches"


def other_ways(plan: Plan, record: Record) -> dict[str, str]:
    """The links on which frames do not go as the plan's paths do, by name, with the reason: those that the spanning
    tree blocks now, as it goes over no link that carries nothing, and those of rings that a controller decides on."""
    blocked = switched.blocked_links(plan.switches, plan.links, dead_links(plan, record))
    return {
        link.name: BLOCKED if link.name in blocked else TOLD
        for link in plan.links
        if link.name in blocked or link.name in plan.told
    }


def losing_all(plan: Plan, record: Record) -> frozenset[str]:
    """The links with a loss of 100 % in a direction: no request over them is answered."""
    links = plan_now(plan, record).links
    return frozenset(link.name for link in links if any(way.loss_percent >= ALL_PERCENT for way in link.ways))


def storms(lab: Lab) -> list[str]:
    """The links on which frames have gone round in a loop of bridges at one moment of the lab, in the plan's order."""
    if not isinstance(lab.provider, SeesStorms):
        return []
    seen = lab.provider.storms()
    struck = {port.link for machine in lab.plan.machines for port in machine.ports if (machine.name, port.name) in seen}
    return [link.name for link in lab.plan.links if link.name in struck]


def storm_in_words(names: Sequence[str]) -> str:
    """What has happened on these links, and what is done about it."""
    loop = "hosts bridge in a loop, without a spanning tree"
    return f"a storm on {listed(names)}: frames went round at one moment of the lab, as {loop}; most were dropped"


def cut_links(plan: Plan, record: Record) -> list[str]:
    """The links of the plan that are cut, in its order: `ams-bra`."""
    return [link.name for link in plan.links if link.name in record.cut]


def outages_in_words(plan: Plan, record: Record) -> list[tuple[str, str]]:
    """Each of `cut_links`, with `cut`, `down` or `down at ams`."""
    found = ((name, outages.outage(record, name)) for name in cut_links(plan, record))
    return [(name, how.in_words) for name, how in found if how is not None]


def changed_links(plan: Plan, record: Record) -> dict[str, Change]:
    """The links of the plan that are set otherwise than declared, in its order."""
    return {link.name: record.changed[link.name] for link in plan.links if link.name in record.changed}


def how_to_mend(plan: Plan, record: Record) -> dict[str, str]:
    """For every cut link the command that mends it, for every other changed link the one that sets it as declared."""
    changed, cut = changed_links(plan, record), cut_links(plan, record)
    whole = {link.name: f"minigts link {link_argument(plan, link)} up" for link in plan.links}
    return {name: restoring_command(name) for name in changed} | {name: whole[name] for name in cut}


def link_argument(plan: Plan, link: Link) -> str:
    """The link as an argument of `minigts link`: its hosts, or its name where several links join them."""
    return " ".join(link.ends) if len(links_between(plan, *link.ends)) == 1 else link.name


def restoring_command(name: str) -> str:
    """The command that sets a link as declared."""
    return f"minigts set {name} --reset"


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


def run_script(provider: Provider, machine: Host | Switch, text: str) -> None:
    argv = ["bash", "-eu", "-s"]
    provider.run(machine.name, argv, timeout_s=SHAPE_TIMEOUT_S, stdin=text.encode())
