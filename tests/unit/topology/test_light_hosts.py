"""Light hosts in a topology: what the plan has of them, and what needs a kernel of its own is refused with its line."""

from __future__ import annotations

import random
from ipaddress import ip_network
from itertools import pairwise

import pytest

from minigts.errors import EnvironmentLacks, InputError
from minigts.overlays import lifecycle
from minigts.providers import supported
from minigts.providers.base import Supports
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.time import Time

HOSTS = "name: two\n{}hosts:\n  a: {}\n  b: {{}}\nlinks:\n- {{ends: [a, b], delay: 1ms}}\n"


def plan(top: str = "", of_a: str = "{}", time: Time | None = "virtual") -> Plan:
    return parse(HOSTS.format(top, of_a), "t.yaml", time=time)


def test_a_host_says_so_or_the_defaults_do() -> None:
    assert plan().sharing == frozenset()
    assert plan(of_a="{light: true}").sharing == {"a"}
    assert plan("defaults: {host: {light: true}}\n", "{light: false}").sharing == {"b"}


def test_hosts_with_kernels_are_stored_as_before() -> None:
    assert "light" not in plan(of_a="{light: false}").model_dump_json()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("memory: 1GB", "memory: 1024MB"),
        ("cpus: 2", "cpus: 2"),
        ("disk: cached", "disk: cached"),
        ("processor: {frame: 10us}", "processor"),
        ("sysctls: {net.core.rmem_default: 4194304}", "sysctls: net.core.rmem_default"),
    ],
)
def test_what_needs_a_kernel_of_its_own_is_refused(key: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        plan(of_a=f"{{light: true, {key}}}")

    (problem,) = refused.value.problems
    assert problem.line == 3
    assert "a light host shares its kernel" in problem.message
    assert f"`{said}`" in problem.message


def test_settings_of_a_network_namespace_are_a_light_host_s_own() -> None:
    made = plan(of_a="{light: true, sysctls: {net.ipv4.tcp_congestion_control: reno}}")

    assert made.machine("a").name in made.sharing


def test_real_time_has_none() -> None:
    with pytest.raises(InputError, match="light hosts exist only in virtual time"):
        plan("time: real\n", "{light: true}", None)


def test_a_provider_that_has_none_says_so() -> None:
    with pytest.raises(EnvironmentLacks, match="a with `light: true`: provider other does not support light hosts"):
        supported.require(plan(of_a="{light: true}"), "other", Supports(frozenset(), {}))


def test_an_overlay_needs_kernels() -> None:
    lifecycle.require_fit(plan(of_a="{light: true}"), "none")
    with pytest.raises(InputError, match="needs hosts with kernels of their own, and a of topology two is a light one"):
        lifecycle.require_fit(plan(of_a="{light: true}"), "swarm")


def test_a_light_host_has_few_routes_and_another_one_all() -> None:
    row = "name: row\ndefaults: {{host: {{light: {}}}}}\nchain: {{hosts: 40, link: {{delay: 1ms}}}}\n"
    light, full = (parse(row.format(word), "t.yaml", time="virtual") for word in ("true", "false"))
    (addressing,) = light.addressings
    middle, last = light.hosts[20], light.hosts[-1]

    assert len(light.routes_of(middle.name)) == len(full.set_routes_of(full.hosts[20], addressing)) == 76
    assert len(light.set_routes_of(middle, addressing)) < 20
    assert [each.to for each in light.set_routes_of(last, addressing)] == ["10.0.0.0/8"]
    assert all(one.source == other.source for one, other in pairwise(light.set_routes_of(middle, addressing)))


@pytest.mark.parametrize("more", ["", "ipv6: true\n", "ecmp: layer4\n"])
@pytest.mark.parametrize("seed", range(4))
def test_every_destination_goes_as_over_a_route_of_its_own(seed: int, more: str) -> None:
    """In a random network of which many hosts have one neighbour."""
    draw = random.Random(seed)
    links = [(number, draw.randrange(number)) for number in range(1, 25)] + [(3, 9), (4, 11), (5, 12)]
    text = "".join(f"- {{ends: [h{one}, h{other}], delay: 1ms}}\n" for one, other in dict.fromkeys(links))
    names = "".join(f"  h{number}: {{}}\n" for number in range(25))
    top = f"name: net\n{more}defaults: {{host: {{light: true}}}}\nhosts:\n{names}links:\n{text}"
    made = parse(top, "net.yaml", time="virtual")

    assert any(len(host.ports) == 1 for host in made.hosts)
    for host in made.hosts:
        for addressing in made.addressings:
            few = made.set_routes_of(host, addressing)
            for route in addressing.routes(made.routes_of(host.name)):
                last = ip_network(route.to)[-1]
                fitting = [each for each in few if last in ip_network(each.to)]
                longest = max(fitting, key=lambda each: ip_network(each.to).prefixlen)
                assert (longest.via, longest.also, longest.source) == (route.via, route.also, route.source)
