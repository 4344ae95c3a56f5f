"""What has just changed: what the working tree has changed, and commits of the last four hours before HEAD.

`MINIGTS_MODULE=tests.touched ./minigts test PATH …` ends with 0 where one of the paths has just changed, otherwise
with 1.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[1]
RECENTLY = timedelta(hours=4)
"""As long as commits gather before they are pushed: what was pushed earlier was tried then."""


def is_touched(paths: Iterable[str | Path], files: Iterable[str]) -> bool:
    """Whether one of the files is one of these paths, or lies in one that is a folder; all from the project's top."""
    places = [PROJECT / path for path in paths]
    return any((PROJECT / file).is_relative_to(place) for file in files for place in places)


def changed(parent: Path) -> set[str]:
    """The names of the files and folders in `parent` that have just changed (`changed_files`)."""
    return {file.split("/")[0] for file in changed_files(parent)}


@cache
def changed_files(folder: Path) -> frozenset[str]:
    """The files below `folder`, by their paths from there, that the working tree has changed, or commits of the last
    four hours before HEAD. Empty where git knows nothing of them: then all of them are as they were released."""
    try:
        latest = datetime.fromisoformat(_git(folder, "log", "-1", "--format=%cI"))
        since = (latest - RECENTLY).isoformat()
        committed = _git(folder, "log", f"--since={since}", "--format=", "--name-only", "--relative", "--", ".")
        uncommitted = _git(folder, "diff", "HEAD", "--name-only", "--relative", "--", ".")
        added = _git(folder, "ls-files", "--others", "--exclude-standard", "--", ".")
    except (OSError, subprocess.CalledProcessError, ValueError):
        return frozenset()
    return frozenset((*committed.splitlines(), *uncommitted.splitlines(), *added.splitlines()))


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    _verb, *paths = sys.argv[1:]
    sys.exit(0 if is_touched(paths, changed_files(PROJECT)) else 1)
