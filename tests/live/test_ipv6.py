"""IPv6 beside IPv4 in a lab: its addresses, its routes over five hops, and how long its echoes take."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from ipaddress import IPv6Network

import pytest

from live.conftest import MakeLab, quiet, state_directory, take_down
from live.exact import EXACT_MS
from live.program import TOPOLOGIES
from minigts import lab as labs
from minigts import overlays
from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.tools import ping
from minigts.topology.frames import Family
from minigts.topology.read.load import load, parse

LIMIT_S = 60.0
ECHOES = 10
THREE = "name: three\nipv6: true\nchain: {hosts: 3, link: {rtt: 4ms, rate: 50mbit}}\n"
HOSTS = ("ams", "bra", "lju", "mil", "ham", "lon")


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """topologies/ipv6.yaml in virtual time."""
    plan = load(TOPOLOGIES / "ipv6.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", "six", quiet)
    yield made
    take_down(made)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A shorter row, for overlays."""
    plan = parse(THREE, "three.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


def own(lab: Lab, name: str) -> str:
    beside = lab.plan.ipv6_of(name)
    assert beside is not None
    return beside.address


def echoes(lab: Lab, source: str, target: str, address: str) -> ping.Pings:
    """Behind one that finds the neighbours; at a pace at which none meets another."""
    lab.provider.run(source, ["ping", "-n", "-c", "1", address], timeout_s=LIMIT_S)
    argv = ["ping", "-n", "-D", "-c", str(ECHOES), "-i", "0.05", address]
    return ping.parse(user_text(lab.provider.run(source, argv, timeout_s=LIMIT_S).stdout))


@pytest.mark.virtual
@pytest.mark.parametrize(("source", "target"), [*itertools.combinations(HOSTS, 2)])
def test_a_round_trip_is_the_sum_of_its_segments_and_of_its_larger_frames_to_microseconds(
    six: Lab, source: str, target: str
) -> None:
    path = six.plan.path(source, target)
    seen = echoes(six, source, target, own(six, target))
    assert seen.received == ECHOES
    expected_ms = echo_ms(six.plan, path, family="ipv6")
    assert seen.min_ms == pytest.approx(expected_ms, abs=EXACT_MS, rel=0)
    assert seen.max_ms == pytest.approx(expected_ms, abs=EXACT_MS, rel=0)


@pytest.mark.virtual
def test_over_five_hops_it_takes_the_time_of_20_bytes_ten_times_more_than_over_ipv4(six: Lab) -> None:
    seen4 = echoes(six, "ams", "lon", six.plan.host("lon").address)
    seen6 = echoes(six, "ams", "lon", own(six, "lon"))
    assert seen6.mean_ms - seen4.mean_ms == pytest.approx(10 * 20 * 8 / 50e6 * 1000, abs=EXACT_MS, rel=0)


@pytest.mark.virtual
def test_every_host_has_the_plan_s_addresses_at_once_and_its_routes(six: Lab) -> None:
    for host in six.plan.hosts:
        beside = six.plan.ipv6_of(host.name)
        assert beside is not None
        shown = json.loads(
            user_text(six.provider.run(host.name, ["ip", "-j", "-6", "address"], timeout_s=LIMIT_S).stdout)
        )
        own_addresses = {
            (device["ifname"], each["local"])
            for device in shown
            for each in device["addr_info"]
            if each["scope"] == "global"
        }
        assert own_addresses == {("lo", beside.address), *((port.name, port.address) for port in beside.ports)}
        assert not [each for device in shown for each in device["addr_info"] if each.get("tentative")]
        said = user_text(six.provider.run(host.name, ["ip", "-j", "-6", "route"], timeout_s=LIMIT_S).stdout)
        via = {(str(IPv6Network(route["dst"])), route["gateway"]) for route in json.loads(said) if "gateway" in route}
        assert via == {(route.to, route.via) for route in six.plan.ipv6_routes_of(host.name)}


@pytest.mark.virtual
def test_a_name_has_both_addresses(six: Lab) -> None:
    for database, address in (("ahostsv4", six.plan.host("lon").address), ("ahostsv6", own(six, "lon"))):
        said = user_text(six.provider.run("ams", ["getent", database, "lon"], timeout_s=LIMIT_S).stdout)
        assert said.split()[0] == address


@pytest.mark.virtual
def test_the_certificate_reads_its_addresses_back(six: Lab) -> None:
    def notes() -> list[str]:
        made = measure.certify(six, quiet)
        return [row.note for row in made.rows if row.quantity == "settings" and not row.ok]

    beside = six.plan.ipv6_of("lju")
    assert beside is not None
    port = beside.ports[0]
    assert notes() == []
    six.provider.run("lju", ["ip", "address", "del", f"{port.address}/64", "dev", port.name], timeout_s=LIMIT_S)
    try:
        (note,) = notes()
        assert f"{port.name}: IPv6 address is none, should be {port.address}" in note.split("; ")
    finally:
        again = ["ip", "address", "add", f"{port.address}/64", "dev", port.name, "nodad"]
        six.provider.run("lju", again, timeout_s=LIMIT_S)


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("name", "added_bytes", "family", "mtu"),
    [
        ("none-v6", 0, "ipv6", 1500),
        ("vxlan-bare", 50, "ipv4", 1450),
        ("vxlan-bare-v6", 70, "ipv4", 1430),
        # An echo's 84 bytes are filled up to 96, and have 32 of WireGuard's around them.
        ("wireguard-bare", 12 + 32 + 28, "ipv4", 1420),
        ("wireguard-bare-v6", 12 + 32 + 48, "ipv4", 1420),
    ],
)
def test_an_overlay_s_data_path_goes_over_it_and_takes_its_headers_time_and_no_more(
    three: Lab, name: str, added_bytes: int, family: Family, mtu: int
) -> None:
    """`verify` also sends packets of the MTU in one piece, and finds that larger ones do not go."""
    ends = overlays.join(three, name, quiet)
    try:
        proven = overlays.verify(three, quiet)
        seen = echoes(three, "h1", "h3", ends["h3"].address)
    finally:
        overlays.leave(three, quiet)
    assert {words["ENCAPSULATION"] for words in proven.values()} == {overlays.find(name).data_path.encapsulation}
    assert {end.mtu for end in ends.values()} == {mtu}
    expected_ms = echo_ms(three.plan, three.plan.path("h1", "h3"), added_bytes=added_bytes, family=family)
    assert seen.min_ms == pytest.approx(expected_ms, abs=EXACT_MS, rel=0)


