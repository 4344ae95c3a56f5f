"""What a provider is: something that brings a plan up, answers for its hosts, and takes it down."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from minigts.dataplane.wire import Wire, WireState
from minigts.machine.together import Together
from minigts.topology.fields import LEAST_SHARE
from minigts.topology.plan import Plan

State = Literal["ok", "slow", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing of this machine that was looked at for a provider. `slow`: it works, at the cost that `meaning` names.
    `remedy` is empty when `ok`.
    """

    name: str
    state: State
    meaning: str
    remedy: str = ""


@dataclass(frozen=True)
class Result:
    """What a command on a host left behind. `seconds` is wall time seen from this side."""

    host: str
    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Supports:
    """Which features a provider's hosts and links have (`supported.names`), and for each other one why they have not.
    What is in neither is refused, too.
    """

    features: frozenset[str]
    why_not: Mapping[str, str]


@runtime_checkable
class Sized(Protocol):
    """A provider that knows what memory its hosts will take."""

    def require_room(self, plan: Plan, overlays: Sequence[str]) -> None:
        """Raise EnvironmentLacks when this machine has not the memory for the plan's hosts with each of the overlays.

        They come one at a time. Starts nothing, and has to be asked before anything is started.
        """
        ...


@runtime_checkable
class Foresees(Protocol):
    """A provider that knows beforehand what this machine makes of a plan."""

    def foresight(self, plan: Plan, overlay: str) -> tuple[str, ...]:
        """How many labs of it find room now, and what of it this machine is not known to carry; a sentence each."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A provider each of whose hosts is one process of this machine, with all below it: its cost can be read."""

    def kernels(self) -> Mapping[str, int]:
        """Process ids by host, of those that run."""
        ...


@runtime_checkable
class Restarts(Protocol):
    """A provider that can start one host again while the others run on."""

    def restart(self, host: str) -> None:
        """End a host without asking it, as a power cut does, though its disk is written out before; start it again on
        its own disk and links, and return when it answers. It has to be configured anew.
        """
        ...


@runtime_checkable
class Kills(Protocol):
    """A provider that can leave one host off while the others run on, until `restart` starts it."""

    def kill(self, host: str) -> None:
        """End a host without asking it, though its disk is written out before; return when it has ended."""
        ...


@runtime_checkable
class Pauses(Protocol):
    """A provider that can let no time pass for one host while the others run on."""

    def pause(self, host: str) -> None: ...

    def resume(self, host: str) -> None:
        """Let it go on. What it was sent meanwhile comes to it, as far as its ports had room; its clock is behind."""
        ...


@runtime_checkable
class HearsOfComputing(Protocol):
    """A provider in whose labs processor time is free, until a program has used so much of it without a call that the
    lab's time passes with it."""

    def computing(self, host: str) -> tuple[str, ...]:
        """The programs of the host with which it has passed so far, as `python3[72]`; the host is not asked."""
        ...


@runtime_checkable
class HearsOfMemory(Protocol):
    """A provider that hears when a host's kernel ends processes for want of memory."""

    def ended_for_memory(self, host: str) -> tuple[str, ...]:
        """Those that it has ended since it was started, as `bash[812]`; the host is not asked."""
        ...


@runtime_checkable
class Alters(Protocol):
    """A provider that can take hosts and links into a lab that is up, and out of it, while the other hosts run on."""

    def alter(self, plan: Plan, progress: Callable[[str], None]) -> frozenset[str]:
        """Make the lab that of `plan`: end the machines that it has not, start those that are new, and start again,
        each on its own disk, those whose ports are others. Return these and the new ones when they answer: they have
        to be configured. Links that stay carry on. Raises HostFailed for a machine that does not come up.
        """
        ...


class Share(BaseModel):
    """What a whole lab may take of the machine. None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    processors: Annotated[float, Field(ge=LEAST_SHARE, le=1024)] | None = None
    """All of it together, in processors: 0.5 is half of one."""
    memory_mb: Annotated[int, Field(ge=1, le=1 << 30)] | None = None
    """In MB of 2^20 bytes."""

    @property
    def in_words(self) -> str:
        """`0.5 processors, 2048 MB`; empty without a limit."""
        parts = [f"{self.processors:g} processors"] if self.processors is not None else []
        return ", ".join(parts + ([f"{self.memory_mb} MB"] if self.memory_mb is not None else []))


@runtime_checkable
class Shares(Protocol):
    """A provider that can hold a whole lab to a share of the machine."""

    def hand(self, share: Share) -> None:
        """Hold what the next `up` starts to it. Raises EnvironmentLacks where that cannot be."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A provider whose hosts' disks can outlive the hosts. `up` starts a lab on those whose note lies in its run
    directory, and raises InputError when they do not fit what hosts are made of now.
    """

    def note(self, into: Path) -> datetime | None:
        """Write into the directory `into` what `up` needs beside the disks as they are now. Returns the time of day in
        the lab; None where it is this machine's. Raises HostFailed when that cannot be known any more.
        """
        ...

    def disks(self) -> Mapping[str, Path]:
        """The file that holds a machine's disk, by machine, of those that have one. Also when nothing runs."""
        ...

    def standstill(self) -> AbstractContextManager[None]:
        """Within it the disks of hosts that answer are written out, and no host runs: the files are all of one moment,
        and can be copied. Hosts run on after it, however it ends, unless they have been taken down.
        """
        ...


