"""What netlab asks of containerlab and Docker, in labs of minigts.

A container's name is `clab-LAB-NODE`. The hosts have none of minigts' addresses and routes: netlab's own scripts give
them theirs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from minigts import lab as running
from minigts.errors import InputError, Problem
from minigts.foreign import content
from minigts.formats import containerlab_frr, detect, network
from minigts.formats.network import Names, Network, NetworkMachine, Notes
from minigts.lab import Lab, events
from minigts.language.source import read_text
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT
from minigts.session import bring_up, plans
from minigts.topology.time import Time

CONTAINER, LAB = "clab-", "netlab-"
"""How the names of containers and of labs begin."""
NEEDED = {"/etc/frr/daemons": ("frr", "frr-pythontools"), "/etc/rsyslog.d/50-default.conf": ("rsyslog",)}
"""The packages of a host, by the file that netlab gives it."""
STARTED = {
    "/etc/dataplane-wait.sh": "sh /etc/dataplane-wait.sh",
    "/etc/netlab-start.sh": "sh /etc/netlab-start.sh",
    "/etc/bird/bird.conf": "bird -d -c /etc/bird/bird.conf",
    "/etc/dnsmasq.conf": "dnsmasq --keep-in-foreground -R -C /etc/dnsmasq.conf",
}
"""What a container runs, by the file that netlab gives it; the first of these."""
LOG = "/var/log/netlab.log"
"""The file on a host with what that has printed."""
BARE = """
for port in /sys/class/net/eth*; do ip address flush dev "${port##*/}"; done
ip address flush dev lo scope global
ip route flush table main
ip -6 route flush table main 2>/dev/null
sysctl -qw net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
chmod -R a+rx /etc/config 2>/dev/null
"""
"""A script that takes minigts' own addresses and routes away, and lets netlab's scripts run."""
FRR = """
if [ -e /etc/frr/daemons ]; then
  chown -R frr:frr /etc/frr
  touch /etc/frr/vtysh.conf
  /usr/lib/frr/frrinit.sh start
fi
true
"""
"""A script that starts FRR's daemons."""
MANAGEMENT = """
ip link add eth0 type dummy
ip address add {address}/32 dev eth0
ip link set eth0 up
if [ -e /etc/frr/daemons ]; then
  ip link add mgmt type vrf table 42
  ip link set mgmt up
  ip link set eth0 master mgmt
  ip route add default vrf mgmt dev eth0
else
  ip route add default dev eth0
fi
"""
"""A script that gives a host what a container has by its network for management: an address that is there from the
beginning, of which BIRD takes its router ID, and a default route, by which what no other route fits is lost and not
refused. FRR's containers have both in a VRF. Nothing is behind this port."""
COMMAND_S = 600.0
BEGUN = "netlab begins"
"""The event from which on the lab's time follows this machine's."""
LONGEST_S = 60.0
"""How much of a lab's time passes at most before a command."""


def deploy(file: Path, time: Time, say: Progress) -> Lab:
    """Bring up the lab of a file that netlab has written for containerlab. Raises what reading and a lab raise."""
    read = _with_packages(_read(file))
    name = lab_name(read.name)
    _require_plain_names(read, file)
    plan = plans.planned(network.text(read), time=time)
    lab = bring_up.bring_up(bring_up.ready(bring_up.Request(plan, DEFAULT, name)), say, certified=False).lab
    try:
        for each in (each for each in read.machines if not each.is_switch):
            say(f"configuring {each.name}")
            lab.provider.run(
                each.name, ["sh", "-c", BARE + _management(each) + FRR + _start(each)], timeout_s=COMMAND_S
            )
        lab.note({"event": BEGUN})
    except BaseException:
        running.down(lab)
        raise
    return lab


def destroy(file: Path) -> None:
    """Take the lab of such a file down. Raises what reading and a lab raise."""
    running.down(running.open_lab(lab_name(_read(file).name)))


def _read(file: Path) -> Network:
    return detect.read(read_text(file, detect.language_of(file)), str(file), leave_out=True)


def _with_packages(read: Network) -> Network:
    """The network with the packages that its files ask for; FRR starts later, once netlab's addresses are all."""
    machines = []
    for each in read.machines:
        targets = {target for _, target in each.files}
        found = [package for target, packages in NEEDED.items() if target in targets for package in packages]
        run = tuple(command for command in each.run if not command.endswith(containerlab_frr.START))
        machines.append(replace(each, packages=tuple(found), run=run))
    return replace(read, machines=tuple(machines))


