"""A baseline: a list of decisions. It looks at each host by the tools of `minigts mcp`, the ticket's hosts first,
compares what it sees with a list of signs and with what other hosts show, does what stands beside each sign, and
answers.

It knows nothing of an incident but its ticket. It has no signs for most of what is wrong between containers, and few
for routing protocols.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from minigts.arena.cluster_decisions import SIGN, decide_cluster
from minigts.arena.play import Play
from minigts.arena.scores import ArenaAnswer, NamedFault

_MORE = (
    "ip -4 rule show; echo ==; df -P / | tail -n 1; echo ==; date +%s; echo ==; grep ^hosts: /etc/nsswitch.conf;"
    " echo ==; cat /run/minigts/underlay/*/bird.conf 2>/dev/null;"
    " ip -4 route show table 20 2>/dev/null | head -n 1; true"
)
_BIRD = "bird -c /run/minigts/underlay"
"""The routing daemon of a host; an overlay may have one of its own."""
_FAR_S = 300
"""By how much a clock differs from others that is wrong."""


@dataclass(frozen=True)
class _Sign:
    """What a look shows, the kind of fault that it is, and the command that mends it, with the groups' names."""

    look: str
    pattern: str
    kind: str
    mend: str


_PLAIN_QUEUE = "tc qdisc replace dev {dev} root pfifo limit {limit}"
_NO_FILTER = "nft delete table inet site"
_SIGNS = (
    _Sign("interfaces", r"^\d+: (?P<dev>eth\d+)[^:]*: <(?!(?:[^>]*,)?UP[,>])", "link-down", "ip link set {dev} up"),
    _Sign("interfaces", r"^\d+: (?P<dev>eth\d+)[^:]*: <[^>]*NOARP", "no-arp", "ip link set {dev} arp on"),
    _Sign(
        "neighbours",
        r"^(?P<near>10\.\S+) dev (?P<dev>eth\d+) .*PERMANENT",
        "wrong-neighbour",
        "ip neigh del {near} dev {dev}",
    ),
    _Sign("more", r"^\d+:\s*from all to (?P<there>\S+) prohibit", "rule", "ip rule del to {there} prohibit"),
    _Sign("more", r"^\S+ +\d+ +\d+ +\d+ +100%", "full-disk", "find / -xdev -type f -size +20M -path '/var/*' -delete"),
    _Sign("sysctls", r"^net\.ipv4\.ip_default_ttl = [1-9]$", "ttl", "sysctl -w net.ipv4.ip_default_ttl=64"),
    _Sign("sysctls", r"^net\.ipv4\.icmp_echo_ignore_all = 1", "no-echo", "sysctl -w net.ipv4.icmp_echo_ignore_all=0"),
    _Sign("firewall", r"ip length > \d+ drop", "large-lost", _NO_FILTER),
    _Sign("firewall", r"ip frag-off & \S+ != 0\S* drop", "fragments-lost", _NO_FILTER),
    _Sign("firewall", r"tcp dport 5201 drop", "port-filtered", _NO_FILTER),
    _Sign("firewall", r"ip saddr 10\.\d+\.\d+\.\d+ drop", "host-filtered", _NO_FILTER),
    _Sign("firewall", r"udp dport 53 drop", "name-server-filtered", _NO_FILTER),
    _Sign("firewall", r"udp dport 4789 drop", "tunnel-filtered", _NO_FILTER),
    _Sign("firewall", r"iifname .*(ip protocol (89|ospf)|tcp [sd]port 1179) drop", "protocol-filtered", _NO_FILTER),
    _Sign("firewall", r"^-A (?P<rule>INPUT .*--dport 5201 .*REJECT.*)", "port-refused", "iptables -D {rule}"),
    _Sign(
        "firewall",
        r"^-A (?P<rule>PREROUTING .*--dport 5201 .*REDIRECT.*)",
        "port-redirected",
        "iptables -t nat -D {rule}",
    ),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*loss 100%", "one-way", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*loss \d{1,2}%", "lossy", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*corrupt", "corrupt", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*duplicate", "duplicates", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*reorder", "reordered", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*delay \d+ms +\d+ms(?!.*reorder)", "jitter", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc netem \S+ dev (?P<dev>\S+) .*delay \d+ms(?: seed \d+)? *$", "slow", _PLAIN_QUEUE),
    _Sign("queues", r"^qdisc tbf \S+ dev (?P<dev>eth\d+) ", "rate", _PLAIN_QUEUE),
    _Sign("processes", r"^ *(?P<pid>\d+) +\d+ +T\S* +iperf3 ", "stopped-daemon", "kill -CONT {pid}"),
    _Sign("interfaces", r"^\d+: vxlan0: <(?!(?:[^>]*,)?UP[,>])", "tunnel-off", "ip link set vxlan0 up"),
    _Sign("interfaces", r"^\d+: measure0[^:]*: <(?!(?:[^>]*,)?UP[,>])", "port-off", "ip link set measure0 up"),
)
_LOOKS = (
    "addresses",
    "interfaces",
    "neighbours",
    "routes",
    "firewall",
    "queues",
    "sockets",
    "processes",
    "sysctls",
    "resolver",
)


