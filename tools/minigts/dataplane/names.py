"""The names of a lab's machines on a planned machine: /etc/hosts, and the host's name server. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from minigts.topology.frames import Family, family_of
from minigts.topology.plan.addressing import Addressing
from minigts.topology.plan.elements import Host, HostPort, Machine, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import addresses

DIRECTORY = PurePosixPath("/run/minigts-names")
"""Files in it are of the form of hosts(5). The name servers of a host read each that comes, changes or goes."""
PID_FILE = DIRECTORY.with_suffix(".pid")
SERVER = "127.0.0.1"
"""Where the name server of a host listens, and that of a container in the container's network."""
QUESTION_S = 2
RECORDS: Mapping[Family, str] = {"ipv4": "A", "ipv6": "AAAA"}
"""The type of a name's record with an address of that version of IP (RFC 1035, RFC 3596)."""


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


def lines(plan: Plan, machine: Host | Switch) -> Iterator[str]:
    """Lines of a `bash -eu` script that write /etc/hosts, unless it is there with a light host's kernel, and start the
    host's name server, if the lab has them."""
    if not (isinstance(machine, Host) and machine.light and shares_hosts_file(plan)):
        yield f"printf %s {shlex.quote(hosts_file(plan, machine))} >/etc/hosts"
    if plan.dns and isinstance(machine, Host):
        yield from _serve(machine)


def _serve(host: Host) -> Iterator[str]:
    """Lines that start the name server, or have it read /etc/hosts again."""
    yield f"mkdir -p {DIRECTORY}"
    yield f"echo nameserver {SERVER} >/etc/resolv.conf"
    yield f"if ! kill -HUP $(cat {PID_FILE} 2>/dev/null || echo none) 2>/dev/null; then"
    yield shlex.join((*server_argv(way_out=host.gateway), f"--pid-file={PID_FILE}"))
    yield "fi"


def show(plan: Plan) -> str:
    """A command that asks the host's name server for the last host of the plan, and prints /etc/resolv.conf."""
    last = plan.hosts[-1]
    kind = RECORDS[family_of(plan.address_of(last))]
    asked = f"dig +short +tries=1 +time={QUESTION_S} @{SERVER} {shlex.quote(last.name)} {kind}"
    return f"cat /etc/resolv.conf; {asked} || true"


def differences(plan: Plan, host: Host, shown: str) -> Iterator[str]:
    """Yield a sentence for each difference, from the output of `show`."""
    resolver, *said = shown.splitlines() or [""]
    answers = [line for line in said if not line.startswith(";")]  # dig's messages
    if resolver != f"nameserver {SERVER}":
        yield f"/etc/resolv.conf has {resolver[:80]!r}, should have 'nameserver {SERVER}'"
    name = plan.hosts[-1].name
    wanted = _addresses(plan, host, plan.addressings[0])[name]
    if answers != [wanted]:
        yield f"its name server answers {' '.join(answers)[:80] or 'nothing'} for {name}, should answer {wanted}"


def hosts_file(plan: Plan, machine: Machine) -> str:
    """/etc/hosts: each name with an address that `machine` can reach, of each version of IP; without routing,
    neighbours' on its segments."""
    lines = [
        f"{address} {name}\n"
        for addressing in plan.addressings
        for name, address in _addresses(plan, machine, addressing).items()
    ]
    return f"127.0.0.1 localhost\n{''.join(lines)}"


def shares_hosts_file(plan: Plan) -> bool:
    """Whether /etc/hosts is the same on all hosts."""
    return plan.is_routed


def _addresses(plan: Plan, machine: Machine, addressing: Addressing) -> dict[str, str]:
    """By name, the address of each machine that has one of this version of IP, as `machine` knows it."""
    near = _near(plan, machine) if isinstance(machine, Host) and not plan.is_routed else {}
    named = (each for each in plan.machines if addressing in plan.addressings_of(each))
    return {each.name: addressing.address(near.get(each.name, each).address) for each in named}


def _near(plan: Plan, host: Host) -> dict[str, HostPort]:
    """By neighbour, its end on the shared segment; of several segments, on that of the path to it."""
    ends = dict[str, HostPort]()
    for port, other, far in plan.neighbours(host):
        if other.name not in ends or port.link == plan.path(host.name, other.name).links[0]:
            ends[other.name] = far
    return ends
