"""What reads the code and runs none of it: style of Python and shell, and static types. In seconds, before any test.

`.ci/run` begins with it, in the environment that tests have; `nox -s lint types` is the same for developers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[1]


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


def main() -> None:
    """Ends with 1 when any of them finds something; all are run. One that is not installed is left out, and named."""
    wrong = shared_names()
    for name in wrong:
        print(f"{name}: several test files have this name, which pytest does not take", file=sys.stderr)  # noqa: T201
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # mypy knows its own way
    for argv in commands():
        name, begun = (argv[2] if argv[0] == sys.executable else argv[0]), time.monotonic()
        try:
            code = subprocess.run(argv, check=False, env=environment).returncode
        except FileNotFoundError:
            print(f"{name}: left out, it is not installed; apt-get install {name}", file=sys.stderr)  # noqa: T201
            continue
        print(f"{name}: {'passed' if code == 0 else 'FAILED'}, {time.monotonic() - begun:.0f} s", file=sys.stderr)  # noqa: T201
        wrong += [name] if code else []
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
