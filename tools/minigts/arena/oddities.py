"""Red herrings: what is odd on a host and harms nobody. As `lessons.break_kinds`: `do` prints what undoes it, and
`shows` ends with 0 while it is there.
"""

from __future__ import annotations

from minigts.lessons.break_kinds import Kind, sysctl_script


def _oddity(name: str, says: str, do: str, shows: str) -> Kind:
    return Kind(name, says, "interface", do, shows)


ODDITIES = (
    _oddity(
        "spare-address",
        "a host has an address that nobody asks for",
        'ip address add 192.0.2.20/32 dev lo\necho "ip address del 192.0.2.20/32 dev lo"',
        "ip -o address show dev lo | grep -q 192.0.2.20",
    ),
    _oddity(
        "spare-route",
        "a route throws away what is for a network that there is not",
        'ip route add blackhole 198.51.100.0/24\necho "ip route del blackhole 198.51.100.0/24"',
        "ip route show | grep -q 198.51.100.0",
    ),
    _oddity(
        "spare-neighbour",
        "the hardware address of a host that there is not is written down",
        'ip neigh replace 203.0.113.9 lladdr 02:00:5e:00:53:09 nud permanent dev "$dev"\n'
        'echo "ip neigh del 203.0.113.9 dev $dev"',
        "ip neigh show | grep -q 203.0.113.9",
    ),
    _oddity(
        "spare-filter",
        "a filter drops what comes from a network that there is not",
        "nft add table inet odd\nnft add chain inet odd rules '{ type filter hook input priority 10; }'\n"
        "nft add rule inet odd rules ip saddr 192.0.2.0/24 counter drop\necho 'nft delete table inet odd'",
        "nft list table inet odd",
    ),
    _oddity(
        "spare-interface",
        "a host has a pair of interfaces that are down and lead nowhere",
        'ip link add spare0 type veth peer name spare1\necho "ip link del spare0"',
        "ip link show spare0",
    ),
    _oddity(
        "spare-name",
        "a host knows a name that nobody uses",
        "echo '192.0.2.30 printer' >>/etc/hosts\necho \"sed -i '/^192.0.2.30 printer/d' /etc/hosts\"",
        "grep -q '^192.0.2.30 printer' /etc/hosts",
    ),
    _oddity(
        "stopped-program",
        "a program that nobody needs is stopped",
        "setsid sleep 86399 >/dev/null 2>&1 </dev/null &\n"
        'until pgrep -f "^sleep 86399" >/dev/null; do sleep 0.01; done\n'
        'pkill -STOP -f "^sleep 86399"\n'
        'echo "kill -KILL $(pgrep -f "^sleep 86399")"',
        "pgrep -f '^sleep 86399'",
    ),
    _oddity(
        "old-complaints",
        "a log complains of last year",
        "for day in 1 2 3; do\n"
        '  echo "2025-03-0${day}T04:12:09Z kernel: $dev: link is flapping, 40 % of frames lost"\n'
        "done >/var/log/network.log\necho 'rm -f /var/log/network.log'",
        "[ -f /var/log/network.log ]",
    ),
    _oddity(
        "large-file",
        "a host has a file of 20 MB that nobody needs",
        "head -c 20000000 /dev/zero >/var/cache/old-backup\necho 'rm -f /var/cache/old-backup'",
        "[ -f /var/cache/old-backup ]",
    ),
    _oddity(
        "keepalive",
        "a host asks idle connections after an hour, where others ask after two",
        sysctl_script("net.ipv4.tcp_keepalive_time", "3600"),
        '[ "$(sysctl -n net.ipv4.tcp_keepalive_time)" = 3600 ]',
    ),
)
"""All of them, in the order of the list."""
