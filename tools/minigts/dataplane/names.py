"""The names of a lab's machines on a planned machine: /etc/hosts, and the host's name server. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from minigts.topology.plan.elements import Host, HostPort, Machine
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import addresses

DIRECTORY = PurePosixPath("/run/minigts-names")
"""Files in it are of the form of hosts(5). The name servers of a host read each that comes, changes or goes."""
PID_FILE = DIRECTORY.with_suffix(".pid")
SERVER = "127.0.0.1"
"""Where the name server of a host listens, and that of a container in the container's network."""
QUESTION_S = 2


def server_argv(*, way_out: bool) -> tuple[str, ...]:
    """The command of a name server, which goes into the background. It answers from DIRECTORY and /etc/hosts. Other
    names do not exist, except where there is a `way_out`. No word has a blank."""
    return (
        "dnsmasq",
        "--conf-file=/dev/null",
        f"--listen-address={SERVER}",
        "--bind-interfaces",
        "--no-resolv",
        f"--server={addresses.GATEWAY_NAME_SERVER}" if way_out else "--local=/#/",
        f"--hostsdir={DIRECTORY}",
        "--user=root",
        "--group=root",
        "--log-facility=/var/log/dnsmasq.log",
    )


def serve(host: Host) -> Iterator[str]:
    """Lines of a `bash -eu` script that start the host's name server, or have it read /etc/hosts again."""
    yield f"mkdir -p {DIRECTORY}"
    yield f"echo nameserver {SERVER} >/etc/resolv.conf"
    yield f"if ! kill -HUP $(cat {PID_FILE} 2>/dev/null || echo none) 2>/dev/null; then"
    yield shlex.join((*server_argv(way_out=host.gateway), f"--pid-file={PID_FILE}"))
    yield "fi"


def show(plan: Plan) -> str:
    """A command that asks the host's name server for the last host of the plan, and prints /etc/resolv.conf."""
    kind = "A" if plan.ipv4 else "AAAA"
    asked = f"dig +short +tries=1 +time={QUESTION_S} @{SERVER} {shlex.quote(plan.hosts[-1].name)} {kind}"
    return f"cat /etc/resolv.conf; {asked} || true"


def differences(plan: Plan, host: Host, shown: str) -> Iterator[str]:
    """Yield a sentence for each difference, from the output of `show`."""
    resolver, *said = shown.splitlines() or [""]
    answers = [line for line in said if not line.startswith(";")]  # dig's messages
    if resolver != f"nameserver {SERVER}":
        yield f"/etc/resolv.conf has {resolver[:80]!r}, should have 'nameserver {SERVER}'"
    name = plan.hosts[-1].name
    wanted = _own_addresses(plan, host)[name]
    if answers != [wanted]:
        yield f"its name server answers {' '.join(answers)[:80] or 'nothing'} for {name}, should answer {wanted}"


def hosts_file(plan: Plan, machine: Machine) -> str:
    """/etc/hosts: each name with an address that `machine` can reach; without routing, neighbours' on its segments."""
    _, near_v6 = _near(plan, machine)
    own = "".join(f"{address} {name}\n" for name, address in _own_addresses(plan, machine).items())
    of_v6 = () if plan.ipv6 is None or not plan.ipv4 else plan.ipv6.hosts
    beside = "".join(f"{near_v6.get(host.name, host.address)} {host.name}\n" for host in of_v6)
    return f"127.0.0.1 localhost\n{own}{beside}"


def _own_addresses(plan: Plan, machine: Machine) -> dict[str, str]:
    """The address of each machine by name, as `machine` knows it: of IPv4, or in a lab without it of IPv6."""
    near, _ = _near(plan, machine)
    return {each.name: plan.seen_as(near.get(each.name, each.address)) for each in plan.machines}


def _near(plan: Plan, machine: Machine) -> tuple[dict[str, str], dict[str, str]]:
    return _shared(plan, machine) if isinstance(machine, Host) and not plan.is_routed else ({}, {})


def _shared(plan: Plan, host: Host) -> tuple[dict[str, str], dict[str, str]]:
    """By neighbour, its IPv4 and its IPv6 address on the shared segment; of several segments, on that of the path to
    it.
    """
    ends = dict[str, HostPort]()
    for port, other, far in plan.neighbours(host):
        if other.name not in ends or port.link == plan.path(host.name, other.name).links[0]:
            ends[other.name] = far
    beside = {name: there.port(far.name) for name, far in ends.items() if (there := plan.ipv6_of(name)) is not None}
    return {name: far.address for name, far in ends.items()}, {name: each.address for name, each in beside.items()}
