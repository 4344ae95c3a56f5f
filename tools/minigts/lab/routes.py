"""The routes that a lab's hosts find by their routing protocol: waited for, and read back."""

from __future__ import annotations

from minigts.dataplane import router
from minigts.errors import HostFailed
from minigts.lab.links import dead_links, losing_all
from minigts.lab.record import Lab, Progress
from minigts.topology.parts import Host, Switch

READ_TIMEOUT_S = 20.0


def wait(lab: Lab, progress: Progress) -> None:
    """Return when every host has the routes that the plan says, less what links that are cut would carry.

    Raises HostFailed, with what is missing. Nothing is waited for in a lab without a protocol.
    """
    plan = lab.plan
    if not plan.has_routers:
        return
    progress(f"waiting for the routes by {plan.routing.upper()}")
    dead, limit_s = _without(lab), 4 * router.WAIT_S

    def wait_on(host: Host) -> None:
        ways = router.expected(plan, host, dead)
        argv = ["bash", "-c", router.wait(plan, ways)]
        result = lab.provider.run(host.name, argv, timeout_s=limit_s, check=False)
        if result.code:
            different = router.differences(ways, result.stdout.splitlines()) or [result.stderr.strip()]
            raise HostFailed(f"{host.name}: {plan.routing.upper()} has not converged: {'; '.join(different[:4])}")

    started_s = lab.provider.now_s()
    lab.on_every_host(wait_on)
    # Each had them at a moment of its own; one that was started again may since have taken others' away for a moment.
    while any(lab.on_every_host(lambda host: differences(lab, host)).values()):
        lab.on_every_host(wait_on)
        if lab.provider.now_s() - started_s > limit_s:
            raise HostFailed(f"the routes by {plan.routing.upper()} come and go: not all were there within {limit_s} s")
    progress(f"routes are there after {lab.provider.now_s() - started_s:.1f} s")


def _without(lab: Lab) -> frozenset[str]:
    """The links over which no two hosts become neighbours: each has to hear the other."""
    return dead_links(lab) | losing_all(lab)


def differences(lab: Lab, machine: Host | Switch) -> list[str]:
    """How a host's routes differ from those that it should have found; none where no protocol finds them."""
    if not lab.plan.has_routers or not isinstance(machine, Host):
        return []
    argv = ["sh", "-c", router.show(lab.plan)]
    shown = lab.provider.run(machine.name, argv, timeout_s=READ_TIMEOUT_S).stdout.splitlines()
    return router.differences(router.expected(lab.plan, machine, _without(lab)), shown)
