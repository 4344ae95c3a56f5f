"""Whether this machine lets a plain user be root in a namespace of its own, which building in a Debian root takes."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
)


def missing() -> list[str]:
    """What lacks for it, a sentence with its remedy each; nothing where root builds."""
    if os.geteuid() == 0:
        return []
    if setting := blocked_by():
        return [f"user namespaces are switched off: sudo sysctl -w {setting}"]
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


def blocked_by() -> str:
    """The sysctl setting that would allow user namespaces; empty when they are allowed."""
    for name, off, remedy in SWITCHES:
        if _read(Path("/proc/sys") / name) == off:
            return remedy
    # Ubuntu restricts them by AppArmor, but lets programs that have a profile of their own through.
    restricted = _read(Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) == "1"
    if restricted and not Path("/etc/apparmor.d/mmdebstrap").exists():
        return "kernel.apparmor_restrict_unprivileged_userns=0"
    return ""


def has_ids() -> bool:
    """Whether this user may have other users' ids in a namespace."""
    return all(has_range(Path(file), user()) for file in ("/etc/subuid", "/etc/subgid"))


def has_range(file: Path, name: str) -> bool:
    """Whether a line such as `alice:100000:65536` gives the user at least 65536 ids (subuid(5))."""
    rows = (line.split(":") for line in _read(file).splitlines())
    owners = (name, str(os.geteuid()))
    return any(len(row) == 3 and row[0] in owners and row[2].isdigit() and int(row[2]) >= 65536 for row in rows)


def _read(path: Path) -> str:
    """A file's text, stripped; empty when it is absent or closed to us."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
