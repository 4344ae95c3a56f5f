"""The faults that `minigts break` knows, as scripts for a host's shell; or as a link that is unplugged.

Each has variables of its place (see `breaks.FaultPlace`): `dev` and `own`, the host's interface and its address there
with `prefix`; `near`, a neighbour's address on that segment; `there` and `name`, another host's own address and its
name; `beyond`, the own address of a host behind; `wrong`, a neighbour that is not on the way; `rtt`, in ms, and
`ceiling`, in Mbit/s, what the plan expects between the host and who watches.

`do` breaks, and prints the commands that undo it. `shows` ends with 0 while the fault has its effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minigts.explore import player

Places = Literal["interface", "way", "transit", "behind", "crossroads"]
"""What a fault needs of the topology: any host's interface; another host to which there is a route; a host through
which others reach each other; a host at least two hops away; a host with a neighbour that is not on the way."""
SERVICE = 5201
"""The port of iperf3, which listens on every host."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    says: str
    places: Places
    do: str
    shows: str
    watched: bool = False
    """Whether `shows` is for the neighbour; else it is for the host that is broken."""
    unplugs: Literal["both ends", "one end"] | None = None
    """Which ends of the interface's link lose their carrier; then nothing is done on the host."""


ROUTES = """
ip -o -4 route show dev "$dev" | grep -v 'proto kernel' | while read -r route; do
  echo "ip route replace $route dev $dev"
done
"""
"""Prints commands that restore the routes over an interface."""
ROUTE = 'route=$(ip -o -4 route show "$there" | head -n 1); [ -n "$route" ]\n'
DAEMON = f"""
pid=$(ss -ltnpH 'sport = :{SERVICE}' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p' | head -n 1)
command=$(tr '\\0' ' ' <"/proc/$pid/cmdline")
"""
NO_CARRIER = '[ "$(cat "/sys/class/net/$dev/carrier")" = 0 ]'
CLOSED = f'! nc -z -w 2 "$own" {SERVICE}'
SILENT = '! ping -q -c 2 -W 1 "$own"'
LOST = """ping -q -c 200 -i 0.02 -W 1 "$own" | awk '/packet loss/ { sub(/.* received, /, ""); exit !($1 + 0 > 8) }'"""


def _qdisc(words: str) -> str:
    """Replaces an interface's queue, which is a plain one."""
    return f"""
limit=$(tc qdisc show dev "$dev" root | sed -n 's/^qdisc pfifo .* limit \\([0-9]*\\)p$/\\1/p')
[ -n "$limit" ]
tc qdisc replace dev "$dev" root {words}
echo "tc qdisc replace dev $dev root pfifo limit $limit"
"""


def filter_script(hook: str, rule: str, priority: int = 0) -> str:
    """Puts a rule of nftables into a table of its own."""
    return f"""
nft add table inet site
nft add chain inet site rules '{{ type filter hook {hook} priority {priority}; }}'
nft add rule inet site rules {rule}
echo 'nft delete table inet site'
"""


def sysctl_script(name: str, value: str) -> str:
    """Sets a sysctl."""
    return f"""
before=$(sysctl -n "{name}" | tr '\\t' ' ')
sysctl -qw "{name}={value}"
echo "sysctl -qw '{name}=$before'"
"""


def _daemon(start: str) -> str:
    """Ends the daemon, and starts it otherwise."""
    end = "kill $(pidof iperf3)\nwhile pidof iperf3 >/dev/null; do sleep 0.05; done\n"
    undo = f"echo '{end}'\n" if start else ""
    return f'{DAEMON}{end}{start}\n{undo}echo "$command"\n'


def _rate(options: str, limit: str) -> str:
    """Whether TCP to the host, or with -R from it, carries less than a limit in Mbit/s."""
    return f"""
carried=$(timeout 60 iperf3 -c "$own" {options} -t 2 -J | jq '.end.sum_received.bits_per_second // 0')
awk "BEGIN {{ exit !($carried / 1e6 < {limit}) }}"
"""


