"""The programs that a person types on a host are there, and each does its work over a chain in virtual time."""

from __future__ import annotations

import pytest

from minigts.lab import Lab

pytestmark = pytest.mark.virtual

NC = "nc -l 5001 >/tmp/got & sleep 0.1; echo hello | nc -N ams 5001; wait; cat /tmp/got; rm /tmp/got"
NUTTCP = "nuttcp -S; sleep 0.1; nuttcp -T1 ams"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ip -brief address show lo", "127.0.0.1/8"),
        ("ss --numeric --tcp --all", "Local Address:Port"),
        ("tcpdump --version 2>&1", "libpcap version"),
        ("traceroute -n -w 1 mil", " 2  10.255.0.3 "),
        ("mtr --report --report-cycles 1 --no-dns mil", "  2.|-- 10.255.0.3 "),
        ("dig -v 2>&1", "DiG "),
        ("host -V 2>&1", "host "),
        (NC, "hello"),
        ("echo '{\"a\": [1, 2]}' | jq .a[1]", "2"),
        ("nano --version", "GNU nano"),
        ("less --version", "less "),
        (NUTTCP, "Mbps"),
    ],
    ids=["ip", "ss", "tcpdump", "traceroute", "mtr", "dig", "host", "nc", "jq", "nano", "less", "nuttcp"],
)
def test_a_tool_answers(lab: Lab, script: str, said: str) -> None:
    assert said in lab.provider.run("ams", ["bash", "-c", script], timeout_s=60).stdout
