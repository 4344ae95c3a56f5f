"""What a machine shows of its kernel's settings (`topology/sysctls`), and how that differs from the plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from minigts.topology import sysctls
from minigts.topology.parts import Host, Switch

BEGIN = "--sysctls--"
_ROOT = "/proc/sys/"
_FILES = {f"{_ROOT}{name.replace('.', '/')}": name for name in sysctls.BASELINE}
OWN_KERNEL = f"{_ROOT}net/core/netdev_max_backlog"
"""Only the first network namespace of a kernel shows it: a host that shares one with others does not have it."""
SHOW = f"echo '{BEGIN}'; grep -s '' {' '.join(_FILES)} || true"
"""`/proc/sys/net/core/rmem_max:4194304`, a line for each that there is."""


def read(text: str) -> dict[str, str]:
    """By name, of what SHOW prints behind BEGIN. Raises ValueError for other output."""
    lines = (line.partition(":") for line in text.splitlines() if line.strip())
    return {_name(path): " ".join(value.split()) for path, _, value in lines}


def _name(path: str) -> str:
    if path not in _FILES:
        raise ValueError(f"{path[:80]!r} is no setting that was asked for")
    return _FILES[path]


def differences(machine: Host | Switch, shown: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each; what is a whole kernel's counts where the machine has one of its own."""
    own_kernel = "net.core.netdev_max_backlog" in shown
    for name, wanted in sysctls.set_to(machine.sysctls if isinstance(machine, Host) else ()).items():
        if (own_kernel or not sysctls.is_of_whole_kernel(name)) and shown.get(name) != wanted:
            yield f"{name} is {shown.get(name, 'not there')}, should be {wanted}"
