"""The spanning trees of a lab's switches: waited for, and read back."""

from __future__ import annotations

from minigts.dataplane import switch
from minigts.errors import HostFailed
from minigts.foreign import one_line, parser_text
from minigts.lab.lab import Lab
from minigts.lab.link_states import dead_links
from minigts.lab.record import Record
from minigts.machine.progress import Progress
from minigts.topology.plan.elements import Host, Switch

READ_TIMEOUT_S = 20.0
_AGAIN = 3


def switches(lab: Lab, record: Record) -> list[Switch]:
    """The switches with a spanning tree that are on."""
    return [each for each in lab.machines_on(record) if isinstance(each, Switch) and each.spanning_tree is not None]


def wait(lab: Lab, record: Record, progress: Progress) -> None:
    """Return when the ports of all switches have the roles and states that follow from the plan, without cut links; at
    once in a lab without a spanning tree.

    Raises HostFailed, which names the ports that differ.
    """
    if not (machines := switches(lab, record)):
        return
    slow = any(each.spanning_tree.protocol == "stp" for each in machines if each.spanning_tree is not None)
    progress("waiting for the spanning tree" + (": ports forward after 30 s of the lab's time" if slow else ""))
    dead, started_s = dead_links(lab.plan, record), lab.provider.now_s()
    limit_s = 4.0 * (switch.CONVERGENCE_S + switch.HELLO_S)

    def wait_on(machine: Switch) -> list[str]:
        script = switch.script(lab.plan, machine, "wait_for_tree", dead)
        argv = ["bash", "-eu", "-s"]
        result = lab.provider.run(machine.name, argv, timeout_s=limit_s, stdin=script.encode(), check=False)
        if result.code:
            raise HostFailed(f"{machine.name}: its spanning tree cannot be read: {one_line(result.stderr)}")
        if not result.stdout.strip():
            return []
        wanted = switch.expected_tree(lab.plan, machine, dead)
        return [*switch.tree_differences(wanted, switch.shown_tree(machine, parser_text(result.stdout)))]

    # Each switch had its states at another moment: the last time, all of them have them at once.
    for _ in range(_AGAIN):
        found = lab.work_on(machines, wait_on)
        if not any(lab.work_on(machines, lambda machine: differences(lab, machine, record)).values()):
            progress(f"the spanning tree is complete after {lab.provider.now_s() - started_s:.1f} s")
            return
        if wrong := next(((name, texts) for name, texts in found.items() if texts), None):
            raise HostFailed(f"{wrong[0]}: the spanning tree has not converged: {'; '.join(wrong[1][:4])}")
    raise HostFailed(f"the spanning tree comes and goes: it was not complete in {_AGAIN * switch.CONVERGENCE_S} s")


def read_tree(lab: Lab, machine: Switch) -> switch.InTree:
    """What a switch says of its spanning tree now. Raises what `Provider.run` raises."""
    script = switch.script(lab.plan, machine, "show_tree")
    argv = ["bash", "-eu", "-s"]
    result = lab.provider.run(machine.name, argv, timeout_s=READ_TIMEOUT_S, stdin=script.encode())
    return switch.shown_tree(machine, parser_text(result.stdout))


def differences(lab: Lab, machine: Host | Switch, record: Record) -> list[str]:
    """How a switch's spanning tree differs from what it should be, a sentence each; none without one."""
    if not isinstance(machine, Switch) or machine.spanning_tree is None:
        return []
    wanted = switch.expected_tree(lab.plan, machine, dead_links(lab.plan, record))
    return [*switch.tree_differences(wanted, read_tree(lab, machine))]
