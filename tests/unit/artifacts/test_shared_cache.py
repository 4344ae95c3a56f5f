"""The cache that all users share: who fills it, what the others find in it, and that nobody else writes to it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts import paths
from minigts.artifacts import kernels, overlay_programs, shared_cache
from minigts.artifacts.build import Product
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers.uml.build import image, kernel_build, layers


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv(paths.SHARED, str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    return tmp_path / "own"


@pytest.fixture
def shared(own: Path) -> Path:
    return own.parent / "shared"


def test_what_only_the_shared_cache_has_is_read_there(own: Path, shared: Path) -> None:
    place = own / "layers" / "abc"
    assert paths.cache_entry(place) == place
    (shared / "layers" / "abc").mkdir(parents=True)
    assert paths.cache_entry(place) == shared / "layers" / "abc"
    assert paths.cache_entry(shared / "elsewhere") == shared / "elsewhere"
    place.mkdir(parents=True)
    assert paths.cache_entry(place) == place, "one's own comes first"


@pytest.mark.parametrize("chosen", ["", "/nothing/is/here", "/etc/hostname"])
def test_there_may_be_none(own: Path, monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setenv(paths.SHARED, chosen)
    assert paths.shared_cache() is None
    assert paths.cache_entry(own / "images" / "k") == own / "images" / "k"


def test_its_place_without_a_word_from_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(paths.SHARED, raising=False)
    assert paths.shared_place() == Path("/var/cache/minigts")


def test_every_part_of_a_lab_is_found_in_it_and_nothing_is_made(own: Path, shared: Path) -> None:
    product = kernel_build.product()
    (shared / "images" / image.key()).mkdir(parents=True)
    (shared / "kernels" / product.key).mkdir(parents=True)
    (shared / "layers" / "k").mkdir(parents=True)
    (shared / "layers" / "k" / layers.ROOT).touch()
    assert image.ensure(_no_word).directory == shared / "images" / image.key()
    assert product.ensure(_no_word) == shared / "kernels" / product.key
    assert layers.root("k") == shared / "layers" / "k" / layers.ROOT
    assert image.missing() == []
    assert not own.exists()


def test_programs_of_overlays_are_found_in_it(own: Path, shared: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "an-overlay" / "build"
    recipe.mkdir(parents=True)
    (recipe / "build.sh").write_text("exit 1")
    assert overlay_programs.missing_build(recipe) == "programs of an-overlay"
    ready = shared / "programs" / overlay_programs.key(recipe)
    ready.mkdir(parents=True)
    assert overlay_programs.missing_build(recipe) == ""
    assert overlay_programs.ensure(recipe, _no_word) == ready
    assert not own.exists()


def test_kernels_of_both_caches_have_names(own: Path, shared: Path) -> None:
    for place, name in ((own, "mine"), (shared, "ours")):
        (place / kernels.STORE).mkdir(parents=True)
        (place / kernels.STORE / f"{name}.json").write_text("{}")
    assert kernels.names() == ("mine", "ours")


def test_what_is_built_goes_into_ones_own(own: Path, shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    folder.mkdir()
    script = folder / "build.sh"
    script.write_text("#!/bin/sh\ntouch $1/made\n")
    script.chmod(0o755)
    product = Product("thing", folder, own / "things", "at once", 0, "  CC ", 1)
    assert product.ensure(_nothing) == own / "things" / product.key
    assert list(shared.iterdir()) == []


def test_removing_leaves_the_shared_one(own: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(own.parent / "state"))
    for place in (own, shared):
        (place / "images" / image.key()).mkdir(parents=True)
    done = CliRunner().invoke(app, ["image", "remove"])
    assert done.exit_code == 0
    assert f"labs start from {shared / 'images' / image.key()} then" in done.stderr
    assert not (own / "images" / image.key()).exists()


def test_it_is_opened_to_all_but_for_what_is_not_finished(
    own: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(own))
    shared.rmdir()
    shared_cache.choose()
    assert paths.cache_root() == shared
    for name, mode in (("images/k/root.ext4", 0o600), ("images/k/boot/linux", 0o700), ("images/building-x/a", 0o600)):
        (shared / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / name).touch(mode)
        (shared / name).parent.chmod(0o700)
    (shared / "images" / "k" / "link").symlink_to("/etc/shadow")
    before = (shared / "images/k/root.ext4").stat().st_mtime_ns
    shared_cache.open_to_all(_nothing)
    modes = {str(each.relative_to(shared)): stat.S_IMODE(each.lstat().st_mode) for each in shared.rglob("*")}
    assert modes["images/k"] == modes["images/k/boot/linux"] == 0o755
    assert modes["images/k/root.ext4"] == modes["images/.k.sums"] == 0o644
    assert (modes["images/building-x"], modes["images/building-x/a"]) == (0o700, 0o600)
    assert stat.S_IMODE(shared.stat().st_mode) & 0o555 == 0o555
    assert (shared / "images/k/root.ext4").stat().st_mtime_ns == before, "copy-on-write disks depend on it"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_checkout_of_somebody_else_is_left_alone(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "import_root", lambda: Path("/usr"))
    own.mkdir()
    shared_cache.open_to_all(_nothing)


def test_a_place_that_cannot_be_one_is_an_error_with_what_to_do(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.SHARED, "/proc/no/such/place")
    with pytest.raises(
        EnvironmentLacks, match="run this as root, or name a directory of yours in MINIGTS_SHARED_CACHE"
    ):
        shared_cache.choose()
    monkeypatch.setenv(paths.SHARED, "")
    with pytest.raises(InputError, match="name a directory"):
        shared_cache.choose()
    assert paths.cache_root() == own


def _no_word(text: str) -> None:
    raise AssertionError(f"nothing is to be built, and it says: {text}")


def _nothing(_text: str) -> None:
    pass
