"""What a lab of virtual machines stands on here: programs, libvirt, the box, KVM or not. Makes the lab's definition."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts import paths
from minigts.errors import EnvironmentLacks
from minigts.providers import supported, system_packages
from minigts.providers.base import Supports
from minigts.providers.system_packages import Package
from minigts.providers.uml import image
from minigts.providers.vagrant import accelerator, box, definition, libvirt
from minigts.providers.vagrant.definition import Definition
from minigts.topology.plan import Plan

SUPPORTS = Supports(
    frozenset({"several processors", "memory of its own", "sysctls of a kernel of its own", "packages"}),
    {
        "a share of a processor": "its machines are libvirt's, in which minigts sets no quota",
        "a way out": "whether its machines have one is up to libvirt's network, by which they are reached",
        "an image of its own": "its virtual machines start from one box",
    },
)
BOX_S = 300
"""How long Vagrant may take to add a new box and put its disk into the pool."""
QEMU_MB = 160
"""What a machine takes of this one beside its own memory and its translated code; measured: see docs/vagrant.md."""
SET_UP = "minigts setup vagrant"
NO_VERSION = "0"
"""Of a box that is not built; machines that there are go by the one that they were made from."""
PLUGIN = "vagrant-libvirt"
UPSTREAM_PLUGIN = "*/gems/vagrant-libvirt-*"
"""Where Vagrant keeps plugins that it has installed itself, in ~/.vagrant.d/gems or $VAGRANT_HOME/gems."""


@dataclass(frozen=True)
class Facts:
    """What virtual machines stand on, as it was seen on this machine."""

    user: str
    cores: int
    packages: tuple[Package, ...]
    libvirt_uri: str
    """The libvirt that would be used."""
    libvirt_answers: bool
    box_ready: bool
    accelerator: Literal["kvm", "emulation", "untried"]
    """Whether a guest has been seen to run under KVM since this machine booted."""
    reason: str
    kvm_remedy: str = ""
    """What opens KVM where it is closed to this user; empty where it is not."""


def gather() -> Facts:
    """Look at this machine; a KVM that was not tried yet is not tried now."""
    tried = accelerator.remembered()
    return Facts(
        user=accelerator.user(),
        cores=len(os.sched_getaffinity(0)),
        packages=tuple(Package(name, present) for name, present in packages().items()),
        libvirt_uri=libvirt.uri(),
        libvirt_answers=libvirt.answers(),
        box_ready=box.present() is not None,
        accelerator="untried" if tried is None else tried.verdict,
        reason="" if tried is None else tried.reason,
        kvm_remedy=accelerator.remedy(),
    )


def packages() -> dict[str, bool]:
    """The system packages that a lab needs, and whether each is there; its program counts, not the package."""
    listed = {each.name: each.present for each in system_packages.of(Path(__file__).parent, root=os.geteuid() == 0)}
    return listed | {PLUGIN: listed[PLUGIN] or _upstream_plugin_present()}


def missing() -> list[str]:
    """What this machine lacks, a sentence each with its remedy."""
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
    """Which groups this user has to join for libvirt, and for KVM where that is closed to them: one login for both."""
    group = accelerator.openers() if accelerator.closed() else ""
    return ",".join(["libvirt", *([group] if group else [])])


def prepare(progress: Callable[[str], None]) -> None:
    """Build the box and try KVM, unless that has been done. Raises EnvironmentLacks and HostFailed."""
    ready = box.ensure(progress)
    if accelerator.remembered() is None:
        progress("trying whether KVM runs a guest here")
        progress(accelerator.decide(ready.disk_head).reason)
    elif accelerator.closed():
        progress(f"{accelerator.KVM} is closed to you, so machines are emulated; {accelerator.remedy()}")


def define(plan: Plan, rundir: Path) -> Definition:
    """The lab's definition. Before `prepare` it is good for everything but bringing machines up.

    Raises EnvironmentLacks for what no machine of vagrant has, and for more machines than their common network has
    addresses for.
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
        at_once=definition.at_once(verdict, cores, hosts),
        boot_timeout_s=definition.boot_timeout_s(verdict, cores, hosts),
        machines=definition.machines(plan, rundir, consoles(rundir)),
    )


def _proxy_command(inside: Collection[str]) -> str:
    """For a shell, in which SSH has put host and port (ssh_config(5), ProxyCommand); its own per cent sign is two."""
    relay = shlex.join([*inside, "/usr/bin/python3", "-ISE", str(_relay())])
    return f"{relay.replace('%', '%%')} %h %p"


def open_consoles(defined: Definition) -> None:
    """Make the files that consoles are written to, before the daemon does that writes them: it runs as root, and what
    it makes is closed to everybody else, while what is there it appends to (see Console in booting.rb)."""
    for machine in defined.machines:
        file = Path(machine.console)
        for folder in (file.parents[1], file.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)


def _verdict() -> accelerator.Verdict:
    tried = accelerator.remembered()
    return "emulation" if tried is None else tried.verdict


def _upstream_plugin_present() -> bool:
    home = Path(os.environ.get("VAGRANT_HOME") or Path.home() / ".vagrant.d")
    return any((home / "gems").glob(UPSTREAM_PLUGIN))


def consoles(rundir: Path) -> Path:
    """Where a lab's consoles are written: beside its run directory, which comes and goes while machines run."""
    return paths.state_root() / "consoles" / definition.prefix(rundir).rstrip("-")


def _relay() -> Path:
    return Path(__file__).with_name("relay.py")


def refuse_memory(plan: Plan, but: Collection[str] = ()) -> None:
    """Raises EnvironmentLacks when this machine has not as much memory free as the plan's machines take, without those
    named `but`, which run already or are not asked for."""
    free_mb = _free_mb()
    own_mb = QEMU_MB + (definition.processor(_verdict()).translated_mb or 0)
    needed_mb = sum(host.memory_mb + own_mb for host in plan.machines if host.name not in but)
    if free_mb < needed_mb:
        raise EnvironmentLacks(f"the machines of {plan.name} take {needed_mb} MB of memory; {free_mb} MB are free")


def _free_mb() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) >> 10
