"""Which program speaks a lab's routing protocol: for the whole lab, for a host, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.cli.views.plan import _sentences
from minigts.errors import EnvironmentLacks, InputError
from minigts.formats import network
from minigts.providers import registry, supported
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse
from minigts.topology.to_network import network_of

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
PAIR = "name: x\n{}\nhosts: {{a: , b: {}}}\nlinks: [{{ends: [a, b]}}]\n"


def made(routing: str, of_b: str = "") -> Plan:
    return parse(PAIR.format(routing, of_b), "x.yaml")


def test_bird_is_the_default_and_is_not_stored() -> None:
    plain, written = made("routing: ospf"), made("routing: {protocol: ospf, engine: bird}")
    assert plan_json(plain) == plan_json(written)
    assert "engine" not in plan_json(plain)
    assert made("routing: {protocol: ospf}") == plain
    assert all(host.software is None for host in plain.hosts)


def test_a_lab_of_frr_gets_its_package_and_says_so() -> None:
    plan = made("routing: {protocol: bgp, engine: frr}")
    assert [supported.packages_of(host) for host in plan.hosts] == [("frr",), ("frr",)]
    assert str(plan.hosts[0].software and plan.hosts[0].software.packages[0].place) == "x.yaml:2: routing"
    (said,) = _sentences(plan)
    assert said == "hosts find their routes by BGP of FRR; FRR is Debian's package frr, which its hosts get"
    assert Plan.model_validate_json(plan_json(plan)) == plan


def test_a_host_may_have_another_program_than_the_lab() -> None:
    plan = made("routing: {protocol: ospf, engine: frr}", "{routing: {engine: bird}}")
    assert plan.engines == {"bird": ("b",), "frr": ("a",)}
    assert [supported.packages_of(host) for host in plan.hosts] == [("frr",), ()]
    assert "OSPF of BIRD (b) and FRR (a);" in " ".join(_sentences(plan))
    of_hosts = made("routing: ospf\ndefaults: {host: {routing: {engine: frr}}}")
    assert of_hosts.engines == {"frr": ("a", "b")}


def test_a_version_of_the_package_that_the_file_names_is_kept() -> None:
    plan = made("routing: {protocol: ospf, engine: frr}", "{packages: [nano, frr=10.3-3]}")
    assert supported.packages_of(plan.host("b")) == ("frr=10.3-3", "nano")


@pytest.mark.parametrize("file", [path.stem for path in sorted(TOPOLOGIES.glob("*.yaml")) if load(path).has_routers])
def test_every_shipped_topology_with_a_protocol_has_the_same_routes_by_frr(file: str) -> None:
    path = TOPOLOGIES / f"{file}.yaml"
    by_frr = load(path, values={"routing": "ospf", "routing.engine": "frr"})
    assert by_frr.engines == {"frr": tuple(host.name for host in by_frr.hosts)}
    plain = load(path, values={"routing": "ospf"})
    assert [by_frr.routes_of(each.name) for each in plain.hosts] == [plain.routes_of(each.name) for each in plain.hosts]


@pytest.mark.parametrize(
    ("written", "of_b", "says"),
    [
        ("routing: {engine: frr}", "", "2: routing: no protocol: write one, as in {protocol: ospf, engine: frr}"),
        ("routing: {protocol: ospf, engine: quagga}", "", "2: routing.engine: 'quagga' is not a routing program: "),
        ("routing: [ospf]", "", "2: routing: a list is not a routing mode"),
        ("routing: isis", "", "2: routing: BIRD has no IS-IS, but OSPF and BGP: write `routing: {protocol: isis, "),
        ("routing: {protocol: routed, engine: frr}", "", "2: routing.engine: only a routing protocol has a program"),
        ("routing: routed", "{routing: {engine: frr}}", "3: hosts.b.routing: the lab has no routing protocol"),
        ("routing: ospf", "{routing: {engine: [frr]}}", "3: hosts.b.routing.engine: a list is not a routing program"),
        (
            "routing: {protocol: isis, engine: frr}",
            "{routing: {engine: bird}}",
            "3: hosts.b.routing: BIRD has no IS-IS, but OSPF and BGP; take it out here",
        ),
        (
            "routing: {protocol: ospf, engine: frr}",
            "{image: 'docker-daemon:web:1'}",
            "3: hosts.b.image: this host has its own image, which takes no Debian package, as frr is: write "
            "`routing: {engine: bird}`",
        ),
    ],
)  # fmt: skip
def test_what_no_program_can_do_is_one_error_with_its_line(written: str, of_b: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        made(written, of_b)
    assert f"x.yaml:{says}" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_provider_without_packages_says_who_asks() -> None:
    plan = made("routing: {protocol: ospf, engine: frr}")
    mininet = next(each for each in registry.every(Path()) if each.name == "mininet")
    with pytest.raises(
        EnvironmentLacks, match=r"x\.yaml:2: routing: a, b with `engine: frr`: provider mininet does not"
    ):
        supported.require(plan, mininet.name, mininet.supports)


def test_a_sweep_may_vary_the_program_of_a_file_that_says_the_protocol_alone() -> None:
    path = TOPOLOGIES / "ring6-bgp.yaml"
    assert [*load(path, values={"routing.engine": "frr"}).engines] == ["frr"]
    assert load(path, values={"routing.engine": "frr"}).routing == "bgp"
    with pytest.raises(InputError, match=r"ring6-bgp\.yaml:6: routing\.engine: 'ospfd' is not a routing program"):
        load(path, values={"routing.engine": "ospfd"})


def test_other_formats_say_what_is_left_out() -> None:
    notes = network_of(made("routing: {protocol: ospf, engine: frr}")).notes
    assert any("routing: ospf" in each for each in notes)
    assert network.text(network_of(made("routing: bgp"))).startswith("# ")
