"""Policies on real hosts: what is denied stays out, what is allowed gets in, and leaving takes the rules away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, skip_without_programs
from minigts import lab as labs
from minigts import overlays, paths
from minigts.errors import MinigtsError
from minigts.lab import Lab
from minigts.overlays import Endpoint, policy
from minigts.topology.load import load

pytestmark = pytest.mark.virtual

NETSERVER, IPERF3 = 12865, 5201
CLOSED = f"""\
name: closed
default: deny
groups: {{web: [ams], store: [bra]}}
rules:
  - allow: {{from: web, to: store, protocol: tcp, ports: [{NETSERVER}]}}
"""
OPEN = f"""\
name: open
groups: {{web: [ams], store: [bra]}}
rules:
  - deny: {{from: web, to: store, protocol: tcp, ports: [{NETSERVER}]}}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_STATE", str(tmp_path_factory.mktemp("state")))
        lab = labs.up(load(paths.project_root() / "topologies" / "pair.yaml", time="virtual"), "uml", None, quiet)
        yield lab
        labs.down(lab)


def reaches(lab: Lab, source: Endpoint, target: Endpoint) -> dict[str, bool]:
    """Which of the target's services answer from inside the source's container."""
    asked = {
        "icmp": ["ping", "-c", "1", "-W", "2", target.address],
        "netserver": ["timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{target.address}/{NETSERVER}"],
        "iperf3": ["timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{target.address}/{IPERF3}"],
    }
    return {
        what: lab.provider.run(source.host, [*source.network, *argv], timeout_s=20, check=False).code == 0
        for what, argv in asked.items()
    }


def tables(lab: Lab) -> str:
    return lab.provider.run("bra", ["nft", "list", "tables"], timeout_s=20).stdout


@pytest.mark.parametrize("name", ["calico", "calico-node", "romana", "canal"])
def test_what_is_denied_is_denied_and_what_is_allowed_is_allowed(pair: Lab, name: str) -> None:
    skip_without_programs(name)
    hosts = [host.name for host in pair.plan.hosts]
    ends = overlays.join(pair, name, quiet)
    ams, bra = ends["ams"], ends["bra"]

    before = reaches(pair, ams, bra)
    policy.apply(pair, policy.parse(CLOSED, "closed.yaml", hosts))
    closed, back = reaches(pair, ams, bra), reaches(pair, bra, ams)
    policy.apply(pair, policy.parse(OPEN, "open.yaml", hosts))
    policy.apply(pair, policy.parse(OPEN, "open.yaml", hosts))
    opened = reaches(pair, ams, bra)
    policy.remove(pair)
    after = reaches(pair, ams, bra)
    overlays.leave(pair, quiet)

    assert before == after == {"icmp": True, "netserver": True, "iperf3": True}
    assert closed == {"icmp": False, "netserver": True, "iperf3": False}
    assert back == {"icmp": False, "netserver": False, "iperf3": False}
    assert opened == {"icmp": True, "netserver": False, "iperf3": True}
    assert policy.TABLE not in tables(pair)


def test_an_overlay_that_enforces_nothing_says_so(pair: Lab) -> None:
    overlays.join(pair, "none", quiet)
    with pytest.raises(MinigtsError, match="overlay none enforces no policy; those that do: calico"):
        policy.apply(pair, policy.parse(OPEN, "open.yaml", ["ams", "bra"]))
