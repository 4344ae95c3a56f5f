"""A kernel that has been taken over makes every call: it changes nothing on this machine but what is listed.

The calls are in hostile_calls.py, the permitted effects with their reasons in permitted_effects.py. The kernel is real,
and is made to make them by a tracer, on a private ground.
"""

from __future__ import annotations

import json
import os

import pytest

from live import effects_table, private_ground
from live.effects import TIMES, USERS
from live.permitted_effects import PERMITTED
from minigts.providers.uml.run import confinement

pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can trace a kernel in namespaces of its own"),
    pytest.mark.skipif(confinement.version() == 0, reason="this machine's kernel has no Landlock"),
]
FEW = (
    r"^(fchmod 777|fchown to its own user|utimensat|fsetxattr|fcntl F_SETFL \S+|ioctl .+|chmod)"
    r" by (?!its memory|its disk|.*of its own|.*new )"
)
"""The calls of each run: those that write through a descriptor that is open for reading."""


def tried(user: str, time: str, only: str = "") -> effects_table.Tried:
    done = private_ground.run("effects", user, time, only)
    assert done.returncode == 0
    return effects_table.of(json.loads(done.stdout.splitlines()[-1]))


def not_permitted(found: effects_table.Tried) -> list[str]:
    return [
        f"{row.changed}: {', '.join(row.calls)} by {', '.join(row.by)}"
        for row in effects_table.rows([found])
        if not row.reason
    ]


@pytest.mark.virtual
def test_a_taken_kernel_changes_nothing_through_what_it_may_read() -> None:
    found = tried("root", "virtual", FEW)
    assert found.calls > 500
    assert not_permitted(found) == []


@pytest.mark.nightly
@pytest.mark.virtual
def test_every_call_by_every_descriptor_has_only_permitted_effects() -> None:
    found = [tried(user, time) for user in USERS for time in TIMES]
    assert all(each.calls > 4000 for each in found)
    assert [line for each in found for line in not_permitted(each)] == []
    seen = [
        (effect.call, effect.by, changed) for each in found for effect in each.effects for changed in effect.changed
    ]
    unused = [each for each in PERMITTED if not each.races and not any(each.covers(*effect) for effect in seen)]
    assert unused == [], "these are permitted, and possible no more"
