"""A plan with hosts and links more, or less: what stays is as it was, and what cannot be is said."""

from __future__ import annotations

import json
import random
import socket
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minigts.dataplane import interfaces
from minigts.errors import HostFailed, InputError
from minigts.lab.record import Record
from minigts.providers.agent import sockets
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.clock.process import SOCKET, ClockOrder, layout
from minigts.providers.uml.provider import altered_launch, launch_of
from minigts.providers.uml.virtual import VirtualUmlProvider
from minigts.topology.edit import add_host, add_link, remove_host, remove_link
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
CHAIN = (
    "name: x\nhosts: {a: , b: , c: }\nlinks:\n- {ends: [a, b], rtt: 10ms}\n- {ends: [b, c], rtt: 20ms, rate: 10mbit}\n"
)


def made(text: str) -> Plan:
    return parse(text, "x.yaml")


PLAN = made(CHAIN)


def ends_of(plan: Plan) -> dict[str, str]:
    """By MAC the address of every host's end of a link."""
    return {port.mac: port.address for host in plan.hosts for port in host.ports}


def ports_of(plan: Plan) -> dict[str, str]:
    """By MAC the name of every machine's port."""
    return {port.mac: port.name for machine in plan.machines for port in machine.ports}


def numbers_of(plan: Plan) -> list[list[int]]:
    """By machine the numbers of its ports."""
    return [[port.number for port in machine.ports] for machine in plan.machines]


def own_of(plan: Plan) -> dict[str, str]:
    return {host.name: host.address for host in plan.hosts}


def test_what_comes_last_is_as_if_it_stood_last_in_the_file() -> None:
    text = CHAIN.replace("c: }", "c: , d: {memory: 1GB, location: LON}}")
    file = made(
        text + "- {ends: [d, b], rtt: 6ms, rate: 20mbit, queue: 100kB}\n- {ends: [a, d], delay: 1ms, jitter: 0ms}\n"
    )
    plan = add_host(
        PLAN, "d", "b", {"rtt": "6ms", "rate": "20mbit", "queue": "100kB", "memory": "1GB", "location": "LON"}
    )
    assert add_link(plan, "a", "d", {"delay": "1ms"}) == file


def test_what_comes_has_its_addresses_and_its_seed_from_the_file() -> None:
    head = "name: x\nsubnets: 192.168.0.0/16\nseed: 7\n"
    file = made(f"{head}hosts: {{a: , b: , c: }}\nlinks:\n- ends: [a, b]\n- {{ends: [c, b], loss: 1%}}\n")
    before = made(f"{head}hosts: {{a: , b: }}\nlinks:\n- ends: [a, b]\n")
    lab = Plan.model_validate_json(before.model_dump_json())  # as a lab has it
    after = add_host(lab, "c", "b", {"loss": "1%"})
    assert after.host("c").ports[0].address == "192.168.1.1"
    assert after.host("c").ports[0].outgoing.seed == zlib.crc32(b"7/c-b/1")
    assert after == file


def test_what_comes_into_a_lab_of_sites_has_its_delay_from_them() -> None:
    head = "name: x\ndelays: sites\n"
    before = made(f"{head}hosts: {{a: {{location: AMS}}, b: {{location: MIL}}}}\nlinks:\n- ends: [a, b]\n")
    hosts = "hosts: {a: {location: AMS}, b: {location: MIL}, c: {location: LON}}"
    file = made(f"{head}{hosts}\nlinks:\n- ends: [a, b]\n- {{ends: [c, b], rate: 10mbit}}\n")
    assert file.links[1].delay_from == "distance"
    assert add_host(before, "c", "b", {"location": "LON", "rate": "10mbit"}) == file
    assert add_host(before, "c", "b", {"location": "LON", "delay": "1ms"}).links[1].delay_from == "file"
    with pytest.raises(InputError, match="no site 'XYZ'; sites are AMS, "):
        add_host(before, "c", "b", {"location": "XYZ"})


