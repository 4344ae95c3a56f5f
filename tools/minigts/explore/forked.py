"""Starts pytest by a fork of a process that has loaded it, with what tests of labs use: loading both takes some seconds
of a processor, which each seed would pay anew.

That process runs as `python -P -m minigts.explore.forked`. It reads a line of JSON for each start, writes the id of the
new process, and once that has ended its exit code, a number on a line each. It ends with its input. Strings have the
same hashes in all of its children.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from select import select
from typing import IO, Any, NoReturn

from minigts import paths
from minigts.errors import MinigtsError
from minigts.language import documents
from minigts.machine import shell

LOADED = ("minigts.testing.plugin", "minigts.testing.tested_lab", "minigts.testing.course")
ENDS_IN_S = 5.0
"""How long the process may take to end once its input has."""
_idle: list[_Forking] = []
"""The processes of this one that have no test to wait for."""


class Forked:
    """A pytest that was started, the leader of a process group of its own; as `subprocess.Popen`, as far as it goes."""

    stdin: IO[bytes] | None = None

    def __init__(self, forking: _Forking) -> None:
        self._forking = forking
        self.pid = forking.answer(None)
        self._code: int | None = None

    def poll(self) -> int | None:
        with suppress(TimeoutError):
            return self.wait(0.0)
        return None

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit code, negative for a signal's number. Raises TimeoutError."""
        if self._code is None:
            self._code = self._forking.answer(timeout_s)
            _idle.append(self._forking)
        return self._code


def start(words: Sequence[str], *, output: Path, env: Mapping[str, str], cwd: Path) -> Forked:
    """Start pytest with these words in a directory; `env` is added to this process's environment. What it prints is
    added to `output`. Raises MinigtsError, OSError."""
    while _idle:
        forking = _idle.pop()
        if forking.process.poll() is None:
            break
    else:
        forking = _Forking()
    forking.ask({"words": list(words), "output": str(output), "env": {**os.environ, **env}, "cwd": str(cwd)})
    return Forked(forking)


class _Forking:
    """The process that forks."""

    def __init__(self) -> None:
        root = ":".join(filter(None, (str(paths.import_root()), os.environ.get("PYTHONPATH", ""))))
        read, write = os.pipe()
        with os.fdopen(write, "wb") as output:
            argv = [sys.executable, "-P", "-m", "minigts.explore.forked"]
            self.process = shell.start(
                argv,
                output=output,
                errors=subprocess.DEVNULL,
                stdin=subprocess.PIPE,
                env={"PYTHONPATH": root, "PYTHONHASHSEED": "0"},
            )
        self._answers = os.fdopen(read, "rb", buffering=0)
        atexit.register(self._end)

    def ask(self, request: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, timeout_s: float | None) -> int:
        """The next number. Raises TimeoutError; MinigtsError when the process has ended."""
        if not select([self._answers], [], [], timeout_s)[0]:
            raise TimeoutError("it has not ended")
        said = self._answers.readline()
        if not said.endswith(b"\n"):
            raise MinigtsError("the process that starts pytest has ended")
        return int(said)

    def _end(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDS_IN_S)


def _load() -> None:
    """Load what can be loaded. What is wrong with the rest is said by each pytest that is started."""
    for name in (*LOADED, *(found.module for found in entry_points(group="pytest11"))):
        with suppress(Exception):
            importlib.import_module(name)
    if "_hypothesis_pytestplugin" in sys.modules:
        importlib.import_module("hypothesis")  # which its plugin imports at the end of any run
    gc.freeze()  # else the first collection in each child would copy every page


def _become(request: Mapping[str, Any]) -> NoReturn:
    """Run pytest in this new process."""
    output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.path.insert(0, request["cwd"])
    sys.argv = ["pytest", *request["words"]]
    sys.dont_write_bytecode = True
    import pytest  # noqa: PLC0415

    raise SystemExit(pytest.main())


def main() -> None:
    answers = os.dup(1)
    requests = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    _load()
    for line in requests:
        child = shell.fork()
        if not child:
            os.close(answers)
            requests.close()
            _become(documents.document(line))
        os.write(answers, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
