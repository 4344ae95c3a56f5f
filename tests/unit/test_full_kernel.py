"""Making the full kernel, without making one: what is kept of a build, and what a broken one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import EnvironmentLacks
from minigts.providers.uml import full_kernel


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(full_kernel, "WORK_MB", 0)
    return tmp_path / "cache" / "kernels"


def build_with(script: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe of one script; its directory stands in for provision/kernel."""
    recipe = directory / "recipe"
    recipe.mkdir(exist_ok=True)
    (recipe / "build.sh").write_text(f"#!/bin/bash\n{script}\n")
    (recipe / "build.sh").chmod(0o755)
    monkeypatch.setattr(full_kernel, "_recipe", lambda: recipe)


GOOD = 'mkdir -p "$1/modules/7.2"; touch "$1/linux"; echo 7.2-1 >"$1/version"; printf "\\n  CC a.o\\n" >"$1/log"'


def test_it_is_built_once_for_each_recipe(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_with(GOOD, tmp_path, monkeypatch)
    assert full_kernel.present() is None

    made = full_kernel.ensure(lambda _: None)
    build_with("exit 1", tmp_path, monkeypatch)
    other = full_kernel.present()
    build_with(GOOD, tmp_path, monkeypatch)

    assert (made.version, made.modules.name) == ("7.2-1", "7.2")
    assert other is None
    assert full_kernel.ensure(lambda _: None) == made == full_kernel.present()


def test_a_build_that_fails_says_why_and_leaves_only_its_log(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_with('echo all of it >"$1/log"; echo "error: no such line"; exit 1', tmp_path, monkeypatch)
    with pytest.raises(EnvironmentLacks, match="could not be built; the end of its log is\n    error: no such line"):
        full_kernel.ensure(lambda _: None)
    assert sorted(path.name for path in kernels.iterdir()) == ["failed-build.log", "lock"]
    assert (kernels / "failed-build.log").read_text() == "all of it\n"


def test_what_a_killed_build_left_goes(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernels / "building-other").mkdir(parents=True)
    build_with(GOOD, tmp_path, monkeypatch)
    full_kernel.ensure(lambda _: None)
    assert not list(kernels.glob("building-*"))


def test_too_little_room_is_said_first(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_with("exit 99", tmp_path, monkeypatch)
    monkeypatch.setattr(full_kernel, "WORK_MB", 1 << 40)
    with pytest.raises(EnvironmentLacks, match="building the kernel takes"):
        full_kernel.ensure(lambda _: None)


def test_it_can_be_removed(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_with(GOOD, tmp_path, monkeypatch)
    full_kernel.ensure(lambda _: None)
    full_kernel.remove()
    assert full_kernel.present() is None


CONFIG = Path(full_kernel.__file__).parents[4] / "provision" / "kernel" / "config"


def test_every_line_of_the_configuration_is_a_setting_or_a_comment_and_said_once() -> None:
    lines = [line for line in CONFIG.read_text().splitlines() if line and not line.startswith("#")]
    names = [line.partition("=")[0] for line in lines]
    assert all(line.partition("=")[2] for line in lines)
    assert len(names) == len(set(names))
