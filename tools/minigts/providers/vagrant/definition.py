"""The definition that the Vagrantfile reads: a plan's hosts as libvirt domains, its links as tunnels. Pure data.

`minigts libvirt definition` prints it as JSON, and the Vagrantfile reads nothing else. All names of a lab in libvirt
are derived from its run directory, so that labs that run at the same time share nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts.providers.vagrant.accelerator import Verdict
from minigts.topology.fields import Address, Cpus, HostName, Mac, MemoryMb
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan

NETWORK = "minigts"
NETWORK_ADDRESS = "10.255.240.0/24"
"""The management network, which is in the range that topologies may not use (topology/routes/addresses.py)."""
MOST_MACHINES = 252
"""The number of its addresses without its own, its first and its last."""
FIRST_PORT = 10_000
KVM_BOOT_S = 60
EMULATED_BOOT_S = 90
"""How long one machine may take to boot alone, by measurement: see docs/vagrant.md."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MachineProcessor(_Frozen):
    """A domain's processor (`cpu` in libvirt's domain XML) and its type, `driver`."""

    driver: str
    mode: str
    model: str | None = None
    disabled: tuple[str, ...] = ()
    translated_mb: int | None = None
    """MB in which QEMU keeps translated code of the guest, besides the guest's memory; None without emulation."""


class Tunnel(_Frozen):
    """One end of a link: an interface whose frames travel as UDP datagrams over this machine's loopback."""

    mac: Mac
    address: Address
    """The lab's loopback address, to which both ends are bound."""
    port: int
    peer_port: int


class Domain(_Frozen):
    name: HostName
    domain: str
    cpus: Cpus
    memory_mb: MemoryMb
    management_mac: Mac
    console: str
    """The file with the output of the machine's serial console."""
    tunnels: tuple[Tunnel, ...]


class Definition(_Frozen):
    version: int = 1
    lab: str
    uri: str
    proxy_command: str | None
    """The command by which SSH reaches a management network in another network namespace; None if not needed."""
    box: str
    box_version: str
    catalogue: str
    """The URL of the box's catalogue; empty while there is no box."""
    private_key: str
    known_hosts: str
    network: str = NETWORK
    network_address: str = NETWORK_ADDRESS
    prefix: str
    processor: MachineProcessor
    at_once: int
    """How many machines may boot at a time."""
    boot_timeout_s: int
    machines: tuple[Domain, ...]


KVM = MachineProcessor(driver="kvm", mode="host-passthrough")
# QEMU 7.2 emulates CMPXCHG16B with wrong flags, and Debian 13's kernel uses it for every allocation.
EMULATED = MachineProcessor(driver="qemu", mode="custom", model="qemu64", disabled=("cx16",), translated_mb=512)


def processor(verdict: Verdict) -> MachineProcessor:
    return KVM if verdict == "kvm" else EMULATED


def parallel_boots(verdict: Verdict, cores: int, hosts: int) -> int:
    """How many machines boot at a time: all under KVM; otherwise one a core, since more would only slow each other."""
    return hosts if verdict == "kvm" else max(1, min(cores, hosts))


def boot_timeout_s(verdict: Verdict, cores: int, hosts: int) -> int:
    """How long the last machine may take to boot, with its wait for the earlier ones."""
    turns = -(-hosts // parallel_boots(verdict, cores, hosts))
    return (KVM_BOOT_S if verdict == "kvm" else EMULATED_BOOT_S * 2) * turns


def prefix(rundir: Path) -> str:
    """The prefix of the names of a lab's domains and volumes."""
    return f"minigts-{_digest(str(rundir)).hex()[:8]}-"


def machines(plan: Plan, rundir: Path, consoles: Path) -> tuple[Domain, ...]:
    """The domains of the plan's hosts and switches, in its order."""
    return tuple(_machine(plan, host, rundir, consoles) for host in plan.machines)


def _machine(plan: Plan, host: Host | Switch, rundir: Path, consoles: Path) -> Domain:
    digest = _digest(f"{rundir}/{host.name}")
    return Domain(
        name=host.name,
        domain=prefix(rundir) + host.name,
        cpus=host.cpus,
        memory_mb=host.memory_mb,
        management_mac=":".join(["52", "54", "00", *(f"{byte:02x}" for byte in digest[:3])]),
        console=str(consoles / f"{host.name}.log"),
        tunnels=_tunnels(plan, host, rundir),
    )


def _tunnels(plan: Plan, host: Host | Switch, rundir: Path) -> tuple[Tunnel, ...]:
    # Each lab has its own address between 127.64.0.0 and 127.127.255.255, a range that no program uses by default.
    digest = _digest(str(rundir))
    address = f"127.{64 + digest[0] % 64}.{digest[1]}.{1 + digest[2] % 254}"
    index = {link.name: link.index for link in plan.links}
    made = []
    for port in host.ports:
        link = plan.links[index[port.link]]
        end = link.ends.index(host.name)
        first = FIRST_PORT + 2 * link.index
        made.append(Tunnel(mac=port.mac, address=address, port=first + end, peer_port=first + 1 - end))
    return tuple(made)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
