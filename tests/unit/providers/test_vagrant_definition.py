"""What the Vagrantfile is told: machines, tunnels, limits. And that Vagrant takes it."""

from __future__ import annotations

import shutil
import subprocess
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations
from pathlib import Path

import pytest

from minigts.language import blocks
from minigts.providers.vagrant import definition, prerequisites
from minigts.providers.vagrant.definition import Definition
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load
from minigts.topology.routes import addresses

PROJECT = Path(__file__).parents[3]
RUNDIR = Path("/state/labs/chain6")
needs_vagrant = pytest.mark.skipif(
    bool([name for name, present in prerequisites.packages().items() if not present]),
    reason="the provider's packages are not installed: minigts setup vagrant",
)


def plan(name: str = "chain6") -> Plan:
    return load(PROJECT / "topologies" / f"{name}.yaml")


def defined(topology: Plan, place: Path, processor: definition.MachineProcessor) -> Definition:
    return Definition(
        lab=topology.name,
        uri="qemu:///system",
        proxy_command=None,
        box="minigts",
        box_version="1.0.1",
        catalogue="/no/catalogue.json",
        private_key=str(place / "key"),
        known_hosts=str(place / "known_hosts"),
        prefix=definition.prefix(place),
        processor=processor,
        at_once=2,
        boot_timeout_s=100,
        machines=definition.machines(topology, place, place),
    )


def test_every_host_is_a_machine_with_its_resources_in_the_files_order() -> None:
    made = definition.machines(plan(), RUNDIR, RUNDIR)
    wanted = [(host.name, host.cpus, host.memory_mb) for host in plan().hosts]
    assert [(machine.name, machine.cpus, machine.memory_mb) for machine in made] == wanted


def test_every_link_is_a_pair_of_tunnels_that_name_each_other() -> None:
    ends = {}
    for machine in definition.machines(plan(), RUNDIR, RUNDIR):
        for tunnel in machine.tunnels:
            ends[tunnel.address, tunnel.port] = tunnel
    assert len(ends) == 2 * len(plan().links)
    for (address, port), tunnel in ends.items():
        assert ends[address, tunnel.peer_port].peer_port == port
        assert IPv4Address(address) in IPv4Network("127.64.0.0/10")


def test_interfaces_have_the_plans_macs_in_the_order_of_its_ports() -> None:
    made = {
        machine.name: [tunnel.mac for tunnel in machine.tunnels]
        for machine in definition.machines(plan(), RUNDIR, RUNDIR)
    }
    assert made == {host.name: [port.mac for port in host.ports] for host in plan().hosts}


def test_labs_side_by_side_share_no_name_no_mac_and_no_socket() -> None:
    labs = [definition.machines(plan(), Path("/state/labs") / name, RUNDIR) for name in ("one", "two", "three")]
    for one, two in combinations(labs, 2):
        assert not {m.domain for m in one} & {m.domain for m in two}
        assert not {m.management_mac for m in one} & {m.management_mac for m in two}
        assert not {t.address for m in one for t in m.tunnels} & {t.address for m in two for t in m.tunnels}


def test_the_same_lab_is_defined_alike_each_time() -> None:
    assert definition.machines(plan(), RUNDIR, RUNDIR) == definition.machines(plan(), RUNDIR, RUNDIR)


def test_no_topology_can_use_the_management_network() -> None:
    assert blocks.reserved_block(IPv4Network(definition.NETWORK_ADDRESS)) is not None
    assert IPv4Address(addresses.host_address(1000)) not in IPv4Network(definition.NETWORK_ADDRESS)


@pytest.mark.parametrize(("verdict", "at_once"), [("kvm", 6), ("emulation", 2)])
def test_emulated_machines_boot_as_many_at_a_time_as_there_are_cores(verdict: definition.Verdict, at_once: int) -> None:
    assert definition.parallel_boots(verdict, cores=2, hosts=6) == at_once


def test_the_last_of_many_emulated_machines_gets_the_most_time() -> None:
    alone, of_six = (definition.boot_timeout_s("emulation", cores=2, hosts=hosts) for hosts in (1, 6))
    assert of_six >= 3 * alone > definition.boot_timeout_s("kvm", cores=2, hosts=1)


def test_emulation_does_without_the_instruction_that_qemu_gets_wrong() -> None:
    assert "cx16" in definition.processor("emulation").disabled
    assert not definition.processor("kvm").disabled


@needs_vagrant
@pytest.mark.parametrize(
    ("topology", "verdict"),
    [
        ("pair", "emulation"),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in (("chain6", "kvm"), ("star", "emulation"))),
    ],
)
def test_vagrant_takes_the_vagrantfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topology: str, verdict: definition.Verdict
) -> None:
    made = defined(plan(topology), tmp_path, definition.processor(verdict))
    (tmp_path / "key").touch(mode=0o600)
    assert vagrant(tmp_path, monkeypatch, made.model_dump_json(), "validate") == (
        0,
        "Vagrantfile validated successfully.\n",
    )


@needs_vagrant
def test_a_mistake_in_a_topology_is_one_message_without_a_backtrace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.yaml").write_text("name: bad\nchain: {hosts: two}\n")
    monkeypatch.setenv("TOPOLOGY", str(tmp_path / "bad.yaml"))
    code, said = vagrant(tmp_path, monkeypatch, None, "status")
    assert code != 0
    assert "bad.yaml:2: chain.hosts" in said
    assert ".rb:" not in said


def vagrant(place: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, verb: str) -> tuple[int, str]:
    monkeypatch.setenv("VAGRANT_DOTFILE_PATH", str(place / "dotfile"))
    monkeypatch.setenv("VAGRANT_HOME", str(place / "home"))
    monkeypatch.setenv("MINIGTS_STATE", str(place / "state"))
    if content is not None:
        (place / "definition.json").write_text(content)
        monkeypatch.setenv("MINIGTS_DEFINITION", str(place / "definition.json"))
    program = shutil.which("vagrant")
    assert program is not None
    done = subprocess.run([program, verb], cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr
