"""What providers have in common whose hosts are reached by the image's agent: a supervisor keeps a line to each."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from minigts.errors import MinigtsError
from minigts.providers import archive
from minigts.providers.agent import client, process
from minigts.providers.agent.patience import Conditions
from minigts.providers.base import Result
from minigts.providers.machine_time import OnMachineTime

PACE_S = 0.004
DIAGNOSIS_TIMEOUT_S = 30.0
COPY_TIMEOUT_S = 3600.0
LOGS = PurePosixPath("/var/log")
"""Where an overlay's phases have the engine and the daemons write (provision/overlays)."""
MOST_LOG_BYTES = 8 << 20
"""Of each log, of which there is the end, and of all of a host's programs' together eight times that."""
MOST_LOGS = 64
"""How many programs' logs a host has."""
PACK_LOGS = """
cd "$1"; set -- "$2" ./*.log
[ -e "$2" ] || exit 0
most=$1 to=$(mktemp -d); shift
for log; do tail -c "$most" "$log" >"$to/$log" || rm -f "$to/$log"; done
tar -c -C "$to" . || failed=yes
rm -rf "$to"
[ -z "${failed:-}" ]
"""
"""What a link leads to is taken: a container's log is in the engine's own place."""


class AgentProvider(OnMachineTime):
    """See `providers.base.Provider`. A host's line ends in hosts/NAME/control.sock of the run directory."""

    kernel_log_argv: tuple[str, ...] = ("dmesg",)
    """What prints a host's kernel log there."""

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
        """`client.run` with what this provider knows of the host."""
        return client.run(self.rundir, host, argv, conditions=self._conditions(host), **settings)

    def _conditions(self, host: str) -> Conditions:
        """What goes for whoever waits for this host's answers."""
        return Conditions()

    def get(self, host: str, source: PurePosixPath, target: Path) -> None:
        """Over the host's line."""
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
        """Run a command and hand over what it says on stdout. `look` is called about each second, and what it or `take`
        raises ends the command. Raises CommandFailed, and HostFailed.
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
        """See `client.run`."""
        return None

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, host, argv, conditions=self._conditions(host))

    def converse(self, host: str, argv: Sequence[str], *, terminal: tuple[int, int] | None = None) -> socket.socket:
        return client.converse(self.rundir, host, argv, terminal=terminal, conditions=self._conditions(host))

    def logs(self, host: str) -> Mapping[str, Path]:
        """The files on this machine that tell of a host, which need not be there, by what each is called."""
        return {"console.log": self.rundir / "consoles" / host / "console.log"}

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for name, log in self.logs(host).items():
            try:
                copy_end(log, into / name)
            except FileNotFoundError:
                continue
            except OSError as error:  # what cannot be read must not keep the rest from being told
                (into / name).write_text(f"{log}: {error.strerror}\n")
        try:
            text = self.run(host, self.kernel_log_argv, timeout_s=DIAGNOSIS_TIMEOUT_S, check=False).stdout
        except MinigtsError as error:
            (into / "dmesg.log").write_text(f"{error}\n")
        else:
            (into / "dmesg.log").write_text(text)
            self._programs_logs(host, into)

    def _programs_logs(self, host: str, into: Path) -> None:
        """What the engine and the overlay's programs write down on the host itself; nothing of one that answers not."""
        with tempfile.TemporaryDirectory(dir=self.rundir, prefix="logs.") as place:
            packed = Path(place) / "packed"
            try:
                with packed.open("wb") as file:
                    take = archive.Counted(host, file, 8 * MOST_LOG_BYTES).write
                    argv = ["sh", "-euc", PACK_LOGS, "sh", str(LOGS), str(MOST_LOG_BYTES)]
                    self.stream(host, argv, take, DIAGNOSIS_TIMEOUT_S)
                with packed.open("rb") as file:
                    archive.unpack(host, file, Path(place) / "logs")
            except (MinigtsError, OSError):  # as for a name that no file may have
                return
            for log in sorted((Path(place) / "logs").glob("*.log"))[:MOST_LOGS]:
                if not (into / log.name).exists() and log.is_file() and not log.is_symlink():
                    shutil.copyfile(log, into / log.name)

    def processes(self) -> tuple[int, ...]:
        supervisor = process.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)


def copy_end(source: Path, target: Path) -> None:
    """Copy a file that a host may make as long as it likes: no more of it than its last MOST_LOG_BYTES, below a line
    that says so. Raises OSError.
    """
    with source.open("rb") as file, target.open("wb") as copy:
        if (left_out := os.fstat(file.fileno()).st_size - MOST_LOG_BYTES) > 0:
            copy.write(f"[minigts has left out {left_out} bytes before this]\n".encode())
            file.seek(left_out)
        copy.write(file.read(MOST_LOG_BYTES))
