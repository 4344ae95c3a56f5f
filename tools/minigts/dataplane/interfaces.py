"""A planned machine to the script that names its interfaces and gives addresses and routes. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from minigts.dataplane.shaping import batch_line
from minigts.topology.plan import Host, Plan, Switch

SYSCTLS = (
    "net.ipv4.ip_forward=1",
    # A packet may come by another segment than the one its source is routed to.
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
    # A host with several segments answers ARP only for the one that was asked on.
    "net.ipv4.conf.all.arp_ignore=1",
    "net.ipv4.conf.all.arp_announce=2",
    # Every path starts from the same state: what an earlier connection learnt does not shape the next one.
    "net.ipv4.tcp_no_metrics_save=1",
    # Windows for the longest chain: 100 Mbit/s over 200 ms are 2.5 MB, and a window counts twice the payload.
    "net.ipv4.tcp_rmem=4096 131072 16777216",
    "net.ipv4.tcp_wmem=4096 65536 16777216",
)
KERNEL_SYSCTLS = (
    "net.core.rmem_max=16777216",
    "net.core.wmem_max=16777216",
    # Hosts share processors: what arrives while the receiver waits for its turn must find room, or UDP seems to lose.
    "net.core.rmem_default=4194304",
    "net.core.netdev_max_backlog=10000",
)
"""Settings of a whole kernel; a host that shares one with others cannot make them, and does not see the last."""


def script(plan: Plan, machine: Host | Switch) -> str:
    """A `bash -eu` script, to be run as root on `machine` after it has booted. A second run changes nothing."""
    lines = [
        f"hostname {shlex.quote(machine.name)}",
        f"printf %s {shlex.quote(_hosts_file(plan))} >/etc/hosts",
        f"sysctl -qw {shlex.join(SYSCTLS)}",
        f"[[ ! -e /proc/sys/net/core/netdev_max_backlog ]] || sysctl -qw {shlex.join(KERNEL_SYSCTLS)}",
        # From the last: where a kernel has counted them from eth0 on, the name of each is free when its turn comes.
        *(_name_port(port.mac, port.name) for port in reversed(machine.ports)),
        *(_without_ipv6(port.name) for port in machine.ports),
        "ip -batch - <<'END'",
        "link set dev lo up",
        *(batch_line("link", "set", "dev", port.name, "mtu", str(port.mtu), "up") for port in machine.ports),
        *(_addresses(machine) if isinstance(machine, Host) else ()),
        "END",
    ]
    return "\n".join([*lines, ""])


def _addresses(host: Host) -> Iterator[str]:
    yield batch_line("address", "replace", f"{host.address}/32", "dev", "lo")
    for port in host.ports:
        yield batch_line("address", "replace", f"{port.address}/{port.prefix}", "dev", port.name)
    for route in host.routes:
        yield batch_line("route", "replace", route.to, "via", route.via, "src", route.source)


def _name_port(mac: str, name: str) -> str:
    """Interfaces come up under a name of the provider's; the plan knows them by their MAC."""
    name, mac = shlex.quote(name), shlex.quote(mac)
    return (
        f"for device in /sys/class/net/*; do "
        f'if [[ $(<"$device/address") == {mac} && ${{device##*/}} != {name} ]]; then '
        f'ip link set dev "${{device##*/}}" down name {name}; fi; done'
    )


def _without_ipv6(name: str) -> str:
    """Router solicitations and the like would be traffic that nobody sent: they take losses that are meant for it."""
    folder = shlex.quote(f"/proc/sys/net/ipv6/conf/{name}")
    return f"if [[ -e {folder} ]]; then echo 1 >{folder}/disable_ipv6; fi"


def _hosts_file(plan: Plan) -> str:
    own = "".join(f"{machine.address} {machine.name}\n" for machine in plan.machines)
    return f"127.0.0.1 localhost\n{own}"
