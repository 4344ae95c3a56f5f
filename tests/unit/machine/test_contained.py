"""Processes that see no others: what they are in the namespaces of their own, started by a plain user."""

from __future__ import annotations

from isolated import run_isolated

START = """
import os, sys
from pathlib import Path
from minigts.machine import contained

inside = contained.namespaces()
assert not inside.lacks, inside.lacks
process = contained.start(
    ["/bin/sh", "-c", 'echo "process $$ of user $(id -u), group $(id -g)"'],
    output=1, pass_fds=(), env={}, cwd=Path("/"), inside=inside, before_exec=lambda: None,
)
sys.exit(process.wait(30))
"""


def test_a_plain_users_process_is_the_first_and_keeps_its_user() -> None:
    done = run_isolated(START, as_plain_user=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "process 1 of user 1000, group 1000\n"