def test_a_file_that_says_neither_has_the_plan_that_it_had() -> None:
    assert not {"subnets", "seed"} & json.loads(PLAN.model_dump_json()).keys()
    assert (PLAN.subnets, PLAN.seed) == ("10.20.0.0/14", 0)


def test_a_block_that_is_used_up_is_named() -> None:
    lab = made("name: x\nsubnets: 192.168.4.0/24\nhosts: {a: , b: }\nlinks:\n- ends: [a, b]\n")
    with pytest.raises(InputError, match=r"192\.168\.4\.0/24 holds 1; give .* each of them a `subnet:`"):
        add_host(lab, "c", "b", {})


LABS = {
    "plain": CHAIN,
    "of IPv6 alone": CHAIN.replace("hosts:", "ipv6: true\nipv4: false\nhosts:"),
    "in virtual time": CHAIN.replace("hosts:", "time: virtual\nhosts:"),
    "with an overlay": CHAIN.replace("hosts:", "overlay: swarm\nhosts:"),
    "without routes": CHAIN.replace("hosts:", "routing: neighbours\nhosts:"),
    "with costs": CHAIN.replace("10ms}", "10ms, cost: 5}").replace("20ms,", "20ms, cost: 5,"),
}
OF_LINKS = {
    "rtt": ("0ms", "30s"),
    "rate": ("10mbit", "1bit"),
    "rate.peak": ("50mbit",),
    "queue": ("100kB", "20packets"),
    "queue.discipline": ("codel", "red"),
    "jitter": ("2ms",),
    "blackhole": ("1000B", "9000B"),
    "mtu": ("9000", "68"),
    "cost": ("5", "0"),
    "subnet": ("172.16.1.0/24", "192.168.3.0/30", "10.255.0.0/24", "fd00::/64"),
}
OF_HOSTS = {"ecn": ("on", "accurate"), "memory": ("256MB", "1MB"), "sysctls.net.core.somaxconn": ("99",)}


@pytest.mark.parametrize("lab", LABS)
def test_what_is_added_is_taken_exactly_where_a_file_with_it_is(lab: str) -> None:
    chance, plan, taken, refused = random.Random(lab), made(LABS[lab]), 0, 0
    values = {**OF_LINKS, **OF_HOSTS}
    for _ in range(120):
        words = {word: chance.choice(values[word]) for word in chance.sample([*values], chance.randint(0, 3))}
        links, hosts = ({key: value for key, value in words.items() if key in of} for of in (OF_LINKS, OF_HOSTS))
        nested = {key: f"{{{key.partition('.')[2]}: {value}}}" for key, value in links.items() if "." in key}
        if {key.partition(".")[0] for key in nested} & {*links}:
            continue  # `queue` and `queue.discipline` are one key of a file
        of_link = {key.partition(".")[0]: nested.get(key, value) for key, value in links.items()}
        of_host = {
            "sysctls" if "." in key else key: "{net.core.somaxconn: 99}" if "." in key else hosts[key] for key in hosts
        }
        wanted = LABS[lab].replace(
            "c: }", f"c: , d: {{{', '.join(f'{key}: {its}' for key, its in of_host.items())}}}}}"
        )
        wanted += f"- {{ends: [d, b]{''.join(f', {key}: {its}' for key, its in of_link.items())}}}\n"
        try:
            file = made(wanted)
        except InputError:
            refused += 1
            with pytest.raises(InputError):
                add_host(plan, "d", "b", words)
        else:
            taken += 1
            assert add_host(plan, "d", "b", words) == file
    assert taken and refused


