"""A user's files, processes and limits beside a hostile guest and a taken kernel in the user's own lab: see canary.py.

`bench/run canary --minutes 60` does for an hour what is done here for a moment.
"""

from __future__ import annotations

import json
import os

import pytest

from live import private_ground
from minigts.providers.uml.run import confinement

pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can trace a kernel in namespaces of its own"),
    pytest.mark.skipif(confinement.version() == 0, reason="this machine's kernel has no Landlock"),
]


def faults(user: str, time: str, seconds: float, seed: int) -> list[str]:
    """What was not as before, in rounds of that many seconds together."""
    done = private_ground.run("canary", user, time, str(seconds), str(seed))
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert len(rounds) > 1
    assert sum(len(each["acts"]) for each in rounds) >= 2
    return [f"{fault} (after: {'; '.join(each['acts'])})" for each in rounds for fault in each["faults"]]


def test_nothing_of_the_users_is_changed_or_read() -> None:
    assert faults("plain", "real", 15, seed=1) == []


@pytest.mark.nightly
@pytest.mark.virtual
@pytest.mark.parametrize(("user", "time"), [("plain", "virtual"), ("root", "real"), ("root", "virtual")])
def test_nor_in_other_labs(user: str, time: str) -> None:
    assert faults(user, time, 120, seed=2) == []
