"""What overlays there are, and how the programs that some need are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts import overlays, paths, programs
from minigts.errors import InputError, MinigtsError
from minigts.providers import registry

FOLDERS = sorted(path.parent for path in (paths.project_root() / "provision" / "overlays").glob("*/join.sh"))


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe that counts how often it is run."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "overlay" / "build"
    folder.mkdir(parents=True)
    script = folder / "build.sh"
    script.write_text(f"#!/bin/sh\necho run >>{tmp_path}/runs\necho made >$1/program\n")
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_overlay_is_complete(folder: Path) -> None:
    phases = ("install.sh", "join.sh", "start.sh", "verify.sh", "leave.sh")
    assert [name for name in phases if not (folder / name).stat().st_mode & 0o100] == []
    assert (folder / "README.md").exists()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_engines_are_ones_that_hosts_have(folder: Path) -> None:
    listed = folder / "engines"
    assert not listed.exists() or set(listed.read_text().split()) <= {"docker", "namespace"}


def test_an_overlay_that_needs_docker_is_refused_where_there_is_none() -> None:
    mininet = registry.make("mininet", Path())
    overlays.require_engine(registry.make("uml", Path()), "swarm")
    overlays.require_engine(mininet, "calico-never")
    with pytest.raises(
        InputError, match=r"'swarm' needs Docker on every host.* provider mininet .*none, ovs"
    ) as refused:
        overlays.require_engine(mininet, "swarm")
    assert refused.value.exit_code == 2


def test_variant_is_a_name_of_its_own_and_the_first_is_the_plain_one() -> None:
    assert {"flannel", "flannel-udp", "calico-never"} <= set(overlays.known())
    assert "flannel-vxlan" not in overlays.known()


def test_programs_are_built_once(recipe: Path, tmp_path: Path) -> None:
    first = programs.ensure(recipe, lambda _: None)
    second = programs.ensure(recipe, lambda _: None)

    assert first == second
    assert (first / "program").read_text() == "made\n"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_changed_recipe_is_built_anew(recipe: Path) -> None:
    first = programs.ensure(recipe, lambda _: None)
    (recipe / "go.sum").write_text("another")

    assert programs.ensure(recipe, lambda _: None) != first


def test_failed_build_keeps_nothing_and_says_why(recipe: Path, tmp_path: Path) -> None:
    (recipe / "build.sh").write_text("#!/bin/sh\necho half >$1/program\necho no compiler >&2\nexit 1\n")

    with pytest.raises(MinigtsError, match="no compiler"):
        programs.ensure(recipe, lambda _: None)
    assert [path.name for path in (tmp_path / "cache" / "programs").iterdir()] == ["lock"]
