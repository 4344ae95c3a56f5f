"""Light hosts share a kernel, and have network, processes, name and files of their own. Their links are any host's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from live.conftest import quiet, state_directory
from minigts import lab as labs
from minigts.errors import InputError
from minigts.fidelity.measure import certify
from minigts.foreign import parser_text
from minigts.lab import Lab
from minigts.providers.base import HasCourse
from minigts.topology.outage import Outage
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched(
        "tools/minigts/providers/uml/light.py",
        "tools/minigts/topology/facts/hosts/light.py",
        "tools/minigts/topology/routes/aggregate.py",
        "provision/agent/src/light.rs",
        "provision/clock/src/trunk.rs",
        "provision/kernel/patches/0033*",
    ),
]

ROW = """
name: row
seed: {seed}
defaults: {{link: {{rate: 20mbit, delay: 2ms}}, host: {{light: {light}}}}}
hosts: {{a: , b: , c: , d: {{light: false}}}}
links:
- ends: [a, b]
- ends: [b, c]
- {{ends: [c, d], loss: 20%}}
"""
LIMIT_S = 60.0
PROBE = ["ping", "-c", "40", "-i", "0.05", "-W", "1", "d"]


def row(*, light: bool, seed: int = 1) -> Iterator[Lab]:
    made = labs.up(
        parse(ROW.format(light=str(light).lower(), seed=seed), "row.yaml", time="virtual"), "uml", None, quiet
    )
    try:
        yield made
    finally:
        labs.down(made)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("light")):
        yield from row(light=True)


def said(lab: Lab, host: str, command: str) -> str:
    return parser_text(lab.provider.run(host, ["sh", "-euc", command], timeout_s=LIMIT_S).stdout)


def test_links_routes_and_losses_are_those_of_the_plan(lab: Lab) -> None:
    found = certify(lab, quiet)

    assert found.ok, found


def test_each_has_a_network_processes_a_name_and_files_of_its_own(lab: Lab) -> None:
    for host in ("a", "b", "c"):
        said(lab, host, "echo $(hostname) >/root/who; (sleep 1000 </dev/null >/dev/null 2>&1 &)")
        assert said(lab, host, "hostname; cat /root/who").split() == [host, host]
        assert said(lab, host, "pgrep -c sleep").strip() == "1"
    interfaces = {host: {one["ifname"] for one in json.loads(said(lab, host, "ip -json link"))} for host in "abc"}
    assert interfaces == {"a": {"lo", "eth1"}, "b": {"lo", "eth1", "eth2"}, "c": {"lo", "eth1", "eth2"}}
    boot = {host: said(lab, host, "cat /proc/sys/kernel/random/boot_id") for host in "abcd"}
    assert boot["a"] == boot["b"] == boot["c"] != boot["d"]
    said(lab, "a", "kill -9 -1 || true; pkill sleep || true")
    assert said(lab, "b", "pgrep -c sleep").strip() == "1"
    assert said(lab, "a", "echo there").strip() == "there"


def test_files_go_to_one_and_come_from_it(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("for b\n")
    lab.provider.put("b", tmp_path / "given", PurePosixPath("/srv/given"))

    assert said(lab, "b", "cat /srv/given") == "for b\n"
    assert said(lab, "a", "ls /srv").strip() == ""
    lab.provider.get("b", PurePosixPath("/srv/given"), tmp_path / "back")
    assert (tmp_path / "back").read_text() == "for b\n"


def test_an_end_loses_its_carrier_and_has_it_again(lab: Lab) -> None:
    def carriers() -> list[str]:
        return [said(lab, host, f"cat /sys/class/net/{port}/carrier").strip() for host, port in ENDS]

    assert carriers() == ["1", "1", "1"]
    labs.set_links_up(lab, "a", "b", up=False, how=Outage())
    said(lab, "a", "sleep 2")
    assert carriers() == ["0", "0", "1"]
    assert said(lab, "a", "ping -c 1 -W 1 b >/dev/null 2>&1 || echo lost").strip() == "lost"
    labs.set_links_up(lab, "a", "b", up=True)
    said(lab, "a", "sleep 2")
    assert carriers() == ["1", "1", "1"]
    assert said(lab, "a", "ping -c 3 -W 2 b >/dev/null && echo came").strip() == "came"


ENDS = (("a", "eth1"), ("b", "eth1"), ("b", "eth2"))


def test_what_would_befall_the_others_is_refused(lab: Lab) -> None:
    for act in (labs.kill, labs.pause, labs.restart):
        with pytest.raises(InputError, match="b is a light host, and light hosts share a kernel: no "):
            act(lab, "b")
    with pytest.raises(InputError, match="a lab with such hosts cannot be kept"):
        labs.keep(lab, quiet)
    assert said(lab, "b", "echo there").strip() == "there"


def test_a_fork_has_all_of_them(lab: Lab) -> None:
    said(lab, "c", "echo before >/root/when")
    other = labs.fork(lab, "other")
    try:
        said(lab, "c", "echo after >/root/when")
        assert said(other, "c", "cat /root/when").strip() == "before"
        assert said(other, "a", "ping -c 1 -W 2 c >/dev/null && echo came").strip() == "came"
    finally:
        labs.down(other)


def course_of(tmp_path: Path, *, light: bool, seed: int = 1) -> tuple[str, str]:
    """The fingerprint of a lab in which a probes d over a lossy link, and what ping says."""
    with state_directory(tmp_path):
        for made in row(light=light, seed=seed):
            shown = parser_text(made.provider.run("a", PROBE, timeout_s=LIMIT_S, check=False).stdout)
            assert isinstance(made.provider, HasCourse)
            return made.provider.course().fingerprint, shown
    raise AssertionError("no lab came up")


def test_the_same_seed_has_the_same_course(tmp_path: Path) -> None:
    first, again, other = (
        course_of(tmp_path / name, light=True, seed=seed) for name, seed in (("1", 1), ("2", 1), ("3", 2))
    )

    assert first == again
    assert first[0] != other[0]


def test_links_do_the_same_to_packets_of_either_kind_of_host(tmp_path: Path) -> None:
    """Which frames the lossy link loses follows from its seed alone, and the round trip from the links."""
    light, full = (course_of(tmp_path / name, light=kind)[1] for name, kind in (("l", True), ("f", False)))

    def answered(shown: str) -> list[str]:
        return [line.partition("icmp_seq=")[2].split()[0] for line in shown.splitlines() if "icmp_seq=" in line]

    def least_ms(shown: str) -> float:
        return float(shown.rpartition("= ")[2].partition("/")[0])

    assert answered(light) == answered(full)
    assert 10 < len(answered(light)) < 40
    assert least_ms(light) == pytest.approx(least_ms(full), abs=0.02)
