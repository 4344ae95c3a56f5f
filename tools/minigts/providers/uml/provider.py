"""Provider `uml`: every host a User-Mode Linux kernel, one process of the caller's; no root, no KVM."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from minigts.errors import EnvironmentLacks, HostFailed, MinigtsError
from minigts.providers.base import Result
from minigts.providers.uml import client, guest, image, kernel, process
from minigts.providers.uml.kernel import Machine
from minigts.providers.uml.supervisor import Launch
from minigts.topology.plan import Plan

PUT_TIMEOUT_S = 120.0
PACKED = "packed.tar"
UNPACK = """
from=$(mktemp -d)
mount -t hostfs -o "hostfs=$1" none "$from"
mkdir -p "$3" && tar -x --no-same-owner -C "$3" -f "$from/$2" || failed=yes
umount "$from"
rmdir "$from"
[ -z "${failed:-}" ]
"""
"""A guest reads from a directory of this machine many times quicker than from its control line."""


class UmlProvider:
    """See `providers.base.Provider`. The run directory holds every socket, disk and log of the lab."""

    name = "uml"

    def __init__(self, rundir: Path) -> None:
        self.rundir = rundir

    def missing(self) -> list[str]:
        return kernel.missing(hosts=1) + image.missing()

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        names = [host.name for host in plan.hosts]
        if process.supervisor(self.rundir) is None:
            _refuse_processors(plan)
            _refuse_memory(plan)
            ready = image.ensure(progress)
            guest.start(self.rundir, _launch(plan, ready))
        try:
            guest.wait(self.rundir, names, progress)
        except MinigtsError:
            process.end(self.rundir)
            raise

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> Result:
        return client.run(self.rundir, host, argv, timeout_s=timeout_s, check=check, stdin=stdin, on_output=on_output)

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        directory = self.rundir / "hosts" / host
        if not directory.is_dir():
            raise HostFailed(f"there is no host {host} in this lab")
        with tempfile.TemporaryDirectory(dir=directory, prefix="put.") as shared:
            with tarfile.open(Path(shared) / PACKED, mode="w") as archive:
                archive.add(source, arcname=target.name, filter=_owned_by_root)
            argv = ["sh", "-euc", UNPACK, "sh", shared, PACKED, str(target.parent)]
            self.run(host, argv, timeout_s=PUT_TIMEOUT_S)

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, host, argv)

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        console = self.rundir / "hosts" / host / "console.log"
        if console.exists():
            shutil.copyfile(console, into / "console.log")
        try:
            said = self.run(host, ["dmesg"], timeout_s=10, check=False).stdout
        except HostFailed as error:
            said = f"{error}\n"
        (into / "dmesg.log").write_text(said)

    def processes(self) -> tuple[int, ...]:
        supervisor = process.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)

    def kernels(self) -> dict[str, int]:
        """The process of this machine that is each host's kernel; its guests' programs are below it."""
        return process.kernels(self.rundir)

    def down(self) -> None:
        problems: list[Exception] = [MinigtsError(text) for text in process.end(self.rundir)]
        if problems:
            raise ExceptionGroup(f"lab {self.rundir.name} is not down", problems)


def _refuse_processors(plan: Plan) -> None:
    several = [host.name for host in plan.hosts if host.cpus > 1]
    if several:
        raise EnvironmentLacks(
            f"{', '.join(several)}: a uml kernel has one processor; write `cpus: 1` or choose another provider"
        )


def _refuse_memory(plan: Plan) -> None:
    lacking = kernel.missing(len(plan.hosts))
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))


def _launch(plan: Plan, ready: image.Image) -> Launch:
    machines = tuple(Machine(host.name, host.memory_mb, tuple(port.mac for port in host.ports)) for host in plan.hosts)
    ends: dict[str, list[tuple[str, int]]] = {link.name: [] for link in plan.links}
    for host in plan.hosts:
        for index, port in enumerate(host.ports):
            ends[port.link].append((host.name, index))
    return Launch(ready.boot, ready.root, machines, tuple((pair[0], pair[1]) for pair in ends.values()))


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
