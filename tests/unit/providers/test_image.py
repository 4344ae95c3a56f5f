"""Making the image, without making one: what stops it, and what is left when it stops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minigts.errors import EnvironmentLacks
from minigts.providers import system_packages
from minigts.providers.uml import facts
from minigts.providers.uml.build import image
from minigts.providers.uml.build.image import Room

UNDO = 'if [ "$1" = --undo ]; then rm -rf "$2"; exit; fi\n'
"""A stand-in for build.sh can at least do this."""


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own on a machine that lacks nothing."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "missing", lambda: [])
    monkeypatch.setattr(image.command_line, "missing", lambda: [])
    return tmp_path / "cache" / "images"


def build_with(script: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "build.sh"
    path.write_text(f"#!/bin/sh\n{UNDO}{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(image, "_script", lambda: path)


@pytest.mark.parametrize(
    ("said", "explained"),
    [
        ("dpkg: error: cannot write: No space left on device", r"the disk is full; this step needs \d+ MB in "),
        ("E: Failed to fetch a://b  Could not connect to b", "MINIGTS_DEBIAN_MIRROR"),
        ("E: something else", "its log ends with\n    E: something else"),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_nothing_but_its_log(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, explained: str
) -> None:
    build_with(f'touch "$1/half"; echo "{said}"; exit 25', tmp_path, monkeypatch)
    with pytest.raises(EnvironmentLacks, match=explained) as caught:
        image.ensure(lambda _: None)
    assert caught.value.exit_code == 3
    assert sorted(path.name for path in images.iterdir()) == ["failed-build.log", "lock"]
    assert said in (images / "failed-build.log").read_text()


def test_what_a_killed_build_left_is_removed_first(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (images / "building-other" / "work").mkdir(parents=True)
    build_with("exit 1", tmp_path, monkeypatch)
    with pytest.raises(EnvironmentLacks):
        image.ensure(lambda _: None)
    assert not list(images.glob("building-*"))


def test_too_little_room_is_said_before_anything_is_fetched(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_with("exit 99", tmp_path, monkeypatch)
    monkeypatch.setattr(image, "room", lambda: (Room(images, 2000, 500),))
    with pytest.raises(EnvironmentLacks, match=r"takes 2000 MB in .*; 500 MB are free"):
        image.ensure(lambda _: None)
    assert [path.name for path in images.iterdir()] == ["lock"]


def test_room_is_asked_for_where_the_cache_will_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "not" / "there"))
    rooms = image.room()
    assert rooms[0].directory == tmp_path / "not" / "there" / "images"
    assert all(each.free_mb > 0 for each in rooms)
    assert sum(each.needed_mb for each in rooms) == image.UNPACKED_MB + image.AGENT_MB + image.PACKED_MB


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_is_closed_is_an_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(PermissionError):
        image.ensure(lambda _: None)


def test_what_the_image_takes_is_what_the_launcher_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder has one list, for both and for doctor."""
    (tmp_path / "apt-get").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(image, "present", lambda: None)
    monkeypatch.setattr(system_packages, "present", lambda _program: False)
    listed = [each.name for each in facts.gather().packages]
    assert "debian-archive-keyring" in listed
    assert [sentence.rpartition(" ")[2] for sentence in image.missing()] == listed
