"""What every port of a lab should look like now, and all shaping: it comes from here, and from nowhere else.

A port is as its plan declares it, but for what lab.json records: the emulator's own latency is taken off its delay, it
may be cut, and an experiment may have set it otherwise for as long as it measures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from minigts.dataplane import shaping
from minigts.errors import HostFailed, InputError
from minigts.lab import calibration
from minigts.lab.record import Lab, Record, Settings, exclusive
from minigts.language.problems import did_you_mean, listed, shown
from minigts.providers.base import Provider
from minigts.topology.plan import End, Host, Link, Path, Plan, Switch

SHAPE_TIMEOUT_S = 60.0


def port_now(port: End, record: Record) -> End:
    """The port as it should be now, its own latency not yet taken off."""
    outgoing, incoming = port.outgoing, port.incoming
    if record.settings.unlimited:
        outgoing = outgoing.model_copy(update={"rate_mbit": None, "queue_bytes": None})
    elif record.settings.queue_bytes is not None and outgoing.rate_mbit is not None:
        outgoing = outgoing.model_copy(update={"queue_bytes": record.settings.queue_bytes})
    if port.link in record.cut:
        incoming = incoming.model_copy(update={"loss_percent": 100.0})
    return port.model_copy(update={"outgoing": outgoing, "incoming": incoming})


def script(machine: Host | Switch, record: Record, only: Sequence[str] | None = None) -> str:
    """What makes a machine's ports, or those on the links named, as they should be now: for `sh -e`."""
    ports = [port_now(port, record) for port in machine.ports if only is None or port.link in only]
    offload = "".join(f"ethtool -K {port.name} gro on\n" for port in ports) if record.settings.gro == "on" else ""
    return shaping.script(ports, record.emulator_overhead_ms) + offload


def differences(ports: Iterable[End], record: Record, tc_json_text: str) -> list[str]:
    """How the shaping that a machine shows of its ports differs from what it should be now, a sentence each."""
    return [
        difference
        for port in ports
        for difference in shaping.differences(port_now(port, record), tc_json_text, record.emulator_overhead_ms)
    ]


@contextmanager
def settling(lab: Lab, record: Record, machines: Collection[str]) -> Iterator[None]:
    """Write `record` down before these machines are set so, and that they are when they have been.

    A command that is broken off in between leaves them `unsettled`, and the next `up` sets them again.
    """
    lab.write(record.model_copy(update={"unsettled": record.unsettled | set(machines)}))
    yield
    lab.write(record.model_copy(update={"unsettled": record.unsettled - set(machines)}))


def reshape(lab: Lab) -> None:
    """Set every link's delay and loss again as they should be now, and read all shaping back. Raises HostFailed."""
    record = lab.record

    def reshape_and_read_back(machine: Host | Switch) -> list[str]:
        ports = [port_now(port, record) for port in machine.ports]
        batch = shaping.delays_again(ports, record.emulator_overhead_ms).encode()
        argv = ["tc", "-j", "-batch", "-"]
        qdiscs = lab.provider.run(machine.name, argv, timeout_s=SHAPE_TIMEOUT_S, stdin=batch).stdout
        return [f"{machine.name}: {text}" for text in differences(machine.ports, record, qdiscs)]

    wrong = [text for texts in lab.on_every_machine(reshape_and_read_back).values() for text in texts]
    if wrong:
        raise HostFailed("links are not shaped as declared:\n" + "\n".join(wrong))


def set_links(lab: Lab, settings: Settings) -> None:
    """Set every link so, for as long as an experiment measures; `DECLARED` puts them back. A cut link stays cut."""
    with exclusive(lab.rundir):
        record = lab.record.model_copy(update={"settings": settings})
        with settling(lab, record, [machine.name for machine in lab.plan.machines]):
            lab.on_every_machine(lambda machine: run_script(lab.provider, machine, script(machine, record)))


def set_link(lab: Lab, first: str, second: str, *, up: bool) -> None:
    """Cut every link between two machines, or make it whole again. It stays so until it is set otherwise.

    The interfaces stay up, as at a light path that breaks in its middle: what is sent is lost, and nothing tells them.

    Raises InputError when there is no such link.
    """
    names = frozenset(link.name for link in links_between(lab.plan, first, second))
    with exclusive(lab.rundir):
        record = lab.record
        record = record.model_copy(update={"cut": record.cut - names if up else record.cut | names})
        ends = [machine for machine in lab.plan.machines if any(port.link in names for port in machine.ports)]
        with settling(lab, record, [machine.name for machine in ends]):
            for machine in ends:
                run_script(lab.provider, machine, script(machine, record, sorted(names)))


def links_between(plan: Plan, first: str, second: str) -> tuple[Link, ...]:
    """Every link that joins two machines, named in either order. Raises InputError when there is none."""
    joining = tuple(link for link in plan.links if set(link.ends) == {first, second})
    if not joining:
        others = ", ".join("-".join(link.ends) for link in plan.links)
        raise InputError(f"no link between {first} and {second}; links are {others}")
    return joining


def link_named(plan: Plan, name: str) -> Link:
    """The link of that name, or of its ends in the other order. Raises InputError."""
    for link in plan.links:
        if link.name == name:
            return link
    turned = [link for link in plan.links if "-".join(reversed(link.ends)) == name]
    if len(turned) == 1:
        return turned[0]
    known = [link.name for link in plan.links]
    raise InputError(f"no link {shown(name)}; links are {listed(known)}{did_you_mean(name, known)}")


def calibrate(lab: Lab) -> float:
    """Measure the emulator's own latency, as it is now, and take it off every delay instead of what was taken off.

    The new value in ms. Raises InputError when no path is whole that it could be measured over.
    """
    with exclusive(lab.rundir):
        return calibrate_held(lab)


def calibrate_held(lab: Lab) -> float:
    """The same for who holds the lab's lock."""
    record = lab.record
    plan = lab.plan.model_copy(update={"paths": whole_paths(lab)})
    if not plan.paths and lab.plan.paths:
        raise InputError(f"every path of lab {lab.name} passes a link that is cut: {', '.join(cut_links(lab))}")
    emulator_overhead_ms = calibration.emulator_overhead_ms(lab.provider, plan, record.emulator_overhead_ms)
    if emulator_overhead_ms != record.emulator_overhead_ms:
        calibrated = record.model_copy(update={"emulator_overhead_ms": emulator_overhead_ms})
        with settling(lab, calibrated, [machine.name for machine in plan.machines]):
            reshape(lab)
    return emulator_overhead_ms


def whole_links(lab: Lab) -> tuple[Link, ...]:
    """The plan's links that are not cut."""
    cut = lab.record.cut
    return tuple(link for link in lab.plan.links if link.name not in cut)


def whole_paths(lab: Lab) -> tuple[Path, ...]:
    """The plan's paths that pass no link that is cut."""
    cut = lab.record.cut
    return tuple(path for path in lab.plan.paths if cut.isdisjoint(path.links))


def cut_links(lab: Lab) -> list[str]:
    """The links of the plan that are cut, in its order: `ams-bra`."""
    cut = lab.record.cut
    return [link.name for link in lab.plan.links if link.name in cut]


def how_to_mend(lab: Lab) -> Iterator[str]:
    """The command for every link that is cut."""
    cut = lab.record.cut
    yield from (f"minigts link {' '.join(link.ends)} up" for link in lab.plan.links if link.name in cut)


def run_script(provider: Provider, machine: Host | Switch, text: str) -> str:
    argv = ["bash", "-eu", "-s"]
    return provider.run(machine.name, argv, timeout_s=SHAPE_TIMEOUT_S, stdin=text.encode()).stdout
