"""The list of decisions, by what hosts would show; nothing runs."""

from __future__ import annotations

from minigts.arena import boards
from minigts.arena.decisions import _findings, _Map, _map_of


def ring() -> _Map:
    """What the tool `topology` says of the ring, whose ways from sto to tal are of the same length."""
    plan = boards.plan_of("ring", "ring")
    machines = "\n".join(
        f"{host.name}: {', '.join(f'{port.name} {port.address}/{port.prefix} on {port.link}' for port in host.ports)}"
        for host in plan.hosts
    )
    links = "\n".join(
        f"{link.name} ({link.ends[0]} and {link.ends[1]}): from {link.ends[0]} {plan.path(*link.ends).rtt_ms / 2} ms"
        for link in plan.links
    )
    return _map_of(f"{machines}\n\n{links}")


def test_both_of_two_equal_ways_are_right() -> None:
    known = ring()
    ways = known.next_hops("sto")
    by_link = {link: known.address_on("hel" if link == "sto-hel" else "osl", link) for link in ("osl-sto", "sto-hel")}
    assert set(ways["tal"]) == set(by_link.values())
    assert ways["hel"] == (by_link["sto-hel"],)
    assert ways["rig"] == (by_link["osl-sto"],)


def look(dnsmasq: str) -> dict[str, str]:
    shown = dict.fromkeys(
        ("addresses", "interfaces", "neighbours", "routes", "firewall", "queues", "sockets", "sysctls", "more"), ""
    )
    iperf = 'tcp   LISTEN 0      4096   *:5201   *:*    users:(("iperf3",pid=9,fd=3))'
    return shown | {"resolver": "nameserver 127.0.0.1\n", "processes": f"   12     1 S    {dnsmasq}", "sockets": iperf}


def test_a_name_server_with_other_options_than_most_is_found() -> None:
    usual = "0 dnsmasq --no-resolv"
    seen = {"ams": look(usual), "bra": look(usual), "lju": look(f"{usual} --no-hosts")}
    known = _Map(ports={"ams": {}, "bra": {}, "lju": {}})
    assert [each.kind for each in _findings(known, seen, "lju")] == ["no-records"]
    seen["lju"] = look(f"{usual} --no-hosts --addn-hosts=/etc/hosts.old")
    (found,) = _findings(known, seen, "lju")
    assert (found.kind, found.host) == ("wrong-record", "lju")
    assert found.mend.endswith("; dnsmasq --no-resolv")
    seen["lju"] = look("0 sleep")
    assert [each.kind for each in _findings(known, seen, "lju")] == ["name-server-dead"]
    assert list(_findings(known, seen, "ams")) == []
