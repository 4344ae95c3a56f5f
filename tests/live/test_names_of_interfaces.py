"""Names that a file gives to interfaces, beside eth1: which programs know them, and what is read back of them."""

from __future__ import annotations

import re

import pytest

from live.conftest import MakeLab, quiet
from minigts.errors import CommandFailed
from minigts.fidelity import measure, mending
from minigts.foreign import user_text
from minigts.lab.lab import Lab
from minigts.language import interface_names

pytestmark = pytest.mark.touched(
    "tools/minigts/language/interface_names.py", "tools/minigts/dataplane", "tools/minigts/fidelity"
)

LONG = "a-name-that-has-more-than-fifteen-letters"
FILE = f"""name: named-interfaces
hosts: {{a: , b: , c: }}
switches: {{s: }}
links:
  - {{ends: [a, s], delay: 2ms, interfaces: {{a: uplink, s: to-a}}}}
  - {{ends: [b, s], delay: 2ms}}
  - {{ends: [b, c], delay: 2ms, interfaces: {{c: {LONG}}}}}
"""
KNOW = {
    "ip link": ("ip -br link show dev uplink", r"^eth1\S* +U"),
    "ip address": ("ip -4 -br address show dev uplink", r"10\.20\.0\.1/24"),
    "ip route": ("ip route show dev uplink", r"10\.255\.0\.2 via"),
    "ip neigh": ("ping -c1 b >/dev/null; ip neigh show dev uplink", r"10\.20\.0\.2 lladdr"),
    "tc": ("tc qdisc show dev uplink", r"^qdisc \w+"),
    "ethtool": ("ethtool -k uplink", r"^Features for "),
    "ping": ("ping -c1 -W5 -I uplink b", r"1 received"),
    "traceroute": ("traceroute -n -q1 -i uplink 10.20.0.2", r"^ *1  10\.20\.0\.2"),
    "tcpdump": ("tcpdump -c1 -nni uplink icmp 2>&1 & sleep 1; ping -c2 b >/dev/null; wait", r"1 packet captured"),
    "iperf3": ("iperf3 -c b -t1 --bind-dev uplink", r"iperf Done"),
}
DO_NOT = {
    "iptables": (
        "iptables -A INPUT -i uplink; iptables -A INPUT -i eth1; ping -c1 b >/dev/null; iptables -vnL INPUT",
        r"\n +0 +0 .* uplink .*\n +[1-9]\d* .* eth1 ",
    ),
    "nft": (
        "nft add table ip t; nft add chain ip t c; nft add rule ip t c iif uplink 2>&1",
        "Interface does not exist",
    ),
    "sysfs": ("ls /sys/class/net; ls /proc/sys/net/ipv4/conf", r"^(?!.*uplink)"),
}


def of_a(lab: Lab, command: str) -> str:
    return user_text(lab.provider.run("a", ["sh", "-c", command], timeout_s=60, check=False).stdout)


def wrong(lab: Lab) -> list[str]:
    return [row.note for row in measure.settings(lab, quiet) if row.ok is False]


def has_every_name(lab: Lab) -> None:
    for host, name in (("a", "uplink"), ("s", "to-a"), ("c", LONG)):
        assert "eth1" in user_text(
            lab.provider.run(host, ["ip", "-br", "link", "show", "dev", name], timeout_s=30).stdout
        )


@pytest.mark.virtual
def test_what_knows_a_name_and_that_one_which_is_gone_is_found_and_set_again(make_lab: MakeLab) -> None:
    lab = make_lab(FILE)
    has_every_name(lab)
    lab.provider.run("b", ["iperf3", "-s", "-D"], timeout_s=30)
    for program, (command, expected) in {**KNOW, **DO_NOT}.items():
        assert re.search(expected, of_a(lab, command), re.MULTILINE if program in KNOW else re.DOTALL), program
    assert wrong(lab) == []
    lab.provider.run("a", ["ip", "link", "property", "del", "dev", "eth1", "altname", "uplink"], timeout_s=30)
    assert any("eth1: its name uplink is gone" in note for note in wrong(lab))
    mending.mend(lab, ("a",))
    assert wrong(lab) == []


@pytest.mark.virtual
def test_a_name_that_an_interface_of_the_host_has_ends_up(make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface_names, "_OF_LINUX", ())
    with pytest.raises(CommandFailed, match="interfaces: eth1 cannot be called gretap0 on this host"):
        make_lab(FILE.replace("uplink", "gretap0"))


@pytest.mark.uml
@pytest.mark.nightly
def test_names_are_there_in_real_time(make_lab: MakeLab) -> None:
    lab = make_lab(FILE, time="real")
    has_every_name(lab)
    assert wrong(lab) == []


@pytest.mark.mininet
def test_names_are_there_in_namespaces(make_lab: MakeLab) -> None:
    lab = make_lab(FILE, provider="mininet")
    has_every_name(lab)
    assert wrong(lab) == []