@pytest.mark.parametrize("file", ["chain6", "ipv6", "mesh6", "star"])
def test_whatever_is_added_and_removed_what_stays_keeps_its_addresses(file: str) -> None:
    plan, chance = load(TOPOLOGIES / f"{file}.yaml"), random.Random(1)
    done, refused = 0, set()
    for number in range(60):
        names = [host.name for host in plan.hosts]
        first, second = chance.sample(names, 2)
        way: Callable[[], Plan] = chance.choice(
            [
                lambda plan=plan, first=first, number=number: add_host(plan, f"n{number}", first, {"rtt": "4ms"}),
                lambda plan=plan, first=first, second=second: add_link(
                    plan, first, second, {"rtt": "2ms", "loss": "1%"}
                ),
                lambda plan=plan, first=first: remove_host(plan, first),
                lambda plan=plan, chance=chance: remove_link(plan, chance.choice(plan.links).name),
            ]
        )
        try:
            after = way()
        except InputError as error:
            refused.add(str(error).split(" ", 1)[1])
            continue
        done += 1
        for of in (ends_of, own_of, ports_of):
            before, now = of(plan), of(after)
            assert all(before[key] == now[key] for key in before.keys() & now.keys())
        assert len({*ends_of(after).values(), *own_of(after).values()}) == len(ends_of(after)) + len(own_of(after))
        assert all(len({*names}) == len(names) and names == sorted(names) for names in numbers_of(after))
        assert all(path.reachable for path in after.paths)
        assert len(after.paths) == len(after.hosts) * (len(after.hosts) - 1) // 2
        plan = after
    assert done > 20
    assert refused
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_ports_keep_their_numbers_when_others_go() -> None:
    plan = remove_link(add_link(PLAN, "a", "c", {}), "a-b")
    assert [(port.name, port.link) for port in plan.host("b").ports] == [("eth2", "b-c")]
    assert [(port.name, port.link) for port in plan.host("c").ports] == [("eth1", "b-c"), ("eth2", "a-c")]
    assert [link.index for link in plan.links] == [1, 2]
    again = add_link(plan, "b", "a", {})
    assert [(port.name, port.link) for port in again.host("b").ports] == [("eth1", "b-a"), ("eth2", "b-c")]


def test_a_host_joins_a_switchs_segment() -> None:
    plan = load(TOPOLOGIES / "switched.yaml")
    more = add_host(plan, "ams4", "s1", {"rtt": "2ms"})
    (port,) = more.host("ams4").ports
    assert (port.address, port.peer_address) == ("10.20.0.8", "10.20.0.6")
    assert more.path("ams4", "bra1").links == ("ams4-s1", "s1-s2", "bra1-s2")
    assert remove_host(more, "ams4") == plan


def test_what_is_added_by_hand_has_the_settings_that_a_file_gives_it() -> None:
    words = {"ecn": "on", "sysctls.net.core.somaxconn": "99", "rate": "9mbit", "rate.burst": "9kB", "queue.ecn": "true"}
    by_hand = add_host(PLAN, "d", "a", {**words, "queue": "20packets", "queue.discipline": "codel"})
    host, link = by_hand.host("d"), by_hand.links[-1]
    assert {each.name: each.value for each in host.sysctls} == {"net.core.somaxconn": "99", "net.ipv4.tcp_ecn": "1"}
    way = by_hand.directions(link)[0]
    assert (way.rate_mbit, way.rate_burst_bytes) == (9, 9000)
    assert (way.queue_packets, way.queue_discipline, way.queue_ecn) == (20, "codel", "true")


