"""A lab with name servers: hosts and containers find hosts, containers and measuring containers by name."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from live.conftest import quiet, state_directory
from minigts import api, overlays
from minigts import lab as labs
from minigts.dataplane import names
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import Endpoint, containers

pytestmark = [
    pytest.mark.touched("tools/minigts/dataplane/names.py", "provision/overlays/containers.sh"),
    pytest.mark.virtual,
    pytest.mark.timeout(600),
]

TOPOLOGY = """\
name: named
dns: true
ipv6: true
overlay: swarm
defaults: {host: {memory: 448MB}, link: {rtt: 10ms, rate: 50mbit}}
hosts:
  ams:
  bra:
    containers: [{name: web, image: small.tar, command: sleep 100000}]
  lju:
links: [{ends: [ams, bra]}, {ends: [bra, lju]}]
"""
SERVERS = ("pgrep", "--count", "-x", "dnsmasq")
WEB = "web.bra"


def small_image(file: Path) -> None:
    """A root file system with `sleep`, `getent` and their libraries, from this machine."""
    programs = ["/usr/bin/sleep", "/usr/bin/getent"]
    needed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"(/\S+) \(0x", needed))
    with tarfile.open(file, "w") as archive:
        for path in (*programs, *sorted(libraries)):
            archive.add(Path(path).resolve(), path.lstrip("/"))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    place = tmp_path_factory.mktemp("named")
    small_image(place / "small.tar")
    (place / "named.yaml").write_text(TOPOLOGY)
    with state_directory(place / "state"), api.up(place / "named.yaml") as made:
        yield labs.open_lab(made.name)


@pytest.fixture(scope="module")
def ends(named: Lab) -> dict[str, Endpoint]:
    joined = overlays.joined_overlay(named)
    assert joined is not None
    return joined.endpoints()


def answer(lab: Lab, host: str, name: str, kind: str = "A", prefix: Sequence[str] = ()) -> list[str]:
    """The data of the answer's records, or the reason that there is none."""
    argv = [*prefix, "dig", "+noall", "+comments", "+answer", "+tries=1", "+time=2", f"@{names.SERVER}", name, kind]
    said = user_text(lab.provider.run(host, argv, timeout_s=60).stdout)
    status = re.search(r"status: (\w+)", said)
    assert status is not None, said
    return re.findall(rf"IN\s+{kind}\s+(\S+)", said) or [status[1]]


@pytest.mark.parametrize("host", ["ams", "bra", "lju"])
def test_every_host_knows_every_name(named: Lab, ends: dict[str, Endpoint], host: str) -> None:
    assert named.plan.ipv6 is not None
    for each, beside in zip(named.plan.hosts, named.plan.ipv6.hosts, strict=True):
        assert answer(named, host, each.name) == [each.address]
        assert answer(named, host, each.name, "AAAA") == [beside.address]
        assert answer(named, host, f"measure.{each.name}") == [ends[each.name].address]
    web = containers.find(named, "web").address
    assert [answer(named, host, name) for name in ("web", WEB)] == [[web], [web]]
    assert answer(named, host, WEB, "AAAA") == ["NOERROR"]
    assert [answer(named, host, name) for name in ("nobody", "www.example.org")] == [["NXDOMAIN"], ["NXDOMAIN"]]


def test_a_container_asks_the_server_in_its_network(named: Lab, ends: dict[str, Endpoint]) -> None:
    web = containers.find(named, "web")
    for name, address in (("lju", named.plan.host("lju").address), ("measure.ams", ends["ams"].address)):
        said = user_text(named.provider.run("bra", [*web.prefix, "getent", "ahostsv4", name], timeout_s=60).stdout)
        assert said.split()[0] == address
    argv = [*web.prefix, "getent", "ahosts", "nobody"]
    assert named.provider.run("bra", argv, timeout_s=60, check=False).code == 2


def test_in_a_measuring_container_a_host_is_its_measuring_container(named: Lab, ends: dict[str, Endpoint]) -> None:
    for host, end in ends.items():
        resolver = user_text(named.provider.run(host, [*end.prefix, "cat", "/etc/resolv.conf"], timeout_s=60).stdout)
        assert resolver == f"nameserver {names.SERVER}\n"
        for other, far in ends.items():
            assert answer(named, host, other, prefix=end.network) == [far.address]
        assert answer(named, host, WEB, prefix=end.network) == [containers.find(named, "web").address]


def test_names_are_known_while_links_are_cut(named: Lab) -> None:
    labs.set_links_up(named, "ams", "bra", up=False)
    try:
        assert answer(named, "ams", "lju") == [named.plan.host("lju").address]
    finally:
        labs.set_links_up(named, "ams", "bra", up=True)


@pytest.mark.nightly
def test_a_server_that_ended_is_read_back_and_comes_back_with_the_host(named: Lab, ends: dict[str, Endpoint]) -> None:
    def differences() -> list[str]:
        host = named.plan.host("ams")
        shown = user_text(named.provider.run("ams", ["sh", "-c", names.show(named.plan)], timeout_s=60).stdout)
        return list(names.differences(named.plan, host, shown))

    assert differences() == []
    named.provider.run("ams", ["sh", "-c", f"kill $(cat {names.PID_FILE})"], timeout_s=60)
    assert differences() == ["its name server answers nothing for lju, should answer 10.255.0.3"]
    labs.restart(named, "ams")
    overlays.rejoin(named, "ams", quiet)
    assert differences() == []
    assert answer(named, "ams", WEB) == [containers.find(named, "web").address]
    assert answer(named, "lju", "measure.ams") == [ends["ams"].address]


def test_after_leaving_only_the_hosts_own_server_is_left(named: Lab) -> None:
    before = {
        host.name: user_text(named.provider.run(host.name, SERVERS, timeout_s=60).stdout) for host in named.plan.hosts
    }
    assert before == {"ams": "2\n", "bra": "3\n", "lju": "2\n"}
    overlays.leave(named, quiet)
    after = {
        host.name: user_text(named.provider.run(host.name, SERVERS, timeout_s=60).stdout) for host in named.plan.hosts
    }
    assert after == dict.fromkeys(before, "1\n")
    assert answer(named, "ams", WEB) == ["NXDOMAIN"]
    assert answer(named, "ams", "lju") == [named.plan.host("lju").address]