KINDS = (
    Kind(
        "link-down",
        "an interface is switched off",
        "interface",
        f'echo "ip link set $dev up"\n{ROUTES}ip link set "$dev" down',
        SILENT,
        watched=True,
    ),
    Kind(
        "no-arp",
        "an interface neither asks nor answers by ARP",
        "interface",
        'ip link set "$dev" arp off\necho "ip link set $dev arp on"',
        SILENT,
        watched=True,
    ),
    Kind(
        "arp-ignored",
        "a sysctl makes a host leave ARP requests unanswered",
        "interface",
        sysctl_script("net.ipv4.conf.$dev.arp_ignore", "8"),
        f'ip neigh flush to "$own"\n{SILENT}',
        watched=True,
    ),
    Kind(
        "wrong-neighbour",
        "a neighbour's hardware address is written down wrong",
        "interface",
        'ip neigh replace "$near" lladdr 02:00:5e:00:53:01 nud permanent dev "$dev"\n'
        'echo "ip neigh del $near dev $dev"',
        '! ping -q -c 2 -W 1 "$near"',
    ),
    Kind(
        "mtu",
        "an interface's MTU is too small",
        "interface",
        'mtu=$(cat "/sys/class/net/$dev/mtu")\n[ "$mtu" -ge 1500 ]\n'
        'ip link set "$dev" mtu 1300\necho "ip link set $dev mtu $mtu"',
        'ping -q -c 1 -W 1 "$near" && ! ping -q -c 1 -W 1 -M do -s 1400 "$near"',
    ),
    Kind(
        "large-lost",
        "a filter drops large packets, and tells nobody",
        "interface",
        filter_script("prerouting", "ip length gt 1300 drop"),
        'ping -q -c 1 -W 1 "$own" && ! ping -q -c 2 -W 1 -s 1400 "$own"',
        watched=True,
    ),
    Kind(
        "fragments-lost",
        "a filter drops fragments",
        "interface",
        filter_script("prerouting", "'ip frag-off & 0x3fff != 0' drop", -450),
        'ping -q -c 1 -W 1 "$own" && ! ping -q -c 2 -W 1 -s 3000 "$own"',
        watched=True,
    ),
    Kind(
        "duplicate-address",
        "a host has taken another host's own address, too",
        "way",
        'ip address add "$there/32" dev lo\necho "ip address del $there/32 dev lo"',
        'ip route get "$there" | grep -q "^local "',
    ),
    Kind(
        "wrong-mask",
        "an address has a mask by which its neighbours are not on its segment",
        "interface",
        'ip address add "$own/32" dev "$dev"\n'
        f'echo "ip address add $own/$prefix dev $dev; ip address del $own/32 dev $dev"\n{ROUTES}'
        'ip address del "$own/$prefix" dev "$dev"',
        '! ping -q -c 2 -W 1 "$near"',
    ),
    Kind(
        "no-address",
        "an interface has lost its address",
        "interface",
        f'echo "ip address add $own/$prefix dev $dev"\n{ROUTES}ip address del "$own/$prefix" dev "$dev"',
        SILENT,
        watched=True,
    ),
    Kind(
        "no-route",
        "a host lacks the route to another one",
        "way",
        f'{ROUTE}ip route del "$there"\necho "ip route replace $route"',
        '! ip route get "$there"',
    ),
    Kind(
        "wrong-next-hop",
        "a route leads to the wrong neighbour",
        "crossroads",
        f'{ROUTE}ip route replace "$there" via "$wrong"\necho "ip route replace $route"',
        'ip route get "$there" | grep -qF "via $wrong "',
    ),
    Kind(
        "black-hole-route",
        "a route throws away what it is for",
        "way",
        f'{ROUTE}ip route replace blackhole "$there"\necho "ip route replace $route"',
        '! ip route get "$there"',
    ),
    Kind(
        "rule",
        "a rule forbids what the route allows",
        "way",
        'ip rule add to "$there" prohibit\necho "ip rule del to $there prohibit"',
        '! ip route get "$there"',
    ),
    Kind(
        "no-forwarding",
        "a host in the middle forwards nothing",
        "transit",
        sysctl_script("net.ipv4.ip_forward", "0"),
        '! ping -q -c 2 -W 1 "$beyond"',
        watched=True,
    ),
    Kind(
        "ttl",
        "a host's packets die after their first hop",
        "behind",
        sysctl_script("net.ipv4.ip_default_ttl", "1"),
        '! ping -q -c 1 -W 1 "$beyond"',
    ),
    Kind(
        "no-echo",
        "a host does not answer pings, and nothing else is wrong",
        "interface",
        sysctl_script("net.ipv4.icmp_echo_ignore_all", "1"),
        SILENT,
        watched=True,
    ),
    Kind(
        "port-filtered",
        "a filter drops what comes for the service",
        "interface",
        filter_script("input", f"tcp dport {SERVICE} drop"),
        CLOSED,
        watched=True,
    ),
    Kind(
        "port-refused",
        "a filter refuses what comes for the service, as if nobody listened",
        "interface",
        f"iptables -I INPUT -p tcp --dport {SERVICE} -j REJECT --reject-with tcp-reset\n"
        f"echo 'iptables -D INPUT -p tcp --dport {SERVICE} -j REJECT --reject-with tcp-reset'",
        CLOSED,
        watched=True,
    ),
    Kind(
        "port-redirected",
        "address translation sends what comes for the service to another port",
        "interface",
        f"iptables -t nat -A PREROUTING -p tcp --dport {SERVICE} -j REDIRECT --to-port 9\n"
        f"echo 'iptables -t nat -D PREROUTING -p tcp --dport {SERVICE} -j REDIRECT --to-port 9'",
        CLOSED,
        watched=True,
    ),
    Kind(
        "host-filtered",
        "a filter drops all that comes from one host",
        "way",
        filter_script("prerouting", 'ip saddr "$there" drop'),
        '! ping -q -c 2 -W 1 "$there"',
    ),
    Kind(
        "one-way",
        "what a host sends on an interface is lost, and what it is sent arrives",
        "interface",
        _qdisc("netem loss 100%"),
        SILENT,
        watched=True,
    ),
    Kind(
        "slow",
        "what a host sends on an interface takes 80 ms more",
        "interface",
        _qdisc("netem delay 80ms"),
        """ping -q -c 3 -i 0.2 "$own" | awk -F / -v most="$rtt" '/^rtt/ { exit !($5 > most + 60) }'""",
        watched=True,
    ),
    Kind(
        "jitter",
        "what a host sends on an interface takes now more, now less time",
        "interface",
        _qdisc("netem delay 40ms 30ms"),
        """ping -q -c 40 -i 0.1 "$own" | awk -F / '/^rtt/ { exit !($7 + 0 > 5) }'""",
        watched=True,
    ),
    Kind(
        "lossy",
        "a fifth of what a host sends on an interface is lost",
        "interface",
        _qdisc("netem loss 20%"),
        LOST,
        watched=True,
    ),
    Kind(
        "corrupt",
        "a fifth of what a host sends on an interface has a wrong bit",
        "interface",
        _qdisc("netem corrupt 20%"),
        "before=$(nstat -asz IcmpInCsumErrors | awk 'END { print $2 }')\n"
        'ping -q -c 200 -i 0.02 -W 1 "$own" || true\n'
        "[ \"$(nstat -asz IcmpInCsumErrors | awk 'END { print $2 }')\" -gt $((before + 5)) ]",
        watched=True,
    ),
    Kind(
        "duplicates",
        "some of what a host sends on an interface is sent twice",
        "interface",
        _qdisc("netem duplicate 30%"),
        'ping -q -c 50 -i 0.02 -W 1 "$own" | grep -q duplicates',
        watched=True,
    ),
    Kind(
        "reordered",
        "some of what a host sends on an interface overtakes the rest",
        "interface",
        _qdisc("netem delay 40ms reorder 50%"),
        'ping -c 60 -i 0.02 -W 1 "$own" | sed -n "s/.*icmp_seq=\\([0-9]*\\).*/\\1/p" >/tmp/order\n'
        "! sort -nc /tmp/order",
        watched=True,
    ),
    Kind(
        "rate",
        "an interface sends only 500 kbit/s",
        "interface",
        _qdisc("tbf rate 500kbit burst 4kb latency 300ms"),
        _rate("-R", "0.7"),
        watched=True,
    ),
    Kind(
        "small-buffers",
        "a host's TCP receives with a window of 2 kB",
        "interface",
        sysctl_script("net.ipv4.tcp_rmem", "4096 4096 4096"),
        _rate("", "$ceiling / 4"),
        watched=True,
    ),
    Kind("dead-daemon", "the service has ended", "interface", _daemon(""), CLOSED, watched=True),
    Kind(
        "stopped-daemon",
        "the service is stopped: it takes connections, and never answers",
        "interface",
        f'{DAEMON}kill -STOP "$pid"\necho "kill -CONT $pid"',
        '! timeout 3 iperf3 -c "$own" -n 10K --connect-timeout 2000',
        watched=True,
    ),
    Kind(
        "wrong-port",
        "the service listens on another port",
        "interface",
        _daemon("iperf3 -s -D -p 5210 >/dev/null"),
        CLOSED,
        watched=True,
    ),
    Kind(
        "local-only",
        "the service listens on 127.0.0.1 alone",
        "interface",
        _daemon("iperf3 -s -D -B 127.0.0.1 >/dev/null"),
        CLOSED,
        watched=True,
    ),
    Kind(
        "full-disk",
        "a host's disk has no room",
        "interface",
        f"set -- var/cache/archive\n{player.FILL}\necho 'rm -f /var/cache/archive'",
        "dd if=/dev/zero of=/root/.room bs=64k count=1 conv=fsync\nwritten=$?\nrm -f /root/.room\n[ $written -ne 0 ]",
    ),
    Kind(
        "clock",
        "a host's time of day is off by an hour",
        "interface",
        'date -s "@$(($(date +%s) + 3600))" >/dev/null\necho \'date -s "@$(($(date +%s) - 3600))" >/dev/null\'',
        'off=$(($(date +%s) - now)) && [ "${off#-}" -gt 600 ]',
    ),
    Kind(
        "wrong-name",
        "a host believes in a wrong address of another one's name",
        "way",
        'sed -i "s/^$there /10.255.254.1 /" /etc/hosts\necho "sed -i \'s/^10.255.254.1 /$there /\' /etc/hosts"',
        'getent ahostsv4 "$name" | grep -q "^10.255.254.1 "',
    ),
    Kind(
        "no-name",
        "a host does not know another one's name",
        "way",
        'line=$(grep "^$there " /etc/hosts)\nsed -i "/^$there /d" /etc/hosts\necho "echo \'$line\' >>/etc/hosts"',
        '! getent ahostsv4 "$name"',
    ),
    Kind(
        "no-hosts-file",
        "a host does not read its file of names",
        "way",
        "line=$(grep '^hosts:' /etc/nsswitch.conf)\nsed -i 's/^hosts:.*/hosts: dns/' /etc/nsswitch.conf\n"
        "echo \"sed -i 's/^hosts:.*/$line/' /etc/nsswitch.conf\"",
        '! getent ahostsv4 "$name"',
    ),
    Kind(
        "few-ports",
        "a host has one port for all connections that it opens",
        "interface",
        sysctl_script("net.ipv4.ip_local_port_range", "40000 40000"),
        "! python3 -c 'import socket, sys\n"
        f'held = [socket.create_connection((sys.argv[1], {SERVICE}), 5) for _ in range(3)]\' "$near"',
    ),
    Kind(
        "carrier",
        "a link's cable is unplugged: neither end has a carrier",
        "interface",
        "",
        NO_CARRIER,
        unplugs="both ends",
    ),
    Kind(
        "carrier-one-end",
        "an interface has lost its carrier, and the other end of its link has one",
        "interface",
        "",
        NO_CARRIER,
        unplugs="one end",
    ),
)
"""All kinds, in the order of the list. A seed's fault depends on the kinds that are drawn from, and on this order."""
