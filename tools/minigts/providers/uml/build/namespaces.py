"""Whether a plain user may be root in a user namespace on this machine, as builds in a Debian root need."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
)
PROFILE = Path("/etc/apparmor.d/mmdebstrap")
APPARMOR = "kernel.apparmor_restrict_unprivileged_userns=0"
FROM_A_FILE = "minigts setup uml --from FILE"


def missing() -> list[str]:
    """What this user lacks for that, one sentence each with the remedy; nothing for root."""
    if os.geteuid() == 0:
        return []
    if setting := blocking_sysctl():
        return [f"user namespaces are switched off: sudo sysctl -w {setting}; or build nothing here: {FROM_A_FILE}"]
    if not has_ids():
        name = user()
        remedy = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
        return [f"{name} has no range in /etc/subuid and /etc/subgid: {remedy}"]
    return []


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def blocking_sysctl() -> str:
    """The sysctl setting that would allow a build its user namespace; empty when it has one."""
    setting = restricting_sysctl()
    # Ubuntu restricts them by AppArmor, but allows them to programs that have their own profile.
    return "" if setting == APPARMOR and PROFILE.exists() else setting


def restricting_sysctl() -> str:
    """The sysctl setting that would allow every program of this user namespaces; empty when they are allowed."""
    for name, off, remedy in SWITCHES:
        if _read(Path("/proc/sys") / name) == off:
            return remedy
    restricted = _read(Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) == "1"
    return APPARMOR if restricted else ""


def has_ids() -> bool:
    """Whether this user has subordinate user and group ids for a namespace."""
    return all(has_range(Path(file), user()) for file in ("/etc/subuid", "/etc/subgid"))


def has_range(file: Path, name: str) -> bool:
    """Whether a line such as `alice:100000:65536` gives the user at least 65536 ids (subuid(5))."""
    rows = (line.split(":") for line in _read(file).splitlines())
    owners = (name, str(os.geteuid()))
    return any(len(row) == 3 and row[0] in owners and row[2].isdigit() and int(row[2]) >= 65536 for row in rows)


def _read(path: Path) -> str:
    """A file's text, stripped; empty when it is absent or may not be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
