"""A private libvirt, for machines where none runs: virtlogd and libvirtd in namespaces without a connection outside.

Its configuration, sockets, pool and logs are in one directory of the state root. All its processes are in one pid
namespace, so that ending it also ends every machine, network and helper that it started, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from urllib.parse import quote

from minigts import paths
from minigts.errors import EnvironmentLacks, HostFailed, MinigtsError
from minigts.machine import shell
from minigts.providers.agent import lab_processes

START_DEADLINE_S = 30.0
FOLDERS = ("etc", "run", "lib", "cache", "log", "pool")
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


def directory() -> Path:
    """The directory of the private libvirt, whether or not it runs."""
    return paths.state_root() / "libvirt"


def uri() -> str:
    """The private libvirt's address for clients (libvirt.org/uri.html)."""
    return f"qemu+unix:///system?socket={quote(str(directory() / 'run' / 'libvirt-sock'))}"


def keeper() -> int | None:
    """The id of one of its processes inside its namespaces; None when it does not run."""
    ours = Path("/proc/self/ns/net").stat().st_ino
    inside = [pid for pid in lab_processes.marked_pids(directory()) if _network(pid) not in (ours, None)]
    return min(inside, default=None)


def start(group: str = "") -> None:
    """Start it, unless it runs already, and wait until it answers. Raises EnvironmentLacks, HostFailed.

    Only root may use it. With `group`, members of that group may use it, too, from within its mount, network and pid
    namespaces, where it has the system libvirt's address: by this the tests act as plain users of a desktop.
    """
    if keeper() is not None:
        return
    lacking = missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    place = directory()
    lab_processes.end(place)
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    for folder in FOLDERS:
        (place / folder).mkdir(mode=0o700, exist_ok=True)
    script = paths.project_root() / "provision" / "libvirt" / "private_libvirt.sh"
    log_file = place / "daemons.log"
    log_file.touch(mode=0o600)
    with log_file.open("wb") as log:
        command = [*NAMESPACES, str(script), str(place), *([group] if group else [])]
        shell.start(command, output=log.fileno(), env={lab_processes.MARK: str(place)})
    try:
        _wait_until_it_answers()
        _define_pool()
    except BaseException:
        stop()
        raise


def stop() -> None:
    """End it with all that it runs, and remove its directory; a second call does nothing."""
    problems: list[Exception] = [MinigtsError(text) for text in lab_processes.end(directory())]
    if problems:
        raise ExceptionGroup("minigts' own libvirt does not end", problems)
    shutil.rmtree(directory(), ignore_errors=True)


def missing() -> list[str]:
    """What this machine lacks to run a private libvirt, one sentence each."""
    lacking = []
    if os.geteuid() != 0:
        lacking.append("only root can start a private libvirt; use the system's: sudo systemctl start libvirtd")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    needed = (("libvirtd", "libvirt-daemon-system"), ("virtlogd", "libvirt-daemon-system"), ("dnsmasq", "dnsmasq-base"))
    lacking += [
        f"{program} is not installed: apt-get install {package}"
        for program, package in (*needed, ("virsh", "libvirt-clients"))
        if shutil.which(program, path=path) is None
    ]
    return lacking


def _wait_until_it_answers() -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while shell.run(["virsh", "-c", uri(), "uri"], timeout_s=START_DEADLINE_S, check=False).code != 0:
        if not lab_processes.marked_pids(directory()) or time.monotonic() > deadline:
            log = (directory() / "daemons.log").read_text(errors="replace").splitlines()[-8:]
            raise HostFailed("minigts' own libvirt does not answer; its log ends" + "".join(f"\n    {x}" for x in log))
        time.sleep(0.1)


def _define_pool() -> None:
    """Make the pool `default`: vagrant-libvirt would make it in a directory that this libvirt sees elsewhere."""
    pool = ["virsh", "-c", uri(), "pool-create-as", "default", "dir", "--target", str(directory() / "pool")]
    shell.run(pool, timeout_s=START_DEADLINE_S)


def _network(pid: int) -> int | None:
    """The network namespace of a process; None when it has ended."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None
