"""The libvirt that is used, and a lab's domains in it. Uses `virsh`, whose output is libvirt's stable interface."""

from __future__ import annotations

import os

from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.foreign import screen_text
from minigts.machine import shell
from minigts.providers.vagrant import definition, private_libvirt

SYSTEM = "qemu:///system"
TIMEOUT_S = 60.0
POOL = "default"


def uri() -> str:
    """The address of the user's choice (LIBVIRT_DEFAULT_URI), else of minigts' own libvirt if it runs, else of the
    system's."""
    chosen = os.environ.get("LIBVIRT_DEFAULT_URI")
    if chosen:
        return chosen
    return private_libvirt.uri() if private_libvirt.keeper() is not None else SYSTEM


def network_prefix() -> tuple[str, ...]:
    """The words before a command that has to reach the management network; empty with the system's libvirt."""
    keeper = private_libvirt.keeper()
    inside = keeper is not None and uri() == private_libvirt.uri()
    return ("nsenter", "--target", str(keeper), "--net") if inside else ()


def answers() -> bool:
    """Whether the libvirt that would be used answers this user."""
    try:
        return shell.run(["virsh", "-c", uri(), "uri"], timeout_s=TIMEOUT_S, check=False).code == 0
    except MinigtsError:
        return False


def pool_problem() -> str:
    """Why the pool cannot hold machines' disks; empty when it is active, or missing, since Vagrant then makes it."""
    if POOL in _named("", "pool-list", "--all", "--name") and POOL not in _named("", "pool-list", "--name"):
        return f"libvirt's pool {POOL!r} is not active: virsh -c {uri()} pool-start {POOL}"
    return ""


def running(prefix: str) -> list[str]:
    """The names of the running domains that begin with `prefix`."""
    return _named(prefix, "list", "--name")


def defined_domains(prefix: str) -> list[str]:
    """The names of the domains, running or not, that begin with `prefix`."""
    return _named(prefix, "list", "--all", "--name")


def identifiers() -> list[str]:
    """The UUIDs of all domains, running or not."""
    return _named("", "list", "--all", "--uuid")


def start_again(domain: str) -> None:
    """Start a machine; if it runs, end it first, as a power cut does."""
    if domain in running(domain):
        _virsh("destroy", domain)
    _virsh("start", domain)


def set_carrier(domain: str, mac: str, *, on: bool) -> None:
    """Give the card of that MAC address of a running machine a carrier, or take it, until the machine ends."""
    _virsh("domif-setlink", domain, mac, "up" if on else "down")


def addresses() -> dict[str, str]:
    """MAC -> IPv4 address of every lease of the management network."""
    leases = _virsh("net-dhcp-leases", definition.NETWORK, check=False)
    # A line: 2026-11-21 15:00:00   52:54:00:aa:bb:cc   ipv4   10.255.240.7/24   -   01:52:54:00:aa:bb:cc
    rows = [line.split() for line in leases.splitlines() if " ipv4 " in line]
    return {row[2]: row[4].partition("/")[0] for row in sorted(rows)}


def remove(prefix: str) -> list[Exception]:
    """Remove every domain and volume whose name begins with `prefix`, and the network when no machine is left. Returns
    the errors."""
    problems: list[Exception] = []
    for domain in running(prefix):
        _attempt(problems, "destroy", domain)
    for domain in defined_domains(prefix):
        _attempt(problems, "undefine", domain)
    for volume in volumes(prefix):
        _attempt(problems, "vol-delete", volume, "--pool", POOL)
    if not defined_domains("minigts-"):
        _remove_network(problems)
    return problems


def _remove_network(problems: list[Exception]) -> None:
    for which, verb in ((("--name",), "net-destroy"), (("--all", "--name"), "net-undefine")):
        if definition.NETWORK in _named("", "net-list", *which):
            _attempt(problems, verb, definition.NETWORK)


def remove_older_boxes(volume: str) -> None:
    """Remove the volumes of boxes older than that of `volume`, unless there are machines, whose disks may use them.

    Volumes' names contain the time at which their box was built, so a newer box of another checkout stays.
    """
    if defined_domains("minigts-"):
        return
    for older in volumes(volume.partition("image_")[0]):
        if older < volume:
            remove_volume(older)


def remove_volume(name: str) -> None:
    """Remove a volume, if it exists."""
    _virsh("vol-delete", name, "--pool", POOL, check=False)


def volumes(prefix: str) -> list[str]:
    """The names of the pool's volumes that begin with `prefix`."""
    listing = _virsh("vol-list", POOL, check=False)
    names = [line.split()[0] for line in listing.splitlines()[2:] if line.split()]
    return [name for name in names if name.startswith(prefix)]


def _named(prefix: str, *argv: str) -> list[str]:
    return [name for name in _virsh(*argv).split() if name.startswith(prefix)]


def _attempt(problems: list[Exception], *argv: str) -> None:
    try:
        _virsh(*argv)
    except MinigtsError as error:
        problems.append(error)


def _virsh(*argv: str, check: bool = True) -> str:
    try:
        return shell.run(["virsh", "-c", uri(), *argv], timeout_s=TIMEOUT_S, check=check).stdout
    except CommandFailed as error:
        if "failed to connect" in error.err:
            raise EnvironmentLacks(f"libvirt does not answer at {uri()}: {screen_text(error.err.strip())}") from error
        raise
