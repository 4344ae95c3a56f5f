"""What providers have in common whose hosts are reached by the image's agent: a supervisor keeps a line to each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from minigts.errors import MinigtsError
from minigts.providers.agent import client, process
from minigts.providers.base import Result
from minigts.providers.machine_time import OnMachineTime

PACE_S = 0.004
DIAGNOSIS_TIMEOUT_S = 30.0


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
        return client.run(self.rundir, host, argv, timeout_s=timeout_s, check=check, stdin=stdin, on_output=on_output)

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return client.attach(self.rundir, host, argv)

    def logs(self, host: str) -> Mapping[str, Path]:
        """The files on this machine that tell of a host, which need not be there, by what each is called."""
        return {"console.log": self.rundir / "hosts" / host / "console.log"}

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for name, log in self.logs(host).items():
            try:
                shutil.copyfile(log, into / name)
            except FileNotFoundError:
                continue
            except OSError as error:  # what cannot be read must not keep the rest from being told
                (into / name).write_text(f"{log}: {error.strerror}\n")
        try:
            text = self.run(host, self.kernel_log_argv, timeout_s=DIAGNOSIS_TIMEOUT_S, check=False).stdout
        except MinigtsError as error:
            text = f"{error}\n"
        (into / "dmesg.log").write_text(text)

    def processes(self) -> tuple[int, ...]:
        supervisor = process.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)
