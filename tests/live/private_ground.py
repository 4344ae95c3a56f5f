"""Namespaces in which a hostile kernel may be tried as root: devices, /proc/cpuinfo and the cache are copies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from minigts import paths

from .program import PROJECT

APART = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--")
GROUND = r"""
set -euo pipefail
place=$1
shift
mkdir -p "$place/dev"
mount -t tmpfs -o mode=0755 tmpfs "$place/dev"
for name in null zero full random urandom tty; do cp -a "/dev/$name" "$place/dev/"; done
mkdir "$place/dev/pts" "$place/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$place/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$place/dev/shm"
ln -s pts/ptmx "$place/dev/ptmx"
for pair in fd: stdin:/0 stdout:/1 stderr:/2; do ln -s "/proc/self/fd${pair#*:}" "$place/dev/${pair%:*}"; done
cat /proc/cpuinfo >"$place/cpuinfo"
chmod 444 "$place/cpuinfo"
mount --bind "$place/cpuinfo" /proc/cpuinfo
mount --rbind "$place/dev" /dev
exec </dev/null
mkdir -p "$place/cache"
for built in "$MINIGTS_CACHE"/{images,kernels,clocks}/*; do
  part=$(basename "$(dirname "$built")")
  [[ -d $built && $(basename "$built") != building-* ]] || continue
  mkdir -p "$place/cache/$part"
  cp -a --reflink=auto --sparse=always "$built" "$place/cache/$part/"
done
find "$place/cache" -type f -exec sync {} +
export MINIGTS_CACHE=$place/cache MINIGTS_PRIVATE_GROUND=$place
"$@"
exit $?
"""
"""The shell stays as the namespace's first process, which collects orphaned processes."""
PLACE = "MINIGTS_PRIVATE_GROUND"
"""The environment variable with its directory."""


def run(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of tests/live on such a ground; its stderr goes where this process's does. Only root can do this."""
    with tempfile.TemporaryDirectory(prefix="minigts-ground-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        program = (sys.executable, "-P", "-m", f"tests.live.{module}", *words)
        environment = {
            **os.environ,
            "PYTHONPATH": f"{PROJECT / 'tools'}:{PROJECT}",
            "MINIGTS_CACHE": str(paths.cache_root()),
            "TMPDIR": place,
        }
        return subprocess.run(
            [*APART, "bash", "-c", GROUND, "bash", place, *program],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )


def require(place: Path) -> None:
    """Nothing is tried on the machine's own devices and cache."""
    for path in (Path("/dev"), Path("/proc/cpuinfo"), Path(os.environ["MINIGTS_CACHE"])):
        mine = place / {"dev": "dev", "cpuinfo": "cpuinfo"}.get(path.name, "cache")
        if not path.samefile(mine):
            raise SystemExit(f"{path} is this machine's own: use `bench/run effects`")


def require_devices(pid: int) -> None:
    own = Path("/dev/null").stat().st_dev
    for each in Path(f"/proc/{pid}/fd").iterdir():
        if each.readlink() == Path("/dev/null") and each.stat().st_dev != own:
            raise SystemExit("a kernel has this machine's own /dev/null")
