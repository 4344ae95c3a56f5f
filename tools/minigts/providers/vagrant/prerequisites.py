"""What virtual machines need on this machine: programs, libvirt, the box, KVM. Also makes a lab's definition."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts import paths
from minigts.errors import EnvironmentLacks
from minigts.machine.progress import Progress
from minigts.providers import supported, system_packages
from minigts.providers.base import CARRIERS, Supports
from minigts.providers.system_packages import SystemPackage
from minigts.providers.uml.build import image
from minigts.providers.vagrant import accelerator, box, definition, libvirt
from minigts.providers.vagrant.definition import Definition
from minigts.topology.plan.plan import Plan

SUPPORTS = Supports(
    frozenset(
        {
            "several processors",
            "memory of its own",
            "sysctls of a kernel of its own",
            "the queue discipline pie",
            "packages",
            "name servers",
            CARRIERS,
        }
    ),
    {
        "a share of a processor": "its machines belong to libvirt, where minigts sets no quota",
        "a way out": "its machines have one only if libvirt's management network does",
        "a kernel by name": "its virtual machines have Debian's",
        "an image of its own": "its virtual machines start from one box",
        "an interface eth0": "minigts reaches its virtual machines by their eth0",
    },
)
BOX_S = 300
"""How long Vagrant may take to add a new box and put its disk into the pool."""
QEMU_MB = 160
"""MB of this machine's memory for each virtual machine, besides its own memory and translated code, by measurement: see
docs/vagrant.md."""
SET_UP = "minigts setup vagrant"
NO_VERSION = "0"
"""The version in the definition while no box is built; existing machines keep the box that they were made from."""
PLUGIN = "vagrant-libvirt"
UPSTREAM_PLUGIN = "*/gems/vagrant-libvirt-*"
"""The path of a plugin that Vagrant has installed itself, below ~/.vagrant.d/gems or $VAGRANT_HOME/gems."""


@dataclass(frozen=True)
class Facts:
    """The facts about this machine that virtual machines depend on."""

    user: str
    cores: int
    packages: tuple[SystemPackage, ...]
    libvirt_uri: str
    """The libvirt that would be used."""
    libvirt_answers: bool
    box_ready: bool
    accelerator: Literal["kvm", "emulation", "untried"]
    """Whether a guest has run under KVM since this machine booted."""
    reason: str
    kvm_remedy: str = ""
    """The command that gives this user access to KVM; empty when it is not needed."""


def gather() -> Facts:
    """Gather the facts; a KVM that was not tried yet is not tried now."""
    tried = accelerator.remembered_verdict()
    return Facts(
        user=accelerator.user(),
        cores=len(os.sched_getaffinity(0)),
        packages=tuple(SystemPackage(name, present) for name, present in packages().items()),
        libvirt_uri=libvirt.uri(),
        libvirt_answers=libvirt.answers(),
        box_ready=box.present() is not None,
        accelerator="untried" if tried is None else tried.verdict,
        reason="" if tried is None else tried.reason,
        kvm_remedy=accelerator.remedy(),
    )


def packages() -> dict[str, bool]:
    """The system packages that a lab needs, and whether the program of each is installed."""
    listed = {
        each.name: each.present
        for each in system_packages.listed_packages(Path(__file__).parent, root=os.geteuid() == 0)
    }
    return listed | {PLUGIN: listed[PLUGIN] or _upstream_plugin_present()}


def missing() -> list[str]:
    """What this machine lacks, one sentence each with the remedy."""
    absent = " ".join(name for name, present in packages().items() if not present)
    lacking = [f"these packages are not installed: {absent}; install them with: {SET_UP}"] if absent else []
    if not lacking and not libvirt.answers():
        lacking.append(
            f"no libvirt answers at {libvirt.uri()}: sudo systemctl start libvirtd, and sudo usermod -aG {_groups()}"
            f" {accelerator.user()}, and log in again; where there is no systemd, as root: minigts libvirt start"
        )
    elif not lacking and libvirt.pool_problem():
        lacking.append(libvirt.pool_problem())
    return lacking + ([] if box.present() is not None else image.missing())


def _groups() -> str:
    """The groups that this user has to join for libvirt, and for KVM if necessary, so that one login does for both."""
    group = accelerator.openers() if accelerator.is_closed() else ""
    return ",".join(["libvirt", *([group] if group else [])])


def prepare(progress: Progress) -> None:
    """Build the box and try KVM, unless this has been done. Raises EnvironmentLacks and HostFailed."""
    ready = box.ensure(progress)
    if accelerator.remembered_verdict() is None:
        progress("trying whether KVM runs a guest here")
        progress(accelerator.decide(ready.disk_head).reason)
    elif accelerator.is_closed():
        progress(f"{accelerator.KVM} is closed to you, so machines are emulated; {accelerator.remedy()}")


def define(plan: Plan, rundir: Path) -> Definition:
    """The lab's definition. Before `prepare` it serves every purpose except bringing machines up.

    Raises EnvironmentLacks for features that the provider does not support, and for more machines than the management
    network has addresses.
    """
    if len(plan.machines) > definition.MOST_MACHINES:
        raise EnvironmentLacks(
            f"vagrant: {plan.name} has {len(plan.machines)} machines; libvirt's network for them, "
            f"{definition.NETWORK_ADDRESS}, has "
            f"addresses for {definition.MOST_MACHINES}: --provider uml"
        )
    supported.require(plan, "vagrant", SUPPORTS)
    ready, verdict = box.present(), _verdict()
    ours = box.keys()
    cores, hosts = len(os.sched_getaffinity(0)), len(plan.machines)
    inside = libvirt.network_prefix()
    return Definition(
        lab=rundir.name,
        uri=libvirt.uri(),
        proxy_command=_proxy_command(inside) if inside else None,
        box=box.NAME,
        box_version=ready.version if ready else NO_VERSION,
        catalogue=ready.catalogue.as_uri() if ready else "",
        private_key=str(ours.user),
        known_hosts=str(ours.known_hosts),
        prefix=definition.prefix(rundir),
        processor=definition.processor(verdict),
        at_once=definition.parallel_boots(verdict, cores, hosts),
        boot_timeout_s=definition.boot_timeout_s(verdict, cores, hosts),
        machines=definition.machines(plan, rundir, consoles(rundir)),
    )


def _proxy_command(inside: Collection[str]) -> str:
    """SSH's ProxyCommand, which a shell runs after SSH has replaced %h, %p and %% (ssh_config(5))."""
    relay = shlex.join([*inside, "/usr/bin/python3", "-ISE", str(_relay())])
    return f"{relay.replace('%', '%%')} %h %p"