LAB = load(TOPOLOGIES / "switched.yaml")
SWARM = made(CHAIN.replace("name: x\n", "name: x\noverlay: swarm\n"))
ONLY_IPV6 = made(CHAIN.replace("name: x\n", "name: x\nipv6: true\nipv4: false\n"))
ROUTERS = load(TOPOLOGIES / "ring6-ospf.yaml")
CHANGING = load(TOPOLOGIES / "changing.yaml")
GROUPS = load(TOPOLOGIES / "fourpairs.yaml")
VLANS = load(TOPOLOGIES / "vlans.yaml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: add_host(PLAN, "B!", "a", {}), "'B!' is not a host name"),
        (lambda: add_host(PLAN, "localhost", "a", {}), "'localhost' is every host's name for itself"),
        (lambda: add_host(PLAN, "b", "a", {}), "b is in the lab already"),
        (lambda: add_host(PLAN, "d", "aa", {}), "no host 'aa'; hosts are a, b, c, d; did you mean 'a'?"),
        (lambda: add_host(PLAN, "d", "a", {"rat": "1mbit"}), "'rat' is no setting of a link: write rtt, delay"),
        (lambda: add_host(PLAN, "d", "a", {"rate": "1"}), "rate: "),
        (lambda: add_host(PLAN, "d", "a", {"ecn": "yes"}), "ecn: 'yes' is not a choice of ECN: write off, on"),
        (lambda: add_host(PLAN, "d", "a", {"cpus": "2"}), "host d: cpus: a host that is added while the lab is up"),
        (lambda: add_host(PLAN, "d", "a", {"run": "true"}), "host d: run: write it in the topology's file"),
        (lambda: add_link(PLAN, "a", "c", {"queue.discipline": "sfq"}), "queue.discipline: 'sfq' is not a queue"),
        (lambda: add_host(PLAN, "d", "a", {"memory": "1"}), "memory: "),
        (lambda: add_host(PLAN, "d", "a", {"rtt": "1ms", "delay": "2ms"}), "both rtt and delay are given"),
        (lambda: add_host(PLAN, "d", "a", {"queue": "64kB"}), "a queue without a rate"),
        (lambda: add_link(PLAN, "a", "a", {}), "a link from 'a' to itself"),
        (lambda: add_link(PLAN, "a", "c", {"name": "a-b"}), "link 'a-b' is in the lab already"),
        (
            lambda: add_link(PLAN, "a", "c", {"subnet": "10.20.1.0/25"}),
            "subnet: 10.20.1.0/25 overlaps 10.20.1.0/24 of links.b-c",
        ),
        (lambda: add_link(SWARM, "a", "c", {"subnet": "172.16.1.0/24"}), "kept for Docker"),
        (lambda: add_link(LAB, "ams1", "s2", {}), "host 'ams1' is on this segment already"),
        (lambda: add_link(LAB, "s1", "s2", {}), "a link between two switches"),
        (
            lambda: add_host(LAB, "d", "s1", {"mtu": "9000"}),
            "MTU 9000 differs from the MTU 1500 of links.ams1-s1",
        ),
        (lambda: add_host(LAB, "d", "s1", {"subnet": "10.9.0.0/24"}), "subnet: 10.9.0.0/24 differs from 10.20.0.0/24"),
        (lambda: add_host(PLAN, "d", "a", {"ecn": "accurate"}), "ecn: accurate ECN exists only in virtual time"),
        (lambda: add_link(ONLY_IPV6, "a", "c", {"subnet": "10.9.0.0/24"}), "`subnet:` is of IPv4"),
        (lambda: add_host(VLANS, "d", "s1", {}), "the links of s1 have VLANs"),
        (lambda: remove_host(VLANS, "guest2"), "the links of s2 have VLANs"),
        (lambda: add_host(ROUTERS, "d", "ams", {}), "by OSPF"),
        (lambda: remove_link(ROUTERS, "ams-bra"), "by OSPF"),
        (lambda: remove_link(PLAN, "a-c"), "no link 'a-c'; there are a-b, b-c"),
        (lambda: remove_link(PLAN, "a-b"), "a would not reach b any more"),
        (lambda: remove_host(PLAN, "b"), "a would not reach c any more"),
        (lambda: remove_host(PLAN, "d"), "no host 'd'; there are a, b, c"),
        (lambda: remove_host(LAB, "s1"), "s1 is a switch"),
        (lambda: remove_host(made("name: x\nhosts: {a: }\n"), "a"), "a is the lab's only host"),
        (lambda: remove_host(GROUPS, GROUPS.groups[0].hosts[0]), "over which overlays are laid"),
        (lambda: remove_link(CHANGING, CHANGING.schedule[0].link), "the schedule of the topology changes"),
    ],
)
def test_what_cannot_be_is_said(change: Callable[[], Plan], said: str) -> None:
    with pytest.raises(InputError) as refused:
        change()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_ipv6_addresses_that_stay_are_never_others() -> None:
    plan = load(TOPOLOGIES / "ipv6.yaml")
    longer = add_link(plan, plan.hosts[0].name, plan.hosts[-1].name, {"rtt": "500ms"})
    assert remove_link(longer, longer.links[-1].name) == plan
    with pytest.raises(InputError, match="IPv6 addresses of other hosts would change"):
        remove_link(longer, longer.links[0].name)