@dataclass(frozen=True)
class _Finding:
    kind: str
    host: str
    mend: str


@dataclass
class _Map:
    """What the tool `topology` says: each host's interfaces with address and link, and each link's ends and delay."""

    ports: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    links: dict[str, tuple[str, str, float]] = field(default_factory=dict)

    def next_hops(self, host: str) -> dict[str, tuple[str, ...]]:
        """By other host, the addresses of the neighbours on the shortest ways there."""
        own = self._distances(host)
        found: dict[str, tuple[str, ...]] = {}
        for link, ends in self.links.items():
            if host not in ends[:2]:
                continue
            neighbour = ends[1] if ends[0] == host else ends[0]
            onward, hop = self._distances(neighbour), self.address_on(neighbour, link)
            for other, far in own.items():
                if other != host and abs(ends[2] + onward[other] - far) < 1e-6:
                    found[other] = (*found.get(other, ()), hop)
        return found

    def _distances(self, host: str) -> dict[str, float]:
        """By other host, the sum of delays there."""
        done: dict[str, float] = {}
        waiting = [(0.0, host)]
        while waiting:
            far, here = heappop(waiting)
            if here not in done:
                done[here] = far
                for first, second, delay in self.links.values():
                    if here in (first, second):
                        heappush(waiting, (far + delay, second if here == first else first))
        return done

    def address_on(self, host: str, link: str) -> str:
        return next((address.partition("/")[0] for address, on in self.ports[host].values() if on == link), "")

    def device_to(self, host: str, neighbour_address: str) -> str:
        for device, (_, link) in self.ports[host].items():
            ends = self.links[link][:2]
            if any(self.address_on(end, link) == neighbour_address for end in ends if end != host):
                return device
        return ""


def decide(play: Play) -> ArenaAnswer:
    """Play an incident."""
    known = _map_of(play.call("topology", {}))
    if SIGN in play.record.ticket:
        return decide_cluster(play, known.ports)
    named = sorted(known.ports, key=lambda host: (not re.search(rf"\b{host}\b", play.record.ticket), host))
    seen = {host: _looks(play, host) for host in named}
    findings = [each for host in named for each in _findings(known, seen, host)]
    for each in findings:
        play.call("run", {"host": each.host, "command": each.mend})
    return ArenaAnswer(faults=tuple(NamedFault(what=each.kind, where=each.host) for each in findings))


def _map_of(said: str) -> _Map:
    found = _Map()
    machines, _, links = said.partition("\n\n")
    for line in machines.splitlines():
        host, _, ports = line.partition(": ")
        parts = [port.split() for port in ports.split(", ")]
        found.ports[host] = {part[0]: (part[1], part[-1]) for part in parts if len(part) == 4}
    for told in re.finditer(r"^(\S+) \((\S+) and (\S+)\): from \S+ ([\d.]+) ms", links, re.MULTILINE):
        found.links[told[1]] = (told[2], told[3], float(told[4]))
    return found


def _looks(play: Play, host: str) -> Mapping[str, str]:
    seen = {what: play.call("look", {"host": host, "what": what}) for what in _LOOKS}
    if _runs(seen, _BIRD):
        seen["routing"] = play.call("look", {"host": host, "what": "routing"})
    return {**seen, "more": play.call("run", {"host": host, "command": _MORE})}


def _runs(shown: Mapping[str, str], program: str) -> str:
    """The command that begins so by which a host runs a program; empty where it runs none."""
    found = re.search(rf"^ *\d+ +\d+ +\S+ +({program}.*)$", shown["processes"], re.MULTILINE)
    return found[1] if found else ""


