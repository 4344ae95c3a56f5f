"""Everything works as a plain user: a lab, its commands, an overlay, and its end."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.other_user import free_id, link, python
from live.program import PROJECT, Program, Traces
from minigts.providers.uml import image

pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(os.geteuid() != 0, reason="a plain user runs all of these tests already"),
]
NEEDLESS = shutil.ignore_patterns(
    *("__pycache__", "tests", "matplotlib*", "numpy*", "contourpy*", "fontTools", "PIL", "pillow*"),
    *("mypy*", "hypothesis*", "pip", "setuptools", "nox", "virtualenv*", "_pytest", "ruff*"),
)
"""What `up`, `exec` and `down` do without."""


@pytest.fixture
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program for a user who is nobody else, in a directory that they can read: interpreter, packages, checkout
    and image may lie where only root can go, and are linked or copied there."""
    interpreter = python()
    home = Path(tempfile.mkdtemp(prefix="minigts-plain-"))
    user = free_id()
    made = image.ensure(lambda _: None)
    link(made.directory, home / "cache" / "images" / made.directory.name, NEEDLESS)
    for part in ("tools", "provision", "topologies"):
        shutil.copytree(PROJECT / part, home / "project" / part, ignore=NEEDLESS)
    packages = home / "packages"
    link(Path(sysconfig.get_path("purelib")), packages, NEEDLESS)
    for directory in (home, home / "cache", home / "cache" / "images", home / "state"):
        directory.mkdir(exist_ok=True)
        os.chown(directory, user, user)
    program = Program(
        home / "state",
        python=interpreter,
        project=home / "project",
        user=user,
        environment={
            "HOME": str(home),
            "MINIGTS_CACHE": str(home / "cache"),
            "PYTHONPATH": f"{home / 'project' / 'tools'}:{packages}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    yield program
    program.run("down", "--all")
    shutil.rmtree(home)


def test_a_plain_user_has_the_whole_life_of_a_lab(plain: Program) -> None:
    traces = Traces.before(plain.state)
    plain.succeeds("up", str(plain.project / "topologies" / "pair.yaml"), "--overlay", "swarm")
    traces.look()
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in traces.processes}
    assert owners == {plain.user}
    assert plain.succeeds("exec", "ams", "--", "id", "-u") == "0\n"
    assert "1 received" in plain.succeeds("exec", "ams", "--", "ping", "-c", "1", "bra")
    asked = ("curl", "-s", "--unix-socket", "/run/docker.sock", "http://docker/nodes")
    nodes = json.loads(plain.succeeds("exec", "ams", "--", *asked))
    assert [node["Status"]["State"] for node in nodes] == ["ready", "ready"]
    plain.succeeds("down")
    assert traces.left() == []
