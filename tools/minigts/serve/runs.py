"""Experiments on the page: their files, the one that runs, and the reports of earlier runs.

One experiment runs at a time, as a process `minigts run` with its own lab; its output is shown as progress.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.errors import InputError
from minigts.machine import shell
from minigts.report.render import PAGE

LINES = 12
PATIENCE_S = 60.0


def names() -> list[str]:
    """The names of the experiments that minigts ships, with the folder of those in one: `classics/bufferbloat`. Those
    in no folder are the first."""
    root = paths.project_root() / "experiments"
    found = (file.relative_to(root).with_suffix("") for file in root.rglob("*.yaml"))
    return [name.as_posix() for name in sorted(found, key=lambda name: (len(name.parts), name))]


def reports(results: Path) -> list[str]:
    """Results folders with a report, the newest first."""
    found = [file for file in results.glob(f"*/{PAGE}") if file.is_file()]
    return [file.parent.name for file in sorted(found, key=lambda file: file.stat().st_mtime, reverse=True)]


def report(results: Path, name: str) -> Path:
    """The report in the results folder of that name. Raises InputError when there is none."""
    if name not in reports(results):
        raise InputError("there is no such report")
    return results / name / PAGE


@dataclass
class Runs:
    """The experiment that this server runs or has run last."""

    results: Path
    name: str | None = None
    code: int | None = None
    said: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    _process: subprocess.Popen[bytes] | None = None
    _following: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def state(self) -> dict[str, Any]:
        return {
            "kind": "runs",
            "experiments": names(),
            "running": self.name if self.running else None,
            "last": self.name,
            "code": self.code,
            "said": list(self.said),
            "reports": reports(self.results),
        }

    def begin(self, name: str) -> None:
        """Run an experiment. Raises InputError when there is none of that name, or one runs already."""
        if name not in names():
            raise InputError("there is no such experiment")
        if self.running:
            raise InputError(f"{self.name} is running; only one experiment runs at a time")
        file = paths.project_root() / "experiments" / f"{name}.yaml"
        self.start(name, ["run", "--quick", "--results", str(self.results), str(file)])

    def start(self, name: str, words: Sequence[str]) -> None:
        self.name, self.code = name, None
        self.said.clear()
        argv = [sys.executable, "-P", "-m", "minigts", *words]
        self._process = shell.start(argv, output=subprocess.PIPE)
        self._following = asyncio.create_task(self._follow(self._process))

    async def _follow(self, process: subprocess.Popen[bytes]) -> None:
        output = process.stdout
        assert output is not None
        while line := await asyncio.to_thread(output.readline):
            self.said.append(line.decode(errors="replace").rstrip())
        self.code = await asyncio.to_thread(process.wait)
        output.close()
        self._process = None

    async def end(self) -> None:
        """Interrupt the experiment, and return when it has taken its lab down."""
        process, following = self._process, self._following
        if process is None or following is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(following), PATIENCE_S)
        except TimeoutError:
            process.kill()
            await following
