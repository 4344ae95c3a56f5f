"""The routes that a file gives its hosts, by names, into a plan. Pure."""

from __future__ import annotations

from minigts.language.problems import Finding
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.draft import Draft
from minigts.topology.routes import own_routes


def with_own_routes(plan: Plan, drafted: Draft) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan with the routes of `drafted` in it, and what is wrong with them; then it is the plan without them."""
    written = {host.name: host for host in drafted.hosts if host.spec.routes}
    if not written:
        return plan, ()
    findings: list[Finding] = []

    def routed(host: Host) -> Host:
        if host.name not in written:
            return host
        own = []
        for to, via in (written[host.name].spec.routes or {}).items():
            try:
                own.append(own_routes.found(plan.hosts, host, to, via))
            except ValueError as error:
                findings.append(((*written[host.name].place_of("routes"), to), f"{host.name}: {error}"))
        return host.model_copy(update={"own_routes": tuple(own)})

    hosts = tuple(map(routed, plan.hosts))
    if not findings:
        astray = own_routes.wrong(hosts, plan.switches, plan.links, ecmp=plan.ecmp is not None)
        findings += [((*written[host].place_of("routes"), to), why) for host, to, why in astray]
    return (plan, tuple(findings)) if findings else (plan.model_copy(update={"hosts": hosts}), ())
