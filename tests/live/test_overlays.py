"""Every overlay on real hosts: it joins, its data path is what it says, and nothing is left when it has gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live import of_each_change, overlay_settings, test_policy
from live.conftest import MakeLab, quiet, skip_without_programs
from live.program import Program
from minigts import lab as labs
from minigts import overlays, paths
from minigts.foreign import user_text
from minigts.judge.tolerances import round_trip
from minigts.lab import Lab
from minigts.topology import overlay_names
from minigts.topology.read.load import load, parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled]

SURVIVORS = ("flannel", "libnetwork-etcd")
"""Of those whose hosts share a store, each kind once has a host killed and started again: Swarm in `test_containers`,
with the user's containers on it, and all in `bench/run overlays`."""
ENGINE_KILLED = ("swarm",)
"""Left when its engine was killed: its containers run on, and a Swarm's node that could not say so has not left. The
next test has hosts join one again."""

HARDLY_US = 100
"""So much longer may one exchange of thousands take: it waits behind a frame of the routers, and looks at the clock."""

NEIGHBOURS = """\
name: mesh3
routing: neighbours
chain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}
"""

STATE = """
ip -o link | awk '{ print $2 }' | sort
ip -o address | awk '{ print $2, $4 }' | sort
ip -4 route show table all
ip rule
ip neighbour show proxy
ip xfrm state 2>/dev/null
ip xfrm policy 2>/dev/null
awk '$3 == "nsfs" { print $2 }' /proc/mounts
awk '{ print $2 }' /proc/net/udp
nft list ruleset 2>/dev/null
processes=$(ps --no-headers -e -o ppid,comm)
awk '$1 != 2 && $2 != "kthreadd" { print $2 }' <<<"$processes" | sort
"""
"""All that an overlay could leave: interfaces, addresses, routes, keys, network namespaces, UDP ports, rules, and the
processes before the pipe."""


@pytest.fixture(scope="module")
def state_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_STATE", str(tmp_path_factory.mktemp("state")))
        yield paths.state_root()


@pytest.fixture(scope="module")
def pair(state_root: Path) -> Iterator[Lab]:
    plan = load(paths.project_root() / "topologies" / "pair.yaml", time="virtual")
    lab = labs.up(plan, "uml", None, quiet)
    yield lab
    labs.down(lab)


@pytest.fixture(scope="module")
def pair6(state_root: Path) -> Iterator[Lab]:
    """The same with IPv6."""
    text = (paths.project_root() / "topologies" / "pair.yaml").read_text() + "ipv6: true\n"
    lab = labs.up(parse(text, "pair.yaml", time="virtual"), "uml", "pair6", quiet)
    yield lab
    labs.down(lab)


@pytest.fixture(scope="module")
def chain(state_root: Path) -> Iterator[Lab]:
    lab = labs.up(parse(NEIGHBOURS, "mesh3.yaml", time="virtual"), "uml", None, quiet)
    yield lab
    labs.down(lab)


def state(lab: Lab) -> dict[str, str]:
    return lab.work_on_hosts(
        lambda host: user_text(lab.provider.run(host.name, ["bash", "-c", STATE], timeout_s=120, check=False).stdout)
    )


def lowest_rtt_ms(lab: Lab, source: overlays.Endpoint, target: overlays.Endpoint) -> float:
    argv = [*source.prefix, "ping", "-c", "200", "-i", "0.01", "-q", target.address]
    said = user_text(lab.provider.run(source.host, argv, timeout_s=120).stdout)
    return float(said.splitlines()[-1].split(" = ")[1].split("/")[0])


OF_THEIR_OWN = {"kubernetes"}
"""Overlays whose hosts need more memory than the pair's; `test_kubernetes_cluster` tries them."""


