"""What providers have in common whose hosts are reached by the image's agent: a supervisor keeps a line to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from minigts.providers.agent import client, process
from minigts.providers.base import Result

PACE_S = 0.004


class AgentProvider:
    """See `providers.base.Provider`. A host's line ends in hosts/NAME/control.sock of the run directory."""

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

    def processes(self) -> tuple[int, ...]:
        supervisor = process.supervisor(self.rundir)
        return () if supervisor is None else (supervisor,)
