"""The common part of providers whose hosts run an agent; a supervisor keeps a line to each host's agent."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from minigts import paths
from minigts.errors import MinigtsError
from minigts.foreign import content
from minigts.providers import archive
from minigts.providers.agent import client, lab_processes
from minigts.providers.agent.patience import Conditions
from minigts.providers.base import Result
from minigts.providers.real_time import RealTime

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
    ) -> Result:
        return self._run(host, argv, timeout_s=timeout_s, check=check, stdin=stdin, on_output=on_output)

    def _run(self, host: str, argv: Sequence[str], **settings: Any) -> Result:
        """`client.run` with this provider's `Conditions` of the host."""
        return client.run(self.rundir, host, argv, conditions=self._conditions(host), **settings)

    def _conditions(self, host: str) -> Conditions:
        """The conditions for every wait for this host."""
        return Conditions()

    def get(self, host: str, source: PurePosixPath, target: Path) -> None:
        """See `Provider.get`; the archive comes over the host's line."""
        with tempfile.TemporaryFile(dir=target.parent) as packed:
            self.stream(host, archive.packing(source), archive.Counted(host, packed).write, COPY_TIMEOUT_S)
            packed.seek(0)
            archive.unpack(host, packed, target)

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
                (into / name).write_text(f"{log}: {error.strerror}\n")
        try:
            text = self.run(host, self.kernel_log_argv, timeout_s=DIAGNOSIS_TIMEOUT_S, check=False).stdout
        except MinigtsError as error:
            (into / "dmesg.log").write_text(f"{error}\n")
        else:
            (into / "dmesg.log").write_text(content(text))
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
            except (MinigtsError, OSError):  # such as for an impossible file name
                return
            for log in sorted((Path(place) / "logs").glob("*.log"))[:MOST_LOGS]:
                if not (into / log.name).exists() and log.is_file() and not log.is_symlink():
                    shutil.copyfile(log, into / log.name)

    def processes(self) -> tuple[int, ...]:
        supervisor = lab_processes.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)


def copy_end(source: Path, target: Path) -> None:
    """Copy a file that a host can make arbitrarily long: only its last MOST_LOG_BYTES, after a line that says how much
    was left out. Raises OSError.
    """
    with source.open("rb") as file, target.open("wb") as copy:
        if (left_out := os.fstat(file.fileno()).st_size - MOST_LOG_BYTES) > 0:
            copy.write(f"[minigts has left out {left_out} bytes before this]\n".encode())
            file.seek(left_out)
        copy.write(file.read(MOST_LOG_BYTES))
