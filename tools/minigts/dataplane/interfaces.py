"""The script that names a planned machine's interfaces, and sets its addresses and routes. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from minigts.dataplane import kernel_settings, names, router
from minigts.dataplane.shaping import batch_line, spares_arp
from minigts.topology import sysctls
from minigts.topology.plan import chance
from minigts.topology.plan.addressing import Addressing, AnyRoute
from minigts.topology.plan.elements import Host, HostPort, Port, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import addresses

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
)

LINUX_SYSCTLS = tuple(f"{each.partition('=')[0]}=0" for each in SYSCTLS)
"""Linux's own values of what `SYSCTLS` sets: each of them is 0."""
IPV6_SYSCTLS = (
    "net.ipv6.conf.all.forwarding=1",
    # A new address is used at once: detecting duplicates takes a second, and the plan has none.
    "net.ipv6.conf.all.accept_dad=0",
)
"""Settings of a host in a lab with IPv6."""
HASHES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ipv4": {"layer3": ("fib_multipath_hash_policy=0",), "layer4": ("fib_multipath_hash_policy=1",)},
    # Over IPv6 policy 0 has the flow label, too, which follows from the ports; 3 has the fields that are named.
    "ipv6": {
        "layer3": ("fib_multipath_hash_fields=3", "fib_multipath_hash_policy=3"),
        "layer4": ("fib_multipath_hash_policy=1",),
    },
}
"""What makes flows take their way by addresses, or by ports, too (Documentation/networking/ip-sysctl.rst)."""
IPV6_OF_PORT = {"accept_dad": 0, "accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "disable_ipv6": 0}
"""Settings of each port, in this order: routers are not asked, and addresses are the plan's."""

HASH_SEED = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
"""The seed of the hash by which flows are spread, of IPv4 and IPv6 (Documentation/networking/ip-sysctl.rst)."""

NAME_PORT = """\
renames=
declare -A named
for device in /sys/class/net/*; do
  { read -r address <"$device/address"; } 2>/dev/null || continue
  named[$address]+=" ${device##*/}"
done
name_port() {
  local device
  for device in ${named[$1]-}; do
    [[ $device == "$2" ]] || renames+="link set dev $device down name $2"$'\\n'
  done
}"""
NAME_ALSO = """\
name_also() {
  local device
  device=$(ip -o link show dev "$2" 2>/dev/null) || device=
  device=${device#*: }
  [[ ${device%%[@:]*} == "$1" ]] || ip link property add dev "$1" altname "$2" || {
    echo "interfaces: $1 cannot be called $2 on this host" >&2
    exit 1
  }
}"""
WAY_OUT = (addresses.GATEWAY_MAC, addresses.GATEWAY_INTERFACE)


def script(plan: Plan, machine: Host | Switch) -> str:
    """A `bash -eu` script, to be run as root on `machine` after it has booted. A second run changes nothing."""
    addressings = plan.addressings_of(machine)
    with_ipv6 = any(each.family == "ipv6" for each in addressings)
    on_segments = machine.on_segments if isinstance(machine, Host) else ()
    named = _named((*machine.ports, *on_segments))
    has_way_out = isinstance(machine, Host) and machine.gateway
    lines = [
        *_settings([f"kernel.hostname={machine.name}", *SYSCTLS]),
        *_tuned(machine),
        *(_hashing(plan, machine) if isinstance(machine, Host) and plan.ecmp is not None else ()),
        *_name_ports([*((port.mac, port.name) for port in machine.ports), *([WAY_OUT] if has_way_out else [])]),
        *_name_also(machine.ports),
        *(_way_out() if has_way_out else ()),
        *(_vlan(port) for port in on_segments if port.vlan is not None),
        *(_without_ipv6(port.name) for port in named if isinstance(machine, Switch) or not with_ipv6),
        *(_ipv6_settings(machine) if with_ipv6 else ()),
        "ip -batch - <<'END'",
        "link set dev lo up",
        *(batch_line("link", "set", "dev", port.name, "mtu", str(port.mtu), "up") for port in named),
        *(line for each in addressings if isinstance(machine, Host) for line in _addresses(plan, machine, each)),
        *(_route_out() if has_way_out else ()),
        "END",
        *(_others(machine) if isinstance(machine, Host) else ()),
        *(router.start(plan, machine) if isinstance(machine, Host) and plan.has_routers else ()),
        *names.lines(plan, machine),
    ]
    return "\n".join([*lines, ""])


def script_again(before: Plan, plan: Plan, machine: Host | Switch) -> str:
    """The script for a machine that was set up by plan `before` with the same ports; it deletes routes no longer
    planned."""
    gone = []
    if isinstance(machine, Host):
        stays = {route.to for route in plan.all_routes_of(machine.name)}
        were = before.all_routes_of(machine.name)
        gone = [batch_line("route", "del", each.to) for each in were if each.to not in stays]
    dropping = ["ip -force -batch - <<'END' || true", *gone, "END"] if gone else []
    return "\n".join([*dropping, script(plan, machine)])


def _tuned(machine: Host | Switch) -> Iterator[str]:
    """Set the kernel's settings. A host that shares its kernel can neither see nor set those of the whole kernel."""
    of_file = machine.sysctls if isinstance(machine, Host) else ()
    later = sysctls.others(of_file)
    wanted = {name: value for name, value in sysctls.set_to(of_file).items() if name not in later}
    changed = {name: value for name, value in wanted.items() if value != sysctls.BASELINE.get(name)}
    of_host = {name: value for name, value in changed.items() if not sysctls.is_of_whole_kernel(name)}
    usual = {name: value for name, value in wanted.items() if name not in of_host}
    yield from _settings(_assigned(usual, whole_kernel=False))
    yield from (_or_refused(name, value) for name, value in of_host.items())
    yield f"if [[ -e {kernel_settings.OWN_KERNEL} ]]; then"
    yield from _settings(_assigned(wanted, whole_kernel=True))
    yield "fi"


def _others(host: Host) -> Iterator[str]:
    """Set what the file has beyond the baseline, once interfaces have their names; a kernel without it says so."""
    for name, value in sysctls.others(host.sysctls).items():
        path = shlex.quote(sysctls.path_of(name))
        yield f"[[ -e {path} ]] || {{ echo {shlex.quote(f'sysctls: the kernel has no {name}')} >&2; exit 1; }}"
        yield _or_refused(name, value)


def _or_refused(name: str, value: str) -> str:
    failed = shlex.quote(f"sysctls: the kernel refuses {name} = {value}")
    return (
        f"{{ echo {shlex.quote(value)} >{shlex.quote(sysctls.path_of(name))}; }} 2>/dev/null "
        f"|| {{ echo {failed} >&2; exit 1; }}"
    )


def _hashing(plan: Plan, host: Host) -> Iterator[str]:
    """How the host chooses among several ways. Its seed is its own, or all hosts would choose alike, and the hosts
    behind a chosen one would use one way alone; kernels before 6.11 have a random one."""
    for each in plan.addressings:
        yield from _settings(f"net.{each.family}.{setting}" for setting in HASHES[each.family][plan.ecmp or "layer4"])
    seed = chance.hash_seed(plan, host.name)
    yield f"if [[ -e {HASH_SEED} ]]; then echo {seed} >{HASH_SEED}; fi"


def _assigned(settings: Mapping[str, str], *, whole_kernel: bool) -> Iterator[str]:
    named = settings.items()
    yield from (f"{name}={value}" for name, value in named if sysctls.is_of_whole_kernel(name) is whole_kernel)


def _addresses(plan: Plan, host: Host, addressing: Addressing) -> Iterator[str]:
    """Set the host's addresses of one version of IP, and its routes."""
    at_once = () if addressing.family == "ipv4" else ("nodad",)
    yield batch_line("address", "replace", addressing.own(host), "dev", "lo", *at_once)
    for port in host.on_segments:
        yield batch_line("address", "replace", addressing.segment_address(port), "dev", port.name, *at_once)
    for route in () if plan.has_routers else plan.set_routes_of(host, addressing):
        yield _route(route)
    if addressing.family == "ipv6":
        yield from _neighbours(plan, host, addressing)


def _neighbours(plan: Plan, host: Host, addressing: Addressing) -> Iterator[str]:
    """Neighbour discovery would use up random numbers that decide on packets; as ARP, it is kept away from losses."""
    for port, _, far in plan.neighbours(host):
        if spares_arp(port.incoming) or spares_arp(port.outgoing):
            address = addressing.address(far.address)
            yield batch_line("neighbour", "replace", address, "lladdr", far.mac, "dev", port.name, "nud", "permanent")


def _route(route: AnyRoute) -> str:
    if not route.also:
        return batch_line("route", "replace", route.to, "via", route.via, "src", route.source)
    ways = [word for via in (route.via, *route.also) for word in ("nexthop", "via", via)]
    return batch_line("route", "replace", route.to, "src", route.source, *ways)


def _named(ports: Iterable[Port]) -> Sequence[Port]:
    """Each interface once: a port that is no trunk is its interface on the segment."""
    return tuple({port.name: port for port in ports}.values())


def _vlan(port: HostPort) -> str:
    name, trunk = port.name, port.name.partition(".")[0]
    return f"[[ -e /sys/class/net/{name} ]] || ip link add link {trunk} name {name} type vlan id {port.vlan}"


def _way_out() -> Iterator[str]:
    """Set up the gateway's interface, without IPv6, which its network does not have."""
    yield _without_ipv6(addresses.GATEWAY_INTERFACE)
    yield f"echo nameserver {addresses.GATEWAY_NAME_SERVER} >/etc/resolv.conf"


def _route_out() -> Iterator[str]:
    yield batch_line("link", "set", "dev", addresses.GATEWAY_INTERFACE, "up")
    yield batch_line(
        "address",
        "replace",
        f"{addresses.GATEWAY_ADDRESS}/{addresses.GATEWAY_PREFIX}",
        "dev",
        addresses.GATEWAY_INTERFACE,
    )
    yield batch_line("route", "replace", "default", "via", addresses.GATEWAY_ROUTER, "src", addresses.GATEWAY_ADDRESS)


_IPV6_THERE = (
    "[[ -e /proc/sys/net/ipv6 ]] || { echo 'the kernel has no IPv6, and the topology says ipv6' >&2; exit 1; }"
)


def _ipv6_settings(machine: Host | Switch) -> Iterator[str]:
    """Have the machine use its IPv6 addresses at once, and ask no router. The interface of a switch itself, unlike a
    host's ports, is made later."""
    yield _IPV6_THERE
    if isinstance(machine, Switch):
        of_new = {name: value for name, value in IPV6_OF_PORT.items() if name != "disable_ipv6"}
        yield from _settings(f"net.ipv6.conf.default.{name}={value}" for name, value in of_new.items())
        return
    yield from _settings(IPV6_SYSCTLS)
    for port in machine.on_segments:
        of_port = f"net.ipv6.conf.{port.name.replace('.', '/')}"
        yield from _settings(f"{of_port}.{name}={value}" for name, value in IPV6_OF_PORT.items())


def _settings(settings: Iterable[str]) -> Iterator[str]:
    """Set `net.ipv4.ip_forward=1` and others without a process. A slash is a dot in a name, as in sysctl(8)."""
    for name, value in (setting.split("=", 1) for setting in settings):
        yield f"echo {shlex.quote(value)} >{shlex.quote(sysctls.path_of(name))}"


def _name_ports(ports: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Rename interfaces, found by their MAC, from the provider's to the plan's names, with one `ip` process for all.

    The last is renamed first: where a kernel has counted them from eth0 on, each new name is then free.
    """
    yield NAME_PORT
    yield from (f"name_port {shlex.join(port)}" for port in reversed(ports))
    yield '[[ -z $renames ]] || ip -batch - <<<"$renames"'


def _name_also(ports: Sequence[Port]) -> Iterator[str]:
    """Give ports their names of the file, too. `ip` finds a device by either."""
    named = [(port.name, port.altname) for port in ports if port.altname is not None]
    yield from (NAME_ALSO,) if named else ()
    yield from (f"name_also {shlex.join(each)}" for each in named)


def _without_ipv6(name: str) -> str:
    """Turn IPv6 off on an interface: router solicitations and the like would take losses meant for the lab's
    traffic."""
    folder = shlex.quote(f"/proc/sys/net/ipv6/conf/{name}")
    return f"if [[ -e {folder} ]]; then echo 1 >{folder}/disable_ipv6; fi"
