"""FRR as a routing program: its configuration says what BIRD's says, and its daemons start once."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from minigts.dataplane import interfaces, router
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

RING = """name: ring
routing: {{protocol: {protocol}, engine: frr}}
{more}
defaults: {{link: {{rtt: 10ms}}}}
hosts: {{a: , b: {{routing: {{engine: {of_b}}}}}, c: , d: }}
links: [{{ends: [a, b], mtu: 1400}}, {{ends: [b, c]}}, {{ends: [c, d]}}, {{ends: [d, a]}}]
"""


def ring(protocol: str, more: str = "ipv6: true", of_b: str = "frr") -> Plan:
    return parse(RING.format(protocol=protocol, more=more, of_b=of_b), "ring.yaml")


def text(plan: Plan, host: str = "a") -> str:
    return router.configuration(plan, plan.host(host))


@pytest.mark.parametrize("version", ["ip ospf", "ipv6 ospf6"])
def test_ospf_has_the_costs_and_timers_of_the_page_on_every_link(version: str) -> None:
    made = ring("ospf")
    costs = {link.name: link.cost for link in made.links}
    for port, link in (("eth1", "a-b"), ("eth2", "d-a")):
        block = (
            f"interface {port}\n {version} area 0\n {version} network point-to-point\n {version} cost {costs[link]}\n"
            f" {version} hello-interval 1\n {version} dead-interval 4\nexit\n"
        )
        assert text(made).count(block) == 1
    assert text(made).count(f"interface lo\n {version} area 0\n {version} cost 1\n") == 1


def test_the_kernel_gets_only_the_plans_routes_with_the_hosts_own_address() -> None:
    made = ring("ospf", "")
    allowed = re.findall(r"^ip prefix-list kernel4 seq \d+ permit (\S+)$", text(made), re.MULTILINE)
    assert allowed == [route.to for route in made.routes_of("a")]
    assert f" set src {made.host('a').address}\n" in text(made)
    assert "ip protocol ospf route-map kernel4\n" in text(made)
    alone = parse("name: x\nrouting: {protocol: ospf, engine: frr}\nhosts: {a: }\n", "x.yaml")
    assert "route-map kernel4 deny 10\nexit\n" in text(alone)


def test_bgp_adds_a_links_cost_to_the_med_and_takes_the_lowest() -> None:
    made = ring("bgp")
    costs = {link.name: link.cost for link in made.links}
    for port, link, far in (("eth1", "a-b", "b"), ("eth2", "d-a", "d")):
        assert f"route-map from-{port} permit 10\n set metric +{costs[link]}\nexit\n" in text(made)
        address = next(each.peer_address for each in made.host("a").ports if each.name == port)
        assert f" neighbor {address} remote-as {64512 + made.host(far).index}\n" in text(made)
        assert f" neighbor {address} port 1179\n" in text(made)
        assert f"  neighbor {address} route-map from-{port} in\n" in text(made)
    for line in ("bgp always-compare-med", "bgp bestpath as-path ignore", "timers bgp 1 3"):
        assert f" {line}\n" in text(made)
    assert text(made).count("attribute-unchanged med") == 4


@pytest.mark.parametrize(("more", "ways", "relaxed"), [("", 1, 0), ("ecmp: true", 64, 1)])
def test_several_ways_are_taken_only_where_the_file_says_so(more: str, ways: int, relaxed: int) -> None:
    assert f" maximum-paths {ways}\n" in text(ring("ospf", more))
    assert f"  maximum-paths {ways}\n" in text(ring("bgp", more))
    assert text(ring("bgp", more)).count("multipath-relax") == relaxed


@pytest.mark.parametrize(
    ("protocol", "asks"), [("ospf", " ip ospf bfd profile"), ("bgp", " bfd profile"), ("isis", " isis bfd profile")]
)
def test_bfd_is_asked_for_on_each_link_where_the_file_has_it(protocol: str, asks: str) -> None:
    assert "bfd" not in text(ring(protocol, ""))
    made = text(ring(protocol, "bfd: 50ms"))
    assert made.count(asks) == 2
    assert "  detect-multiplier 3\n  transmit-interval 50\n  receive-interval 50\n" in made


def test_isis_has_one_area_and_lsps_that_fit_every_link() -> None:
    made = text(ring("isis"), "c")
    assert " net 49.0001.0000.0000.0003.00\n" in made
    assert " lsp-mtu 1397\n" in made
    assert made.count(" ip router isis lab\n ipv6 router isis lab\n") == 3


def test_birds_instance_of_ospf_is_that_of_frr_where_both_are_in_a_lab() -> None:
    mixed = ring("ospf", of_b="bird")
    assert "instance id" not in text(mixed, "b")
    assert "instance id 64;" in text(
        ring("ospf").model_copy(
            update={"hosts": tuple(each.model_copy(update={"engine": "bird"}) for each in ring("ospf").hosts)}
        ),
        "b",
    )
    assert "router ospf" in text(mixed, "c")


@pytest.mark.parametrize(("protocol", "daemons"), [
    ("ospf", ["zebra -R 20", "mgmtd", "ospfd", "ospf6d", "bfdd"]),
    ("bgp", ["zebra -R 20", "mgmtd", "bgpd -p 1179", "bfdd"]),
    ("isis", ["zebra -R 20", "mgmtd", "isisd", "bfdd"]),
])  # fmt: skip
def test_the_daemons_that_the_protocol_needs_are_started_after_the_interfaces(
    protocol: str, daemons: list[str]
) -> None:
    made = ring(protocol, "ipv6: true\nbfd: 100ms")
    script = interfaces.script(made, made.host("a"))
    found = re.findall(r"/usr/lib/frr/(\w+) -d -P 0( -\w \d+)? >&2", script)
    assert ["".join(each) for each in found] == daemons
    assert script.index("\nEND\n") < script.index("/usr/lib/frr/zebra")
    assert "bird" not in script


FAKE = """#!/bin/bash
echo "${0##*/} $*" >>"$LOG"
case ${0##*/} in
  install) for each; do [[ $each != /*run/* ]] || mkdir -p "$each"; done ;;
  vtysh) [[ $1 != -c || -e $RUNS ]] || exit 1; [[ $1 != -f ]] || { : >"$RUNS"; printf '%s' "$SAYS"; } ;;
esac
exit 0
"""


def starts(tmp_path: Path, made: Plan, says: str = "") -> subprocess.CompletedProcess[str]:
    """The script's lines with programs that only say that they were called, in folders of this test."""
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("install", "vtysh", "zebra", "mgmtd", "ospfd", "ip"):
        (programs / name).write_text(FAKE)
        (programs / name).chmod(0o755)
    lines = "\n".join(router.start(made, made.host("a")))
    for there, here in (("/usr/lib/frr", programs), ("/run/", tmp_path / "run"), ("/etc/frr", tmp_path / "etc")):
        lines = lines.replace(there, f"{here}/" if there.endswith("/") else str(here))
    argv = [
        "bash",
        "-euc",
        f'PATH="{programs}:$PATH"; export LOG="{tmp_path}/log" RUNS="{tmp_path}/up" SAYS="{says}"\n{lines}',
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_a_second_start_changes_nothing_and_another_configuration_starts_it_anew(tmp_path: Path) -> None:
    log, made = tmp_path / "log", ring("ospf", "")
    assert starts(tmp_path, made).returncode == 0, starts(tmp_path, made).stderr
    assert log.read_text().count("ospfd -d") == 1
    assert starts(tmp_path, made).returncode == 0
    assert log.read_text().count("ospfd -d") == 1
    assert starts(tmp_path, ring("ospf", "ecmp: true")).returncode == 0
    assert log.read_text().count("ospfd -d") == 2


def test_a_line_that_frr_refuses_ends_the_start_with_its_words(tmp_path: Path) -> None:
    ended = starts(tmp_path, ring("ospf", ""), "line 2: % Unknown command: table 20")
    assert ended.returncode == 1
    assert "Unknown command: table 20" in ended.stderr
