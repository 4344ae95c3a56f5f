"""What reads the code and runs none of it: style of Python and shell, and static types. In seconds, before any test.

`.ci/run` begins with it, in the environment that tests have; `nox -s lint types` is the same for developers, and
`.pre-commit-config.yaml` has a part of it before each commit: names of checks as arguments run those alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from minigts import paths

PROJECT = Path(__file__).parents[1]


NAMES = ("ruff", "shellcheck", "shfmt", "mypy")


def commands() -> list[Sequence[str]]:
    sys.path.insert(0, str(PROJECT))
    from noxfile import shell_files  # noqa: PLC0415

    os.chdir(PROJECT)
    scripts = shell_files()
    module = (sys.executable, "-m")
    return [
        (*module, "ruff", "check"),
        (*module, "ruff", "format", "--check"),
        ("shellcheck", *scripts),
        ("shfmt", "-i", "2", "-d", *scripts),
        (*module, "mypy"),
    ]


def shared_names() -> list[str]:
    """Names that several test files have: pytest refuses to collect the second one, after minutes of the first."""
    times = Counter(file.name for file in (PROJECT / "tests").rglob("test_*.py"))
    return sorted(name for name, number in times.items() if number > 1)


def program(argv: Sequence[str]) -> str:
    """Of `NAMES`, what a command runs."""
    return argv[2] if argv[0] == sys.executable else argv[0]


def main(wanted: Sequence[str] = ()) -> None:
    """Ends with 1 when any of them finds something; all are run. One that is not installed is left out, and named."""
    if unknown := [name for name in wanted if name not in NAMES]:
        sys.exit(f"no check is named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    wrong = shared_names()
    for name in wrong:
        print(f"{name}: several test files have this name, which pytest does not take", file=sys.stderr)  # noqa: T201
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # mypy knows its own way
    environment.setdefault("MYPY_CACHE_DIR", str(paths.cache_root() / "mypy"))  # a new checkout has none of its own
    for argv in commands():
        name, begun = program(argv), time.monotonic()
        if wanted and name not in wanted:
            continue
        try:
            code = subprocess.run(argv, check=False, env=environment).returncode
        except FileNotFoundError:
            print(f"{name}: left out, it is not installed; apt-get install {name}", file=sys.stderr)  # noqa: T201
            continue
        print(f"{name}: {'passed' if code == 0 else 'FAILED'}, {time.monotonic() - begun:.0f} s", file=sys.stderr)  # noqa: T201
        wrong += [name] if code else []
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "test"])
