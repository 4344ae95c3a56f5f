"""The contract of a provider, which brings a plan up as a lab, reaches its hosts, and takes it down."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Annotated, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from minigts.dataplane.wire import Wire, WireState
from minigts.errors import HostFailed
from minigts.foreign import Foreign
from minigts.machine.parallel import Together
from minigts.machine.progress import Progress
from minigts.providers.course import RecordedCourse
from minigts.topology.fields import LEAST_SHARE
from minigts.topology.plan.plan import Plan

if TYPE_CHECKING:
    from minigts.providers.archive import Copy

T = TypeVar("T")

State = Literal["ok", "note", "slow", "missing"]
"""Of what a provider needs: there; there, with something that the user should know; there, and slower; not there."""


@dataclass(frozen=True)
class DoctorFinding:
    """The state of one thing on this machine that a provider needs. `slow` means that it works, at the cost that
    `meaning` names. `remedy` is empty when the state is `ok`.
    """

    name: str
    state: State
    meaning: str
    remedy: str = ""


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended on a host. `seconds` is wall time on this machine. What it printed is the host's own
    word, whoever wrote the command: a host's programs are root's there, and root may be a stranger."""

    host: str
    argv: tuple[str, ...]
    code: int
    stdout: Foreign
    stderr: Foreign
    seconds: float

    def __post_init__(self) -> None:
        """So that a provider that mypy has not read makes no plain text of it."""
        for name in ("stdout", "stderr"):
            object.__setattr__(self, name, Foreign(getattr(self, name)))


@dataclass(frozen=True)
class Supports:
    """The features that a provider's hosts and links have (`supported.names`), and a reason for each that they lack.
    A feature in neither is refused, too.
    """

    features: frozenset[str]
    why_not: Mapping[str, str]


@runtime_checkable
class ChecksMemory(Protocol):
    """A provider that knows how much memory its hosts will take."""

    def require_room(self, plan: Plan, overlays: Sequence[str]) -> None:
        """Raise EnvironmentLacks when this machine lacks the memory for the plan's hosts with any of the overlays.

        The overlays run one after another. Starts nothing; call it before anything is started.
        """
        ...


@runtime_checkable
class OwnProcesses(Protocol):
    """A provider whose hosts are each one process of this machine with its children: what a lab takes of the machine
    can be told beforehand, read, and limited.
    """

    def forecast(self, plan: Plan, overlay: str) -> tuple[str, ...]:
        """How many labs of this plan fit now, and what in it was not tested on this machine; one sentence each."""
        ...

    def kernels(self) -> Mapping[str, int]:
        """The process id of each host that runs, by host."""
        ...

    def limit_to(self, share: Share) -> None:
        """Limit the lab that the next `up` starts to `share`. Raises EnvironmentLacks where this is not possible."""
        ...


@runtime_checkable
class CarriesPrograms(Protocol):
    """A provider whose hosts can have programs from their start, without a copy on each host's own disk."""

    def carry(self, programs: Path, place: PurePosixPath) -> None:
        """Let the hosts of a lab that the next `up` starts have the directory `programs` below `place`, where that is
        worth it; of several calls, the largest. `programs` has a digest of its content for a name."""
        ...


@runtime_checkable
class Restarts(Protocol):
    """A provider that can start one host again while the others run on."""

    def restart(self, host: str) -> None:
        """End a host as a power cut does, though its disk is written out first; start it again on its own disk and
        links, and return when it answers. The caller has to configure it again.
        """
        ...


@runtime_checkable
class Power(Protocol):
    """A provider that can leave one host off, until `restart` starts it, or stop one host's time, while the others run
    on."""

    def kill(self, host: str) -> None:
        """End a host as a power cut does, though its disk is written out first; return when it has ended."""
        ...

    def pause(self, host: str) -> None: ...

    def resume(self, host: str) -> None:
        """Let the host run on. Frames sent to it meanwhile arrive, as far as its ports had room; its clock is late."""
        ...


@runtime_checkable
class DiskFaults(Protocol):
    """A provider whose hosts' disks can be late, fail, and lose what was not flushed, as a seed draws.

    Its methods raise HostFailed for a host that does not answer, or whose kernel has no such disk.
    """

    def cut_power(self, host: str, seed: int) -> None:
        """End a host whose disk has a cache as a power cut does; return when it has ended."""
        ...

    def delay_disk(self, host: str, more_ms: float) -> None:
        """Have each request to the host's disk answered so much later; 0: as it was."""
        ...

    def fail_disk(self, host: str, reads_percent: float, writes_percent: float, seed: int) -> None:
        """Have these shares of the requests for files' contents fail; two zeros: none does."""
        ...