def open_consoles(defined: Definition) -> None:
    """Make the files for consoles before libvirt's log daemon does. It runs as root, and files that it makes are closed
    to other users, but it appends to existing files (see Console in booting.rb)."""
    for machine in defined.machines:
        file = Path(machine.console)
        for folder in (file.parents[1], file.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)


def _verdict() -> accelerator.Verdict:
    tried = accelerator.remembered_verdict()
    return "emulation" if tried is None else tried.verdict


def _upstream_plugin_present() -> bool:
    home = Path(os.environ.get("VAGRANT_HOME") or Path.home() / ".vagrant.d")
    return any((home / "gems").glob(UPSTREAM_PLUGIN))


def consoles(rundir: Path) -> Path:
    """The directory of a lab's consoles. It is outside the run directory, which may be removed while machines run."""
    return paths.state_root() / "consoles" / definition.prefix(rundir).rstrip("-")


def _relay() -> Path:
    return Path(__file__).with_name("relay.py")


def refuse_memory(plan: Plan, but: Collection[str] = ()) -> None:
    """Raise EnvironmentLacks when the plan's machines need more memory than is free on this machine. Machines named in
    `but`, which run already or are not to be started, do not count."""
    free_mb = _free_mb()
    own_mb = QEMU_MB + (definition.processor(_verdict()).translated_mb or 0)
    needed_mb = sum(host.memory_mb + own_mb for host in plan.machines if host.name not in but)
    if free_mb < needed_mb:
        raise EnvironmentLacks(f"the machines of {plan.name} need {needed_mb} MB of memory; {free_mb} MB are free")


def _free_mb() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) >> 10