# swarm first, and then the encrypted one: what it left in Docker's store, the next overlay would bring back.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if of_each_change.has(name) else pytest.mark.nightly)
        for name in sorted(overlays.known_names(), key=lambda name: (not name.startswith("swarm"), name))
        if overlays.find(name).folder.name not in OF_THEIR_OWN
    ],
)
def test_overlay_joins_proves_its_path_and_leaves_nothing(name: str, request: pytest.FixtureRequest) -> None:
    skip_without_programs(name)
    pair: Lab = request.getfixturevalue("pair6" if overlay_names.needs_ipv6(name) else "pair")
    before = state(pair)
    declared = overlays.find(name).data_path

    try:
        endpoints = overlays.join(pair, name, quiet)
        proven = overlays.verify(pair, quiet)
        overlay_settings.are_as_they_should_be(pair, name)
        if name in SURVIVORS:
            survives_a_power_cut(pair, name)
        if name in test_policy.ENFORCING:
            test_policy.what_is_denied_is_denied_and_what_is_allowed_is_allowed(
                pair, endpoints, request.getfixturevalue("tmp_path")
            )
        if name in ENGINE_KILLED:
            pair.provider.run("bra", ["sh", "-c", "kill -9 $(cat /run/docker.pid)"], timeout_s=120)
    finally:
        overlays.leave(pair, quiet)

    assert {words["ENCAPSULATION"] for words in proven.values()} == {declared.encapsulation}
    assert {"ENCRYPTED" in words for words in proven.values()} == {declared.prove_encryption}
    assert {end.mtu for end in endpoints.values()} == {declared.mtu_over(1500)}
    assert state(pair) == before


DEAF = """
nft add table inet deaf
nft add chain inet deaf input '{ type filter hook input priority 0; }'
nft add rule inet deaf input udp dport 7946 drop
(sleep 4.5; nft delete table inet deaf) </dev/null >/dev/null 2>&1 &
"""
"""For so long nobody tells the host anything by Docker's gossip; lists are compared by TCP."""


@pytest.mark.nightly
def test_a_host_that_heard_of_a_node_from_nobody_joins_anew_and_does_not_wait(make_lab: MakeLab) -> None:
    lab = make_lab(
        "name: deaf\nhosts: {first: , near: , far: }\n"
        "links: [{ends: [first, near], rtt: 10ms}, {ends: [near, far], rtt: 100ms}]\n"
    )
    lab.provider.run("near", ["sh", "-c", DEAF], timeout_s=120)
    before_s = lab.provider.now_s()
    overlays.join(lab, "swarm", quiet)
    took_s = lab.provider.now_s() - before_s
    said = user_text(
        lab.provider.run("near", ["grep", "-c", "New memberlist node", "/var/log/dockerd.log"], timeout_s=120).stdout
    )
    assert (int(said), took_s < 25) == (2, True), took_s


def survives_a_power_cut(lab: Lab, name: str) -> None:
    """One host is killed and started again, the other left alone. `verify` says the same twice: see overlays.py."""
    booted = {host.name: boot_id(lab, host.name) for host in lab.plan.hosts}
    lab.provider.run("bra", ["sh", "-c", f"echo {name} >/var/lib/kept"], timeout_s=120)

    labs.restart(lab, "bra")
    overlays.rejoin(lab, "bra", quiet)
    proven = overlays.verify(lab, quiet)

    assert {words["ENCAPSULATION"] for words in proven.values()} == {overlays.find(name).data_path.encapsulation}
    assert overlays.verify(lab, quiet) == proven
    assert (boot_id(lab, "ams") == booted["ams"], boot_id(lab, "bra") == booted["bra"]) == (True, False)
    assert user_text(lab.provider.run("bra", ["cat", "/var/lib/kept"], timeout_s=120).stdout) == f"{name}\n"


def boot_id(lab: Lab, host: str) -> str:
    return user_text(lab.provider.run(host, ["cat", "/proc/sys/kernel/random/boot_id"], timeout_s=120).stdout)


def reaches(lab: Lab, source: overlays.Endpoint, target: overlays.Endpoint, within_s: int) -> bool:
    """Echoes one by one: `ping -w` gives up as soon as a router says that there is no way."""
    echoes = 'until ping -n -q -c 1 -W 1 "$0"; do sleep 0.2; done'
    argv = ["timeout", str(within_s), *source.prefix, "sh", "-c", echoes, target.address]
    return lab.provider.run(source.host, argv, timeout_s=within_s + 10, check=False).code == 0


@pytest.fixture(scope="module")
def meshed(chain: Lab, request: pytest.FixtureRequest) -> tuple[overlays.Endpoint, ...]:
    """The chain's ends, with that overlay."""
    ends = overlays.join(chain, request.param, quiet)
    return tuple(ends[host.name] for host in chain.plan.hosts)


