"""Settings of hosts' kernels: Linux's own unless the file says otherwise, as set, as shown, as read back. No hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.dataplane import interfaces, kernel_settings
from minigts.errors import InputError
from minigts.topology import sysctls
from minigts.topology.plan.plan import Plan, plan_json
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
    assert "sysctl" not in plan_json(UNTUNED)


@pytest.mark.parametrize("plan, host", [(PLAN, "ams"), (PLAN, "bra"), (UNTUNED, "ams")])
def test_what_is_set_is_the_baseline_and_what_the_file_says(plan: Plan, host: str) -> None:
    """The whole kernel's settings stand behind a condition: a network namespace of others cannot make them."""
    lines = interfaces.script(plan, plan.host(host)).splitlines()
    begin, end = lines.index(f"if [[ -e {kernel_settings.OWN_KERNEL} ]]; then"), lines.index("fi")
    planned = sysctls.set_to(plan.host(host).sysctls)
    assert planned.keys() == sysctls.BASELINE.keys()
    for name, value in planned.items():
        quoted = f"'{value}'" if " " in value else value
        (at,) = (n for n, line in enumerate(lines) if f"echo {quoted} >/proc/sys/{name.replace('.', '/')}" in line)
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
        kernel_settings.read("/proc/sys/kernel/panic:1\n")


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
        ("net.ipv4.conf.all.rp_filter", "1"),
        ("net.ipv4.fib_multipath_hash_policy", "1"),
        ("net.ipv6.conf.eth1.disable_ipv6", "0"),
        ("kernel.panic", "1"),
        ("net", "1"),
        ("net.", "1"),
        ("net.//.//.etc.passwd", "1"),
        ("net.ipv4..panic", "1"),
        ("net.ipv4.x$(reboot)", "1"),
        ("net.ipv4.tcp_sack", "0\n1"),
        ("net.ipv4.tcp_sack", ""),
        ("net.ipv4.tcp_sack", "1" * 201),
        (f"net.ipv4.{'x' * 120}", "1"),
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


OTHERS = """
name: others
hosts:
  ams: {sysctls: {net.ipv4.tcp_notsent_lowat: 16384, net.ipv4.conf.eth1/10.log_martians: 1, net.core.rmem_max: 5000000}}
  bra: {ecn: on}
links: [{ends: [ams, bra], rtt: 4ms}]
"""


def test_any_other_setting_of_the_network_is_set_late_and_read_back() -> None:
    plan = parse(OTHERS, "others.yaml")
    script = interfaces.script(plan, plan.host("ams"))
    path = "/proc/sys/net/ipv4/conf/eth1.10/log_martians"
    assert f"[[ -e {path} ]] || {{ echo 'sysctls: the kernel has no net.ipv4.conf.eth1/10.log_martians' >&2" in script
    assert script.index(f"echo 1 >{path}") > script.index("link set dev lo up")
    assert "tcp_notsent_lowat" not in interfaces.script(plan, plan.host("bra"))
    host = plan.host("ams")
    assert path in kernel_settings.show(host)
    assert "log_martians" not in kernel_settings.show(plan.host("bra"))
    lines = [f"{sysctls.path_of(name)}:{value}" for name, value in sysctls.set_to(host.sysctls).items()]
    whole = kernel_settings.read("\n".join(lines))
    assert list(kernel_settings.differences(host, whole)) == []
    other = whole | {"net.ipv4.conf.eth1/10.log_martians": "0"}
    assert list(kernel_settings.differences(host, other)) == ["net.ipv4.conf.eth1/10.log_martians is 0, should be 1"]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("net.ipv4.tcp_ecn: 1", "net.ipv4.tcp_ecn: write `ecn:` of the host"),
        ("net.ipv4.ip_forward: 0", "net.ipv4.ip_forward is the lab's own"),
        ("kernel.panic: 1", "'kernel.panic'.*any other that begins with net"),
        ("net.ipv4.tcp_sack: [1]", "net.ipv4.tcp_sack"),
    ],
)
def test_what_no_file_can_set_is_said_with_its_place(name: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"o\.yaml:4: hosts\.ams\.sysctls.*{message}"):
        parse(f"name: o\n\nhosts:\n  ams: {{sysctls: {{{name}}}}}\n  bra:\nlinks: [{{ends: [ams, bra]}}]\n", "o.yaml")


def test_every_setting_by_which_hosts_forward_is_the_labs() -> None:
    own = [*interfaces.SYSCTLS, *interfaces.IPV6_SYSCTLS]
    hashes = ((family, one) for family, kinds in interfaces.HASHES.items() for one in kinds.values())
    own += [f"net.{family}.{each}" for family, several in hashes for each in several]
    own += [f"net.ipv6.conf.eth1.{name}=0" for name in interfaces.IPV6_OF_PORT]
    for setting in own:
        with pytest.raises(ValueError, match="is the lab's own"):
            sysctls.check_settings({setting.partition("=")[0]: "1"})
