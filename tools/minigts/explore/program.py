"""The test of an exploration: files and a command, run beside a lab in a process group of its own.

A test is a pytest file with the plugin's fixtures, or a command. It runs in a folder with copies of its files alone, so
that a worker on another machine, or a replay a year later, runs the same.
"""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import IO, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from minigts import paths
from minigts.errors import InputError, Problem
from minigts.explore import forked
from minigts.explore.forked import Forked
from minigts.explore.variables import COURSE, FAILURES, LAB, SEED, WITHOUT
from minigts.machine import shell
from minigts.providers.agent import halting
from minigts.results.folder import LONGEST_NAME, is_name, write_new

WORK, OUTPUT, BIN = "work", "output.txt", "bin"
"""In the folder of a course: the test's working directory, what it prints, programs for PATH."""
MOST_FILES, LARGEST_FILE_BYTES, MOST_WORDS = 200, 4 << 20, 10_000
LOOK_S = 0.05
"""How often it is looked, by this machine's clock, whether the test is to be stopped."""
GIVEN_UP_S = 3600.0
"""How long a test may take by this machine's clock. Most limits are by the lab's (`--longest`)."""
MOST_HASHED = 2**32


def _base64(text: str) -> str:
    data = base64.b64decode(text, validate=True)
    if len(data) > LARGEST_FILE_BYTES:
        raise ValueError(f"a file of a test has at most {LARGEST_FILE_BYTES >> 20} MiB")
    return text


def _file_name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{text[:LONGEST_NAME]!r} is no plain name of a file")
    return text


def _argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("no argument of a command has a null character")
    return text


class ProgramFile(BaseModel):
    """A file of the test: its content in base64, and whether it is a program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: Annotated[str, AfterValidator(_base64)]
    program: bool = False

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.content)


class Program(BaseModel):
    """A test: its words as they are typed, and its files by their names, which have no folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: Annotated[tuple[Annotated[str, AfterValidator(_argument)], ...], Field(min_length=1, max_length=MOST_WORDS)]
    files: Annotated[dict[Annotated[str, AfterValidator(_file_name)], ProgramFile], Field(max_length=MOST_FILES)] = {}

    @property
    def is_pytest(self) -> bool:
        return _is_pytest(self.words[0])

    @property
    def in_words(self) -> str:
        return shlex.join(self.words)

    def argv(self) -> list[str]:
        """The command that runs it in its folder, if it is one."""
        first = self.words[0]
        return [f"./{first}" if first in self.files else first, *self.words[1:]]

    def pytest_words(self) -> list[str]:
        """The words of pytest that runs it in its folder, if it is a pytest file."""
        quiet = ("-q", "--color=no", "-p", "no:cacheprovider", "-p", "no:randomly")
        ignored = ("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning")
        return ["-p", "minigts.testing.plugin", *quiet, *ignored, *self.words]

    def lay(self, place: Path) -> None:
        """Write its files into the folder WORK below `place`, and a program `minigts` into BIN."""
        work = place / WORK
        work.mkdir()
        for name, file in self.files.items():
            write_new(work, name, file.data, 0o755 if file.program else 0o644)
        if self.is_pytest and "pytest.ini" not in self.files:
            (work / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
        (place / BIN).mkdir()
        program = place / BIN / "minigts"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m minigts "$@"\n', encoding="utf-8")
        program.chmod(0o755)


def read(words: Sequence[str], beside: Sequence[Path]) -> Program:
    """The test of these words, with its own file and those `beside`. Raises InputError."""
    if not words:
        raise InputError("explore: name a test, as in test_writes.py, or a command after --")
    first, (path, colons, rest) = words[0], words[0].partition("::")
    own = Path(path if _is_pytest(first) else first)
    files: dict[str, ProgramFile] = {}
    if own.is_file():
        conftest = own.parent / "conftest.py"
        found = [own, *([conftest] if _is_pytest(first) and conftest.is_file() else []), *beside]
        first = f"{own.name}{colons}{rest}"
    elif _is_pytest(first) or "/" in first:
        raise InputError([Problem(path, 0, "no such file")])
    elif shutil.which(first) is None:
        raise InputError(f"explore: there is no program {first!r} on this machine, and no such file")
    else:
        found = [*beside]
    for each in found:
        if each.name in files and files[each.name] != _file(each):
            raise InputError(f"explore: two files are called {each.name}; the test's folder has room for one")
        files[each.name] = _file(each)
    if len(files) > MOST_FILES:
        raise InputError(f"explore: {len(files)} files are more than the {MOST_FILES} that a test may have")
    if _is_pytest(first):
        _require_python(own)
    elif own.is_file() and not files[own.name].program:
        raise InputError([Problem(str(own), 0, f"is no program: chmod +x {own}, or name what runs it")])
    return Program(words=(first, *words[1:]), files=files)


def _is_pytest(first: str) -> bool:
    """Whether the first word is a pytest file, or a test in one: `test_x.py::test_y`."""
    name = Path(first.partition("::")[0]).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _file(path: Path) -> ProgramFile:
    try:
        data = paths.read_whole(path, LARGEST_FILE_BYTES)
        program = bool(path.stat().st_mode & stat.S_IXUSR)
    except OSError as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error.strerror or error}")]) from error
    return ProgramFile(content=base64.b64encode(data).decode(), program=program)