@runtime_checkable
class HearsOfComputing(Protocol):
    """A provider whose labs' time stands still while a program computes, until that program has computed for so long
    without a system call that the lab's time passes with it."""

    def computing(self, host: str) -> tuple[str, ...]:
        """The host's programs for which that has happened, such as `python3[72]`; nothing runs on the host for this."""
        ...


@dataclass(frozen=True)
class WorkOfHost:
    """What a host has taken of this machine's processors since it started."""

    seconds: float
    programs: Mapping[int, float]
    """Processor seconds of each program that runs, by the id of its process on this machine."""
    waited_s: float = 0.0
    """For how long its kernel and its programs were ready, and this machine's processors did something else."""


@runtime_checkable
class SeesWork(Protocol):
    """A provider that sees from outside which of a host's programs work; nothing runs on the host for this."""

    def work(self) -> Mapping[str, WorkOfHost]:
        """The work of each host that runs, by host."""
        ...

    def program(self, process: int) -> Foreign:
        """The words with which the program of a process was started; empty if they are not to be had."""
        ...


@runtime_checkable
class HearsOfMemory(Protocol):
    """A provider that learns when a host's kernel kills processes because memory has run out."""

    def memory_kills(self, host: str) -> tuple[str, ...]:
        """The processes killed since the host started, such as `bash[812]`; nothing runs on the host for this."""
        ...


@runtime_checkable
class Edits(Protocol):
    """A provider that can add hosts and links to a lab that is up, and remove them, while the other hosts run on."""

    def require_room_for(self, plan: Plan) -> None:
        """Raise EnvironmentLacks when this machine lacks what the hosts take that `plan` has more than the lab. Starts
        nothing."""
        ...

    def alter(self, plan: Plan, progress: Progress) -> frozenset[str]:
        """Change the running lab to `plan`: end machines that are not in it, start new ones, and restart those whose
        ports have changed, each on its own disk. Return the new and the restarted ones, which have to be configured,
        when they answer. Links that stay keep carrying traffic. A call for the same plan after one that was interrupted
        completes it, except for machines that were ended and not started again: the caller restarts those. Raises
        HostFailed for a machine that does not start.
        """
        ...


class Share(BaseModel):
    """What a whole lab may take of this machine. None means no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    processors: Annotated[float, Field(ge=LEAST_SHARE, le=1024)] | None = None
    """Processors that the lab's processes may use together: 0.5 is half of one."""
    memory_mb: Annotated[int, Field(ge=1, le=1 << 30)] | None = None
    """Memory of the lab's processes together, in MB of 2^20 bytes."""

    @property
    def in_words(self) -> str:
        """Text such as `0.5 processors, 2048 MB`; empty without a limit."""
        parts = [f"{self.processors:g} processors"] if self.processors is not None else []
        return ", ".join(parts + ([f"{self.memory_mb} MB"] if self.memory_mb is not None else []))


@runtime_checkable
class KeepsDisks(Protocol):
    """A provider whose hosts' disks can be kept after the hosts have ended. `up` starts a lab on kept disks when their
    note (`note`) is in its run directory, and raises InputError when they do not fit the image that hosts use now.
    """

    def note(self, into: Path) -> datetime | None:
        """Write into the directory `into` all that `up` needs besides the disks. Returns the time of day in the lab;
        None where it is this machine's. Raises HostFailed when the lab's time cannot be known any more.
        """
        ...

    def disks(self) -> Mapping[str, Path]:
        """The file that holds each machine's disk, by machine; also when nothing runs."""
        ...

    def frozen(self) -> AbstractContextManager[None]:
        """A context in which no host runs and the disks of the hosts that answer are written out, so that the disk
        files can be copied as of one moment. Hosts run on afterwards, unless they have been taken down.
        """
        ...


@runtime_checkable
class RunsSideBySide(Protocol):
    """A provider of labs in virtual time whose clients need no threads."""

    def run_side_by_side(
        self, commands: Mapping[str, Sequence[str]], *, timeout_s: float
    ) -> Mapping[str, CommandResult | HostFailed]:
        """Run a command on each of these hosts, from one moment on until each has ended; return what came of each, of
        any exit code. The caller can be halted meanwhile (agent/halting.py). Raises CommandTimeout."""
        ...


