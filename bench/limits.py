"""How much does a kernel that has been taken over use up of what this machine's kernel counts for each user?

In a lab of its own, of a user that nobody else is, the kernel of a host makes the same call again and again until it is
refused; then the user tries to get one of the same. Only root can run it. `--page FILE` writes the table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from bench import stage
from minigts import paths
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks
from tests.live import private_ground

COLUMNS = ("what", ">got", "then", "limit of the machine", "the user then gets")


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--user", choices=("plain", "root"), default="plain")
    made.add_argument("--time", choices=("virtual", "real"), default="real")
    made.add_argument("--page", type=Path, metavar="FILE", help="where the table is written in Markdown")
    made.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures")
    given = made.parse_args()
    if os.geteuid() != 0:
        raise EnvironmentLacks("only root can trace a kernel in namespaces of its own: sudo bench/run limits")
    done = private_ground.run("used_up", given.user, given.time)
    if done.returncode:
        raise SystemExit(f"the lab ended with code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "limits.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rows = [_row(**each) for each in found]
    tables.show_table("", COLUMNS, rows)
    if given.page is not None:
        head = [tuple(name.lstrip(">") for name in COLUMNS), ("---",) * len(COLUMNS)]
        paths.write_whole(given.page, "".join(f"| {' | '.join(row)} |\n" for row in [*head, *rows]))


def _row(what: str, made: int, ended_by: str, limit: str, afterwards: str) -> tuple[str, ...]:
    return what, f"{made:,}", ended_by or "as many as were tried", limit, afterwards


if __name__ == "__main__":
    stage.perform(main)
