"""The settings that a machine's kernel shows (`topology/sysctls`), and how they differ from the plan. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from minigts.topology import sysctls
from minigts.topology.plan.elements import Host, Switch

BEGIN = "--sysctls--"
_ROOT = "/proc/sys/"
_FILES = {f"{_ROOT}{name.replace('.', '/')}": name for name in sysctls.READ_BACK}
OWN_KERNEL = f"{_ROOT}net/core/netdev_max_backlog"
"""A file that only a kernel's first network namespace has: a host that shares its kernel does not have it."""


def show(machine: Host | Switch) -> str:
    """A command that prints `/proc/sys/net/core/rmem_max:4194304` and so on, a line for each setting that exists."""
    wanted = _wanted(machine)
    own = sysctls.others(machine.sysctls if isinstance(machine, Host) else ())
    files = [*(path for path, name in _FILES.items() if name in wanted), *(sysctls.path_of(name) for name in own)]
    return f"echo '{BEGIN}'; grep -s '' {' '.join(map(shlex.quote, files))} || true"


def _wanted(machine: Host | Switch) -> dict[str, str]:
    return sysctls.set_to(machine.sysctls if isinstance(machine, Host) else ())


def read(text: str) -> dict[str, str]:
    """The settings by name, from the output of `show` after BEGIN. Raises ValueError for other output."""
    lines = (line.partition(":") for line in text.splitlines() if line.strip())
    return {_name(path): " ".join(value.split()) for path, _, value in lines}


def _name(path: str) -> str:
    if not path.startswith(f"{_ROOT}net/"):
        raise ValueError(f"{path[:80]!r} is no setting that was asked for")
    return _FILES.get(path) or path.removeprefix(_ROOT).translate(str.maketrans("./", "/."))


def differences(machine: Host | Switch, shown: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each difference. Settings of the whole kernel count if the machine has one of its own."""
    own_kernel = "net.core.netdev_max_backlog" in shown
    for name, wanted in _wanted(machine).items():
        if (own_kernel or not sysctls.is_of_whole_kernel(name)) and shown.get(name) != wanted:
            yield f"{name} is {shown.get(name, 'not there')}, should be {wanted}"
