"""Addresses of links' ends that the file says: given, checked, kept on a lab that is up."""

from __future__ import annotations

import pytest

from minigts import overlays
from minigts.errors import InputError
from minigts.topology.difference import difference
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse, parse_text
from minigts.topology.renumber import renumber_plan
from minigts.topology.to_network import network_of

LAN = """name: lan
ipv6: true
hosts: {a: , b: , c: }
switches: {s: }
links:
  - {ends: [a, s], subnet: 192.168.7.0/24, addresses: {a: 192.168.7.20, s: 192.168.7.254}}
  - {ends: [b, s]}
  - {ends: [c, s], addresses: {c: 192.168.7.1}}
  - {ends: [a, b], subnet: 192.0.2.0/30, addresses: {a: 192.0.2.2}}
  - {ends: [b, c]}
"""


def own(plan: Plan, host: str) -> list[str]:
    return [f"{port.address}/{port.prefix} {port.peer_address}" for port in plan.host(host).ports]


def test_ends_have_the_addresses_of_the_file_and_others_the_lowest_that_are_free() -> None:
    plan = parse(LAN, "l.yaml")
    assert own(plan, "a") == ["192.168.7.20/24 192.168.7.254", "192.0.2.2/30 192.0.2.1"]
    assert own(plan, "b") == ["192.168.7.2/24 192.168.7.254", "192.0.2.1/30 192.0.2.2", "10.20.0.1/24 10.20.0.2"]
    assert own(plan, "c")[0] == "192.168.7.1/24 192.168.7.254"
    beside = plan.ipv6_of("a")
    assert beside is not None
    assert beside.port("eth1").address == "fd6d:6967:7473::14"
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    (route,) = (each for each in plan.routes_of("c") if each.to == "192.0.2.0/30")
    assert route.via == "10.20.0.1"


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (
            "c: 192.168.7.1",
            "c: 192.168.8.1",
            r"l\.yaml:8: links\[2\]\.addresses\.c: 192\.168\.8\.1 is no host's address in",
        ),
        ("c: 192.168.7.1", "c: 192.168.7.0", r"is no host's address in 192\.168\.7\.0/24"),
        ("c: 192.168.7.1", "c: 192.168.7.255", r"is no host's address in 192\.168\.7\.0/24"),
        ("c: 192.168.7.1", "c: 192.168.7.20", r"links\[2\]\.addresses\.c: 192\.168\.7\.20 is that of a already"),
        (
            "c: 192.168.7.1",
            "s: 192.168.7.9",
            r"links\[2\]\.addresses\.s: s has another address on this segment already",
        ),
        ("c: 192.168.7.1", "d: 192.168.7.1", r"links\[2\]\.addresses\.d: no end of the link; its ends are c, s"),
        ("c: 192.168.7.1", "c: x", r"links\[2\]\.addresses\.c: 'x' is not an IPv4 address: write it as in 192"),
        (
            "{c: 192.168.7.1}",
            "[192.168.7.1]",
            r"links\[2\]\.addresses: .* is no mapping of the link's ends to IPv4 addresses",
        ),
        (
            "subnet: 192.0.2.0/30, ",
            "",
            r"links\[3\]\.addresses\.a: which subnet is 192\.0\.2\.2 in\? Give the segment's",
        ),
    ],
)
def test_an_address_that_no_end_can_have_is_an_error_with_its_place(was: str, now: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(LAN.replace(was, now), "l.yaml")


def test_on_a_lab_that_is_up_the_addresses_of_the_file_are_wanted_and_others_stay() -> None:
    lab = parse(LAN, "l.yaml")

    def made(text: str) -> tuple[str, ...]:
        file = parse_text(text, "l.yaml")
        return tuple(difference(lab, renumber_plan(file.plan, lab, file.subnets, file.addresses)).refused)

    assert made(LAN) == ()
    assert made(LAN.replace(", addresses: {c: 192.168.7.1}", "")) == ()
    assert any("hosts keep their addresses" in each for each in made(LAN.replace("c: 192.168.7.1", "c: 192.168.7.3")))


MACS = """name: macs
hosts: {a: , b: , c: }
links:
  - {ends: [a, b], macs: {b: 02:00:00:00:00:0B}}
  - {ends: [b, c], macs: {b: 02:00:00:00:00:0c, c: "02:00:00:00:00:0d"}}
"""


def test_ports_have_the_macs_of_the_file_also_on_a_lab_that_is_up() -> None:
    plan = parse(MACS, "m.yaml")
    macs = {host.name: [port.mac for port in host.ports] for host in plan.hosts}
    assert macs == {
        "a": ["02:6d:67:00:00:01"],
        "b": ["02:00:00:00:00:0b", "02:00:00:00:00:0c"],
        "c": ["02:00:00:00:00:0d"],
    }
    file = parse_text(MACS.replace("links:\n", "links:\n  - {ends: [a, c]}\n"), "m.yaml")
    made = difference(plan, renumber_plan(file.plan, plan, file.subnets, file.addresses))
    assert (made.refused, made.added_links) == ((), ("a-c",))
    assert [port.mac for port in made.after.host("b").ports] == macs["b"]
    assert [line for line in network_of(plan).lost if line.startswith("macs")] != []


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("00:0c", "00:0b", r"m\.yaml:5: links\[1\]\.macs\.b: 02:00:00:00:00:0b is that of b of links\[0\] already"),
        ("b: 02:00:00:00:00:0B", "b: 02:6d:67:00:00:01", r"links\[0\]\.macs\.b: .* MAC address outside of 02:6d:67:"),
        ("b: 02:00:00:00:00:0B", "b: 03:00:00:00:00:0b", r"links\[0\]\.macs\.b: "),
        ("b: 02:00:00:00:00:0B", "c: 02:00:00:00:00:0b", r"links\[0\]\.macs\.c: no end of the link; its ends are a, b"),
    ],
)
def test_a_mac_that_no_end_can_have_is_an_error_with_its_place(was: str, now: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(MACS.replace(was, now), "m.yaml")


NAMED = """name: named
hosts: {a: , b: , c: }
links:
  - {ends: [a, b], interfaces: {a: uplink, b: Ethernet1.7}}
  - {ends: [b, c], interfaces: {b: downlink, c: uplink}}
"""


def names(plan: Plan) -> dict[str, list[str | None]]:
    return {host.name: [port.altname for port in host.ports] for host in plan.hosts}


def test_ports_have_the_names_of_the_file_also_on_a_lab_that_is_up() -> None:
    plan = parse(NAMED, "n.yaml")
    assert names(plan) == {"a": ["uplink"], "b": ["Ethernet1.7", "downlink"], "c": ["uplink"]}
    assert [port.name for port in plan.host("b").ports] == ["eth1", "eth2"]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert "altname" not in parse(MACS, "m.yaml").model_dump_json()
    text = NAMED.replace("links:\n", "links:\n  - {ends: [a, c], interfaces: {c: third}}\n")
    file = parse_text(text, "n.yaml")
    made = difference(plan, renumber_plan(file.plan, plan, file.subnets, file.addresses))
    assert (made.refused, made.added_links) == ((), ("a-c",))
    assert names(made.after)["c"] == ["uplink", "third"]
    other = parse_text(NAMED.replace("downlink", "other"), "n.yaml")
    made = difference(plan, renumber_plan(other.plan, plan, other.subnets, other.addresses))
    assert made.refused == ("link b-c: interfaces: hosts name their interfaces as they boot",)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (
            "downlink",
            "Ethernet1.7",
            r"n\.yaml:5: links\[1\]\.interfaces\.b: 'Ethernet1.7' is the name of b's end",
        ),
        (
            "downlink",
            "eth07",
            r"links\[1\]\.interfaces\.b: 'eth07' is not an interface name: names such as eth2 are",
        ),
        ("downlink", "eth1.10", "those of a host's ports, from eth0 to eth99999"),
        ("downlink", "eth100000", "those of a host's ports"),
        ("downlink", "ifb-eth1", "those of a host's ports"),
        ("downlink", "docker0", "Linux, minigts or an overlay has an interface of that name"),
        (
            "downlink",
            "a/b",
            r"'a/b' is not an interface name: .* at most 127 letters",
        ),
        ("downlink", '"a b"', "'a b' is not an interface name"),
        ("downlink", "x" * 128, "is not an interface name"),
        ("b: downlink", "a: downlink", r"links\[1\]\.interfaces\.a: no end of the link; its ends are b, c"),
        (
            "{b: downlink, c: uplink}",
            "[downlink]",
            "is no mapping of the link's ends to interfaces' names: ",
        ),
    ],
)
def test_a_name_that_no_end_can_have_is_an_error_with_its_place(was: str, now: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(NAMED.replace(was, now), "n.yaml")


def test_a_name_of_127_bytes_is_possible_and_a_stored_plan_has_each_once() -> None:
    plan = parse(NAMED.replace("downlink", "x" * 127), "n.yaml")
    stored = plan.model_dump_json()
    assert Plan.model_validate_json(stored) == plan
    with pytest.raises(ValueError, match=r"port Ethernet1\.7 of b appears twice"):
        Plan.model_validate_json(stored.replace("x" * 127, "Ethernet1.7"))
    with pytest.raises(ValueError, match="names no end of a link"):
        Plan.model_validate_json(stored.replace("x" * 127, "eth9"))


BLOCK = "name: b\noverlay: {}\nhosts: {{a: , b: }}\nlinks: [{{ends: [a, b], subnet: {}}}]\n"


@pytest.mark.parametrize("subnet", ["10.0.3.0/24", "172.20.0.0/24"])
def test_the_overlays_blocks_are_free_where_no_overlay_is_laid(subnet: str) -> None:
    for overlay in ("none", "none-v6"):
        ipv6 = "ipv6: true\n" if overlay == "none-v6" else ""
        plan = parse(ipv6 + BLOCK.format(overlay, subnet), "b.yaml")
        assert plan.links[0].subnet == subnet
        overlays.require_fit(plan, overlay)
        with pytest.raises(
            InputError, match=f"'vxlan' does not fit: link a-b of topology b has {subnet}, which overlaps"
        ):
            overlays.require_fit(plan, "vxlan")
    with pytest.raises(InputError, match=r"b\.yaml:4: links\[0\]\.subnet: .* which is kept for"):
        parse(BLOCK.format("vxlan", subnet), "b.yaml")


def test_the_longest_text_of_a_block_is_one() -> None:
    text = "name: x\nhosts: {a: , b: }\nlinks: [{ends: [a, b], subnet: 192.168.100.128/25}]\n"
    assert parse(text, "long.yaml").links[0].subnet == "192.168.100.128/25"


def test_the_hosts_own_block_is_never_free() -> None:
    with pytest.raises(InputError, match=r"which is kept for the hosts' own addresses"):
        parse(BLOCK.format("none", "10.255.7.0/24"), "b.yaml")


def test_export_says_that_they_are_lost() -> None:
    assert [line for line in network_of(parse(LAN, "l.yaml")).lost if line.startswith("addresses")] != []
    plain = "name: p\npair: {}\n"
    assert network_of(parse(plain, "p.yaml")).lost == ()
