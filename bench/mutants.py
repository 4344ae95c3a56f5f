"""Would the unit tests notice? A room of the program gets one fault at a time, and the room's tests are run.

A copy of the checkout gets the faults. A fault that no test notices is printed: it is a gap in the tests, or changes
nothing.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables

sys.path.insert(0, str(stage.PROJECT / "tests"))

import python_packages
from faults import Fault, faults

if TYPE_CHECKING:
    import pytest

    from called import Calls

PACKAGE = Path("tools/minigts")
TESTS = ("tests/unit", "tests/topologies")
LEFT_OUT = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "target", ".hypothesis", ".venv")
NEEDED = ("hypothesis", "jmespath", "numpy", "pydantic", "pytest", "ruamel.yaml", "typer.testing")
"""Modules that are imported once, by the process that forks for each trial."""
APART = "MINIGTS_MUTANTS_APART"
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""A program with a fault may signal other processes; in this namespace it sees only its own."""
OURS = ("minigts", "bench", "faults", "called")
RECORDING_S = 1800.0
CACHE = "cache"
FOR_THE_BENCH = ("MINIGTS_LOCK", "MINIGTS_MODULE")
"""What `bench/run` tells the launcher, which a launcher that a test starts is not to hear."""
WAITS = 3
"""The wall-clock limit of a trial as a multiple of its processor limit: other programs may be busy, and tests wait."""
NOT_SWAPPED = 75
"""The exit code of a trial that needs a new process, because its fault is outside of functions."""
MORE: dict[str, tuple[str, ...]] = {
    "judge": ("test_experiment_claims.py", "test_comparisons.py", "test_certificate.py", "test_statistics.py"),
    "topology": ("test_bad_files.py",),
}
"""Unit tests that concern a room without importing it."""
NOT_FORKED = ("test_jobs_on_workers.py",)
"""Dask's workers do not start in a fork of a process, and are waited for."""
COLUMNS = ("room", ">faults possible", ">tried", ">noticed", ">share")


@dataclass(frozen=True)
class Trial:
    module: str
    fault: str
    noticed: bool
    seconds: float


@dataclass(frozen=True)
class Room:
    name: str
    tests: list[Path]
    """The files of tests for a fault in what runs while the package is imported, which concerns every test."""
    callers: list[Path]
    """Those for other faults: of these the tests that call the function. Both from the project's top."""
    possible: int
    """How many faults it can be given."""
    chosen: list[tuple[Path, Fault]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "rooms", nargs="+", metavar="ROOM", help="a folder or module of tools/minigts, as judge or judge/loss"
    )
    arguments.add_argument(
        "--faults",
        type=int,
        default=50,
        metavar="N",
        help="the number of faults for each room, chosen at random; 0: all",
    )
    arguments.add_argument("--seed", type=int, default=1, help="the seed of that choice")
    arguments.add_argument("--line", type=int, help="only faults in this line of a module")
    arguments.add_argument(
        "--tests", nargs="+", default=[], metavar="FILE", help="the tests to run, instead of those that import the room"
    )
    arguments.add_argument(
        "--every-test",
        action="store_true",
        help="try each fault by all unit tests that call its function, those of other rooms, too: slower",
    )
    arguments.add_argument(
        "--limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="processor seconds after which a fault counts as noticed",
    )
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    for room in given.rooms:
        if not _modules(room):
            arguments.error(f"no room {room} in {PACKAGE}")
    for name in given.tests:
        if name not in _test_files():
            arguments.error(f"no file {name} in {' or '.join(TESTS)}")
    _be_apart()
    stage.perform(lambda: _bench(given))


def _be_apart() -> None:
    """Start this bench again in its own namespace, with the Python that has the tests' packages."""
    if os.environ.get(APART):
        return
    environment = python_packages.environment("requirements-dev.lock")
    if not (environment / "made").exists():
        raise SystemExit(
            "it needs what tests need; `./minigts test --collect-only -q tests/lab` makes their environment"
        )
    own = ("--user", "--map-root-user") if os.geteuid() else ()
    os.environ[APART] = "yes"
    os.execvp(
        NAMESPACE[0],
        [*NAMESPACE, *own, str(environment / "bin" / "python"), "-P", "-m", "bench.mutants", *sys.argv[1:]],
    )