@runtime_checkable
class Forks(Protocol):
    """A provider whose labs can become two."""

    def fork(self, plan: Plan, into: Path, seed: int) -> None:
        """Have the lab become two at this moment: the other one is in the new run directory `into`, and goes on as this
        one does. With a seed other than 0 it draws other random numbers from now on. It ends with this one at the
        latest. Raises HostFailed and EnvironmentLacks."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A provider that builds or tests something before its first lab; `up` does this unless it has been done."""

    def prepare(self, progress: Progress, meanwhile: Callable[[], object] | None = None) -> None:
        """Build and test what a lab needs, unless this has been done. Raises EnvironmentLacks and HostFailed.

        `meanwhile` is called where the build still takes minutes and labs in real time can be brought up already; what
        it raises ends the build.
        """
        ...


@runtime_checkable
class Exports(Protocol):
    """A provider that can take what another machine built, in one file, instead of building it."""

    def is_built(self) -> bool:
        """Whether everything that a lab needs is built."""
        ...

    def parts_key(self) -> str:
        """A word for what a lab needs, built or not: other recipes have another one."""
        ...

    def pack(self, target: Path, progress: Progress) -> str:
        """Pack everything that is built into the new file `target`; return its SHA-256 sum. Raises EnvironmentLacks."""
        ...

    def unpack(self, packed: str, sha256: str | None, progress: Progress) -> tuple[str, ...]:
        """Install what such a file has and this machine lacks, and return its names; `packed` is a path, or an http or
        https address, which needs the sum. Raises InputError for another sum or for a file of other recipes."""
        ...


@runtime_checkable
class Provenance(Protocol):
    """A provider whose hosts start from parts in the cache, and which can say where those are."""

    def part_directories(self) -> Mapping[str, Path]:
        """The directory, in the cache, of each part: image, kernel, clock. These are the parts of the lab if it is up,
        otherwise those that a new lab would use, without any that is not built yet.
        """
        ...


@runtime_checkable
class HasConditions(Protocol):
    """A provider whose hosts have something of this machine that none of their parts decides."""

    def conditions(self) -> Mapping[str, str]:
        """What the hosts of the lab that is up have of this machine, in words; without what cannot be read."""
        ...


@runtime_checkable
class CarriesLinks(Protocol):
    """A provider whose links themselves delay, limit and lose frames: no qdisc is set or removed in its hosts.

    A wire is named by the port that sends into it: a machine and its interface, `("ams", "eth1")`.
    """

    def set_wires(self, wires: Mapping[tuple[str, str], Wire]) -> None:
        """Set these wires, all at one moment; others stay as they are. Frames that are on a wire stay on it.

        A wire with a seed starts its random numbers again, even when its settings have not changed.
        """
        ...

    def wires(self) -> Mapping[tuple[str, str], WireState]:
        """Read back the state of the wire at every port of the lab."""
        ...


CARRIERS = "links whose ends lose their carrier"


@dataclass(frozen=True)
class Carrier:
    """The carrier that a machine's interface should have."""

    machine: str
    interface: str
    mac: str
    on: bool


@runtime_checkable
class SetsCarriers(Protocol):
    """A provider that can take the carrier from a machine's interface, as if its cable were pulled. Where the provider
    has wires, a wire's settings have its port's carrier, and this is not used."""

    def carriers_lack(self) -> str:
        """Why the interfaces of the lab that is up cannot lose their carrier; empty if they can."""
        ...

    def set_carriers(self, carriers: Sequence[Carrier]) -> None:
        """Give interfaces of machines that are on a carrier, or take it."""
        ...


@runtime_checkable
class SeesStorms(Protocol):
    """A provider that notices frames which go round in a loop of bridges at one moment of the lab, and drops them."""

    def storms(self) -> Mapping[tuple[str, str], int]:
        """By the ports that sent such frames, how many were dropped there since the lab came up."""
        ...


@dataclass(frozen=True)
class SentFrame:
    """A frame that a machine has sent over a link, when it left the machine: nanoseconds of time of day in the lab."""

    time_ns: int
    machine: str
    interface: str
    content: bytes


class Tap(Protocol):
    """Every frame of a lab since it was made."""

    def end(self) -> Sequence[SentFrame]:
        """All frames so far, in the order of time. Raises HostFailed when some are missing."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Tapped(Protocol):
    """A provider whose links can be tapped, which no host notices."""

    def tap(self) -> Tap: ...


@runtime_checkable
class HasCourse(Protocol):
    """A provider whose lab has a clock of its own, which keeps a hash over all that passes it."""

    def course(self) -> RecordedCourse:
        """The lab's course up to now."""
        ...

    def recording(self) -> Path:
        """The file with every event of the lab, where these are recorded."""
        ...


