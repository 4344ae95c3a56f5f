"""The links of a lab set as they should be now: on the hosts, or on wires between them where the provider has such.

`current` says how each port should be set, `shown_links` how it is set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from minigts.dataplane import shaping, wire
from minigts.errors import HostFailed, reading_from
from minigts.foreign import parser_text
from minigts.lab import carriers, current, outages, shown_links
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.lab.rundir import exclusive
from minigts.providers.base import Provider
from minigts.topology.plan.elements import Host, Port, Switch
from minigts.topology.plan.plan import Plan


def redrawn_directions(lab: Lab, record: Record, machines: Iterable[Host | Switch]) -> list[tuple[str, str]]:
    """The directions whose random numbers begin anew when these machines are set up anew: where hosts shape, those that
    arrive there. Wires do not depend on machines."""
    if current.link_carrier(lab) is not None:
        return []
    ends = {(port.link, port.peer_host) for machine in machines for port in machine.ports}
    return [way for way in current.drawing(lab.plan, record) if way in ends]


def draw_next(lab: Lab) -> None:
    """Let every direction that uses random numbers begin those of another setting, as nothing that was sent before may
    be lost in the same way again."""
    with exclusive(lab.rundir):
        before = lab.read_record()
        ways = current.drawing(lab.plan, before)
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
    ports = current.ports_now(lab.plan, machine, record, None)
    how = arrivals(lab.plan, machine, None, record, ports)
    if current.link_carrier(lab) is None:
        shown, overhead_ms = parser_text(shown_links.tc_output(lab, machine)), record.emulator_overhead_ms
        with reading_from(machine.name, "what it shows of its links"):
            kept = [port.name for port in ports if not shaping.arrivals_differ(port, shown, overhead_ms)]
        how = replace(how, kept=frozenset(kept))
    run_script(lab.provider, machine, script(lab, machine, record, how=how))


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
        ports = current.ports_now(lab.plan, machine, record, only)
        how = arrivals(lab.plan, machine, known, record, ports)
        run_script(lab.provider, machine, script(lab, machine, record, only, how))

    lab.work_on(machines, set_one)
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
    if (carries := current.link_carrier(lab)) is None:
        return
    chosen = [
        (machine.name, port) for machine in machines for port in current.ports_now(lab.plan, machine, record, only)
    ]
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
    ports = current.ports_now(lab.plan, machine, record, only)
    offload = "".join(f"ethtool -K {port.name} gro on\n" for port in ports) if record.settings.gro == "on" else ""
    if current.link_carrier(lab) is not None:
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
    was = {} if before is None else {port.name: current.port_now(plan, port, before).incoming for port in own}
    same = before is not None and before.emulator_overhead_ms == record.emulator_overhead_ms
    return shaping.Arrivals(
        anew=frozenset(port.name for port in after if shaping.keeps_a_table(was.get(port.name), port.incoming)),
        kept=frozenset(port.name for port in after if same and was.get(port.name) == port.incoming),
    )


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
    wrong = _reshaped_wires(lab, record) if current.link_carrier(lab) is not None else _reshaped_machines(lab, record)
    if wrong:
        raise HostFailed("links are not shaped as declared:\n" + "\n".join(wrong))


def _reshaped_machines(lab: Lab, record: Record) -> list[str]:
    """`reshape` on the machines; the differences that were read back."""

    def reshape_and_read_back(machine: Host | Switch) -> list[str]:
        ports = current.ports_now(lab.plan, machine, record, None)
        qdiscs = shown_links.tc_output(lab, machine, shaping.delays_again(ports, record.emulator_overhead_ms))
        with reading_from(machine.name, "what it shows of its links"):
            return [
                f"{machine.name}: {text}"
                for text in shown_links.differences(lab.plan, machine.ports, record, parser_text(qdiscs))
            ]

    return [text for texts in lab.work_on(lab.machines_on(record), reshape_and_read_back).values() for text in texts]


def _reshaped_wires(lab: Lab, record: Record) -> list[str]:
    """`reshape` on the wires; the differences that were read back. No machine is asked."""
    set_wires(lab, record, lab.plan.machines, anew=True)
    return [
        f"{machine}: {text}"
        for machine, wires in (shown_links.read_wires(lab) or {}).items()
        for port in current.ports_now(lab.plan, lab.plan.machine(machine), record, None)
        for text in shown_links.wire_differences(lab.plan, port, record, wires)
    ]


def apply_record(
    lab: Lab, before: Record, record: Record, names: Collection[str], *, reading_back: bool = False
) -> None:
    """Set the ends of these links by `record`, in place of `before`; the caller holds the lab's lock. `reading_back`
    takes time on the hosts, and prolongs a cut by it. A direction that is set otherwise gets the next number of a
    setting."""
    record = current.numbered_record((lab.plan, before), (lab.plan, record), names)
    ends = [machine for machine in lab.plan.machines if any(port.link in names for port in machine.ports)]
    with settling(lab, before, record, [machine.name for machine in ends]):
        if current.link_carrier(lab) is None:
            set_ports(lab, record, ends, names, before)
        else:  # mostly nothing changes on the hosts, and asking them would take time
            set_wires(lab, record, ends, names)
            of = lab.plan
            queues = [
                one
                for one in ends
                if current.shapings_on_machine(of, one, before, names)
                != current.shapings_on_machine(of, one, record, names)
            ]
            _set_machines(lab, record, queues, names)
        if reading_back and (wrong := shown_links.read_back(lab, record, ends, names)):
            raise HostFailed("links are not as they were set:\n" + "\n".join(wrong))


def run_script(provider: Provider, machine: Host | Switch, text: str) -> None:
    argv = ["bash", "-eu", "-s"]
    provider.run(machine.name, argv, timeout_s=current.SHAPE_TIMEOUT_S, stdin=text.encode())
