"""What machines and wires show of a lab's links, and how that differs from what should be set now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from minigts.dataplane import shaping, wire
from minigts.dataplane.wire import WireState
from minigts.errors import HostFailed, reading_from
from minigts.foreign import Foreign, parser_text
from minigts.lab import current, outages
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.topology import disciplines
from minigts.topology.plan.elements import Host, Port, Switch
from minigts.topology.plan.plan import Plan

Wires: TypeAlias = Mapping[str, WireState]
"""The state of the wire into which each port sends, by the port's name; see `providers.base.CarriesLinks`."""


def tc_output(lab: Lab, machine: Host | Switch, batch: str = "qdisc show\n") -> Foreign:
    """What `tc -j` of the machine shows after these commands; by themselves its queueing disciplines."""
    argv = ["tc", "-j", "-batch", "-"]
    return lab.provider.run(machine.name, argv, timeout_s=current.SHAPE_TIMEOUT_S, stdin=batch.encode()).stdout


def read_wires(lab: Lab) -> Mapping[str, Wires] | None:
    """The wires of every machine, read back; None where hosts shape.

    Raises HostFailed when a port has no wire.
    """
    if (carries := current.link_carrier(lab)) is None:
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
    now = [current.port_now(plan, port, record) for port in ports]
    if wires is None:
        return [text for port in now for text in shaping.differences(port, tc_json_text, record.emulator_overhead_ms)]
    wrong = [text for port in now for text in wire_differences(plan, port, record, wires)]
    return wrong + [
        text for port in now for text in shaping.differences(wire.unshaped_port(port), tc_json_text, carried=True)
    ]


def wire_differences(plan: Plan, port: Port, record: Record, wires: Wires) -> list[str]:
    """How the wire of a port as it should be now differs from that, a sentence each."""
    return wire.differences(port, wires[port.name].wire, carrier=outages.has_carrier(plan, port, record))


def read_back(lab: Lab, record: Record, machines: Sequence[Host | Switch], names: Collection[str]) -> list[str]:
    """How these machines' ports on the links named differ from what was set, a sentence each."""
    wires, wrong = read_wires(lab), []
    if wires is not None:
        ports = [(each, port) for each in machines for port in current.ports_now(lab.plan, each, record, names)]
        wrong = [
            f"{each.name}: {text}"
            for each, port in ports
            for text in wire_differences(lab.plan, port, record, wires[each.name])
        ]
        machines = [
            each
            for each in machines
            if any(map(disciplines.is_in_host, current.shapings_on_machine(lab.plan, each, record, names)))
        ]

    def look(machine: Host | Switch) -> list[str]:
        qdiscs = tc_output(lab, machine)
        ports = [port for port in machine.ports if port.link in names]
        with reading_from(machine.name, "what it shows of its links"):
            shown = None if wires is None else wires[machine.name]
            return [
                f"{machine.name}: {text}" for text in differences(lab.plan, ports, record, parser_text(qdiscs), shown)
            ]

    on = [machine for machine in machines if machine.name not in record.silent]
    return list(dict.fromkeys((*wrong, *(text for texts in lab.work_on(on, look).values() for text in texts))))
