"""What netlab asks of containerlab and Docker, as far as no host is needed: files, names, scripts."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigts.errors import InputError
from minigts.formats.network import NetworkMachine
from minigts.netlab import labs

FILE = """name: My_Lab
prefix: "clab"
topology:
  nodes:
    r1:
      kind: linux
      image: quay.io/frrouting/frr:10.7.1
      binds:
      - node_files/r1/daemons:/etc/frr/daemons
    h_one:
      mgmt-ipv4: 192.168.121.102
      kind: linux
      image: python:3.13-alpine
  links:
  - endpoints: ["r1:eth1", "h_one:eth1"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "node_files" / "r1").mkdir(parents=True)
    (tmp_path / "node_files" / "r1" / "daemons").write_text("ospfd=yes\n")
    made = tmp_path / "clab.yml"
    made.write_text(FILE)
    return made


def a_lab(name: str, *hosts: str) -> Any:
    return SimpleNamespace(name=name, plan=SimpleNamespace(hosts=[SimpleNamespace(name=host) for host in hosts]))


def test_a_router_has_the_packages_of_its_device(file: Path) -> None:
    read = labs._with_packages(labs._read(file))
    assert {each.name: each.packages for each in read.machines} == {"r1": ("frr", "frr-pythontools"), "h-one": ()}


def test_a_host_has_its_address_for_management_where_netlab_gives_it_one(file: Path) -> None:
    scripts = {each.name: labs._management(each) for each in labs._read(file).machines}
    assert scripts["r1"] == ""
    assert "ip address add 192.168.121.102/32 dev eth0" in scripts["h-one"]


@pytest.mark.parametrize(
    ("targets", "started"),
    [
        (["/etc/bird/bgp.mod.conf", "/etc/bird/bird.conf"], labs.STARTED["/etc/bird/bird.conf"]),
        (["/etc/bird/bird.conf", "/etc/dataplane-wait.sh"], "sh /etc/dataplane-wait.sh"),
        (["/etc/dnsmasq.conf"], "dnsmasq --keep-in-foreground -R -C /etc/dnsmasq.conf"),
        (["/etc/dnsmasq.conf", "/etc/netlab-start.sh"], "sh /etc/netlab-start.sh"),
        (["/etc/frr/daemons"], None),
        ([], None),
    ],
)
def test_a_host_runs_what_its_container_would_run(targets: list[str], started: str | None) -> None:
    script = labs._start(NetworkMachine("r1", files=tuple(("any", target) for target in targets)))
    assert (f"setsid sh -c {shlex.quote(started)} >" in script) if started else not script


@pytest.mark.parametrize(
    ("container", "host"),
    [("clab-my_lab-r1", "r1"), ("clab-My_Lab-h_one", "h-one"), ("clab-my-lab-R1", "r1"), ("clab-other-r1", "x1")],
)
def test_a_container_is_a_host_of_its_lab(container: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [a_lab("pair", "r1"), a_lab("netlab-my-lab", "r1", "h-one"), a_lab("netlab-other-r1", "x1")]
    monkeypatch.setattr(labs.running, "all_labs", lambda: there)
    if host == "x1":
        with pytest.raises(InputError, match=r"no container clab-other-r1: .*minigts netlab up"):
            labs.find(container)
    else:
        assert labs.find(container) == (there[1], host)


def test_containers_are_listed_as_docker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs.running, "all_labs", lambda: [a_lab("pair", "a"), a_lab("netlab-t", "r1", "r2")])
    assert [each["Names"] for each in labs.containers()] == ["clab-t-r1", "clab-t-r2"]


def test_a_name_that_another_node_may_have_is_refused(file: Path) -> None:
    file.write_text(FILE.replace("h_one", "r1-2"))
    with pytest.raises(InputError, match="needs a plainer name"):
        labs.deploy(file, "virtual", print)


def test_a_script_of_this_machine_is_read_from_the_input(tmp_path: Path) -> None:
    script = tmp_path / "initial"
    script.write_text("ip link\n")
    assert labs.script_of(["sh", str(script), "x"]) == (["sh", "-s", "--", "x"], b"ip link\n")
    assert labs.script_of(["tc", "qdisc", "show"]) == (["tc", "qdisc", "show"], b"")
    assert labs.script_of(["sh", "/no/such/file"]) == (["sh", "/no/such/file"], b"")
