"""The kinds of faults of the arena: those of `break`, and further ones of routing protocols, name servers, containers,
policies and clusters, which `break` does not draw since not every lab has a place for them.

Beside the variables of `lessons.break_kinds` these have `host`, the broken host's name, and `index`, the watcher's
number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minigts.arena.cluster_kinds import CLUSTER_KINDS, cluster_places
from minigts.arena.expectations import SLOWER, SLOWER_MS
from minigts.arena.policy_kinds import ONLY, POLICY_KINDS
from minigts.lessons import breaks
from minigts.lessons.break_kinds import KINDS, Kind, filter_script
from minigts.lessons.breaks import FaultPlace
from minigts.topology.plan.plan import Plan

_BIRD = 'bird="/run/minigts/underlay/$host"\nask() { birdc -s "$bird/bird.ctl" "$@"; }\n'
_ALONE = f"""{_BIRD}
! ask show ospf neighbors 2>/dev/null | grep -q "Full.*[[:blank:]]$dev[[:blank:]]" &&
  ! ask show protocols "bgp4_$dev" 2>/dev/null | grep -q Established
"""
"""Whether the host has no neighbour by its routing protocol on the interface."""
_SERVER = "pid=$(cat /run/minigts-names.pid)\ncommand=$(tr '\\0' ' ' <\"/proc/$pid/cmdline\")\n"
_END_SERVER = "kill $(cat /run/minigts-names.pid)\nwhile pidof dnsmasq >/dev/null; do sleep 0.05; done\n"
_UNANSWERED = '! dig +short +tries=1 +time=2 @127.0.0.1 "$name" | grep -q "^[0-9]"'
_CONTAINER = """
engine() { curl -sf --unix-socket /run/docker.sock "$@"; }
pid=$(engine http://docker/containers/measure/json | jq .State.Pid)
enter() { nsenter --net --target "$pid" -- "$@"; }
"""
_MAC = "mac=$(printf '02:00:00:00:%02x:%02x' $((index / 256)) $((index % 256)))\n"
NOWHERE = "10.255.254.1"
"""An address that no host has."""


def _edited(there: str, back: str) -> str:
    """Edits the configuration of the routing daemon by a program of sed's, and has it read."""
    again = "birdc -s $bird/bird.ctl configure >/dev/null"
    return (
        f'{_BIRD}before=$(cat "$bird/bird.conf")\nsed -i "{there}" "$bird/bird.conf"\n'
        f'[ "$before" != "$(cat "$bird/bird.conf")" ]\n{again}\n'
        f"printf '%s\\n' \"sed -i '{back}' $bird/bird.conf; {again}\"\n"
    )


def _served(options: str, before: str = "") -> str:
    """Starts the name server again with other options."""
    return f"{_SERVER}{before}{_END_SERVER}$command {options}\necho '{_END_SERVER}'\"\n$command\"\n"


_OF_PROTOCOLS = (
    Kind(
        "router-dead",
        "a host's routing daemon has ended",
        "interface",
        f'{_BIRD}pid=$(cat "$bird/bird.pid")\nkill "$pid"\nwhile [ -d "/proc/$pid" ]; do sleep 0.05; done\n'
        'echo "rm -f $bird/bird.ctl $bird/bird.pid; bird -c $bird/bird.conf -s $bird/bird.ctl -P $bird/bird.pid"',
        f"{_BIRD}! ask show status",
    ),
    Kind(
        "passive",
        "an interface takes no part in the routing protocol",
        "interface",
        _edited(
            r"s/interface \"$dev\" { type ptp;/interface \"$dev\" { stub yes; type ptp;/;"
            r" s/^protocol bgp bgp4_$dev {\$/protocol bgp bgp4_$dev { disabled;/",
            r"s/ stub yes;//; s/ { disabled;/ {/",
        ),
        _ALONE,
    ),
    Kind(
        "protocol-filtered",
        "a filter drops what the routing protocol's neighbour sends",
        "interface",
        "nft add table inet site\nnft add chain inet site rules '{ type filter hook input priority 0; }'\n"
        'for what in "ip protocol 89" "tcp dport 1179" "tcp sport 1179"; do\n'
        '  nft add rule inet site rules iifname "$dev" $what drop\ndone\necho "nft delete table inet site"\n',
        _ALONE,
    ),
    Kind(
        "wrong-timer",
        "an interface has another interval of OSPF's hellos than its neighbour",
        "interface",
        _edited(r"/interface \"$dev\"/s/ hello 1;/ hello 2;/", r"s/ hello 2;/ hello 1;/"),
        _ALONE,
    ),
    Kind(
        "wrong-area",
        "a host is in another area of OSPF than its neighbours",
        "interface",
        _edited(r"s/^  area 0 {/  area 1 {/", r"s/^  area 1 {/  area 0 {/"),
        _ALONE,
    ),
    Kind(
        "wrong-as",
        "a host believes its neighbour in another autonomous system of BGP",
        "interface",
        _edited(
            r"/^protocol bgp bgp4_$dev {/,/^}/s/\(neighbor .* as 64\)5/\19/",
            r"s/\(neighbor .* as 64\)9/\15/",
        ),
        _ALONE,
    ),
    Kind(
        "wrong-cost",
        "a link costs so much by BGP that a longer way is taken",
        "interface",
        f'{_BIRD}old=$(sed -n "/^protocol bgp bgp4_$dev {{/,/^}}/s/.*bgp_med + \\([0-9]*\\);.*/\\1/p" "$bird/bird.conf"'
        ')\n[ -n "$old" ]\n'
        + _edited(
            r"/^protocol bgp bgp4_$dev {/,/^}/s/bgp_med + $old;/bgp_med + 465123;/",
            r"s/bgp_med + 465123;/bgp_med + $old;/",
        ),
        '! ip route get "$there" | grep -q " dev $dev "',
    ),
    Kind(
        "no-export",
        "a host's routing daemon gives the kernel no routes",
        "interface",
        f'{_BIRD}ask disable kernel4 >/dev/null\necho "birdc -s $bird/bird.ctl enable kernel4 >/dev/null"',
        "! ip -4 route show table 20 | grep -q .",
    ),
    Kind(
        "no-table",
        "a host does not look up the table with the routing protocol's routes",
        "interface",
        'pref=$(ip -4 rule show | sed -n "s/:.*lookup 20 *$//p")\n[ -n "$pref" ]\nip -4 rule del lookup 20\n'
        'echo "ip -4 rule add pref $pref lookup 20"',
        '! ip -4 rule show | grep -q "lookup 20"',
    ),
)
_OF_NAMES = (
    Kind(
        "name-server-dead",
        "a host's name server has ended",
        "interface",
        f'{_SERVER}{_END_SERVER}echo "$command"\n',
        _UNANSWERED,
    ),
    Kind(
        "wrong-resolver",
        "a host asks a name server that there is not",
        "interface",
        f"before=$(cat /etc/resolv.conf)\necho nameserver {NOWHERE} >/etc/resolv.conf\n"
        "echo \"echo '$before' >/etc/resolv.conf\"",
        f"grep -q {NOWHERE} /etc/resolv.conf",
    ),
    Kind(
        "wrong-record",
        "a host's name server gives a wrong address of another host's name",
        "way",
        _served("--no-hosts --addn-hosts=/etc/hosts.old", f'sed "s/^$there /{NOWHERE} /" /etc/hosts >/etc/hosts.old\n'),
        f'dig +short +tries=1 +time=2 @127.0.0.1 "$name" | grep -qx {NOWHERE}',
    ),
    Kind(
        "no-records",
        "a host's name server knows no names",
        "interface",
        _served("--no-hosts"),
        f"{_UNANSWERED} && pidof dnsmasq",
    ),
    Kind(
        "name-server-filtered",
        "a filter drops what a host asks its name server",
        "interface",
        filter_script("input", "udp dport 53 drop"),
        f"{_UNANSWERED} && pidof dnsmasq",
    ),
)
_OF_LARGE_PACKETS = (
    Kind(
        "silent-mtu",
        "an interface's MTU is too small, and a filter drops the messages that would say so",
        "transit",
        'mtu=$(cat "/sys/class/net/$dev/mtu")\n[ "$mtu" -ge 1500 ]\nip link set "$dev" mtu 1300\n'
        + filter_script("output", "icmp type destination-unreachable drop")
        + 'echo "ip link set $dev mtu $mtu"',
        '[ "$(cat "/sys/class/net/$dev/mtu")" = 1300 ]',
    ),
)
_OF_CONTAINERS = (
    Kind(
        "container-off",
        "a container's interface is switched off",
        "interface",
        f'{_CONTAINER}enter ip link set eth0 down\necho "nsenter --net --target $pid -- ip link set eth0 up"',
        f"{_CONTAINER}! enter ip -o link show eth0 | grep -q '[<,]UP[,>]'",
    ),
    Kind(
        "container-address",
        "a container's interface has lost its address",
        "interface",
        f"{_CONTAINER}address=$(enter ip -o -4 address show eth0 | awk '{{ print $4; exit }}')\n[ -n \"$address\" ]\n"
        'enter ip address del "$address" dev eth0\n'
        'echo "nsenter --net --target $pid -- ip address add $address dev eth0"',
        f"{_CONTAINER}! enter ip -o -4 address show eth0 | grep -q .",
    ),
    Kind(
        "container-mtu",
        "the MTU of a container's interface is too small",
        "interface",
        f"{_CONTAINER}mtu=$(enter ip -o link show eth0 | sed 's/.* mtu \\([0-9]*\\) .*/\\1/')\n[ \"$mtu\" -gt 1300 ]\n"
        'enter ip link set eth0 mtu 600\necho "nsenter --net --target $pid -- ip link set eth0 mtu $mtu"',
        f"{_CONTAINER}enter ip -o link show eth0 | grep -q ' mtu 600 '",
    ),
    Kind(
        "container-paused",
        "a container is paused: the kernel answers for it, its programs do not",
        "interface",
        f"{_CONTAINER}engine -X POST http://docker/containers/measure/pause\n"
        "echo 'curl -sf --unix-socket /run/docker.sock -X POST http://docker/containers/measure/unpause'",
        f'{_CONTAINER}[ "$(engine http://docker/containers/measure/json | jq .State.Paused)" = true ]',
    ),
    Kind(
        "container-filtered",
        "a filter in a container's network drops what comes for its service",
        "interface",
        f"{_CONTAINER}enter nft add table inet site\n"
        "enter nft add chain inet site rules '{ type filter hook input priority 0; }'\n"
        "enter nft add rule inet site rules tcp dport 5201 drop\n"
        'echo "nsenter --net --target $pid -- nft delete table inet site"',
        f"{_CONTAINER}enter nft list table inet site | grep -q 'dport 5201 drop'",
    ),
    Kind(
        "tunnel-filtered",
        "a filter on a host drops the tunnels' packets that come for it",
        "interface",
        filter_script("input", "udp dport 4789 drop"),
        "nft list table inet site | grep -q 'dport 4789 drop'",
    ),
    Kind(
        "tunnel-off",
        "a host's end of the tunnels is switched off",
        "interface",
        'ip link set vxlan0 down\necho "ip link set vxlan0 up"',
        "! ip -o link show vxlan0 | grep -q '[<,]UP[,>]'",
    ),
    Kind(
        "port-off",
        "the bridge's port to a container is switched off",
        "interface",
        'ip link set measure0 down\necho "ip link set measure0 up"',
        "! ip -o link show measure0 | grep -q '[<,]UP[,>]'",
    ),
    Kind(
        "wrong-tunnel-end",
        "a host sends what is for another's container to a wrong address",
        "interface",
        f'{_MAC}bridge fdb replace "$mac" dev vxlan0 dst {NOWHERE}\n'
        'echo "bridge fdb replace $mac dev vxlan0 dst $there"',
        f"bridge fdb show dev vxlan0 | grep -q 'dst {NOWHERE}'",
    ),
)
FURTHER = (*_OF_PROTOCOLS, *_OF_NAMES, *_OF_LARGE_PACKETS, *_OF_CONTAINERS, *POLICY_KINDS, *CLUSTER_KINDS)
BY_NAME = {kind.name: kind for kind in (*KINDS, *FURTHER)}
"""All kinds of faults by name."""


def places_of(kind: Kind, plan: Plan) -> Iterator[FaultPlace]:
    """The places that a plan has for a kind, each fault once: a kind that breaks a whole host has one for each host."""
    if kind in CLUSTER_KINDS:
        yield from cluster_places(kind, plan)
        return
    seen = set[tuple[str, ...]]()
    for place in breaks.places(kind, plan):
        if not _is_felt(kind, place, plan):
            continue
        known = {**place.variables, "host": place.host, "index": str(plan.host(place.watcher).index)}
        given = place if kind in KINDS else replace(place, variables=known)
        fault = (place.host, *(f"{name}={text}" for name, text in known.items() if f"${name}" in kind.do))
        if fault not in seen:
            seen.add(fault)
            yield given


def _is_felt(kind: Kind, place: FaultPlace, plan: Plan) -> bool:
    """Whether users feel it: in a ring the way by a wrong next hop may be as short as the right one, and not every rule
    of a policy is about every host."""
    if kind.name != "wrong-next-hop":
        return place.host in ONLY.get(kind.name, (place.host,))
    there = next(host.name for host in plan.hosts if host.address == place.variables["there"])
    first, onward = plan.path(place.host, place.watcher), plan.path(place.watcher, there)
    right_ms = plan.path(place.host, there).rtt_ms
    detour_ms = (first.rtt_ms + onward.rtt_ms + right_ms) / 2
    comes_back = not {*first.links}.isdisjoint(onward.links)
    return comes_back or detour_ms > right_ms * SLOWER + SLOWER_MS
