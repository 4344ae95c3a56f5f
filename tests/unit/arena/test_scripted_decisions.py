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
    processes = f"   12     1 S    {dnsmasq}\n   64     1 Ss   iperf3 -s -J -D\n"
    return shown | {"resolver": "nameserver 127.0.0.1\n", "processes": processes, "sockets": iperf}


def test_a_name_server_with_other_options_than_most_is_found() -> None:
    usual = "dnsmasq --no-resolv"
    seen = {"ams": look(usual), "bra": look(usual), "lju": look(f"{usual} --no-hosts")}
    known = _Map(ports={"ams": {}, "bra": {}, "lju": {}})
    assert [each.kind for each in _findings(known, seen, "lju")] == ["no-records"]
    seen["lju"] = look(f"{usual} --no-hosts --addn-hosts=/etc/hosts.old")
    (found,) = _findings(known, seen, "lju")
    assert (found.kind, found.host) == ("wrong-record", "lju")
    assert found.mend.endswith("; dnsmasq --no-resolv")
    seen["lju"] = look("sleep 5")
    assert [each.kind for each in _findings(known, seen, "lju")] == ["name-server-dead"]
    assert list(_findings(known, seen, "ams")) == []


def test_a_daemon_that_has_ended_is_found_where_others_run_it_and_nowhere_else() -> None:
    known = _Map(ports={"ams": {}, "bra": {}})
    seen = {"ams": look("sleep 5"), "bra": look("sleep 5") | {"sockets": "", "processes": ""}}
    (found,) = _findings(known, seen, "bra")
    assert (found.kind, "iperf3 -s -J -D" in found.mend) == ("dead-daemon", True)
    seen["ams"] = seen["bra"]  # a lab whose containers have the service
    assert list(_findings(known, seen, "bra")) == []


def test_another_order_of_names_than_most_hosts_have_is_found() -> None:
    known = _Map(ports={"ams": {}, "bra": {}, "lju": {}})
    seen = {name: look("sleep 5") | {"more": "==\nhosts:          files dns\n=="} for name in known.ports}
    assert list(_findings(known, seen, "bra")) == []
    seen["bra"]["more"] = "==\nhosts:          dns\n=="
    assert [each.kind for each in _findings(known, seen, "bra")] == ["no-hosts-file"]


def test_signs_of_a_routing_daemon() -> None:
    bird = look("bird -c /run/minigts/underlay/bra/bird.conf") | {
        "more": "lookup 20",
        "routing": "kernel4    Kernel     kernel4    up     00:00:01\n",
    }
    known = _Map(ports={"ams": {}, "bra": {}})
    seen = {"ams": bird, "bra": bird}
    assert list(_findings(known, seen, "bra")) == []
    of_overlay = look("bird -c /run/minigts/overlay/bird.conf") | {"routing": ""}
    assert list(_findings(known, {"ams": of_overlay, "bra": of_overlay}, "bra")) == []
    for change, kind in (
        ({"routing": "kernel4    Kernel     kernel4    down   00:00:01\n"}, "no-export"),
        ({"more": ""}, "no-table"),
        ({"more": "lookup 20\narea 1 {"}, "wrong-area"),
        ({"more": "lookup 20\nneighbor 10.20.4.1 port 1179 as 64916;"}, "wrong-as"),
        ({"processes": look("sleep 5")["processes"]}, "router-dead"),
    ):
        seen["bra"] = bird | change
        assert [each.kind for each in _findings(known, seen, "bra")] == [kind]