def _bench(given: argparse.Namespace) -> None:
    for name in NEEDED:
        importlib.import_module(name)
    given.out.mkdir(parents=True, exist_ok=True)
    out = given.out.resolve()
    asked = [_asked(room, given) for room in given.rooms]
    with tempfile.TemporaryDirectory(prefix="minigts-mutants-") as scratch:
        copy = Path(scratch) / "checkout"
        shutil.copytree(stage.PROJECT, copy, ignore=LEFT_OUT, symlinks=True)
        _lend_environments(Path(scratch) / CACHE)
        trials: dict[str, list[Trial]] = {each.name: [] for each in asked}
        for room, trial in _tried(copy, asked, given.limit):
            trials[room.name].append(trial)
            _keep(out, room, given.seed, trials[room.name])
    rows = []
    for room in asked:
        tried, noticed = len(trials[room.name]), sum(each.noticed for each in trials[room.name])
        rows.append((room.name, *map(str, (room.possible, tried, noticed)), f"{noticed / max(1, tried):.0%}"))
    tables.show_table("", COLUMNS, rows)


def _lend_environments(cache: Path) -> None:
    """Tests that start the launcher have the virtual environments of this machine, and nothing else of its cache."""
    cache.mkdir()
    for each in paths.cache_root().glob("venv-*"):
        (cache / each.name).symlink_to(each)


def _asked(name: str, given: argparse.Namespace) -> Room:
    files = [_test_files()[file] for file in given.tests] or _tests_of(name)
    return Room(name, files, _every_test() if given.every_test else files, *_chosen(name, given))


def _keep(out: Path, room: Room, seed: int, trials: Sequence[Trial]) -> None:
    document = {"room": room.name, "possible": room.possible, "seed": seed, "trials": [vars(each) for each in trials]}
    paths.write_whole(out / f"mutants-{room.name.replace('/', '-')}.json", json.dumps(document, indent=1) + "\n")


def _modules(room: str) -> list[Path]:
    place = stage.PROJECT / PACKAGE / room
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [each.relative_to(stage.PROJECT) for each in found if each.is_file()]


def _tests_of(room: str) -> list[Path]:
    """The unit tests that import a part of the room, and those that are known to test it."""
    name = room.split("/", maxsplit=1)[0]
    own = re.compile(
        rf"^(from minigts\.{name}\b|from minigts import .*\b{name}\b|import minigts\.{name}\b)", re.MULTILINE
    )
    return [
        file
        for file in _every_test()
        if file.name in MORE.get(name, ()) or own.search((stage.PROJECT / file).read_text(encoding="utf-8"))
    ]


def _every_test() -> list[Path]:
    return sorted(file for name, file in _test_files().items() if name not in NOT_FORKED)


def _test_files() -> dict[str, Path]:
    """All files of unit tests, by name."""
    found = (file for folder in TESTS for file in sorted((stage.PROJECT / folder).rglob("test_*.py")))
    return {file.name: file.relative_to(stage.PROJECT) for file in found}


def _chosen(room: str, given: argparse.Namespace) -> tuple[int, list[tuple[Path, Fault]]]:
    """The number of all faults, and those to be tried."""
    every = [(module, fault) for module in _modules(room) for fault in faults((stage.PROJECT / module).read_bytes())]
    every = [each for each in every if given.line in (None, each[1].line)]
    if given.faults and len(every) > given.faults:
        every, count = sorted(random.Random(given.seed).sample(every, given.faults)), len(every)
        return count, [each for each in every if _is_python(*each)]
    return len(every), [each for each in every if _is_python(*each)]


def _is_python(module: Path, fault: Fault) -> bool:
    try:
        ast.parse(fault.into((stage.PROJECT / module).read_bytes()))
    except SyntaxError:
        return False
    return True


