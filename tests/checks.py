"""What reads code and pages, and runs no test: style of Python and shell, static types, missing names, the
documentation's links, and every file's licence. In seconds, before any test; as many at once as there are processors.

`.ci/run` begins with it, in the environment that tests have; `nox -s lint types` is the same for developers, and
`.pre-commit-config.yaml` has a part of it before each commit: names of checks as arguments run those alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
MYPY = PROJECT / ".mypy_cache"
"""This checkout's own: two that share one find names missing that are there."""
PAGES = "docs/site/build"
PACKAGE = PROJECT / "tools" / "minigts"
BUDGET = PROJECT / "tests" / "budget.toml"
SPARE = 0.02
"""How far a room's budget may be above its lines: what a commit saves is not there for the next one."""

NAMES = ("ruff", "shellcheck", "shfmt", "mypy", "names", "pages", "reuse")


def commands() -> list[Sequence[str]]:
    sys.path.insert(0, str(PROJECT))
    from noxfile import shell_files  # noqa: PLC0415

    os.chdir(PROJECT)
    scripts = shell_files()
    module = (sys.executable, "-m")
    return [
        (*module, "mypy"),
        *(_names_in(*each) for each in (("tests", "tools:tests:tests/unit"), ("bench", "tools:."))),
        ("shellcheck", *scripts),
        (PAGES, "--check"),
        (*module, "ruff", "check"),
        (*module, "ruff", "format", "--check"),
        ("shfmt", "-i", "2", "-d", *scripts),
        (*module, "reuse", "lint", "--lines"),
    ]


def _names_in(of: str, path: str) -> Sequence[str]:
    """The command that looks in tests, or in benches and the site's programs, for names that are not there. One of the
    two files `conftest.py` in folders where mypy looks for modules is with the benches."""
    root = PROJECT / "tests" / "unit" / "conftest.py"
    tests = {*PROJECT.glob("tests/**/*.py")} - {*PROJECT.glob("tests/topologies/*"), root}
    others = (*PROJECT.glob("bench/*.py"), *PROJECT.glob("docs/site/*.py"), root)
    files = sorted(str(file.relative_to(PROJECT)) for file in (tests if of == "tests" else others))
    cache = f"--cache-dir={MYPY / of}"
    mypy = (sys.executable, "-m", "mypy", "--config-file=tests/mypy.ini", cache)
    return ("env", f"MYPYPATH={path}", *mypy, *files)


def shared_names() -> list[str]:
    """Names that several test files have: pytest refuses to collect the second one, after minutes of the first."""
    times = Counter(file.name for file in (PROJECT / "tests").rglob("test_*.py"))
    return sorted(name for name, number in times.items() if number > 1)


def room_sizes() -> dict[str, int]:
    """The lines of Python of each room of the package; `minigts` has those beside the rooms."""
    sizes: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        room, *inside = file.relative_to(PACKAGE).parts
        sizes[room if inside else "minigts"] += len(file.read_bytes().splitlines())
    return dict(sizes)


def budget_problems() -> list[str]:
    """Which rooms have other sizes than `tests/budget.toml` says, a sentence each."""
    budget = {room: entry["lines"] for room, entry in tomllib.loads(BUDGET.read_text(encoding="utf-8")).items()}
    sizes = room_sizes()
    found = [f"{room} has a budget and no lines: take it out" for room in budget.keys() - sizes.keys()]
    for room, lines in sizes.items():
        most = budget.get(room, 0)
        if lines > most:
            found.append(f"{room} has {lines} lines, and its budget is {most}: take some out, or raise it and say why")
        elif lines < most * (1 - SPARE):
            found.append(f"{room} has {lines} lines, and its budget is {most}: lower it")
    return [f"{BUDGET.relative_to(PROJECT)}: {each}" for each in sorted(found)]


def program(argv: Sequence[str]) -> str:
    """Of `NAMES`, what a command runs."""
    if argv[0] == PAGES:
        return "pages"
    if argv[0] == "env":
        return "names"
    return argv[2] if argv[0] == sys.executable else argv[0]


class Said(NamedTuple):
    ok: bool
    text: str


def _run(argv: Sequence[str], environment: dict[str, str]) -> Said:
    name, begun = program(argv), time.monotonic()
    try:
        done = subprocess.run(argv, check=False, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        return Said(True, f"{name}: left out, it is not installed; apt-get install {name}\n")
    ok = done.returncode == 0
    ended = f"{name}: {'passed' if ok else 'FAILED'}, {time.monotonic() - begun:.0f} s\n"
    return Said(ok, done.stdout.decode(errors="replace") + ended)


def main(wanted: Sequence[str] = ()) -> None:
    """Ends with 1 when any of them finds something; all are run. One that is not installed is left out, and named."""
    if unknown := [name for name in wanted if name not in NAMES]:
        sys.exit(f"no check is named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    wrong = shared_names()
    for name in wrong:
        print(f"{name}: several test files have this name, which pytest does not take", file=sys.stderr)  # noqa: T201
    for problem in () if wanted else budget_problems():
        wrong.append(problem)
        print(problem, file=sys.stderr)  # noqa: T201
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # mypy knows its own way
    environment.setdefault("MYPY_CACHE_DIR", str(MYPY / "tools"))
    chosen = [argv for argv in commands() if not wanted or program(argv) in wanted]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as several:
        for argv, said in zip(chosen, several.map(lambda argv: _run(argv, environment), chosen), strict=True):
            print(said.text, end="", file=sys.stderr)  # noqa: T201
            wrong += [] if said.ok else [program(argv)]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "test"])
