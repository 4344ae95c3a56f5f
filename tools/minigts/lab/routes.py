"""The routes that a lab's hosts find by their routing protocol: waited for, and read back."""

from __future__ import annotations

from minigts.dataplane import router
from minigts.errors import HostFailed
from minigts.foreign import one_line, parser_text
from minigts.lab.lab import Lab
from minigts.lab.link_states import dead_links, losing_all
from minigts.lab.record import Record
from minigts.machine.progress import Progress
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routing_engines import ENGINES

READ_TIMEOUT_S = 20.0


def wait(lab: Lab, record: Record, progress: Progress) -> None:
    """Return when every host has the routes of the plan, without those over cut links; at once in a lab without a
    routing protocol.

    Raises HostFailed, which names the routes that differ.
    """
    plan = lab.plan
    if not plan.has_routers:
        return
    progress(f"waiting for the routes by {plan.protocol_title}")
    dead, limit_s = _without(plan, record), 4 * router.WAIT_S
    hosts = [each for each in lab.machines_on(record) if isinstance(each, Host)]

    def wait_on(host: Host) -> None:
        ways = router.expected_routes(plan, host, dead, record.without_carrier)
        argv = ["bash", "-c", router.wait(plan, ways)]
        result = lab.provider.run(host.name, argv, timeout_s=limit_s, check=False)
        if result.code:
            different = router.differences(ways, parser_text(result.stdout).splitlines()) or [one_line(result.stderr)]
            raise HostFailed(f"{host.name}: {_by(plan, host)} has not converged: {'; '.join(different[:4])}")

    started_s = lab.provider.now_s()
    lab.work_through(hosts, wait_on)  # who is waited for later has its routes by then, or goes on finding them
    # Each host had its routes at another moment; a host that was restarted may have removed others' routes since.
    while any(lab.work_through(hosts, lambda host: differences(lab, host, record)).values()):
        lab.work_through(hosts, wait_on)
        if lab.provider.now_s() - started_s > limit_s:
            raise HostFailed(f"the routes by {plan.protocol_title} come and go: they were not complete in {limit_s} s")
    progress(f"routes are complete after {lab.provider.now_s() - started_s:.1f} s")


def _without(plan: Plan, record: Record) -> frozenset[str]:
    """The links over which no two hosts become neighbours, since one does not hear the other."""
    return dead_links(plan, record) | losing_all(plan, record)


def differences(lab: Lab, machine: Host | Switch, record: Record) -> list[str]:
    """How a host's routes differ from those that it should have found, a sentence each; none without a protocol."""
    if not lab.plan.has_routers or not isinstance(machine, Host):
        return []
    argv = ["sh", "-c", router.show(lab.plan)]
    shown = parser_text(lab.provider.run(machine.name, argv, timeout_s=READ_TIMEOUT_S).stdout).splitlines()
    ways = router.expected_routes(lab.plan, machine, _without(lab.plan, record), record.without_carrier)
    return [f"{_by(lab.plan, machine)}: {each}" for each in router.differences(ways, shown)]


def _by(plan: Plan, host: Host) -> str:
    """`OSPF of FRR`."""
    return f"{plan.protocol_title} of {ENGINES[host.engine].title}"