@pytest.mark.virtual
def test_the_first_echo_over_two_hops_takes_three_round_trips_and_over_ipv4_two(six: Lab) -> None:
    """A host that forwards asks for its neighbour by its link's own address, and is itself asked on the way back."""

    def first(address: str) -> float:
        # Until nobody asks any more whether a neighbour is still there.
        six.provider.run("ams", ["sleep", "10"], timeout_s=LIMIT_S)
        six.work_on_hosts(lambda host: six.provider.run(host.name, ["ip", "neigh", "flush", "all"], timeout_s=LIMIT_S))
        said = user_text(six.provider.run("ams", ["ping", "-n", "-c", "1", address], timeout_s=LIMIT_S).stdout)
        return ping.parse(said).min_ms

    assert first(six.plan.host("lju").address) == pytest.approx(2 * 4, rel=0.02)
    assert first(own(six, "lju")) == pytest.approx(3 * 4, rel=0.02)


@pytest.mark.parametrize(
    ("provider", "time"),
    [
        pytest.param("uml", "real", marks=pytest.mark.uml),
        pytest.param("mininet", "real", marks=pytest.mark.mininet),
    ],
)
@pytest.mark.nightly
def test_in_real_time_it_crosses_two_hops_and_a_switch_as_well(make_lab: MakeLab, provider: str, time: str) -> None:
    """The echo's time is this machine's business; here that it arrives, and by which host."""
    lab = make_lab(
        "name: six\nipv6: 2001:db8:7::/48\nhosts: {a: , b: , c: }\nswitches: {s: }\nlinks:\n"
        "- {ends: [a, s], rtt: 2ms, rate: 50mbit}\n- {ends: [s, b], rtt: 2ms}\n"
        "- {ends: [b, c], rtt: 10ms, rate: 50mbit}\n",
        provider=provider,
        time=time,
    )
    seen = echoes(lab, "a", "c", own(lab, "c"))
    assert seen.received == ECHOES
    assert seen.min_ms > 13, "the way has 14 ms, of which what the emulator itself takes was taken off"
    said = user_text(lab.provider.run("a", ["ping", "-n", "-c", "1", own(lab, "c")], timeout_s=LIMIT_S).stdout)
    assert "ttl=63" in said
