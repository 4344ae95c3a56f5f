#!/usr/bin/python3
"""Encloses a lab in namespaces on this machine's kernel, and runs the agent in them.

    enclosure.py WIRE DIRECTORY GROUP LINE

`unshare` starts it as process 1 of new network, mount, pid, UTS and IPC namespaces, without an interface outside.
DIRECTORY is empty and gets a tmpfs for all that is written; GROUP is the lab's control group; LINE is the descriptor of
the agent's line; WIRE is the path of wire.py. The root is an overlay over this machine's file system, with the files of
an image's /usr/lib/minigts. When this process is killed, everything in it ends, since it is process 1.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OWN = Path("usr/lib/minigts")
CLONE_NEWCGROUP = 0x02000000
MS_BIND, MS_REC = 4096, 16384

libc = ctypes.CDLL(None, use_errno=True)


def call(result: int) -> None:
    """Raise OSError if a call of the C library has failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    target.mkdir(parents=True, exist_ok=True)
    call(libc.mount(source.encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()))


def enter_group(group: Path) -> None:
    """Enter the group, which processes here then see as the root of all groups."""
    (group / "cgroup.procs").write_text("0")
    call(libc.unshare(CLONE_NEWCGROUP))


def lay_own_files(layer: Path, wire: Path) -> None:
    (layer / OWN).mkdir(parents=True)
    for file, name in ((HERE / "agent.py", "agent.py"), (HERE / "probe.py", "probe"), (wire, wire.name)):
        copy = Path(shutil.copy(file, layer / OWN / name))
        copy.chmod(0o755)


def make_root(directory: Path, wire: Path) -> Path:
    mount("tmpfs", directory, "tmpfs", options="mode=755")
    layer, upper, work, root = (directory / part for part in ("layer", "upper", "work", "root"))
    lay_own_files(layer, wire)
    upper.mkdir()
    work.mkdir()
    mount("overlay", root, "overlay", options=f"lowerdir={layer}:/,upperdir={upper},workdir={work}")
    mount("proc", root / "proc", "proc")
    mount("sysfs", root / "sys", "sysfs")
    mount("cgroup2", root / "sys/fs/cgroup", "cgroup2")
    mount("/dev", root / "dev", flags=MS_BIND | MS_REC)
    mount("tmpfs", root / "run", "tmpfs", options="mode=755")
    mount("tmpfs", root / "tmp", "tmpfs", options="mode=1777")
    return root


def serve(line: int) -> None:
    sys.path.insert(0, f"/{OWN}")
    import agent

    os.write(line, agent.wire.HELLO)
    agent.Agent(line).serve()


def main() -> None:
    wire, directory, group = map(Path, sys.argv[1:4])
    line = int(sys.argv[4])
    enter_group(group)
    os.chroot(make_root(directory, wire))
    os.chdir("/")
    serve(line)


if __name__ == "__main__":
    main()
