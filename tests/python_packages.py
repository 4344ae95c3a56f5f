"""Finds the Python packages that minigts needs, for a pytest that was not started by the launcher."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).parents[1]
NEEDED = ("platformdirs", "pydantic", "ruamel.yaml", "rich", "typer")


def there(name: str) -> bool:
    """Whether a package can be imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def find() -> str:
    """Add an environment of the launcher's to where Python looks, if anything is missing; what to type when there is
    none for this version of Python, else nothing.
    """
    if all(map(there, NEEDED)):
        return ""
    for made in environments():
        packages = made / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        if (made / "made").exists() and packages.is_dir():
            sys.path.append(str(packages))
            if all(map(there, NEEDED)):
                return ""
            sys.path.remove(str(packages))
    missing = ", ".join(name for name in NEEDED if not there(name))
    return f"this Python lacks {missing}, and has no environment of minigts'; type: {PROJECT}/minigts test tests/lab"


def environments() -> list[Path]:
    """Those for this Python and these locks, then others, the newest first: another Python of the same version may have
    made them.
    """
    own = [environment(lock) for lock in ("requirements-dev.lock", "requirements.lock")]
    stamps = sorted(cache().glob("venv-*/made"), key=lambda stamp: stamp.stat().st_mtime, reverse=True)
    return [*own, *(stamp.parent for stamp in stamps)]


def environment(lock: str) -> Path:
    """Where the launcher makes it for this Python: `environment_of` in `minigts`."""
    identity = f"{sys.version_info[0]}.{sys.version_info[1]} {sys.base_prefix}\n"
    key = hashlib.sha256((PROJECT / lock).read_bytes() + identity.encode()).hexdigest()[:16]
    return cache() / f"venv-{key}"


def cache() -> Path:
    if chosen := os.environ.get("MINIGTS_CACHE"):
        return Path(chosen)
    root = os.environ.get("XDG_CACHE_HOME", "")
    return Path(root if root.startswith("/") else f"{os.environ.get('HOME', '')}/.cache") / "minigts"
