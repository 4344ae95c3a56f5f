"""The common part of providers whose hosts run an agent; a supervisor keeps a line to each host's agent."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar

from minigts import paths
from minigts.errors import MinigtsError
from minigts.foreign import Foreign, content, file_name
from minigts.machine import beneath
from minigts.providers import archive
from minigts.providers.agent import client, lab_processes
from minigts.providers.agent.patience import Conditions
from minigts.providers.archive import Copy
from minigts.providers.base import CommandResult
from minigts.providers.real_time import RealTime

T = TypeVar("T")
PACE_S = 0.004
DIAGNOSIS_TIMEOUT_S = 30.0
COPY_TIMEOUT_S = 3600.0
LOGS = PurePosixPath("/var/log")
"""The directory on hosts where the container engine and the overlays' daemons log (provision/overlays)."""
MOST_LOG_BYTES = 8 << 20
"""Bytes kept of the end of each log. All logs of a host's programs together may have eight times as many."""
MOST_LOGS = 64
"""How many logs of a host's programs are kept."""
PACK_LOGS = """
cd "$1"; set -- "$2" ./*.log
[ -e "$2" ] || exit 0
most=$1 to=$(mktemp -d); shift
for log; do tail -c "$most" "$log" >"$to/$log" || rm -f "$to/$log"; done
tar -c -C "$to" . || failed=yes
rm -rf "$to"
[ -z "${failed:-}" ]
"""
"""A script that packs the ends of the logs in $1. It follows links, since a container's log is in the engine's own
directory."""


class AgentProvider(RealTime):
    """See `providers.base.Provider`. Clients reach a host at hosts/NAME/control.sock in the run directory."""

    kernel_log_argv: tuple[str, ...] = ("dmesg",)
    """The command that prints a host's kernel log."""

    def __init__(self, rundir: Path) -> None:
        self.rundir = rundir

    @property
    def pace_s(self) -> float:
        return PACE_S

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
        return self._run(host, argv, timeout_s=timeout_s, check=check, stdin=stdin, on_output=on_output)

    def _run(self, host: str, argv: Sequence[str], **settings: Any) -> CommandResult:
        """`client.run` with this provider's `Conditions` of the host."""
        return client.run(self.rundir, host, argv, conditions=self._conditions(host), **settings)

    def _conditions(self, host: str) -> Conditions:
        """The conditions for every wait for this host."""
        return Conditions()

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        self.unpack_on(host, target.parent, partial(archive.pack, source, target))

    def get(self, host: str, source: PurePosixPath, target: Path) -> Copy:
        return self.archive_of(host, source, lambda packed: archive.unpack(host, packed, target))

    def archive_of(self, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], T]) -> T:
        """See `Provider.archive_of`; the archive comes over the host's line."""
        with tempfile.TemporaryFile(dir=self.rundir) as packed:
            self.stream(host, archive.packing(source), archive.Counted(host, packed).write, COPY_TIMEOUT_S)
            packed.seek(0)
            return read(packed)

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        raise NotImplementedError

    def stream(
        self,
        host: str,
        argv: Sequence[str],
        take: Callable[[bytes], object],
        timeout_s: float,
        look: Callable[[], object] | None = None,
    ) -> None:
        """Run a command and pass its stdout to `take` as it arrives. `look` is called about once a second; an error
        that it or `take` raises ends the command. Raises CommandFailed and HostFailed.
        """
        self._run(
            host,
            argv,
            timeout_s=timeout_s,
            check=True,
            stdin=b"",
            on_output=None,
            turn=self._turn(),
            on_stdout=take,
            on_look=look,
        )

    def _turn(self) -> int | None:
        """The `turn` for `client.run`."""
        return None

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, host, argv, conditions=self._conditions(host))

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        return client.converse(self.rundir, host, argv, terminal=terminal, conditions=self._conditions(host))

    def logs(self, host: str) -> Mapping[str, Path]:
        """The log files of a host on this machine, by name; they need not exist."""
        return {paths.CONSOLE_LOG: self.rundir / "consoles" / host / paths.CONSOLE_LOG}

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for name, log in self.logs(host).items():
            try:
                copy_end(log, into / name)
            except FileNotFoundError:
                continue
            except OSError as error:  # the other logs are still written
                paths.write_whole(into / name, f"{log}: {error.strerror or error}\n")
        try:
            text = self.run(host, self.kernel_log_argv, timeout_s=DIAGNOSIS_TIMEOUT_S, check=False).stdout
        except MinigtsError as error:
            paths.write_whole(into / "dmesg.log", f"{error}\n")
        else:
            paths.write_whole(into / "dmesg.log", content(text))
            self._programs_logs(host, into)

    def _programs_logs(self, host: str, into: Path) -> None:
        """Copy the logs of the engine and the overlay's programs from the host; none if the host does not answer."""
        with tempfile.TemporaryDirectory(dir=self.rundir, prefix="logs.") as place:
            packed = Path(place) / "packed"
            try:
                with packed.open("wb") as file:
                    take = archive.Counted(host, file, 8 * MOST_LOG_BYTES).write
                    argv = ["sh", "-euc", PACK_LOGS, "sh", str(LOGS), str(MOST_LOG_BYTES)]
                    self.stream(host, argv, take, DIAGNOSIS_TIMEOUT_S)
                with packed.open("rb") as file:
                    archive.unpack(host, file, Path(place) / "logs")
                found = beneath.listing(Path(place) / "logs").files
            except (MinigtsError, OSError):  # such as for an impossible file name
                return
            for name in [each for each in found if each.endswith(".log")][:MOST_LOGS]:
                if not os.path.lexists(own := into / file_name(Foreign(name))):
                    copy_end(Path(place) / "logs" / name, own)

    def processes(self) -> tuple[int, ...]:
        supervisor = lab_processes.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)


def copy_end(source: Path, target: Path) -> None:
    """Copy a plain file that a host can make arbitrarily long: only its last MOST_LOG_BYTES, after a line that says how
    much was left out. The copy replaces what is at `target`, a link itself. Raises OSError.
    """
    with beneath.plain_file(source.parent, source.name) as file, paths.replacing(target) as copy:
        if (left_out := os.fstat(file.fileno()).st_size - MOST_LOG_BYTES) > 0:
            copy.write(f"[minigts has left out {left_out} bytes before this]\n".encode())
            file.seek(left_out)
        copy.write(file.read(MOST_LOG_BYTES))
