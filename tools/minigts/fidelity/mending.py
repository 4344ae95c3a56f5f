"""Undoes what somebody has changed within a host: its links, addresses, routes and forwarding are set again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from minigts.dataplane import interfaces, shaping
from minigts.dataplane.shown_state import StateDifference
from minigts.errors import CommandFailed, HostFailed, MinigtsError
from minigts.fidelity import shown_settings
from minigts.fidelity.shown_settings import HostSettings
from minigts.lab import Lab, lifecycle, links, shown_links
from minigts.lab.record import Record
from minigts.lab.rundir import exclusive
from minigts.topology.plan.elements import Host, Port, Switch


def mend(lab: Lab, names: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Set these machines again where their settings differ from what they should be now, and return what differed, by
    machine. A machine that is off or paused is left alone.

    Other additions of the user stay, except queueing disciplines and routes that take the traffic of a planned route.
    Raises HostFailed where something cannot be set.
    """
    chosen = frozenset(names)
    found: dict[str, Sequence[str]] = {}
    with exclusive(lab.rundir):
        for machine in lab.machines_on(lab.read_record()):
            if machine.name in chosen and (different := _mended(lab, machine)):
                found[machine.name] = different
    return found


def _mended(lab: Lab, machine: Host | Switch) -> list[str]:
    record = lab.read_record()
    try:
        shown = shown_settings.read_back(lab, machine, record, shown_links.read_wires(lab))
    except MinigtsError as error:
        return [f"nothing, because it does not answer ({error})"]
    different = shown_settings.differences(lab.plan, machine, record, shown)
    if not different:
        return []
    undoing = _undoing(lab, machine, record, shown)
    before, record = record, record.counting(links.redrawn_directions(lab, record, [machine]))
    if record != before:
        lab.write(record, before)
    links.set_wires(lab, record, [machine])
    try:
        links.run_script(lab.provider, machine, undoing)
        lifecycle.configure(lab, machine, record)
    except CommandFailed as error:  # User-Mode Linux in real time cannot open an interface again that was closed
        why = f"{machine.name} cannot be set as it should be ({different[0]}): minigts restart {machine.name}"
        raise HostFailed(why) from error
    again = shown_settings.read_back(lab, machine, record, shown_links.read_wires(lab))
    if left := shown_settings.differences(lab.plan, machine, record, again):
        raise HostFailed(f"{machine.name} cannot be set as it should be ({left[0]}): minigts restart {machine.name}")
    return different


def mend_ways(lab: Lab, name: str) -> Mapping[str, Sequence[str]]:
    """Undo changes of interfaces, addresses and routes on the machines that share a link with `name`, for that link
    only, so that a restarted host is reached again. Returns what differed, by machine, or why it could not be set. A
    machine that is off, paused or does not answer is left alone.
    """
    plan = lab.plan
    links_of = {port.link for port in plan.machine(name).ports}
    found: dict[str, Sequence[str]] = {}
    with exclusive(lab.rundir):
        record = lab.read_record()
        for machine in lab.machines_on(record):
            ports = [port for port in machine.ports if port.link in links_of]
            if machine.name != name and ports and (different := _ways_mended(lab, machine, record, ports)):
                found[machine.name] = different
    return found


def _ways_mended(lab: Lab, machine: Host | Switch, record: Record, ports: Sequence[Port]) -> list[str]:
    try:
        shown = shown_settings.read_back(lab, machine, record, None)
        different = shown_settings.ways(lab.plan, machine, record, shown, ports)
        if different:
            script = _routes_undone(different) + interfaces.script(lab.plan, machine)
            links.run_script(lab.provider, machine, script)
    except CommandFailed:  # as in `_mended`
        return [f"nothing, because it cannot be set ({different[0].text}): minigts restart {machine.name}"]
    except MinigtsError:
        return []
    return [each.text for each in different]


def _undoing(lab: Lab, machine: Host | Switch, record: Record, shown: HostSettings) -> str:
    """A script that removes what setting everything again would leave: foreign queueing disciplines and routes."""
    foreign = [port for port in machine.ports if shown_settings.shaping_differences(lab.plan, [port], record, shown)]
    ways = shown_settings.ways(lab.plan, machine, record, shown, machine.ports)
    return shaping.removal_script(foreign) + _routes_undone(ways)


def _routes_undone(ways: Sequence[StateDifference]) -> str:
    undone = [each.mend for each in ways if each.mend is not None]
    batch = ["ip -force -batch - <<'END' 2>/dev/null || true", *undone, "END"] if undone else []
    return "".join(f"{line}\n" for line in batch)
