"""A build of a recipe in provision as somebody else does it: a plain user of this machine, in another place, with a
umask that hides all from others, on one processor, and on another day for what compiles.

`PYTHONPATH=tests:tools python -m live.other_build RECIPE DIRECTORY`, as root, builds so by hand what takes long, such
as the kernel, into the new directory.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minigts.machine import shell

from .other_user import free_id, give
from .program import PROJECT

LATER = "+1600d"
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
"""Of Debian's package faketime: programs that load it are told another time. It reads the file /etc/faketimerc."""
PRELOADED = "/usr/local/lib/faketime.so"
BUILD_TIMEOUT_S = 21600.0
NAME = "minigts-other"
SUBORDINATE = 1_000_000


OTHER_ENVIRONMENT = {
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CFLAGS": "-O0",
    "RUSTFLAGS": "",
}
"""Settings of other programs, which must not reach the new root."""
ACCOUNTS = ("passwd", "group", "subuid", "subgid")


def lacking() -> str:
    """Why there is no such build here; empty if there is."""
    if os.geteuid() != 0:
        return "needs root, to be another user"
    if shutil.which("newuidmap") is None:
        return "newuidmap is not installed: apt-get install uidmap"
    if not Path(FAKETIME).exists():
        return "libfaketime is not installed: apt-get install faketime"
    return ""


def as_usual(recipe: str, output: Path) -> None:
    """Run the recipe's build.sh as this user, from this checkout."""
    output.mkdir()
    shell.run_group([str(PROJECT / "provision" / recipe / "build.sh"), str(output)], timeout_s=BUILD_TIMEOUT_S)


@contextmanager
def otherwise(recipe: str) -> Iterator[Path]:
    """The output of the recipe's build.sh as somebody else has run it."""
    user = free_id()
    with tempfile.TemporaryDirectory(prefix="minigts-a-checkout-with-a-longer-path-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        shutil.copytree(PROJECT / "provision", home / "provision", symlinks=True)
        for path in home.rglob("*"):
            path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
        _write_mmdebstrap(home / "bin" / "mmdebstrap")
        output = home / "output"
        output.mkdir()
        give(home, user)
        _write_accounts(home / "etc", user)
        build = shlex.join([str(home / "provision" / recipe / "build.sh"), str(output)])
        command = f"umask 077; exec taskset -c 0 {build}"
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "bash", "-c", command]
        mounts = "; ".join(f"mount --bind {home}/etc/{name} /etc/{name}" for name in ACCOUNTS)
        shell.run_group(
            ["unshare", "--mount", "--propagation", "private", "bash", "-euc", f"{mounts}; {shlex.join(as_user)}"],
            timeout_s=BUILD_TIMEOUT_S,
            env={"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home), **OTHER_ENVIRONMENT},
        )
        yield output


def _write_accounts(etc: Path, user: int) -> None:
    """Files for /etc that know the user, too, and give them a range of ids."""
    etc.mkdir()
    lines = {
        "passwd": f"{NAME}:x:{user}:{user}::/nonexistent:/bin/bash\n",
        "group": f"{NAME}:x:{user}:\n",
        **dict.fromkeys(("subuid", "subgid"), f"{NAME}:{SUBORDINATE}:65536\n"),
    }
    for name, line in lines.items():
        known = Path("/etc") / name
        (etc / name).write_text((known.read_text() if known.exists() else "") + line)
        (etc / name).chmod(0o644)


def _write_mmdebstrap(path: Path) -> None:
    """The real mmdebstrap, where programs of the new root are told another day from the first customize hook on."""
    real = shutil.which("mmdebstrap")
    path.parent.mkdir()
    place = f'"$1{PRELOADED}"'
    day = f'echo {LATER} >"$1/etc/faketimerc" && echo {PRELOADED} >"$1/etc/ld.so.preload"'
    proof = 'test "$(chroot "$1" date +%Y)" -gt "$(($(date +%Y) + 2))"'
    hooks = [f"upload {FAKETIME} {PRELOADED}", f"chmod 755 {place} && {day} && {proof}"]
    words = f'[[ $1 == --unshare-helper ]] || set -- {shlex.join(f"--customize-hook={hook}" for hook in hooks)} "$@"'
    path.write_text(f'#!/bin/bash\n{words}\nexec {real} "$@"\n')
    path.chmod(0o755)


if __name__ == "__main__":
    with otherwise(sys.argv[1]) as made:
        shutil.copytree(made, sys.argv[2])
