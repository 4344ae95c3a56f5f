"""An edited file and a lab that is up: what leads from one to the other, setting by setting, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from minigts.errors import InputError
from minigts.language.quantities import FileName
from minigts.topology import edit
from minigts.topology.difference import Difference, difference, plan_with_settings
from minigts.topology.host_settings import HOST_SETTINGS, HostSpec, field_of
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.plan.elements import Host, HostPort, Link, Port, Switch
from minigts.topology.plan.fact import fields_with_facts
from minigts.topology.plan.plan import Plan
from minigts.topology.read.links import END_SETTINGS, LinkSpec
from minigts.topology.read.load import load, parse_text
from minigts.topology.read.model import LAB_SETTINGS, SHORTHANDS, Topology
from minigts.topology.renumber import renumber_plan

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
FILES = sorted(path.name for path in TOPOLOGIES.glob("*.yaml"))
OF_NUMBERS = {"index", "mac", "address", "peer_address", "subnet", "prefix"}
"""What follows from the places of hosts and links in a file."""


def planned(text: str, time: str = "virtual") -> Plan:
    return parse_text(text, "x.yaml", best=time).plan  # type: ignore[arg-type]


def changed(lab: Plan, text: str) -> Difference:
    """What leads from the lab to the file with that text."""
    file = parse_text(text, "x.yaml", best=lab.time)
    return difference(lab, renumber_plan(file.plan, lab, file.subnets))


def by_names(plan: Plan) -> dict[str, Any]:
    """The plan without numbers, its lists by name."""

    def bare(value: Any) -> Any:
        if isinstance(value, Mapping):
            kept = {key: bare(each) for key, each in value.items() if key not in OF_NUMBERS}
            return {**kept, "name": ""} if "outgoing" in kept else kept  # eth1, eth2: by place, too
        return [bare(each) for each in value] if isinstance(value, list) else value

    document = bare(plan.model_dump(mode="json", exclude={"ipv6"}))
    for key in ("hosts", "switches", "links"):
        document[key] = {each["name"]: each for each in document[key]}
        for each in document[key].values():
            each["ports"] = sorted(each.get("ports", ()), key=lambda port: port["link"])
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_not_edited_changes_nothing(name: str) -> None:
    plan = load(TOPOLOGIES / name)
    lab = Plan.model_validate_json(plan.model_dump_json())
    assert renumber_plan(plan, lab) == plan
    made = difference(lab, renumber_plan(plan, lab))
    assert made.is_empty
    assert plan_with_settings(made) == plan


SQUARE = (
    "name: square\nhosts: {ams: , bra: , lju: , mil: }\nlinks:\n"
    "- {ends: [ams, bra], delay: 10ms, rate: 10mbit, loss: 1%}\n"
    "- {ends: [bra, lju], rtt: 10ms}\n- {ends: [lju, mil], rtt: 10ms}\n- {ends: [mil, ams], rtt: 10ms}\n"
)
OTHER = {
    "delay": "20ms",
    "jitter": "1ms",
    "jitter.correlation": "{range: 1ms, correlation: 25%}",
    "jitter.distribution": "{sd: 1ms, distribution: normal}",
    "jitter.order": "{range: 1ms, order: free}",
    "loss": "2%",
    "rate": "20mbit",
    "queue": "100kB",
    "queue.discipline": "{discipline: codel}",
    "queue.ecn": "{discipline: codel, ecn: true}",
    "queue.target": "{discipline: codel, target: 7ms}",
    "queue.interval": "{discipline: codel, interval: 70ms}",
    "queue.mark": "{discipline: codel, mark: 1ms}",
    "queue.min": "{discipline: red, min: 5kB}",
    "queue.max": "{discipline: red, max: 30kB}",
    "burst": "8packets",
    "burst.loss": "{length: 8packets, loss: 60%}",
    "burst.between": "{length: 8packets, between: 0.1%}",
    "rate.burst": "{mean: 10mbit, burst: 1MB}",
    "rate.peak": "{mean: 10mbit, burst: 1MB, peak: 20mbit}",
    "rate.excess": "{mean: 10mbit, burst: 1MB, excess: drop}",
    "blackhole": "1400B",
    "reorder": "5%",
    "duplicate": "1%",
    "corrupt": "1%",
    "slot": "5ms",
}
"""Another value of each setting of links that stands in the topology itself."""


def with_value(word: str, value: str) -> str:
    head = word.partition(".")[0]
    text = SQUARE.replace("delay: 10ms", f"{head}: {value}") if head == "delay" else SQUARE
    for known in ("rate: 10mbit", "loss: 1%"):
        if known.startswith(f"{head}:"):
            return text.replace(known, f"{head}: {value}")
    return text if head == "delay" else text.replace("delay: 10ms", f"delay: 10ms, {head}: {value}")


@pytest.mark.parametrize("word", [each.word for each in LINK_SETTINGS if not isinstance(each.kind, FileName)])
def test_every_setting_of_a_link_is_set_and_then_the_plan_is_the_files(word: str) -> None:
    lab, text = planned(SQUARE), with_value(word, OTHER[word])
    made, file = changed(lab, text), planned(text)
    setting = next(each for each in LINK_SETTINGS if each.word == word)
    assert file != lab
    if not setting.under_traffic:
        assert [each for each in made.refused if word in each]
        return
    assert made.refused == ()
    named = {(each.link, each.sender) for each in made.set if each.setting.word == word}
    assert named == {("ams-bra", "ams"), ("ams-bra", "bra")}
    assert not made.comes_or_goes
    assert plan_with_settings(made) == made.after == file


@pytest.mark.parametrize("word", [each.word for each in LINK_SETTINGS if each.settable and "." not in each.word])
def test_one_direction_is_set_alone(word: str) -> None:
    before = {"delay": "10ms", "rate": "10mbit", "loss": "1%"}.get(word, "0ms" if OTHER[word].endswith("ms") else "0%")
    before = {"queue": "64kB", "burst": "2packets", "blackhole": "1300B"}.get(word, before)
    lab = planned(with_value(word, f"{{to: {before}, from: {before}}}"))
    made = changed(lab, with_value(word, f"{{to: {before}, from: {OTHER[word]}}}"))
    assert {each.sender for each in made.set if each.setting.word == word} == {"bra"}
    assert [line for line in made.lines if line.startswith(f"~ link ams-bra from bra {word} ")]


@pytest.mark.parametrize(
    ("word", "before", "after"),
    [
        ("jitter.order", "{range: 1ms}", "{range: 1ms, order: {to: kept, from: free}}"),
        ("rate.burst", "{mean: 10mbit, burst: 1MB}", "{mean: 10mbit, burst: {to: 1MB, from: 2MB}}"),
        ("burst.loss", "8packets", "{length: 8packets, loss: {to: 100%, from: 60%}}"),
    ],
)
def test_one_direction_of_a_nested_setting_is_set_alone(word: str, before: str, after: str) -> None:
    made = changed(planned(with_value(word, before)), with_value(word, after))
    (change,) = made.set
    assert (change.setting.word, change.sender) == (word, "bra")


OF_HOSTS = {
    "location": "AMS",
    "cpus": "2",
    "memory": "1GB",
    "disk": "cached",
    "processor": "{frame: 10us}",
    "gateway": "true",
    "routes": "{ams: bra}",
    "sysctls": "{net.core.rmem_default: 4194304}",
    "ecn": "on",
    "kernel": "mine",
    "light": "true",
    "asn": "64500",
    "image": "docker-daemon:web:1",
    "packages": "[nano]",
    "files": "[{source: x, target: /root/x}]",
    "environment": "{A: b}",
    "run": "['true']",
    "containers": "[{name: web, image: 'docker-daemon:redis:7'}]",
    "compose": "compose.yaml",
}
"""A value of each key of hosts."""
NEEDS_FILES = {"files", "compose"}
NEEDS_A_PROTOCOL = {"routing", "asn"}
OF_NEW_HOSTS = {"location", "memory", "disk", "sysctls", "ecn", "kernel", "environment", "run"}


@pytest.mark.parametrize("key", [key for key in HOST_SETTINGS if key not in {*NEEDS_FILES, *NEEDS_A_PROTOCOL}])
def test_every_key_of_a_host_is_refused_with_its_name_or_only_describes_it(key: str) -> None:
    time = "real" if key == "gateway" else "virtual"
    made = changed(planned(SQUARE, time), SQUARE.replace("lju: ,", f"lju: {{{key}: {OF_HOSTS[key]}}},"))
    if key == "location":
        assert (made.described, made.refused) == (("host lju location",), ())
        return
    (said,) = made.refused
    assert said.startswith("host lju: ")
    assert key in said


@pytest.mark.parametrize("key", [key for key in HOST_SETTINGS if key not in {*NEEDS_FILES, *NEEDS_A_PROTOCOL}])
def test_a_new_host_has_the_keys_that_it_can_have_and_others_are_refused(key: str) -> None:
    time = "real" if key == "gateway" else "virtual"
    text = SQUARE.replace("mil: }", f"mil: , par: {{{key}: {OF_HOSTS[key]}}}}}") + "- {ends: [par, bra], rtt: 4ms}\n"
    made = changed(planned(SQUARE, time), text)
    assert made.added == ("par",)
    if key in OF_NEW_HOSTS:
        assert made.refused == ()
        assert by_names(made.after) == by_names(planned(text, time))
    else:
        (said,) = made.refused
        assert said.startswith(f"host par: {key}: ")


def test_another_routing_program_is_refused_and_so_is_a_new_host() -> None:
    text = SQUARE.replace("name: square", "name: square\nrouting: ospf")
    other = changed(planned(text), text.replace("lju: ,", "lju: {routing: {engine: frr}},"))
    assert any(each.startswith("host lju: routing: ") for each in other.refused)
    more = text.replace("mil: }", "mil: , par: {routing: {engine: frr}}}") + "- {ends: [par, bra], rtt: 4ms}\n"
    assert any("OSPF" in each for each in changed(planned(text), more).refused)


OF_FILE = {
    "name": ("name: other", "refused"),
    "description": ("description: what it is for", "described"),
    "routing": ("routing: neighbours", "refused"),
    "ecmp": ("ecmp: true", "refused"),
    "kernel": ("kernel: mine", "refused"),
    "bfd": ("routing: ospf\nbfd: 100ms", "refused"),
    "time": ("time: real", "refused"),
    "subnets": ("subnets: 192.168.0.0/16", "refused"),
    "ipv6": ("ipv6: true", "refused"),
    "ipv4": ("ipv6: true\nipv4: false", "refused"),
    "dns": ("dns: true", "refused"),
    "delays": ("delays: sites", ""),
    "defaults": ("defaults: {host: {memory: 1GB}}", "refused"),
    "overlay": ("overlay: swarm", "overlay"),
    "groups": ("groups: {one: [ams, bra]}", "refused"),
    "kubernetes": ("kubernetes: {proxy: nftables}", "refused"),
    "chain": ("chain: {hosts: [lon, par]}\n", "added"),
    "pair": ("pair: {hosts: [lon, par]}\n", "added"),
    "star": ("star: {centre: lon, clients: [par]}\n", "added"),
    "ring": ("ring: {hosts: [lon, par, rom]}\n", "added"),
    "clos": ("clos: {spines: [lon], leaves: [par, rom], hosts: 0}\n", "added"),
    "hosts": ("hosts: {ams: , bra: , lju: , mil: , lon: }", "added"),
    "switches": ("switches: {s1: }", "refused"),
    "links": ("", "added_links"),
    "expect": ("expect: [{latency: as-declared}]", "described"),
    "tolerances": ("tolerances: {rate: 5%}", "described"),
    "schedule": ("schedule: [{at: 1s, link: ams-bra, cut: 1s}]", "described"),
    "seed": ("seed: 7", "refused"),
}
"""For every key of a file another value, and the list of the difference in which it then stands."""
BESIDE = {
    **dict.fromkeys(("chain", "pair", "star", "ring", "clos", "hosts"), "- {ends: [lon, ams], rtt: 2ms}\n"),
    "switches": "- {ends: [ams, s1]}\n- {ends: [lju, s1]}\n",
    "links": "- {ends: [ams, lju], rtt: 2ms}\n",
}


def test_another_cost_is_refused_and_a_link_that_is_added_has_one() -> None:
    text = SQUARE.replace("name: square", "name: square\ndefaults: {link: {cost: 10}}")
    (said,) = changed(planned(text), text.replace("[ams, bra],", "[ams, bra], cost: {to: 10, from: 20},")).refused
    assert said == "link ams-bra: cost: hosts get their routes as they boot"
    wider = text + "- {ends: [ams, lju], cost: 5}\n"
    made = changed(planned(text), wider)
    assert (made.refused, made.added_links) == ((), ("ams-lju",))
    assert made.after == planned(wider)


def test_every_key_of_a_file_is_tried() -> None:
    assert OF_FILE.keys() == Topology.model_fields.keys()


@pytest.mark.parametrize("key", OF_FILE)
def test_every_key_of_a_file_is_applied_or_refused_with_its_name(key: str) -> None:
    written, where = OF_FILE[key]
    rest = "".join(
        line for line in SQUARE.splitlines(keepends=True) if not line.startswith(f"{key}:") or key == "links"
    )
    text = f"{written}\n{rest}{BESIDE.get(key, '')}"
    lab = planned(SQUARE)
    file = parse_text(text, "x.yaml", best=lab.time)
    made = difference(lab, renumber_plan(file.plan, lab, file.subnets))
    if where == "refused":
        assert [each for each in made.refused if key.removesuffix("es") in each or key == "defaults"], made
    elif where:
        assert made.refused == ()
        assert getattr(made, where)
        assert by_names(made.after) == by_names(file.plan)
    else:
        assert made.is_empty


def edited(text: str, chance: random.Random, number: int) -> str:
    """A file with one more edit: a host or link more or less, another setting, or another order."""
    lines = text.splitlines()
    at = lines.index("links:")
    hosts, links = lines[2:at], lines[at + 1 :]
    match chance.randrange(6):
        case 0:
            new = f"n{number}"
            hosts.insert(chance.randrange(len(hosts) + 1), f"  {new}: {{memory: {128 * chance.randint(1, 3)}MB}}")
            old = chance.choice([each for each in hosts if f"{new}:" not in each]).split(":")[0].strip()
            links.insert(chance.randrange(len(links) + 1), f"- {{ends: [{new}, {old}], rtt: {chance.randint(1, 9)}ms}}")
        case 1 if len(hosts) > 3:
            gone = hosts.pop(chance.randrange(len(hosts))).split(":")[0].strip()
            links = [each for each in links if f" {gone}]" not in each and f"[{gone}," not in each]
        case 2:
            ends = [each.split(":")[0].strip() for each in chance.sample(hosts, 2)]
            name = f"l{number}"
            links.append(f"- {{ends: [{ends[0]}, {ends[1]}], name: {name}, rtt: {chance.randint(1, 9)}ms, loss: 1%}}")
        case 3 if len(links) > 2:
            links.pop(chance.randrange(len(links)))
        case 4:
            chance.shuffle(hosts)
            chance.shuffle(links)
        case _:
            index = chance.randrange(len(links))
            kept = links[index].split(", rtt:")[0]
            links[index] = f"{kept}, rtt: {chance.randint(1, 99)}ms, rate: {chance.randint(1, 99)}mbit, jitter: 0.1ms}}"
    return "\n".join([lines[0], "hosts:", *hosts, "links:", *links]) + "\n"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_edited_the_lab_becomes_the_files_and_what_stays_keeps_its_addresses(seed: int) -> None:
    chance = random.Random(seed)
    text = "name: x\nhosts:\n  ams:\n  bra:\n  lju:\nlinks:\n"
    text += "- {ends: [ams, bra], rtt: 4ms}\n- {ends: [bra, lju], rtt: 4ms}\n"
    lab, done = planned(text), 0
    for number in range(30):
        other = edited(text, chance, number)
        if chance.random() < 0.3:
            other = edited(other, chance, 100 + number)
        try:
            file = parse_text(other, "x.yaml", best=lab.time)
        except InputError:  # apart from each other, or the same link twice
            continue
        made = difference(lab, renumber_plan(file.plan, lab, file.subnets))
        if made.refused:
            assert made.refused == ("hosts: the file has none of the lab's hosts: it is another network",)
            continue
        assert by_names(made.after) == by_names(file.plan)
        had = {host.name: host for host in lab.hosts}
        stay = {link.name for link in lab.links}.difference(made.removed_links)
        for host in made.after.hosts:
            if host.name in had:
                assert (host.index, host.address) == (had[host.name].index, had[host.name].address)
                then = {port.link: (port.mac, port.address) for port in had[host.name].ports}
                assert all((port.mac, port.address) == then[port.link] for port in host.ports if port.link in stay)
        set_first = plan_with_settings(made)
        assert [host.name for host in set_first.hosts] == [host.name for host in lab.hosts]
        assert Plan.model_validate_json(set_first.model_dump_json()) == set_first
        assert not difference(set_first, made.after).set
        if not made.comes_or_goes:
            assert set_first == made.after
        assert difference(made.after, renumber_plan(file.plan, made.after, file.subnets)).is_empty
        lab, text, done = Plan.model_validate_json(made.after.model_dump_json()), other, done + 1
    assert done > 8


def test_what_add_and_remove_made_is_what_the_file_says() -> None:
    lab = planned(SQUARE)
    by_verbs = edit.add_host(lab, "par", "bra", {"rtt": "4ms", "memory": "1GB"})
    by_verbs = edit.remove_link(by_verbs, "mil-ams")
    text = SQUARE.replace("mil: }", "mil: , par: {memory: 1GB}}").replace("- {ends: [mil, ams], rtt: 10ms}\n", "")
    made = changed(by_verbs, text + "- {ends: [par, bra], rtt: 4ms}\n")
    assert made.is_empty


def test_a_host_that_comes_has_the_files_defaults() -> None:
    head = "name: x\ndefaults: {host: {memory: 256MB}, link: {rate: 5mbit, rtt: 3ms}}\n"
    lab = planned(f"{head}hosts: {{a: , b: }}\nlinks:\n- ends: [a, b]\n")
    made = changed(lab, f"{head}hosts: {{a: , c: , b: }}\nlinks:\n- ends: [b, c]\n- ends: [a, b]\n")
    assert (made.added, made.added_links, made.refused) == (("c",), ("b-c",), ())
    assert made.after.host("c").memory_mb == 256
    assert made.after.links[1].rate_mbit == 5
    assert [host.name for host in made.after.hosts] == ["a", "b", "c"]
    assert (made.after.host("c").address, made.after.host("c").ports[0].address) == ("10.255.0.3", "10.20.1.2")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("rtt: 10ms}\n- {ends: [lju", "rtt: 10ms, mtu: 9000}\n- {ends: [lju", "link bra-lju: mtu"),
        ("rtt: 10ms}\n- {ends: [lju", "rtt: 10ms, subnet: 192.168.7.0/24}\n- {ends: [lju", "link bra-lju: subnet"),
        ("hosts: {ams: , bra: , lju: , mil: }", "hosts: {ams: , bra: }\npair: {hosts: [mil, lju]}", "link"),
    ],
)
def test_what_a_running_lab_cannot_have_is_said_with_its_place(before: str, after: str, said: str) -> None:
    made = changed(planned(SQUARE), SQUARE.replace(before, after))
    if "pair" in after:  # only the order differs, and a link more
        assert made.added_links == ("mil-lju",)
        return
    assert made.refused[0].startswith(said)


def test_a_subnet_that_the_file_gives_is_told_from_one_that_follows_from_its_place() -> None:
    lab = planned(SQUARE)
    middle = SQUARE.replace("- {ends: [bra, lju], rtt: 10ms}\n", "")
    fewer = changed(lab, middle)
    assert (fewer.removed_links, fewer.refused) == (("bra-lju",), ())
    given = middle.replace("[lju, mil], rtt: 10ms", "[lju, mil], rtt: 10ms, subnet: 10.20.1.0/24")
    assert changed(fewer.after, middle).is_empty
    assert changed(fewer.after, given).refused == (
        "link lju-mil: subnet: hosts keep their addresses (10.20.2.0/24, not 10.20.1.0/24)",
    )


def test_routers_and_vlans_and_ipv6_are_refused_where_add_and_remove_refuse_them() -> None:
    ospf = (TOPOLOGIES / "ring6-ospf.yaml").read_text()
    more = changed(parse_text(ospf, "x.yaml").plan, ospf.replace("links:\n", "links:\n  - {ends: [ams, mil]}\n"))
    assert [each for each in more.refused if "hosts find their routes by OSPF" in each]
    vlans = load(TOPOLOGIES / "vlans.yaml")
    text = (TOPOLOGIES / "vlans.yaml").read_text()
    text = text.replace("hosts:\n", "hosts:\n  par:\n").replace("links:\n", "links:\n  - {ends: [par, s1], vlan: 10}\n")
    more = changed(vlans, text)
    assert [each for each in more.refused if "the links of s1 have VLANs" in each]
    with_ipv6 = SQUARE.replace("name: square\n", "name: square\nipv6: true\n")
    lab = planned(with_ipv6)
    last = changed(lab, with_ipv6.replace("- {ends: [mil, ams], rtt: 10ms}\n", ""))
    middle = changed(lab, with_ipv6.replace("- {ends: [bra, lju], rtt: 10ms}\n", ""))
    assert last.refused == ()
    assert "IPv6 addresses of other hosts would change" in middle.refused[0]


@pytest.mark.parametrize("model", [Plan, Host, Switch, Link, Port, HostPort])
def test_every_field_of_a_plan_says_what_it_is_to_a_lab_that_is_up(model: type[BaseModel]) -> None:
    """No other module lists them."""
    assert [name for name, _ in fields_with_facts(model)] == [*model.model_fields]


PARTS_OF_A_FILE = {"defaults", "hosts", "switches", "links", *SHORTHANDS}


def test_every_key_of_a_file_is_a_fact() -> None:
    """A lab's, a host's, a direction's or an end's; but for the parts of a file that hold those."""
    assert LAB_SETTINGS.keys() == Topology.model_fields.keys() - PARTS_OF_A_FILE
    assert HOST_SETTINGS.keys() == HostSpec.model_fields.keys()
    assert END_SETTINGS.keys() == LinkSpec.model_fields.keys() - {each.head for each in LINK_SETTINGS} - {"ends", "rtt"}


def test_what_follows_from_a_fact_is_a_field_of_the_plan() -> None:
    assert {each.field or key for key, each in LAB_SETTINGS.items() if each.planned is not None} <= {*Plan.model_fields}
    assert {field_of(key) for key in HOST_SETTINGS} <= {*Host.model_fields}