def _tried(copy: Path, rooms: Sequence[Room], limit_s: float) -> Iterator[tuple[Room, Trial]]:
    """The trial of each fault, with its room: in a process that has collected the tests of all rooms where that is
    possible, otherwise in a new one."""
    console.note(f"{len(_files_of(rooms))} files of tests, without a fault")
    answers, tell = os.pipe()
    child = os.fork()
    if child == 0:
        _end_with(partial(_in_one_session, copy, rooms, limit_s, tell))
    os.close(tell)
    later = []
    with open(answers, encoding="utf-8") as lines:  # noqa: PTH123 - a pipe's end
        for line, (room, module, fault) in zip(lines, _every(rooms), strict=False):
            tests, noticed, seconds, allowed_s = json.loads(line)
            if noticed is None:
                later.append((room, module, fault, tests, allowed_s))
            else:
                yield room, _said_of(module, fault, noticed, seconds)
    if os.waitpid(child, 0)[1]:
        said = _said(copy).read_text(errors="replace")[-2000:]
        raise SystemExit(f"without any fault all tests fail, or they take more than {RECORDING_S:g} s\n{said}")
    for test in _left_out(copy).read_text().splitlines():
        console.note(f"left out, since it fails without a fault: {test}")
    console.note(f"{len(later)} faults take a new process each")
    for room, module, fault, tests, allowed_s in later:
        begun = time.monotonic()
        noticed = _notices(copy, module, fault, tests, allowed_s)
        yield room, _said_of(module, fault, noticed, time.monotonic() - begun)


def _files_of(rooms: Iterable[Room]) -> list[Path]:
    return sorted({file for room in rooms for file in (*room.tests, *room.callers)})


def _every(rooms: Iterable[Room]) -> Iterator[tuple[Room, Path, Fault]]:
    return ((room, module, fault) for room in rooms for module, fault in room.chosen)


def _said_of(module: Path, fault: Fault, noticed: bool, seconds: float) -> Trial:
    trial = Trial(
        str(module.relative_to(PACKAGE)),
        fault.in_words((stage.PROJECT / module).read_bytes()),
        noticed,
        round(seconds, 1),
    )
    console.note(f"{'noticed' if noticed else 'SURVIVED'}  {trial.module}:{trial.fault}")
    return trial


def _in_one_session(copy: Path, rooms: Sequence[Room], limit_s: float, tell: int) -> int:
    """In the fork: collect the tests, run them once to see what they call, and try each fault in a fork of that.

    Tells a line of each fault: its tests, whether they notice it, or null where that takes a new process, the seconds
    that it took, and those that a trial may compute.
    """
    _enter(copy)
    sys.dont_write_bytecode = False  # the trials in new processes read what is compiled here, and write none
    from called import Calls, Loop, Recorder, failing  # noqa: PLC0415

    recorder = Recorder(copy / PACKAGE)
    names = [each.relative_to(PACKAGE.parent).with_suffix("") for room in rooms for each in _modules(room.name)]
    recorder.import_all(".".join(name.parts).removesuffix(".__init__") for name in names)

    def recorded(session: pytest.Session) -> int:
        left_out = failing(session)
        recorder.calls.forget(left_out)
        _recording(copy).write_text(json.dumps(recorder.calls.document()))
        _left_out(copy).write_text("".join(f"{test}\n" for test in left_out))
        return 0 if recorder.calls.of_tests else 1

    def body(session: pytest.Session) -> None:
        if not _passes(partial(recorded, session), RECORDING_S):
            session.shouldfail = "without any fault"
            raise session.Failed(session.shouldfail)
        session.config.pluginmanager.unregister(recorder)
        calls = Calls(**json.loads(_recording(copy).read_text()))
        for room, module, fault in _every(rooms):
            answer = _quick_trial(copy, session, calls, room, module, fault, limit_s)
            os.write(tell, (json.dumps(answer) + "\n").encode())

    return _pytest(_files_of(rooms), recorder, Loop(body))


