"""Settings of hosts that depend on other hosts, such as routes by neighbours' names, into a plan. Pure."""

from __future__ import annotations

from minigts.language.problems import Finding
from minigts.topology.host_settings import HOST_SETTINGS, field_of
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft, DraftHost


def resolve_settings(plan: Plan, drafted: Draft) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan with these settings of `drafted` in it, and what is wrong with them; then it is the plan without
    them."""
    declared = {host.name: host for host in drafted.hosts}
    found: dict[str, dict[str, object]] = {}
    findings: list[Finding] = []
    for host in plan.hosts:
        for key in _own_keys(declared[host.name]):
            found.setdefault(host.name, {})[field_of(key)], wrong = _resolved(plan, host, declared[host.name], key)
            findings += wrong
    if not found or findings:
        return plan, tuple(findings)
    hosts = tuple(host.model_copy(update=found.get(host.name, {})) for host in plan.hosts)
    network = plan.network._replace(hosts=hosts)
    for key, setting in HOST_SETTINGS.items():
        if setting.resolved is not None:
            findings += (
                ((*declared[name].place_of(key), *where), why) for name, where, why in setting.misfits(network)
            )
    return (plan, tuple(findings)) if findings else (plan.model_copy(update={"hosts": hosts}), ())


def _own_keys(host: DraftHost) -> list[str]:
    return [key for key, each in HOST_SETTINGS.items() if each.resolved is not None and getattr(host.spec, key)]


def _resolved(plan: Plan, host: Host, declared: DraftHost, key: str) -> tuple[object, list[Finding]]:
    resolve = HOST_SETTINGS[key].resolved
    assert resolve is not None, "the key is one of those that depend on other hosts"
    value, wrong = resolve(getattr(declared.spec, key), host, plan.hosts)
    return value, [((*declared.place_of(key), *where), why) for where, why in wrong]