def test_a_host_that_runs_on_forgets_routes_that_it_has_no_more() -> None:
    plan = add_host(PLAN, "d", "c", {})
    script = interfaces.script_again(plan, remove_host(plan, "d"), PLAN.host("a"))
    assert "route del 10.255.0.4/32" in script
    assert "route del 10.20.2.0/24" in script
    assert "route del 10.255.0.2/32" not in script
    assert "route del" not in interfaces.script_again(PLAN, plan, plan.host("a"))


def test_a_machine_keeps_the_number_that_the_clock_knows_it_by(tmp_path: Path) -> None:
    launch = launch_of(PLAN, Image(tmp_path), tmp_path, {})
    longer = add_host(add_link(PLAN, "a", "c", {}), "d", "c", {})
    order = ClockOrder(program="", wires=(), processors={})
    fewer = altered_launch(replace(altered_launch(launch, longer), clock=order), remove_host(longer, "b"))
    assert {each.name: each.number for each in fewer.machines} == {"a": 0, "c": 2, "d": 3}
    laid = layout(order, fewer.machines, fewer.links)
    assert [host["name"] for host in laid["hosts"]] == ["a", "", "c", "d"]
    assert laid["hosts"][1]["ports"] == []
    assert laid["links"] == [[(0, 0), (2, 0)], [(2, 1), (3, 0)]]


def test_the_clock_is_told_the_wires_of_the_links_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = add_host(PLAN, "d", "c", {"rtt": "6ms"})
    every = tuple({"host": one.name, "port": at, "wire": {}} for one in longer.machines for at in range(len(one.ports)))
    order = ClockOrder(program="", wires=every, processors={})
    replace(launch_of(longer, Image(tmp_path), tmp_path, {}), clock=order).write(tmp_path / "launch.json")
    (tmp_path / "hosts").mkdir()
    monkeypatch.chdir(tmp_path)
    with sockets.listening(SOCKET) as listener, ThreadPoolExecutor(1) as pool:
        told = pool.submit(one_request, listener)
        with pytest.raises(HostFailed, match="the lab's supervisor does not answer"):  # here there is none
            VirtualUmlProvider(tmp_path).alter(PLAN, lambda _: None)
        request = told.result()
    assert (request["op"], [host["name"] for host in request["hosts"]]) == ("set_topology", ["a", "b", "c"])
    delays_ms = {(one["host"], one["port"]): one["wire"]["delay_ns"] / 1e6 for one in request["wires"]}
    assert delays_ms == {(0, 0): 5, (1, 0): 5, (1, 1): 10, (2, 0): 10}


def one_request(listener: socket.socket) -> dict[str, Any]:
    """Take a request in place of a lab's clock, and agree to it."""
    listener.settimeout(10)
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as line:
        request: dict[str, Any] = json.loads(line.readline())
        line.write(b"{}\n")
    return request


def test_to_be_altered_is_no_restart_of_all() -> None:
    record = Record.model_validate(
        {"provider": "uml", "created": "2026-11-22T00:00:00Z", "time": "real", "state": "up", "plan_sha256": "a" * 64}
    )
    later = record.model_copy(update={"plan_sha256": "b" * 64, "unsettled": frozenset({"a", "b"}), "altered": True})
    assert [*later.since(record)] == []
