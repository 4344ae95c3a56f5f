"""Would the unit tests notice? A room of the program gets one fault at a time, and the tests that concern it are run.

A copy of the checkout takes the faults. One that no test notices is printed: a gap in the tests, or it changes nothing.
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
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables

sys.path.insert(0, str(stage.PROJECT / "tests"))

import python_packages
from faults import Fault, faults

PACKAGE = Path("tools/minigts")
UNIT = Path("tests/unit")
LEFT_OUT = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "target", ".hypothesis", ".venv")
NEEDED = ("hypothesis", "jmespath", "numpy", "pydantic", "pytest", "ruamel.yaml", "typer.testing")
"""Imported once, by the process of which each trial is a fork."""
APART = "MINIGTS_MUTANTS_APART"
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""A program with a fault may signal what it should not: it sees no process but its own."""
MORE: dict[str, tuple[str, ...]] = {
    "judge": ("test_experiment_claims.py", "test_comparisons.py", "test_certificate.py", "test_statistics.py"),
}
"""Unit tests that concern a room and do not import it."""
COLUMNS = ("room", ">faults possible", ">tried", ">noticed", ">share")


@dataclass(frozen=True)
class Trial:
    module: str
    fault: str
    noticed: bool
    seconds: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "rooms", nargs="+", metavar="ROOM", help="a folder or module of tools/minigts, as judge or judge/loss"
    )
    arguments.add_argument(
        "--faults", type=int, default=50, metavar="N", help="tried of each room, chosen at random; 0: all"
    )
    arguments.add_argument("--seed", type=int, default=1, help="of that choice")
    arguments.add_argument("--line", type=int, help="only those of this line, of a module")
    arguments.add_argument(
        "--tests", nargs="+", default=[], metavar="FILE", help="of tests/unit, instead of those that import the room"
    )
    arguments.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="after which a trial counts as noticed"
    )
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="where the figures go")
    given = arguments.parse_args()
    for room in given.rooms:
        if not _modules(room):
            arguments.error(f"no room {room} in {PACKAGE}")
    _be_apart()
    stage.perform(lambda: _bench(given))


def _be_apart() -> None:
    """Begin again in a namespace of its own, by the Python that has what tests need."""
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
    rows = []
    with tempfile.TemporaryDirectory(prefix="minigts-mutants-") as scratch:
        copy = Path(scratch) / "checkout"
        shutil.copytree(stage.PROJECT, copy, ignore=LEFT_OUT, symlinks=True)
        for room in given.rooms:
            files = [UNIT / name for name in given.tests] or _tests_of(room)
            if not _passes(copy, files, given.limit):
                said = _said(copy).read_text(errors="replace")[-2000:]
                raise SystemExit(
                    f"{room}: without any fault its tests fail, or take more than {given.limit:g} s\n{said}"
                )
            possible, chosen = _chosen(room, given)
            trials = list(_tried(copy, chosen, files, given.limit))
            noticed = sum(each.noticed for each in trials)
            rows.append((room, *map(str, (possible, len(trials), noticed)), f"{noticed / max(1, len(trials)):.0%}"))
            document = {
                "room": room,
                "possible": possible,
                "seed": given.seed,
                "trials": [vars(each) for each in trials],
            }
            name = f"mutants-{room.replace('/', '-')}.json"
            paths.write_whole(out / name, json.dumps(document, indent=1) + "\n")
    tables.show_table("", COLUMNS, rows)


def _modules(room: str) -> list[Path]:
    place = stage.PROJECT / PACKAGE / room
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [each.relative_to(stage.PROJECT) for each in found if each.is_file()]


def _tests_of(room: str) -> list[Path]:
    """The unit tests that import something of it, and those that are known to try it. A module's own are first."""
    name = room.split("/", maxsplit=1)[0]
    own = re.compile(
        rf"^(from minigts\.{name}\b|from minigts import .*\b{name}\b|import minigts\.{name}\b)", re.MULTILINE
    )
    files = sorted((stage.PROJECT / UNIT).glob("test_*.py"))
    found = [each for each in files if own.search(each.read_text(encoding="utf-8")) or each.name in MORE.get(name, ())]
    return [each.relative_to(stage.PROJECT) for each in found]


def _chosen(room: str, given: argparse.Namespace) -> tuple[int, list[tuple[Path, Fault]]]:
    """How many there are, and those to be tried."""
    every = [(module, fault) for module in _modules(room) for fault in faults((stage.PROJECT / module).read_bytes())]
    every = [each for each in every if given.line in (None, each[1].line)]
    if given.faults and len(every) > given.faults:
        return len(every), sorted(random.Random(given.seed).sample(every, given.faults))
    return len(every), every


def _tried(copy: Path, chosen: Sequence[tuple[Path, Fault]], files: Sequence[Path], limit_s: float) -> Iterator[Trial]:
    for number, (module, fault) in enumerate(chosen, 1):
        source = (stage.PROJECT / module).read_bytes()
        broken, begun = fault.into(source), time.monotonic()
        try:
            ast.parse(broken)
        except SyntaxError:
            continue
        try:
            (copy / module).write_bytes(broken)
            noticed = not _passes(copy, files, limit_s)
        finally:
            (copy / module).write_bytes(source)
        trial = Trial(
            str(module.relative_to(PACKAGE)), fault.in_words(source), noticed, round(time.monotonic() - begun, 1)
        )
        console.note(f"{number} of {len(chosen)}: {'noticed' if noticed else 'SURVIVED'}  {trial.module}:{trial.fault}")
        yield trial


def _passes(copy: Path, files: Sequence[Path], limit_s: float) -> bool:
    """Whether the tests pass, in a fork of this process, which has nothing of the copy yet."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os._exit(_run(copy, files))
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    _end_group(child)
    os.waitpid(child, 0)
    return False


def _end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _run(copy: Path, files: Sequence[Path]) -> int:
    """In the fork: pytest on the copy, up to the first failure."""
    import pytest  # noqa: PLC0415

    for name in [name for name in sys.modules if name.split(".")[0] in ("minigts", "bench", "faults")]:
        del sys.modules[name]
    sys.path[:] = [str(copy / "tools"), *(each for each in sys.path if not each.startswith(str(stage.PROJECT)))]
    os.chdir(copy)
    os.environ |= {
        "PYTHONPATH": str(copy / "tools"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy.parent / "hypothesis"),
        "MINIGTS_CACHE": str(copy.parent / "cache"),
        "MINIGTS_STATE": str(copy.parent / "state"),
        "MINIGTS_DATA": str(copy.parent / "data"),
    }
    sys.dont_write_bytecode = True
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(_said(copy), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    os.dup2(1, 2)
    options = ["-x", "-q", "--no-header", "--all-tests", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = int(pytest.main([*options, *map(str, files)]))
    sys.stdout.flush()
    return code


def _said(copy: Path) -> Path:
    """What the tests have printed last."""
    return copy.parent / "said"


if __name__ == "__main__":
    main()
