"""A pair of virtual machines: the same hosts, links and overlays as on `uml`; afterwards nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import quiet
from live.program import TOPOLOGIES
from live.real_time import PROBES, band_ms
from minigts import lab as labs
from minigts import overlays
from minigts.dataplane import shaping
from minigts.foreign import user_text
from minigts.lab import Lab, calibration
from minigts.machine import shell
from minigts.providers.vagrant import libvirt
from minigts.providers.vagrant.definition import Definition
from minigts.topology.read.load import load

pytestmark = [pytest.mark.vagrant, pytest.mark.timeout(600)]
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """topologies/pair.yaml, up without an overlay; when it is down, nothing of it is left."""
    plan = load(TOPOLOGIES / "pair.yaml", known_overlays=overlays.known_names())
    made = labs.up(plan, "vagrant", "pair-of-machines", quiet)
    prefix = definition(made).prefix
    try:
        yield made
    finally:
        processes = made.provider.processes()
        labs.down(made)
    assert libvirt.running(prefix) == []
    assert libvirt.volumes(prefix) == []
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []
    assert not made.rundir.exists()


def definition(lab: Lab) -> Definition:
    return Definition.model_validate_json((lab.rundir / "definition.json").read_text())


def said(lab: Lab, host: str, *argv: str) -> str:
    return user_text(lab.provider.run(host, argv, timeout_s=LIMIT_S).stdout)


def test_every_host_is_a_machine_with_a_kernel_and_an_init_of_its_own(pair: Lab) -> None:
    assert len({said(pair, host, "cat", "/proc/sys/kernel/random/boot_id") for host in ("ams", "bra")}) == 2
    assert said(pair, "ams", "cat", "/proc/1/comm") == "systemd\n"
    assert "cloud" in said(pair, "ams", "uname", "-r")


def test_the_user_of_vagrant_ssh_may_ping(pair: Lab) -> None:
    """`vagrant ssh ams -c 'ping bra'`: Debian gives ping a capability, which a box's file system does not keep."""
    shown = said(pair, "ams", "runuser", "-u", "vagrant", "--", "ping", "-c", "1", "-w", "20", "bra")
    assert ", 0% packet loss" in shown


def test_links_are_shaped_as_planned_and_read_back(pair: Lab) -> None:
    for host in pair.plan.hosts:
        shown = said(pair, host.name, "tc", "-j", "qdisc", "show")
        for port in host.ports:
            assert shaping.differences(port, shown, pair.read_record().emulator_overhead_ms) == []


def test_test_traffic_never_takes_the_management_interface(pair: Lab) -> None:
    """Packets of a kilobyte, more than all that SSH sends meanwhile, are counted on the link and not on mgmt0."""

    def sent(device: str) -> int:
        (shown,) = json.loads(said(pair, "ams", "ip", "-j", "-s", "link", "show", "dev", device))
        return int(shown["stats64"]["tx"]["bytes"])

    before = {device: sent(device) for device in ("mgmt0", "eth1")}
    address = pair.plan.host("bra").address
    said(pair, "ams", "ping", "-q", "-c", "200", "-i", "0.01", "-s", "1000", address)
    after = {device: sent(device) for device in ("mgmt0", "eth1")}
    assert after["eth1"] - before["eth1"] >= 200 * 1000
    assert after["mgmt0"] - before["mgmt0"] < 100 * 1000
    assert "default" not in said(pair, "ams", "ip", "route")


@pytest.mark.parametrize("overlay", ["none", "swarm"])
def test_the_lowest_round_trip_is_the_declared_one(pair: Lab, overlay: str) -> None:
    """A busy machine only ever adds. What was taken off as the emulator's own may have been too much on one."""
    ends = overlays.join(pair, overlay, quiet)
    address, inside = ends["bra"].address, ends["ams"].network
    measured = calibration.probe(pair.provider, "ams", address, count=PROBES, prefix=inside)
    assert len(measured.rtts_ms) >= PROBES - 2
    least_ms, most_ms = band_ms(pair, pair.plan.path("ams", "bra"))
    assert least_ms <= min(measured.rtts_ms) <= most_ms


def test_the_domains_follow_libvirts_schema(pair: Lab, tmp_path: Path) -> None:
    for machine in definition(pair).machines:
        xml = tmp_path / f"{machine.name}.xml"
        xml.write_text(shell.run(["virsh", "-c", libvirt.uri(), "dumpxml", machine.domain], timeout_s=LIMIT_S).stdout)
        shell.run(["virt-xml-validate", str(xml), "domain"], timeout_s=LIMIT_S)