def proves_what_is_joined(lab: Lab) -> None:
    joined = overlays.joined_overlay(lab)
    assert joined is not None
    assert {words["ENCAPSULATION"] for words in overlays.verify(lab, quiet).values()} == {
        overlays.find(joined.name).data_path.encapsulation
    }


@pytest.mark.parametrize("meshed", ["mesh"], indirect=True)
def test_mesh_crosses_hosts_that_the_underlay_does_not(chain: Lab, meshed: tuple[overlays.Endpoint, ...]) -> None:
    """Host 1 knows no way to host 3; its container reaches the container there, in the sum of the segments' times."""
    first, second, third = meshed
    far = chain.plan.host(third.host).ports[0].address

    alone = chain.provider.run(first.host, ["ping", "-c", "1", "-W", "1", far], timeout_s=5, check=False)
    segments_ms = lowest_rtt_ms(chain, first, second) + lowest_rtt_ms(chain, second, third)
    across_ms = lowest_rtt_ms(chain, first, third)

    assert alone.code != 0
    assert across_ms == pytest.approx(segments_ms, abs=round_trip(chain.plan).distance(segments_ms))
    proves_what_is_joined(chain)


UNHEARD = """
nft add table inet unheard
nft add chain inet unheard arriving '{ type filter hook input priority -10 ; }'
nft add rule inet unheard arriving udp dport 4789 drop
"""
"""The underlay is as before, and nothing that is encapsulated arrives."""


@pytest.mark.parametrize("meshed", ["mesh"], indirect=True)
def test_check_proves_the_overlay_and_fails_where_its_packets_do_not_arrive(
    chain: Lab, meshed: tuple[overlays.Endpoint, ...]
) -> None:
    program = Program(chain.rundir.parents[1])
    words = ("check", "--lab", chain.name, "--quick")
    proven = program.run(*words, "--overlay")
    assert (proven.returncode, "of 3 hosts to the next as it should: vxlan" in proven.stderr) == (
        0,
        True,
    )
    deaf = meshed[1].host
    chain.provider.run(deaf, ["sh", "-ec", UNHEARD], timeout_s=120)
    try:
        assert program.run(*words).returncode == 0
        failed = program.run(*words, "--overlay")
    finally:
        chain.provider.run(deaf, ["nft", "delete", "table", "inet", "unheard"], timeout_s=120)
        assert reaches(chain, meshed[0], meshed[1], 120)
    assert (failed.returncode, "Traceback" in failed.stderr) == (1, False)
    assert meshed[1].address in failed.stderr


@pytest.mark.parametrize("meshed", ["mesh"], indirect=True)
def test_what_looks_after_a_container_takes_no_time_of_its_programs(
    chain: Lab, meshed: tuple[overlays.Endpoint, ...]
) -> None:
    """The container's supervisor, containerd's shim, clears its memory every half minute."""
    first, second, _ = meshed
    wanted = ("-k", "MIN_LATENCY,MAX_LATENCY")
    exchanges = ("netperf", "-H", second.address, "-p", "12865", "-t", "UDP_RR", "-l", "65", "-P", "0", "--", *wanted)

    said = user_text(chain.provider.run(first.host, [*first.prefix, *exchanges], timeout_s=120).stdout)

    lowest_us, highest_us = (float(line.partition("=")[2]) for line in said.splitlines() if "LATENCY" in line)
    assert highest_us - lowest_us < HARDLY_US


@pytest.mark.parametrize("meshed", ["mesh", "mesh-sleeve"], indirect=True)
@pytest.mark.nightly
def test_mesh_heals_when_a_link_that_was_cut_is_whole_again(chain: Lab, meshed: tuple[overlays.Endpoint, ...]) -> None:
    first, second, third = meshed
    labs.set_links_up(chain, second.host, third.host, up=False)
    cut = reaches(chain, first, third, 6)
    near = reaches(chain, first, second, 6)
    labs.set_links_up(chain, second.host, third.host, up=True)

    assert (cut, near) == (False, True)
    assert reaches(chain, first, third, 60)
    proves_what_is_joined(chain)
