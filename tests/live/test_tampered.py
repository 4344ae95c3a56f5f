"""What somebody types in a host against the lab: `check` finds it, `explain` names it, what that advises mends it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from live.conftest import MakeLab, quiet
from live.program import Program
from minigts import lab as labs
from minigts import overlays
from minigts.fidelity import measure, mending
from minigts.fidelity.current_certificate import current_certificate
from minigts.fidelity.explanation import explain
from minigts.lab import Lab
from minigts.topology.plan import link_names

LIMIT_S = 60.0
CHAIN = "name: chain\nipv6: true\nchain: {hosts: [ams, bra, lju], link: {rtt: 4ms, rate: 20mbit}}\n"
TYPED = {
    "down": ("ip link set eth1 down", "eth1: the interface is down"),
    "flushed": ("ip route flush dev eth1", "routes are gone to"),
    "down and up": ("ip link set eth1 down && ip link set eth1 up", "routes are gone to"),
    "route": ("ip route del 10.255.0.2", "no route to 10.255.0.2"),
    "other way": ("ip route replace blackhole 10.255.0.2", "the route to 10.255.0.2/32 goes nowhere"),
    "diverted": ("ip route add unreachable 10.20.0.0/28", "the route to 10.20.0.0/28 goes nowhere"),
    "address": ("ip address flush dev eth1 && ip address add 192.0.2.1/24 dev eth1", "eth1: its address 10.20.0.1/24"),
    "queue": ("tc qdisc replace dev eth1 root netem delay 50ms", "eth1: the queueing discipline is netem, should be"),
    "ingress": (
        "tc qdisc del dev eth1 clsact 2>/dev/null; tc qdisc add dev eth1 ingress",
        "queueing discipline ingress",
    ),
    "forwarding": ("echo 0 >/proc/sys/net/ipv4/ip_forward", "the host does not forward IPv4"),
    "mtu": ("ip link set eth1 mtu 1300", "eth1: MTU is 1300, should be 1500"),
    "offload": ("ethtool -K eth1 gro on", "generic receive offload is on, should be off"),
}
CHOSEN = [
    *(pytest.param("uml", "virtual", TYPED, marks=pytest.mark.virtual),),
    *(
        pytest.param(
            "uml",
            "real",
            {name: each for name, each in TYPED.items() if name != "down and up"},
            marks=[pytest.mark.uml, pytest.mark.nightly],
        ),
    ),
    *(pytest.param("mininet", "real", TYPED, marks=pytest.mark.mininet),),
]


def typed(lab: Lab, command: str) -> None:
    lab.provider.run("ams", ["sh", "-c", command], timeout_s=LIMIT_S)


def found(lab: Lab) -> dict[str, str]:
    """What `check` says of settings, of hosts that are not as they should be."""
    return {row.subject: row.note for row in measure.settings(lab, quiet) if not row.ok}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("provider", "time", "commands"), CHOSEN)
def test_what_is_typed_in_a_host_is_found_named_and_mended(
    make_lab: MakeLab, provider: str, time: Any, commands: dict[str, tuple[str, str]]
) -> None:
    lab = make_lab(CHAIN, provider=provider, time=time)
    link = link_names.link_named(lab.plan, "ams-bra")
    assert found(lab) == {}
    for name, (command, text) in commands.items():
        typed(lab, command)
        assert text in found(lab).get("ams", ""), name
        explained = explain(lab, link)
        assert (explained.cause, text in " ".join(explained.differences)) == ("settings", True), name
        if "minigts restart ams sets them again" in explained.answer:
            assert (name, provider, time) == ("down", "uml", "real")
            labs.restart(lab, "ams")
        else:
            assert "minigts link ams bra up sets them again" in explained.answer, name
            assert text in " ".join(mending.mend(lab, ("ams", "bra"))["ams"]), name
        assert found(lab) == {}, name
    typed(lab, "ip address add 192.0.2.1/24 dev eth1; ip route add 198.51.100.0/24 via 10.20.0.2")
    assert found(lab) == {}  # the user's own


@pytest.mark.virtual
def test_a_filter_of_somebody_s_is_found_where_the_links_delay_by_themselves(make_lab: MakeLab) -> None:
    lab = make_lab(CHAIN)
    typed(lab, "tc qdisc add dev eth1 clsact; tc filter add dev eth1 egress matchall action drop")
    assert "a queueing discipline clsact that is not the lab's" in found(lab)["ams"]
    mending.mend(lab, ("ams",))
    assert found(lab) == {}


@pytest.mark.virtual
@pytest.mark.parametrize("routing", ["routed", pytest.param("ospf", marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_host_is_started_again_though_its_neighbour_s_port_was_put_down_and_up(
    make_lab: MakeLab, routing: str
) -> None:
    """The neighbour has lost its routes over the link by that, and no host would reach the other."""
    lab = make_lab(CHAIN + f"routing: {routing}\n")
    program = Program(lab.rundir.parents[1])
    overlays.join(lab, "none", quiet)
    for command in ("ip link set eth1 down && ip link set eth1 up", "ip link set eth1 down"):
        typed(lab, command)
        said = program.run("restart", "--lab", lab.name, "bra")
        assert (said.returncode, "set again on ams: " in said.stderr) == (0, True), said.stderr
        assert found(lab) == {}
        typed(lab, f"ping -c 1 {lab.plan.host('lju').address}")
    assert "set again" not in program.run("restart", "--lab", lab.name, "bra").stderr


@pytest.mark.virtual
@pytest.mark.nightly
def test_a_certificate_fails_where_nothing_comes_back_and_up_says_how_old_its_certificate_is(make_lab: MakeLab) -> None:
    lab = make_lab(CHAIN)
    first = current_certificate(lab, quiet)
    again = current_certificate(lab, quiet)
    assert (again.certificate, first.said) == (first.certificate, "")
    assert re.search(r"this is the certificate of \S+ \S+, \d+ \w+ ago, not measured now", again.said)
    typed(lab, "ip link set eth1 down")
    broken = measure.certify(lab, quiet)
    assert not broken.ok
    assert "eth1: the interface is down" in " ".join(row.note for row in broken.rows)
    assert "not measured now" in current_certificate(lab, quiet).said
    mending.mend(lab, ("ams", "bra"))
    mended = current_certificate(lab, quiet)
    assert "measured anew" in mended.said
    assert mended.certificate.ok
