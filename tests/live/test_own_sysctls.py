"""Any setting of a host's network that a file has: set at bring-up, read back, and an error where no kernel has it."""

from __future__ import annotations

import pytest

from live.conftest import MakeLab, quiet
from minigts.errors import CommandFailed
from minigts.fidelity import measure

pytestmark = pytest.mark.virtual
FILE = """name: own-sysctls
hosts:
  a: {{sysctls: {{{}: {}, net.ipv4.conf.eth1.proxy_arp: 1}}}}
  b:
links: [{{ends: [a, b], rtt: 2ms}}]
"""


def file_of(name: str, value: str) -> str:
    return FILE.format(name, value)


def test_settings_are_there_and_a_changed_one_is_found(make_lab: MakeLab) -> None:
    lab = make_lab(file_of("net.ipv4.tcp_notsent_lowat", "16384"))
    show = ["cat", "/proc/sys/net/ipv4/tcp_notsent_lowat", "/proc/sys/net/ipv4/conf/eth1/proxy_arp"]
    assert lab.provider.run("a", show, timeout_s=30).stdout.split() == ["16384", "1"]
    assert [row.note for row in measure.settings(lab, quiet) if row.ok is False] == []
    lab.provider.run("a", ["sh", "-c", "echo 5 >/proc/sys/net/ipv4/tcp_notsent_lowat"], timeout_s=30)
    (row,) = (row for row in measure.settings(lab, quiet) if row.ok is False)
    assert "net.ipv4.tcp_notsent_lowat is 5, should be 16384" in row.note


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("net.ipv4.tcp_sakc", "1", "sysctls: the kernel has no net.ipv4.tcp_sakc"),
        ("net.ipv4.tcp_sack", "x", "sysctls: the kernel refuses net.ipv4.tcp_sack = x"),
    ],
)
def test_what_the_kernel_does_not_take_ends_up(make_lab: MakeLab, name: str, value: str, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        make_lab(file_of(name, value))


@pytest.mark.mininet
def test_a_host_in_a_namespace_has_a_restricted_congestion_control(make_lab: MakeLab) -> None:
    """Linux gives it to a namespace only where the kernel's first one has had it."""
    file = "name: p\nhosts: {a: {sysctls: {net.ipv4.tcp_congestion_control: dctcp}}, b: }\nlinks: [{ends: [a, b]}]\n"
    lab = make_lab(file, provider="mininet")
    show = ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
    assert [lab.provider.run(host, show, timeout_s=30).stdout.strip() for host in "ab"] == ["dctcp", "cubic"]
