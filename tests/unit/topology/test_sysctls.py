"""Settings of hosts' kernels: Linux's own unless the file says otherwise, as set, as shown, as read back. No hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.dataplane import interfaces, kernel_settings
from minigts.topology import sysctls
from minigts.topology.plan.plan import Plan, to_json
from minigts.topology.read.load import load, parse

PROJECT = Path(__file__).parents[3]
TOPOLOGY = """
name: tuned
defaults: {host: {sysctls: {net.ipv4.tcp_rmem: 4096  131072 16777216}}}
hosts:
  ams: {sysctls: {net.core.rmem_default: 4194304, net.ipv4.tcp_congestion_control: bbr}}
  bra:
links: [{ends: [ams, bra], rtt: 4ms}]
"""
PLAN = parse(TOPOLOGY, "tuned.yaml")
UNTUNED = parse(TOPOLOGY.replace("defaults:", "#").replace("{sysctls: {net.core", "#"), "tuned.yaml")


def shown(host: str = "ams", **changed: str) -> dict[str, str]:
    """What the host's kernel shows where all is as planned, but for what `changed` says of a name's last word."""
    planned = sysctls.set_to(PLAN.host(host).sysctls)
    lines = [f"/proc/sys/{name.replace('.', '/')}:{value}" for name, value in planned.items()]
    read = kernel_settings.read("\n".join(line.replace(" ", "\t") for line in lines))
    return {name: changed.get(name.rpartition(".")[2], value) for name, value in read.items()}


def test_a_host_has_the_nearest_settings_and_its_plan_says_them() -> None:
    assert PLAN.tuning_in_words == [
        "ams: net.core.rmem_default = 4194304, net.ipv4.tcp_congestion_control = bbr",
        "bra: net.ipv4.tcp_rmem = 4096 131072 16777216",
    ]
    assert Plan.model_validate_json(PLAN.model_dump_json()) == PLAN


def test_a_host_that_is_as_linux_is_says_nothing_of_it_in_a_plan() -> None:
    assert UNTUNED.tuning_in_words == []
    assert "sysctl" not in to_json(UNTUNED)


@pytest.mark.parametrize("plan, host", [(PLAN, "ams"), (PLAN, "bra"), (UNTUNED, "ams")])
def test_what_is_set_is_the_baseline_and_what_the_file_says(plan: Plan, host: str) -> None:
    """The whole kernel's settings stand behind a condition: a network namespace of others cannot make them."""
    lines = interfaces.script(plan, plan.host(host)).splitlines()
    begin, end = lines.index(f"if [[ -e {kernel_settings.OWN_KERNEL} ]]; then"), lines.index("fi")
    planned = sysctls.set_to(plan.host(host).sysctls)
    assert planned.keys() == sysctls.BASELINE.keys()
    for name, value in planned.items():
        quoted = f"'{value}'" if " " in value else value
        at = lines.index(f"echo {quoted} >/proc/sys/{name.replace('.', '/')}")
        assert (begin < at < end) is name.startswith("net.core.")


def test_a_host_as_planned_shows_no_difference() -> None:
    assert list(kernel_settings.differences(PLAN.host("ams"), shown())) == []


def test_what_somebody_set_since_is_a_difference() -> None:
    found = kernel_settings.differences(PLAN.host("bra"), shown("bra", tcp_rmem="1 2 3", rmem_default="5000"))
    assert list(found) == [
        "net.core.rmem_default is 5000, should be 212992",
        "net.ipv4.tcp_rmem is 1 2 3, should be 4096 131072 16777216",
    ]


def test_of_a_kernel_that_others_have_too_only_the_hosts_own_settings_count() -> None:
    common = shown("bra", rmem_default="1")
    del common["net.core.netdev_max_backlog"]
    assert list(kernel_settings.differences(PLAN.host("bra"), common)) == []
    missing = {name: value for name, value in common.items() if name != "net.ipv4.tcp_wmem"}
    assert list(kernel_settings.differences(PLAN.host("bra"), missing)) == [
        "net.ipv4.tcp_wmem is not there, should be 4096 16384 4194304"
    ]


def test_other_output_is_not_taken_for_settings() -> None:
    with pytest.raises(ValueError, match="no setting that was asked for"):
        kernel_settings.read("/proc/sys/net/ipv4/ip_forward:1\n")


def test_what_is_asked_for_is_what_this_machines_kernel_calls_so() -> None:
    """`grep` of the real files, as a host runs it: whichever of them this machine shows are read."""
    said = subprocess.run(
        ["sh", "-c", kernel_settings.show(PLAN.hosts[0])], capture_output=True, text=True, check=True
    ).stdout
    found = kernel_settings.read(said.partition(kernel_settings.BEGIN)[2])
    assert "net.ipv4.tcp_rmem" in found
    assert len(found["net.ipv4.tcp_rmem"].split(" ")) == 3


@pytest.mark.parametrize(
    "name, value",
    [
        ("net.ipv4.ip_forward", "1"),
        ("net.core.rmem_max", "4194304; reboot"),
        ("net.core.rmem_max", "04194304"),
        ("net.core.rmem_max", "2147483648"),
        ("net.ipv4.tcp_rmem", "4096\n131072 6291456"),
        ("net.ipv4.tcp_congestion_control", "bbr\n"),
    ],
)
def test_a_plan_from_elsewhere_is_held_to_the_same(name: str, value: str) -> None:
    with pytest.raises(ValidationError):
        sysctls.Sysctl(name=name, value=value)


def test_the_plan_is_shown_with_them(tmp_path: Path) -> None:
    (tmp_path / "tuned.yaml").write_text(TOPOLOGY)
    said = CliRunner().invoke(app, ["plan", str(tmp_path / "tuned.yaml")]).stdout
    assert "tuned: ams: net.core.rmem_default = 4194304, net.ipv4.tcp_congestion_control = bbr" in said


def test_the_chain_of_the_study_needs_none() -> None:
    assert load(PROJECT / "topologies" / "chain6.yaml").tuning_in_words == []
