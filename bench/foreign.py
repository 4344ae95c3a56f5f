"""Files of other tools, as many as you have: how many are taken whole, with notes, or refused, and for what reasons.

It reads every file of containerlab, netlab, GraphML, GML, GTS, Kathará, CORE and Compose below a directory of yours, as
`minigts import` and a host's `compose:` do. In YAML that is taken it looks for keys that are silently lost: it removes
each one, and then changes its value; if both change neither the topology nor a note, the key is lost. It starts
nothing, and ends with 1 where a key is lost or a reader fails.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import InputError, MinigtsError

sys.path.insert(0, str(stage.PROJECT / "tests"))

import foreign_files

OUTCOMES = ("whole", "with notes", "refused", "silent", "failed")
COLUMNS = ("tool", ">files", *(f">{each}" for each in OUTCOMES), ">left out", ">slowest")
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9][0-9a-fA-F.:/]*\b|(?<=^interface )\S+|(?<=exec )[^:]*(?= cannot)")
_PLACE = re.compile(r"^[A-Za-z_][^\s:]*(?:\[[0-9]+\])?[^\s:]*: (?=\S)")


@dataclass
class Found:
    """The results for the files of one tool."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """By kind of reason, the refused files; a file counts once for each of its reasons."""
    notes: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    """How many of the refused files `--leave-out` takes."""
    silent: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


def files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Each file of a tool, with the tool. A repository's own `.git` is left out."""
    for path in sorted(directory.rglob("*")):
        if ".git" not in path.parts and path.is_file() and not path.is_symlink():
            tool = foreign_files.tool_of(path)
            if tool is not None:
                yield tool, path


def kind(message: str) -> str:
    """A message without the parts that differ from file to file: its place, names and numbers."""
    return _VARIES.sub("…", _PLACE.sub("", message))[:110]


def read(tool: str, path: Path, found: Found, look: int) -> str:
    """The file's result."""
    began = time.process_time()
    try:
        taken = foreign_files.read(tool, path)
    except InputError as error:
        found.reasons.update({kind(problem.message) for problem in error.problems})
        found.left_out += _is_taken_without(tool, path)
        return "refused"
    except (MinigtsError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        found.failed.append(f"{path}: {type(error).__name__}: {error}")
        return "failed"
    finally:
        found.slowest_s = max(found.slowest_s, time.process_time() - began)
    found.notes.update({kind(note) for note in taken.notes})
    lost = foreign_files.unheard(tool, path, taken, look) if look else []
    found.silent += [f"{path}: {each}" for each in lost]
    return "silent" if lost else "with notes" if taken.notes else "whole"


def _is_taken_without(tool: str, path: Path) -> bool:
    try:
        foreign_files.read(tool, path, leave_out=True)
    except InputError:
        return False
    return True


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "directory", type=Path, metavar="DIR", help="a directory with other tools' files, at any depth"
    )
    arguments.add_argument("--tool", choices=foreign_files.TOOLS, help="only files of this tool")
    arguments.add_argument(
        "--look", type=int, default=100, metavar="N", help="how many keys of each file are removed and changed"
    )
    arguments.add_argument("--reasons", type=int, default=12, metavar="N", help="rows of each table of reasons")
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    tallies: dict[str, Found] = {}
    for tool, path in files(given.directory):
        if given.tool not in (None, tool):
            continue
        found = tallies.setdefault(tool, Found())
        found.outcomes[read(tool, path, found, given.look)] += 1
    _show(tallies, given.reasons)


def _show(tallies: dict[str, Found], most: int) -> None:
    rows = [
        (
            tool,
            str(found.outcomes.total()),
            *(str(found.outcomes[each]) for each in OUTCOMES),
            str(found.left_out),
            f"{found.slowest_s:.2f} s",
        )
        for tool, found in tallies.items()
    ]
    tables.show_table("", COLUMNS, rows)
    for tool, found in tallies.items():
        for title, counted in ((f"{tool}: refused for", found.reasons), (f"{tool}: noted", found.notes)):
            shown = counted.most_common(most)
            if shown:
                tables.show_table(title, (">files", "kind"), [(str(count), each) for each, count in shown])
    for each in (line for found in tallies.values() for line in (*found.failed, *found.silent)):
        console.note(each)
    raise SystemExit(any(found.failed or found.silent for found in tallies.values()))


if __name__ == "__main__":
    main()
