"""What an overlay sets on its hosts, read back from them: options that no packet of a test would tell of.

What is expected stands here once more, in words of its own: whoever changes an option has to change it in both places.
"""

from __future__ import annotations

import json
from typing import Any

from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.plan.elements import Host

LIMIT_S = 120.0
FILTERING = {"--iptables=false", "--ip6tables=false"}
PLAIN = FILTERING | {"--userland-proxy=false", "--ip-masq=false", "--bridge=none"}
"""Of an engine that is to set nothing up by itself."""
ENGINES = dict.fromkeys(("vxlan", "ovs", "mesh", "calico", "calico-never", "romana", "wireguard", "swarm"), PLAIN)
ROUTED = ("calico", "calico-cross-subnet", "calico-never", "calico-wireguard", "mesh", "romana", "wireguard", "ebpf")
"""Whose container asks for a gateway that nobody is: its host answers, and at once."""
TUNNELS = {"vxlan": "vxlan0", "vxlan-bare": "vxlan0", "mesh": "mesh-eth1"}
NUMBERS = {"vxlan0": 4096, "mesh-eth1": 5032}
MTUS = {"vxlan0": 1450, "mesh-eth1": 1410}
"""Of a VXLAN; the mesh gives each pair of hosts 32 numbers from 5000, and the pair of hosts 0 and 1 is its second."""


def are_as_they_should_be(lab: Lab, overlay: str) -> None:
    """On the first host, with the overlay joined."""
    host = lab.plan.hosts[0]
    if overlay in ENGINES:
        assert _engine(lab, host) == ENGINES[overlay]
        _measuring_container(lab, host, overlay)
    if overlay in ROUTED:
        proxy = ("net.ipv4.conf.measure0.proxy_arp", "net.ipv4.neigh.measure0.proxy_delay")
        assert _said(lab, host, f"sysctl -n {' '.join(proxy)}").split() == ["1", "0"]
    if overlay in TUNNELS:
        _tunnel(lab, host, TUNNELS[overlay])
    if overlay == "ovs":
        _switch(lab, host)
    if overlay.startswith("swarm"):
        _swarm(lab, host, encrypted=overlay == "swarm-encrypted")


def _said(lab: Lab, host: Host, script: str) -> str:
    return user_text(lab.provider.run(host.name, ["bash", "-euc", script], timeout_s=LIMIT_S).stdout)


def _engine(lab: Lab, host: Host) -> set[str]:
    """What it was started with."""
    words = _said(lab, host, "tr '\\0' '\\n' </proc/$(cat /run/docker.pid)/cmdline").split()
    return {word for word in words if word.startswith("--")}


def _asked(lab: Lab, host: Host, path: str) -> Any:
    """What the engine says of itself."""
    script = f"printf 'GET {path} HTTP/1.0\\r\\nHost: docker\\r\\n\\r\\n' | nc -U /run/docker.sock"
    return json.loads(_said(lab, host, script).partition("\r\n\r\n")[2])


def _measuring_container(lab: Lab, host: Host, overlay: str) -> None:
    shown = _asked(lab, host, "/containers/measure/json")
    settings = shown["HostConfig"]
    assert (settings["Privileged"], settings["LogConfig"]["Type"]) == (True, "none")
    assert settings["NetworkMode"] == ("measure" if overlay.startswith("swarm") else "none")


def _tunnel(lab: Lab, host: Host, name: str) -> None:
    """Who is where is told by the plan: a tunnel that learns would follow whoever sends."""
    [shown] = json.loads(_said(lab, host, f"ip -d -j link show {name}"))
    options = shown["linkinfo"]["info_data"]
    assert {key: options.get(key) for key in ("learning", "port", "id")} == {
        "learning": False,
        "port": 4789,
        "id": NUMBERS[name],
    }
    own = host.ports[0].address if name.startswith("mesh") else host.address
    assert (options["local"], shown["mtu"]) == (own, MTUS[name])


def _switch(lab: Lab, host: Host) -> None:
    """It forwards by itself, and no frame from one tunnel into another."""
    assert _said(lab, host, "ovs-vsctl get-fail-mode br-overlay").strip() == "standalone"
    show = "ovs-vsctl get port tunnel0 protected -- get interface tunnel0 type options"
    protected, kind, options = _said(lab, host, show).splitlines()
    assert (protected, kind) == ("true", "vxlan")
    assert {f'local_ip="{host.address}"', 'key="4097"'} <= set(options.strip("{}").split(", "))


def _swarm(lab: Lab, host: Host, *, encrypted: bool) -> None:
    shown = _asked(lab, host, "/networks/measure")
    assert (shown["Driver"], shown["Internal"], shown["Attachable"]) == ("overlay", True, True)
    assert ("encrypted" in shown["Options"]) == encrypted
    states = _said(lab, host, "ip xfrm state | grep -c ^src || true").strip()
    assert (states != "0") == encrypted
