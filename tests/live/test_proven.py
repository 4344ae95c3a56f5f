"""What is built here has the bytes that minigts expects, whoever builds it, where, and when."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from live import other_build
from minigts.artifacts import digests
from minigts.providers.uml.build import build_all, image, provenance

pytestmark = pytest.mark.uml

PLACES = (b"/tmp/", b"/var/tmp", b"/usr/share/cargo", b"/root/", b"/home/")
"""Beginnings of paths that say where a program was compiled."""


@pytest.fixture(scope="module")
def built() -> dict[str, Path]:
    build_all.ensure(lambda _: None)
    return dict(provenance.new_lab_parts(virtual=True))


@pytest.fixture(scope="module")
def programs(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The programs that labs have of Rust, by name: the clock, and the agent of the image."""
    agent = tmp_path_factory.mktemp("agent") / "agent"
    argv = ["debugfs", "-R", f"dump /usr/lib/minigts/agent {agent}", str(built["image"] / "root.ext4")]
    subprocess.run(argv, check=True, capture_output=True, env={"PATH": image.search_path()})
    return {"clock": (built["clock"] / "clock").read_bytes(), "agent": agent.read_bytes()}


@pytest.mark.parametrize("word", digests.PARTS.values())
def test_what_is_built_is_proven(built: dict[str, Path], word: str) -> None:
    """After a change of a recipe `bench/run locks digests` says what is expected from then on."""
    proof = digests.proof(built[word])
    assert proof is not None
    if proof.reason and not proof.proven:
        pytest.skip(proof.reason)
    assert str(proof) == "proven"


@pytest.mark.parametrize("name", ["clock", "agent"])
def test_a_program_does_not_say_where_it_was_compiled(programs: dict[str, bytes], name: str) -> None:
    assert programs[name].startswith(b"\x7fELF")
    assert [place for place in PLACES if place in programs[name]] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("recipe", ["clock", "agent"])
def test_somebody_else_gets_the_same_bytes(recipe: str, tmp_path: Path) -> None:
    """Another user, checkout, umask, day, time zone and number of processors."""
    if why := other_build.lacking():
        pytest.skip(why)
    other_build.as_usual(recipe, tmp_path / "usual")
    usual = (tmp_path / "usual" / recipe).read_bytes()
    with other_build.otherwise(recipe) as other:
        assert (other / recipe).read_bytes() == usual
    if not (tmp_path / "usual" / digests.UNLOCKED).exists():
        assert hashlib.sha256(usual).hexdigest() == digests.expected_digests()[f"{recipe}/{recipe}"]