@runtime_checkable
class OnThisMachine(Protocol):
    """A provider whose hosts may be processes of this machine that use its files."""

    @property
    def on_this_machine(self) -> bool:
        """Whether a command on a host of a new lab runs on this machine, with its files."""
        ...


@runtime_checkable
class Streams(Protocol):
    """A provider that can exchange input and output with a command on a host while it runs."""

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        """Start a command and return its connection, which carries frames of `agent.wire` on channel 1 both ways. The
        command ends when the connection is closed. Until then, a lab with its own clock runs in real time. `terminal`
        gives the command a terminal of so many rows and columns.
        """
        ...


class Provider(Protocol):
    """One lab, identified by its run directory. A provider object is cheap and holds no process.

    `run`, `put`, `get` and `attach` may be called from several threads at once and need only a lab that is up; another
    process may have brought it up. Errors: `EnvironmentLacks` when `missing()` is not empty, `HostFailed` for a host
    that does not answer, `CommandFailed` and `CommandTimeout` from `run`.
    """

    name: str
    about: str
    """What its hosts are, in half a line."""
    rundir: Path
    engine: Literal["docker", "namespace"]
    """What runs containers on a host: Docker, or, on a host that is itself a namespace, further namespaces."""

    @property
    def supports(self) -> Supports:
        """The optional features that its labs have. `supported.require` refuses topologies that ask for others."""
        ...

    @property
    def pace_s(self) -> float:
        """Seconds between echo requests: often enough to keep the hosts on a path awake, too few to slow them."""
        ...

    def missing(self) -> list[str]:
        """What this machine lacks to run this provider, one sentence each with the remedy; empty when it can run."""
        ...

    def findings(self) -> Iterable[DoctorFinding]:
        """What `minigts doctor` examines on this machine for this provider, in the order to show it."""
        ...

    def up(self, plan: Plan, progress: Progress) -> None:
        """Bring up every host and link of `plan`; return when every host answers.

        A second call for the same plan changes nothing. After a failure everything that was started is taken down.
        """
        ...

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
        """Run `argv` as root on `host`; end it and all its children after `timeout_s`."""
        ...

    def now_s(self) -> float:
        """The lab's time in seconds since an arbitrary start: this machine's, unless the lab has its own clock."""
        ...

    def sleep_until(self, moment_s: float) -> None:
        """Return when `now_s` has reached `moment_s`. A lab with its own clock returns at exactly that moment, and its
        clock then stands still for a thread that has a turn (`together`). The lab's time passes during the wait.
        """
        ...

    def together(self) -> AbstractContextManager[Together]:
        """A context in which calls that use the lab's hosts can run in parallel; it ends when all have ended."""
        ...

    def kernel_of(self, host: str) -> str:
        """The machine whose kernel a host or switch has: itself, unless it is a light host, which shares one."""
        ...

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        """Copy a file, or a directory with its content, to `target` on `host`; modes are kept."""
        ...

    def get(self, host: str, source: PurePosixPath, target: Path) -> Copy:
        """Copy a file of `host`, or a directory with its content, to `target` on this machine, which must not exist.

        Modes are kept, except setuid, setgid and the sticky bit; devices, pipes, sockets and links that lead out of the
        copy are left out, and `target` is no link. Raises CommandFailed when `source` does not exist.
        """
        ...

    def archive_of(self, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], T]) -> T:
        """Call `read` with an archive of what `get` would copy, and return what it returns. The archive is the host's
        word, which `providers.archive` checks. Raises as `get` does."""
        ...

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        """Have `host` unpack the archive that `write` writes into an empty file, into the directory `above`, which is
        made if it is missing; return what `write` returns. What it raises is raised before the host has done anything.
        """
        ...

    def attach(self, host: str, argv: Sequence[str]) -> int:
        """Run `argv` on `host` with the caller's terminal; return its exit code."""
        ...

    def diagnose(self, host: str, into: Path) -> None:
        """Write logs that may explain a failure of `host` (console, kernel log) into the directory `into`."""
        ...

    def processes(self) -> tuple[int, ...]:
        """The processes of this machine that, with all their children, make up the lab; only the lab uses them."""
        ...

    def down(self) -> None:
        """Take the lab down with what its run directory records, also after a crash; a second call does nothing.

        Touches only what the lab recorded as its own, and tries every step. Raises one ExceptionGroup at the end if
        any step failed.
        """
        ...
