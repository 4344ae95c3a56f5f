"""Users who share a cache that none of them may write to: each brings a lab up, and builds into their own what it
lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from live.other_user import free_id, made_for
from live.program import Program, Traces
from minigts import paths

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.uml,
    pytest.mark.virtual,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users"),
]
LAYERED = "name: layered\nhosts:\n  solo: {packages: [tree]}\nlinks: []\n"


@pytest.fixture
def shared() -> Iterator[Program]:
    """The first user's program, with a cache that is root's, and an own one that is not there yet."""
    with made_for(free_id()) as program:
        cache = program.state.parent / "cache"
        for directory in (cache, *(each for each in cache.rglob("*") if each.is_dir())):
            os.chown(directory, 0, 0)
        cache.chmod(0o555)
        for place in (program.state.parent, program.state.parent / "compiled"):
            place.chmod(0o777)
        yield of_user(program, program.user or 0)


def of_user(program: Program, user: int) -> Program:
    home = program.state.parent / f"home-{user}"
    (home / "state").mkdir(parents=True)
    for directory in (home, home / "state"):
        directory.chmod(0o700)
        os.chown(directory, user, user)
    places = {"HOME": home, "MINIGTS_CACHE": home / "cache", paths.SHARED: program.state.parent / "cache"}
    given = {name: str(place) for name, place in places.items()}
    return replace(program, user=user, state=home / "state", environment={**program.environment, **given})


def seen(cache: Path) -> list[tuple[str, int, int, int]]:
    states = ((str(each), each.lstat()) for each in sorted(cache.rglob("*")))
    return [(name, state.st_uid, state.st_mode, state.st_mtime_ns) for name, state in states]


def test_two_users_at_once_bring_labs_up_from_it_and_change_nothing(shared: Program) -> None:
    other = of_user(replace(shared, state=shared.state.parents[1] / "state"), (shared.user or 0) + 1)
    cache = Path(shared.environment[paths.SHARED])
    before = seen(cache)
    pair = str(shared.project / "topologies" / "pair.yaml")
    users = (shared, other)
    traces = [Traces.before(each.state) for each in users]
    try:
        for started in [each.start("up", pair) for each in users]:
            said = started.communicate(timeout=shared.limit_s)
            assert started.returncode == 0, said
        for trace in traces:
            trace.look()
        for each in users:
            assert "1 received" in each.succeeds("exec", "ams", "--", "ping", "-c", "1", "bra")
            (lab,) = json.loads(each.succeeds("status", "--json"))
            assert set(lab["hosts"].values()) == {"answers"}
            assert not Path(each.environment["MINIGTS_CACHE"]).exists()
    finally:
        for each in users:
            each.run("down", "--all")
    assert [trace.left() for trace in traces] == [[], []]
    assert seen(cache) == before


def test_what_it_lacks_is_built_into_ones_own(shared: Program) -> None:
    """The copy of the image with a package, for which a host boots on that copy."""
    topology = shared.state.parent / "layered.yaml"
    topology.write_text(LAYERED)
    topology.chmod(0o644)
    before = seen(cache := Path(shared.environment[paths.SHARED]))
    refused = shared.run("up", str(topology))
    if "mmdebstrap is not installed" in refused.stderr or "could not be fetched" in refused.stderr:
        pytest.skip("no package can be fetched here")
    assert refused.returncode == 0, refused.stderr
    assert "tree" in shared.succeeds("exec", "solo", "--", "tree", "--version")
    own = Path(shared.environment["MINIGTS_CACHE"])
    assert [each.name for each in own.iterdir()] == ["layers"]
    assert seen(cache) == before