def _findings(known: _Map, seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    here = seen[host]
    limit = next(
        (found[1] for each in seen.values() if (found := re.search(r"pfifo .*limit (\d+)p", each["queues"]))), "1000"
    )
    lost_routes = False
    for sign in _SIGNS:
        if found := re.search(sign.pattern, here[sign.look], re.MULTILINE):
            yield _Finding(sign.kind, host, _mending(sign, found, known, seen, host, limit))
            lost_routes |= sign.kind == "link-down"
    for finding in (*_of_addresses(known, seen, host), *_of_mtu(here, host)):
        yield finding
        lost_routes |= finding.kind in ("no-address", "wrong-mask")
    if not lost_routes:
        yield from _of_routes(known, seen, host)
    yield from _of_sysctls(known, seen, host)
    yield from _of_service(seen, host)
    yield from _of_names(seen, host)
    yield from _of_clock(seen, host)
    yield from _of_protocols(seen, host)


def _mending(
    sign: _Sign, found: re.Match[str], known: _Map, seen: Mapping[str, Mapping[str, str]], host: str, limit: str
) -> str:
    mend = sign.mend.format(limit=limit, **found.groupdict())
    return f"{mend}; {_routes_again(known, seen, host)}" if sign.kind == "link-down" else mend


def _of_addresses(known: _Map, seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    shown = seen[host]["addresses"]
    for device, (address, _) in known.ports[host].items():
        plain = address.partition("/")[0]
        if f"inet {address} " in shown:
            continue
        again = f"ip address add {address} dev {device}"
        routes = _routes_again(known, seen, host)
        if f"inet {plain}/32 " in shown:
            yield _Finding("wrong-mask", host, f"{again}; ip address del {plain}/32 dev {device}; {routes}")
        else:
            yield _Finding("no-address", host, f"{again}; {routes}")
    for other, address in _own_addresses(seen).items():
        if other != host and f"inet {address}/32 " in shown:
            yield _Finding("duplicate-address", host, f"ip address del {address}/32 dev lo")


def _of_mtu(here: Mapping[str, str], host: str) -> Iterator[_Finding]:
    silent = "icmp type destination-unreachable drop" in here["firewall"]
    for found in re.finditer(r"^\d+: (eth[1-9]\d*)[^:]*: .* mtu (\d+) ", here["interfaces"], re.MULTILINE):
        if int(found[2]) < 1500:
            mend = f"ip link set {found[1]} mtu 1500"
            yield _Finding("silent-mtu" if silent else "mtu", host, f"{mend}; {_NO_FILTER}" if silent else mend)


def _of_routes(known: _Map, seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    """Routes to others' own addresses that are missing or lead elsewhere, where the routes stand in table main."""
    shown = seen[host]["routes"]
    if not re.search(r"^10\.255\.\S+ via", "\n".join(each["routes"] for each in seen.values()), re.MULTILINE):
        return
    if "lookup 20" in "".join(each["more"] for each in seen.values()):
        return
    own = _own_addresses(seen)
    for other, hops in known.next_hops(host).items():
        if (address := own.get(other)) is None:
            continue
        mend = _route(known, host, address, hops[0], own.get(host, ""))
        found = re.search(rf"^{re.escape(address)} via (\S+)", shown, re.MULTILINE)
        if re.search(rf"^blackhole {re.escape(address)}\b", shown, re.MULTILINE):
            yield _Finding("black-hole-route", host, mend)
        elif found is None:
            yield _Finding("no-route", host, mend)
        elif found[1] not in hops:
            yield _Finding("wrong-next-hop", host, mend)


def _routes_again(known: _Map, seen: Mapping[str, Mapping[str, str]], host: str) -> str:
    own = _own_addresses(seen)
    ways = known.next_hops(host).items()
    return "; ".join(
        _route(known, host, own[other], hops[0], own.get(host, "")) for other, hops in ways if other in own
    )


def _route(known: _Map, host: str, address: str, hop: str, source: str) -> str:
    by = f" src {source}" if source else ""
    return f"ip route replace {address} via {hop} dev {known.device_to(host, hop)}{by}"


def _of_sysctls(known: _Map, seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    for name, kind in (
        ("net.ipv4.ip_forward", "no-forwarding"),
        ("net.ipv4.ip_local_port_range", "few-ports"),
        ("net.ipv4.tcp_rmem", "small-buffers"),
    ):
        values = {
            each: found[1]
            for each, texts in seen.items()
            if (found := re.search(rf"^{re.escape(name)} = (.*)$", texts["sysctls"], re.MULTILINE))
        }
        if values.get(host, usual := _usual(values.values())) != usual:
            value = usual.replace("\t", " ")
            yield _Finding(kind, host, f"sysctl -w '{name}={value}'")


def _of_service(seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    sockets = re.compile(r"^tcp +LISTEN +\S+ +\S+ +(\S+):(\d+) .*\"iperf3\"", re.MULTILINE)
    if not any(sockets.search(each["sockets"]) for each in seen.values()):  # the service is in containers
        return
    listening = sockets.findall(seen[host]["sockets"])
    if any(port == "5201" and "127.0.0.1" not in address for address, port in listening):
        return
    commands = [command for each in seen.values() if (command := _runs(each, "iperf3 "))]
    start = f"pkill iperf3; sleep 0.5; {_usual(commands)} </dev/null >/dev/null 2>&1"
    start += "" if " -D" in start else " & true"
    kind = "dead-daemon" if not listening else "local-only" if listening[0][1] == "5201" else "wrong-port"
    yield _Finding(kind, host, start)


def _of_names(seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    usual_server = _usual(
        found[0] for each in seen.values() if (found := re.search(r"^nameserver .*$", each["resolver"], re.MULTILINE))
    )
    if usual_server and usual_server not in seen[host]["resolver"]:
        yield _Finding("wrong-resolver", host, f"echo {usual_server} >/etc/resolv.conf")
    order = {
        each: found[0]
        for each, texts in seen.items()
        if (found := re.search(r"^hosts:.*$", texts["more"], re.MULTILINE))
    }
    if order.get(host, usual := _usual(order.values())) != usual:
        yield _Finding("no-hosts-file", host, f"sed -i 's/^hosts:.*/{usual}/' /etc/nsswitch.conf")
    here = _names(seen[host]["resolver"])
    for name, address in _own_addresses(seen).items():
        if here.get(name) is None:
            yield _Finding("no-name", host, f"echo '{address} {name}' >>/etc/hosts")
        elif here[name] != address:
            yield _Finding("wrong-name", host, f"sed -i 's/^{here[name]} {name}$/{address} {name}/' /etc/hosts")
    servers = {each: command for each, texts in seen.items() if (command := _runs(texts, "dnsmasq "))}
    usual = _usual(servers.values())
    if servers and host not in servers:
        yield _Finding("name-server-dead", host, usual)
    elif "--no-hosts" in (runs := servers.get(host, "")):
        again = f"kill $(pidof dnsmasq); while pidof dnsmasq >/dev/null; do sleep 0.1; done; {usual}"
        yield _Finding("wrong-record" if "--addn-hosts" in runs else "no-records", host, again)


def _of_clock(seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    times = {
        each: int(found[1]) for each, texts in seen.items() if (found := re.search(r"==\n(\d{9,})\n==", texts["more"]))
    }
    middle = sorted(times.values())[len(times) // 2] if times else 0
    if host in times and abs(times[host] - middle) > _FAR_S:
        yield _Finding("clock", host, f'date -s "@$(($(date +%s) - {times[host] - middle}))"')


def _of_protocols(seen: Mapping[str, Mapping[str, str]], host: str) -> Iterator[_Finding]:
    here = seen[host]
    running = {each: bool(_runs(texts, _BIRD)) for each, texts in seen.items()}
    if not any(running.values()):
        return
    folder = f"/run/minigts/underlay/{host}"
    ask = f"birdc -s {folder}/bird.ctl"
    if not running[host]:
        files = f"rm -f {folder}/bird.ctl {folder}/bird.pid"
        yield _Finding(
            "router-dead", host, f"{files}; bird -c {folder}/bird.conf -s {folder}/bird.ctl -P {folder}/bird.pid"
        )
    elif "lookup 20" not in here["more"]:
        yield _Finding("no-table", host, "ip -4 rule add pref 32000 lookup 20")
    elif re.search(r"^kernel4 +Kernel +\S+ +down", here["routing"], re.MULTILINE):
        yield _Finding("no-export", host, f"{ask} enable kernel4")
    for sign, kind, edit in (
        (r"stub yes;|\{ disabled;", "passive", "s/ stub yes;//; s/ { disabled;/ {/"),
        (r"hello [2-9];", "wrong-timer", "s/hello [2-9];/hello 1;/"),
        (r"area [1-9]", "wrong-area", "s/area [1-9]/area 0/"),
        (r"as 649\d\d;", "wrong-as", "s/as 649/as 645/"),
    ):
        if re.search(sign, here["more"]):
            yield _Finding(kind, host, f"sed -i '{edit}' {folder}/bird.conf; {ask} configure")


def _own_addresses(seen: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Each host's own address, as most hosts' files of names have it."""
    files = [_names(each["resolver"]) for each in seen.values()]
    return {name: address for name in seen if (address := _usual(each[name] for each in files if name in each))}


def _names(resolver: str) -> dict[str, str]:
    return {found[2]: found[1] for found in re.finditer(r"^(10\.\S+) (\S+)$", resolver, re.MULTILINE)}


def _usual(values: Iterable[str]) -> str:
    """What most have; empty for nobody."""
    counted: Sequence[tuple[str, int]] = Counter(values).most_common(1)
    return counted[0][0] if counted else ""