def _quick_trial(
    copy: Path, session: pytest.Session, calls: Calls, room: Room, module: Path, fault: Fault, limit_s: float
) -> tuple[list[str], bool | None, float, float]:
    from called import all_pass, file_of, function_at, in_a_body, swap  # noqa: PLC0415

    source, begun = (stage.PROJECT / module).read_bytes(), time.monotonic()
    function = function_at(source, fault.line, str(module.relative_to(PACKAGE)))
    own = {str(file) for file in (room.tests if calls.is_everywhere(function) else room.callers)}
    tests = [test for test in calls.tests_of(function) if file_of(test) in own]
    allowed_s = limit_s + sum(calls.seconds[test] for test in tests)
    if function is None or not tests or not in_a_body(source, fault.line):
        return tests, None if tests else False, 0.0, allowed_s

    def tried() -> int:
        try:
            if swap(copy / module, fault.into(source)) == 0:
                return NOT_SWAPPED
        except ValueError:
            return NOT_SWAPPED
        return 0 if all_pass(session, tests) else 1

    code = _ended(tried, allowed_s)
    again = code == NOT_SWAPPED or (code == 0 and calls.early(function))
    return tests, None if again else code != 0, time.monotonic() - begun, allowed_s


def _notices(copy: Path, module: Path, fault: Fault, tests: Sequence[str], limit_s: float) -> bool:
    """Whether any of these tests fails in a new process, for which the copy has the fault meanwhile."""
    place, times = copy / module, (copy / module).stat()
    source = place.read_bytes()
    try:
        place.write_bytes(fault.into(source))
        return not _passes(partial(_run, copy, tests), limit_s)
    finally:
        place.write_bytes(source)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))  # its earlier bytecode is valid again


def _passes(tests: Callable[[], int], limit_s: float) -> bool:
    """Whether the function returns 0 in a fork of this process."""
    return _ended(tests, limit_s) == 0


def _ended(tests: Callable[[], int], limit_s: float) -> int:
    """The function's exit code in a fork of this process; 1 when it exceeds its processor or wall-clock time."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit_s), ceil(limit_s) + 5))
        _end_with(tests)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    deadline = time.monotonic() + WAITS * limit_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    _end_group(child)
    os.waitpid(child, 0)
    return 1


def _end_with(tests: Callable[[], int]) -> NoReturn:
    """In the fork: run the tests, and end so that nothing of this process is done twice."""
    code = 1
    try:
        os.setpgid(0, 0)
        code = tests()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _run(copy: Path, tests: Sequence[str]) -> int:
    """In the fork: run these tests of the copy, up to the first failure."""
    _enter(copy)
    from called import Only, file_of  # noqa: PLC0415

    return _pytest(dict.fromkeys(map(file_of, tests)), Only(tests))


def _enter(copy: Path) -> None:
    """Prepare for a test of the copy: its modules, its folders, and output to nowhere."""
    for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
        del sys.modules[name]
    own = [str(copy / "tools"), str(copy / "tests")]
    sys.path[:] = [*own, *(each for each in sys.path if not each.startswith(str(stage.PROJECT)))]
    os.chdir(copy)
    os.environ |= {
        "PYTHONPATH": str(copy / "tools"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy.parent / "hypothesis"),
        "MINIGTS_CACHE": str(copy.parent / CACHE),
        "MINIGTS_STATE": str(copy.parent / "state"),
        "MINIGTS_DATA": str(copy.parent / "data"),
    }
    for name in FOR_THE_BENCH:
        os.environ.pop(name, None)
    sys.dont_write_bytecode = True
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(_said(copy), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    os.dup2(1, 2)


def _pytest(files: Iterable[object], *plugins: object) -> int:
    import pytest  # noqa: PLC0415

    options = ["-x", "-q", "--no-header", "--all-tests", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = int(pytest.main([*options, *map(str, files)], plugins=[*plugins]))
    sys.stdout.flush()
    return code


def _recording(copy: Path) -> Path:
    """The file with the functions that each test has called."""
    return copy.parent / "calls.json"


def _left_out(copy: Path) -> Path:
    """The file with the tests that fail without a fault."""
    return copy.parent / "left-out"


def _said(copy: Path) -> Path:
    """The file with the output of the latest tests."""
    return copy.parent / "said"


if __name__ == "__main__":
    main()