def _management(machine: NetworkMachine) -> str:
    return MANAGEMENT.format(address=machine.management) if machine.management else ""


def _start(machine: NetworkMachine) -> str:
    """The end of a script, which starts what a container of the machine's files runs."""
    targets = {target for _, target in machine.files}
    runs = next((command for target, command in STARTED.items() if target in targets), None)
    return f"mkdir -p /run/bird\nsetsid sh -c {shlex.quote(runs)} >{LOG} 2>&1 </dev/null &\n" if runs else ""


def _require_plain_names(read: Network, file: Path) -> None:
    """A host is found again by its node's name alone. Raises InputError where two nodes would have one name."""
    hosts = {each.name: each for each in read.machines if not each.is_switch}
    if wrong := [each for name, each in hosts.items() if re.sub(r"-[0-9]+$", "", name) in hosts.keys() - {name}]:
        raise InputError([Problem(str(file), wrong[0].line, f"the node of {wrong[0].name} needs a plainer name")])


def lab_name(title: str) -> str:
    return f"{LAB}{title}"


def host_name(node: str) -> str:
    """The host's name of a node."""
    return Names(Notes()).unique_name(node)


def find(container: str) -> tuple[Lab, str]:
    """The lab and the host of a container's name. Raises InputError."""
    for lab in running.all_labs():
        title = lab.name.removeprefix(LAB)
        if title != lab.name and (node := _node(container, title)) in {host.name for host in lab.plan.hosts}:
            return lab, node
    raise InputError(f"no container {container[:80]}: netlab's labs are brought up by: minigts netlab up")


def _node(container: str, title: str) -> str:
    """The host of a container's name in the lab of that title; empty if it is none."""
    words = container.removeprefix(CONTAINER).split("-")
    for length in range(1, len(words)):
        if network.title("-".join(words[:length]), "") == title:
            return host_name("-".join(words[length:]))
    return ""


def run(container: str, argv: Sequence[str], stdin: bytes = b"") -> tuple[int, str, str]:
    """Run a command in a container; its exit code and what it has printed. Raises what a lab raises."""
    lab, host = find(container)
    if (late_s := _late_s(lab)) > 0:
        lab.provider.run(host, ["sleep", f"{late_s:.3f}"], timeout_s=COMMAND_S)
    done = lab.provider.run(host, list(argv), timeout_s=COMMAND_S, check=False, stdin=stdin)
    return done.code, content(done.stdout), content(done.stderr)


def _late_s(lab: Lab) -> float:
    """By how much the lab's time lies behind this machine's since netlab began: netlab waits by this machine's."""
    begun = next((each for each in reversed(events.read(lab.rundir)) if each.get("event") == BEGUN), None)
    if lab.time != "virtual" or begun is None:
        return 0.0
    here_s = (datetime.now(UTC) - datetime.fromisoformat(str(begun["time"]))).total_seconds()
    lab_s = begun.get("lab_s")
    passed_s = lab.provider.now_s() - lab_s if isinstance(lab_s, float | int) else here_s
    return min(LONGEST_S, here_s - passed_s)


def put(container: str, source: Path, target: str) -> None:
    """Copy a file or folder into a container. Raises what a lab raises."""
    lab, host = find(container)
    lab.provider.put(host, source, PurePosixPath(target))


def containers() -> Sequence[Mapping[str, str]]:
    """Each container that is there, as `docker ps --format json` has it."""
    return [
        {"Names": f"{CONTAINER}{lab.name.removeprefix(LAB)}-{host.name}", "State": "running", "Status": "Up",
         "Image": "minigts"}
        for lab in running.all_labs()
        if lab.name.startswith(LAB)
        for host in lab.plan.hosts
    ]  # fmt: skip


def script_of(argv: Sequence[str]) -> tuple[list[str], bytes]:
    """A command that netlab runs in a container's network alone, where its script is a file of this machine: the
    command that reads the script from its input, and the script."""
    match argv:
        case ["sh" | "bash" as shell, path, *rest] if Path(path).is_file():
            return [shell, "-s", "--", *rest], Path(path).read_bytes()
        case _:
            return list(argv), b""