def _require_python(path: Path) -> None:
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line, why = getattr(error, "lineno", 0) or 0, getattr(error, "msg", str(error))
        raise InputError([Problem(str(path), line, f"is no Python: {why}")]) from error


def environment(place: Path, lab: str, seed: int, without: Sequence[int] = ()) -> Mapping[str, str]:
    """The variables of a test beside that lab, which leaves some of its own acts out."""
    return {
        COURSE: str(place),
        SEED: str(seed),
        LAB: lab,
        WITHOUT: ",".join(map(str, without)),
        "PATH": f"{place / BIN}:{_own('PATH')}",
        "PYTHONPATH": ":".join(filter(None, (str(paths.import_root()), _own("PYTHONPATH")))),
        "PYTHONHASHSEED": str(seed % MOST_HASHED),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _own(name: str) -> str:
    return os.environ.get(name, "")


def run(
    test: Program,
    place: Path,
    variables: Mapping[str, str],
    stopped: Event,
    held_s: Callable[[], float] = lambda: 0.0,
) -> int | None:
    """Run the test, whose files lie below `place`, and return its exit code; None if it was `stopped`, or given up: the
    seconds in which it was held do not count. Nothing of its process group is left. Raises InputError when it cannot be
    started."""
    begun = time.monotonic()
    with (place / OUTPUT).open("wb") as output:
        try:
            process = _started(test, place, variables, output)
        except OSError as error:
            raise InputError(f"{test.words[0]}: cannot be started: {error.strerror or error}") from error
        try:
            while not stopped.is_set() and time.monotonic() - begun - held_s() < GIVEN_UP_S:
                with suppress(subprocess.TimeoutExpired, TimeoutError):
                    return process.wait(LOOK_S)
            return None
        finally:
            shell.kill_group(process)


def _started(
    test: Program, place: Path, variables: Mapping[str, str], output: IO[bytes]
) -> Forked | subprocess.Popen[bytes]:
    if test.is_pytest:
        words = test.pytest_words()
        if halting.VARIABLE in variables:
            words = ["--capture=sys", *words]  # else what is printed goes to one file of all that the test becomes
        return forked.start(words, output=place / OUTPUT, env=variables, cwd=place / WORK)
    return shell.start(test.argv(), output=output, env=variables, cwd=place / WORK)


def kept_files(place: Path) -> Iterator[tuple[str, bytes]]:
    """The files that the test has left in its course's folder, but for those of the course itself. Large ones, links,
    folders and what has no plain name (`is_name`) are left out."""
    own = (OUTPUT, FAILURES)
    for path in sorted(place.iterdir())[:MOST_FILES]:
        if path.name not in own and is_name(path.name) and path.is_file() and not path.is_symlink():
            with suppress(OSError):
                yield path.name, paths.read_whole(path, LARGEST_FILE_BYTES)
