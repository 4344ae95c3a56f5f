"""Names of a lab's machines: /etc/hosts, and the name server of a lab that asks for one."""

from __future__ import annotations

import pytest

from minigts.dataplane import interfaces, names
from minigts.errors import InputError
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse

TEXT = "name: three\nchain: {hosts: [a, b, c]}\nswitches: {s: }\nlinks: [{ends: [a, s]}]\n"
NEAR = f"{TEXT}routing: neighbours\n"


def plan(text: str = TEXT, **more: str) -> Plan:
    return parse(text + "".join(f"{key}: {value}\n" for key, value in more.items()), "three.yaml")


@pytest.mark.parametrize("written", ["false", "'false'"])
def test_without_the_key_nothing_changes(written: str) -> None:
    assert plan_json(plan(dns=written)) == plan_json(plan())
    for machine in plan().machines:
        assert interfaces.script(plan(), machine) == interfaces.script(plan(dns=written), machine)
        assert "dnsmasq" not in interfaces.script(plan(), machine)


def test_each_host_has_a_server_and_no_switch() -> None:
    served = plan(dns="true")
    assert '"dns": true' in plan_json(served)
    for machine in served.machines:
        text, without = interfaces.script(served, machine), interfaces.script(plan(), machine)
        if machine.name == "s":
            assert text == without
            continue
        assert text.startswith(without)
        assert "dnsmasq " in text.removeprefix(without)
        assert "echo nameserver 127.0.0.1 >/etc/resolv.conf" in text


def test_a_server_asks_outside_only_where_there_is_a_way_out() -> None:
    text = "name: one\ntime: real\ndns: true\npair: {hosts: [a, b]}\nhosts: {c: {gateway: true}}\n"
    made = parse(f"{text}links: [{{ends: [a, c]}}]\n", "one.yaml")
    outside = {host.name: "--server=169.254.77.3" in interfaces.script(made, host) for host in made.hosts}
    assert outside == {"c": True, "a": False, "b": False}
    assert "--local=/#/" in interfaces.script(made, made.host("a"))


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("nameserver 127.0.0.1\n10.255.0.3\n", []),
        (
            "nameserver 127.0.0.1\n;; connection timed out\n",
            ["its name server answers nothing for c, should answer 10.255.0.3"],
        ),
        ("nameserver 127.0.0.1\n10.9.9.9\n", ["its name server answers 10.9.9.9 for c, should answer 10.255.0.3"]),
        (
            "nameserver 8.8.8.8\n10.255.0.3\n",
            ["/etc/resolv.conf has 'nameserver 8.8.8.8', should have 'nameserver 127"],
        ),
        ("", ["/etc/resolv.conf has '', should", "its name server answers nothing for c"]),
    ],
)
def test_what_a_host_shows_is_compared(shown: str, told: list[str]) -> None:
    served = plan(dns="true")
    found = list(names.differences(served, served.host("a"), shown))
    assert [line[: len(begin)] for line, begin in zip(found, told, strict=True)] == told


def test_without_routes_a_name_has_the_neighbours_address() -> None:
    served = plan(NEAR, dns="true")
    for host, known in (("b", served.host("c").ports[0].address), ("a", served.host("c").address)):
        assert f"{known} c\n" in names.hosts_file(served, served.host(host))
        assert list(names.differences(served, served.host(host), f"nameserver 127.0.0.1\n{known}\n")) == []


@pytest.mark.parametrize(("links", "known"), [("2ms 20ms", 0), ("20ms 2ms", 1)])
def test_of_two_segments_to_a_neighbour_the_name_has_the_one_of_the_path(links: str, known: int) -> None:
    both = ", ".join(f"{{ends: [a, b], rtt: {rtt}}}" for rtt in links.split())
    twice = plan(f"name: twice\nrouting: neighbours\nhosts: {{a: , b: }}\nlinks: [{both}]\n")
    assert f"{twice.host('b').ports[known].address} b\n" in names.hosts_file(twice, twice.host("a"))


def test_another_word_is_refused_with_its_line() -> None:
    with pytest.raises(InputError, match=r"three.yaml:5: dns: 'maybe' does not say whether each host has a name serv"):
        plan(dns="maybe")