@runtime_checkable
class Prepares(Protocol):
    """A provider with something to build or to try before its first lab, which `up` does when it has not been done."""

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Build and try it, unless that has been done. Raises EnvironmentLacks and HostFailed."""
        ...


@runtime_checkable
class Ships(Protocol):
    """A provider that can have what was built on another machine, in one file, instead of building it."""

    def is_built(self) -> bool:
        """Whether all that a lab takes is there."""
        ...

    def pack(self, target: Path, progress: Callable[[str], None]) -> str:
        """Put all that is built into the new file `target`; its SHA-256 sum. Raises EnvironmentLacks."""
        ...

    def unpack(self, packed: Path, sha256: str, progress: Callable[[str], None]) -> None:
        """Put in place what such a file holds. Raises InputError unless it has that sum and is of the same recipes."""
        ...


@runtime_checkable
class MadeOf(Protocol):
    """A provider whose hosts start from what was built once, and which can say where that lies."""

    def made_of(self) -> Mapping[str, Path]:
        """A directory of the cache, or one in it, for each word: image, kernel, clock. Of the lab, if it is up; else
        what a new one would take, without what is not built yet.
        """
        ...


@runtime_checkable
class CarriesLinks(Protocol):
    """A provider whose links themselves delay, limit and lose: nothing is set in its hosts for that, nor taken off.

    A wire is named by the port that sends into it: a machine and its interface, `("ams", "eth1")`.
    """

    def set_wires(self, wires: Mapping[tuple[str, str], Wire]) -> None:
        """Set these wires, all at one moment; others stay as they are. What is under way on them stays under way.

        One that has a seed begins its random numbers anew, also when it is set as it was.
        """
        ...

    def wires(self) -> Mapping[tuple[str, str], WireState]:
        """Read back what carries the links, for every port of the lab."""
        ...


@runtime_checkable
class OnThisMachine(Protocol):
    """A provider whose hosts may be this machine's own processes, with its own files."""

    @property
    def on_this_machine(self) -> bool:
        """Whether a command on a host of a new lab is one on this machine."""
        ...


@runtime_checkable
class Converses(Protocol):
    """A provider that can talk with a command on a host as long as it runs."""

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        """Start a command, and return the line to it: frames of `agent.wire` on channel 1, both ways. The command ends
        when the line is closed. Where the lab has a clock of its own, a second takes a second until then. With
        `terminal`, its rows and columns, the command has one.
        """
        ...


class Provider(Protocol):
    """One lab, told apart by its run directory: a provider object is cheap and holds no process.

    `run`, `put`, `get` and `attach` may be called from several threads at once and need only a lab that is up, whoever
    brought it up. Errors: `EnvironmentLacks` when `missing()` is not empty, `HostFailed` for a host that does not
    answer, `CommandFailed` and `CommandTimeout` from `run`.
    """

    name: str
    about: str
    """What a host of it is, in half a line."""
    rundir: Path
    engine: Literal["docker", "namespace"]
    """What a host has for containers: Docker, or nothing but what a namespace can do that is a host itself."""

    @property
    def supports(self) -> Supports:
        """What of all that a topology may ask for its labs have. `supported.require` refuses the rest."""
        ...

    @property
    def pace_s(self) -> float:
        """Seconds between echo requests that keep the hosts on a path awake, and are no load that makes them late."""
        ...

    def missing(self) -> list[str]:
        """What this machine lacks to run this provider, a sentence each with its remedy; empty when it can run."""
        ...

    def findings(self) -> Iterable[Finding]:
        """What `minigts doctor` says: everything that it looks at on this machine, in the order to show it."""
        ...

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        """Bring every host and link of `plan` up; return when every host answers.

        A second call for the same plan changes nothing. On failure everything started is taken down again.
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
    ) -> Result:
        """Run `argv` as root on `host`; end it and all its children when `timeout_s` is over."""
        ...

    def now_s(self) -> float:
        """The lab's own time in seconds, from any beginning: this machine's, unless the lab has a clock of its own."""
        ...

    def sleep_until(self, moment_s: float) -> None:
        """Return when `now_s` is that late. On a lab with a clock of its own that is the very moment, and for a thread
        that has a turn (`together`) the clock stands still then. Time passes meanwhile, as while a host is waited for.
        """
        ...

    def together(self) -> AbstractContextManager[Together]:
        """Within it, calls that use the lab's hosts can be made side by side, and it ends when all have ended."""
        ...

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        """Copy a file, or a directory with all that is in it, to `target` on `host`; modes are kept."""
        ...

    def get(self, host: str, source: PurePosixPath, target: Path) -> None:
        """Copy a file of `host`, or a directory with all that is in it, to `target` here, which must not be there.

        Modes are kept, but for setuid, setgid and the sticky bit; devices, pipes and sockets are left out. Raises
        CommandFailed when `source` is not there.
        """
        ...

    def attach(self, host: str, argv: Sequence[str]) -> int:
        """Run `argv` on `host` on the caller's own terminal; return its exit code."""
        ...

    def diagnose(self, host: str, into: Path) -> None:
        """Write what explains a failure of `host` (console, kernel log) into the directory `into`."""
        ...

    def processes(self) -> tuple[int, ...]:
        """Processes of this machine that, with all their children, carry the lab: what they use is the lab's own."""
        ...

    def down(self) -> None:
        """Take the lab down from its run directory alone, also after a crash; a second call does nothing.

        Touches only what the lab recorded as its own, attempts everything, then raises one ExceptionGroup.
        """
        ...
