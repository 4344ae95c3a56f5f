"""What can a kernel that has been taken over change on this machine, call by call?

In labs of its own, as root of the machine and as a plain user, in both times, the kernel of a host is made to make
every call of tests/live/hostile_calls.py by descriptors of every kind that it has or can open, and by paths. After each
call the machine is compared with what it was before: modes, owners, times, links, sizes, contents, attributes and flags
of the user's files, the cache, the lab and devices; locks; what open files share with the lab's other processes.

As root only, and in process and mount namespaces of its own: devices, /proc/cpuinfo and the cache are copies there.
`--page FILE` writes the table in Markdown, of the grounds in `--also FILE`, too; with `--before FILE` the effects of an
earlier run stand beside it. Exit 1 when there is an effect that tests/live/permitted_effects.py does not list.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks
from tests.live import effects_table, private_ground
from tests.live.effects import TIMES, USERS, Tried

COLUMNS = ("ground", ">calls", ">with an effect", ">not permitted", "could not be opened")


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--users", nargs="+", choices=USERS, default=USERS)
    made.add_argument("--times", nargs="+", choices=TIMES, default=TIMES)
    made.add_argument("--only", default="", metavar="REGEX", help="the calls to try, as `fchmod.* by the image`")
    made.add_argument("--before", type=Path, metavar="FILE", help="the figures of an earlier run")
    made.add_argument("--also", type=Path, nargs="+", default=[], metavar="FILE", help="the figures of other grounds")
    made.add_argument("--page", type=Path, metavar="FILE", help="where the table is written in Markdown")
    made.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures")
    given = made.parse_args()
    if os.geteuid() != 0:
        raise EnvironmentLacks("only root can trace a kernel in namespaces of its own: sudo bench/run effects")
    found = [tried(user, time, given.only) for user in given.users for time in given.times]
    given.out.mkdir(parents=True, exist_ok=True)
    figures = given.out / "effects.json"
    figures.write_text(json.dumps(effects_table.document(found), indent=1) + "\n", encoding="utf-8")
    found = [*(each for file in given.also for each in effects_table.read(file)), *found]
    rows = effects_table.rows(found)
    unknown = [row for row in rows if not row.reason]
    tables.show_table("", COLUMNS, list(_summary(found)))
    for row in unknown:
        console.note(
            f"not permitted: {row.changed}: {', '.join(row.calls)} by {', '.join(row.by)} ({'; '.join(row.grounds)})"
        )
    if given.page is not None:
        before = [] if given.before is None else effects_table.read(given.before)
        paths.write_whole(given.page, effects_table.page(before, found))
    raise SystemExit(bool(unknown))


def tried(user: str, time: str, only: str) -> Tried:
    """One ground, in namespaces of its own."""
    done = private_ground.run("effects", user, time, only)
    if done.returncode:
        raise SystemExit(f"{user}, {time} time: ended with code {done.returncode}")
    return effects_table.of(json.loads(done.stdout.splitlines()[-1]))


def _summary(found: Sequence[Tried]) -> Iterable[tuple[str, ...]]:
    for each in found:
        rows = effects_table.rows([each])
        yield (
            each.ground,
            str(each.calls),
            str(len(each.effects)),
            str(sum(len(row.by) for row in rows if not row.reason)),
            str(len(each.refused)),
        )


if __name__ == "__main__":
    stage.perform(main)
