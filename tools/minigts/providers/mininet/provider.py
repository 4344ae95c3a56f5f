"""Provider `mininet`: hosts and switches are namespaces of one kernel, made by Mininet.

The kernel is this machine's where possible, otherwise a User-Mode Linux kernel of the image. Either has an agent, which
is reached like that of a uml host and runs commands on hosts by `nsenter`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter

from minigts import paths
from minigts.errors import CommandFailed, CommandTimeout, HostFailed, MinigtsError
from minigts.foreign import Foreign
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.providers.agent import client, lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.base import CARRIERS, CommandResult, DoctorFinding, Supports
from minigts.providers.mininet import doctor, kernel
from minigts.providers.uml import doctor as uml_doctor
from minigts.providers.uml import facts, memory
from minigts.providers.uml.build import image
from minigts.providers.uml.run import booting, transfer
from minigts.providers.uml.run.command_line import RETURNED, GuestKernel
from minigts.providers.uml.run.command_line import missing as uml_missing
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan.plan import Plan
from minigts.topology.sysctls import BASELINE, CONGESTION, path_of

T = TypeVar("T")
MACHINES = "machines.json"
"""The file in the run directory with the process of each host and switch, by name; it exists once the network is up."""
MACHINES_LIMIT_BYTES = 1 << 20
_Machines = TypeAdapter(dict[str, Annotated[int, Field(gt=1, strict=True)]])
PROGRAM = "mininet/network.py"
BUILD_TIMEOUT_S = 120.0
ENTER = ("nsenter", "--net", "--mount", "--uts", "--ipc", "--root", "--wd", "--target")
BELOW = "each host's own file system lies over that of the one kernel that its hosts share"


class MininetProvider(AgentProvider):
    """See `providers.base.Provider`."""

    name = "mininet"
    about = "Mininet: network namespaces of one kernel, with Open vSwitch"
    engine: Literal["docker", "namespace"] = "namespace"
    kernel_log_argv = ("sh", "-c", "dmesg; ip -s link; ss -anp")

    supports = Supports(
        frozenset({"an interface eth0"}),
        {
            "a share of a processor": "its hosts share one kernel, whose work a host's quota would not count",
            "several processors": "its hosts share all processors of one kernel, and none has its own number",
            "memory of its own": "its hosts share the memory of one kernel, and none is limited to a part of it",
            "a way out": "the kernel that its hosts share is connected to nothing but its own links",
            "sysctls of a kernel of its own": "its hosts share one kernel, which has one value for all of them",
            "the queue discipline pie": "the kernel that its hosts share may be the one of provider uml, without it",
            "packages": BELOW,
            "a kernel by name": "its hosts share one kernel",
            "an image of its own": BELOW,
            CARRIERS: "its links are pairs of veth: an end has no carrier when the other one is down, and that one "
            "has no IPv6 addresses and no routes then",
            "name servers": "its hosts may have the programs of this machine, where a name server need not be",
        },
    )

    def missing(self) -> list[str]:
        return [] if not kernel.natively_missing() else uml_missing() + image.missing()

    def findings(self) -> Iterable[DoctorFinding]:
        reasons = kernel.natively_missing()
        return doctor.findings(reasons, uml_doctor.kernel_findings(facts.gather()) if reasons else ())

    def require_room(self, plan: Plan, overlays: Sequence[str]) -> None:
        """See `ChecksMemory`. In this machine's kernel hosts need hardly more memory than their programs."""
        if kernel.natively_missing():
            memory.require_memory([memory.Kernel(kernel.NAME, kernel.memory_mb(plan), "whole")], overlays)

    def up(self, plan: Plan, progress: Progress) -> None:
        count = len(plan.machines)
        if lab_processes.supervisor(self.rundir) is None or not (self.rundir / MACHINES).exists():
            try:
                self._start_kernel(plan, progress)
                progress(f"Mininet: building {count} machines and {len(plan.links)} links")
                self._build(plan)
            except BaseException:
                self.down()
                raise
        progress(f"{count} of {count} hosts answer")

    def _start_kernel(self, plan: Plan, progress: Progress) -> None:
        lab_processes.remove(self.rundir / MACHINES)
        reasons = kernel.natively_missing()
        if reasons:
            progress(f"mininet in a User-Mode Linux kernel, since {reasons[0]}")
            self.require_room(plan, [memory.BARE])
            ready = image.ensure(progress)
            machine = GuestKernel(kernel.NAME, kernel.memory_mb(plan), ())
            launch = Launch(ready.boot, ready.root, (machine,), ())
        else:
            progress("mininet in this machine's own kernel")
            launch = Launch(
                self.rundir, self.rundir, (GuestKernel(kernel.NAME, 0, ()),), (), instead=kernel.enclosure(self.rundir)
            )
        booting.start(self.rundir, launch)
        booting.wait(AgentProvider(self.rundir), [kernel.NAME], lambda _: None)

    def _build(self, plan: Plan) -> None:
        program = (paths.project_root() / "provision" / PROGRAM).read_bytes()
        wanted = json.dumps(_wanted(plan))
        processes = self._in_kernel(["env", f"MINIGTS_NETWORK={wanted}", kernel.SYSTEM_PYTHON, "-", PROGRAM], program)
        paths.write_whole(self.rundir / MACHINES, json.dumps(documents.document(processes)))
        if not self._native:
            self._allow(sorted({each.value for host in plan.hosts for each in host.sysctls if each.name == CONGESTION}))

    def _allow(self, algorithms: Sequence[str]) -> None:
        """Let hosts have these congestion controls as their own: a network namespace but the first may have a
        restricted one, such as DCTCP, only once the first has had it (`tcp_set_default_congestion_control`)."""
        if algorithms:
            script = f'for each; do echo "$each" >{path_of(CONGESTION)}; done'
            self._in_kernel(["sh", "-euc", script, "sh", *algorithms, BASELINE[CONGESTION]])

    def _in_kernel(self, argv: Sequence[str], stdin: bytes = b"") -> Foreign:
        """The output of a command that runs in the kernel, outside the hosts' namespaces."""
        return client.run(
            self.rundir, kernel.NAME, argv, timeout_s=BUILD_TIMEOUT_S, check=True, stdin=stdin, on_output=None
        ).stdout

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        inside = [*self._enter(host), *argv]
        try:
            result = client.run(
                self.rundir,
                kernel.NAME,
                inside,
                timeout_s=timeout_s,
                check=False,
                stdin=stdin,
                on_output=on_output,
            )
        except CommandTimeout as error:
            raise CommandTimeout(host, argv, timeout_s, error.out, error.err) from None
        except HostFailed as error:
            raise HostFailed(f"host {host}: its kernel has ended ({error})") from error
        if check and result.code != 0:
            raise CommandFailed(host, argv, result.code, result.stdout, result.stderr)
        return replace(result, host=host, argv=tuple(argv))

    def archive_of(self, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], T]) -> T:
        self._enter(host)
        returned = self.rundir / "shared" / kernel.NAME / RETURNED
        if not self._native and transfer.can_return(returned):
            return transfer.archive_of(self, host, returned, source, read)
        return super().archive_of(host, source, read)

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        self._enter(host)
        directory = None if self._native else self.rundir / "shared" / kernel.NAME
        return transfer.unpack_on(self, host, directory, above, write)

    def stream(
        self,
        host: str,
        argv: Sequence[str],
        take: Callable[[bytes], object],
        timeout_s: float,
        look: Callable[[], object] | None = None,
    ) -> None:
        super().stream(kernel.NAME, [*self._enter(host), *argv], take, timeout_s, look)

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, kernel.NAME, [*self._enter(host), *argv])

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        return client.converse(self.rundir, kernel.NAME, [*self._enter(host), *argv], terminal=terminal)

    def logs(self, host: str) -> Mapping[str, Path]:
        """The logs of the kernel, which all hosts share."""
        return super().logs(kernel.NAME)

    def down(self) -> None:
        problems: list[Exception] = [MinigtsError(text) for text in lab_processes.end(self.rundir)]
        lab_processes.remove(self.rundir / MACHINES)
        try:
            kernel.remove_group(self.rundir)
        except OSError as error:
            problems.append(error)
        if problems:
            raise ExceptionGroup(f"lab {self.rundir.name} is not down", problems)

    @property
    def on_this_machine(self) -> bool:
        return not kernel.natively_missing()

    @property
    def _native(self) -> bool:
        return (self.rundir / kernel.GROUP).exists()

    def _enter(self, host: str) -> list[str]:
        try:
            machines = _Machines.validate_python(
                documents.document(paths.read_whole(self.rundir / MACHINES, MACHINES_LIMIT_BYTES))
            )
        except FileNotFoundError:
            raise HostFailed(f"host {host} is not running: there is no host {host} in this lab") from None
        except (OSError, ValueError) as error:
            raise HostFailed(f"host {host} cannot be entered: the lab's {MACHINES} is damaged") from error
        if host not in machines:
            raise HostFailed(f"there is no host {host} in this lab")
        return [*ENTER, str(machines[host]), "--"]


def _wanted(plan: Plan) -> dict[str, object]:
    """The input of provision/mininet/network.py."""
    ends: dict[str, list[str]] = {link.name: [] for link in plan.links}
    for machine in plan.machines:
        for port in machine.ports:
            ends[port.link] += [machine.name, port.name, port.mac]
    return {
        "hosts": [host.name for host in plan.hosts],
        "switches": [switch.name for switch in plan.switches],
        "links": list(ends.values()),
    }
