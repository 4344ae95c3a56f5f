"""The versions of an image's packages: read, compared, demanded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts import paths
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers.uml.build import image, package_lock

OWN = "iperf3 3.18-2\njq 1.7.1-6+deb13u1\nlibssl3t64:amd64 3.5.1-1\n"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of an image that is there."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    lock = paths.cache_root() / "images" / image.key() / "packages.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(OWN)
    return lock


def other(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "course.lock"
    file.write_text(text)
    return file


def test_a_lock_is_read_by_name_and_version(tmp_path: Path) -> None:
    found = package_lock.read(other(tmp_path, OWN))
    assert found.versions == {"iperf3": "3.18-2", "jq": "1.7.1-6+deb13u1", "libssl3t64": "3.5.1-1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no package"),
        ("iperf3 3.18-2\njq\n", "course.lock:2: 'jq': a line is NAME VERSION"),
        ("iperf3 3.18-2 \n", "course.lock:1"),
        ("iperf3 3.18\\nPin-Priority: 1001\n", "course.lock:1"),
        ("Package: * Pin: x\n", "course.lock:1"),
    ],
)
def test_what_is_no_lock_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        package_lock.read(other(tmp_path, text))
    assert words in str(refused.value)


def test_the_verb_prints_what_the_image_has(built: Path) -> None:
    result = CliRunner().invoke(app, ["image", "lock"])
    assert (result.exit_code, result.stdout) == (0, OWN)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (OWN, 0, ""),
        (OWN.replace("3.18-2", "3.17-1"), 1, "iperf3 3.17-1 → 3.18-2\n"),
        (f"{OWN}mtr 0.95\n", 1, "mtr 0.95 → absent\n"),
        (OWN.partition("\n")[2], 1, "iperf3 absent → 3.18-2\n"),
    ],
)
def test_the_verb_says_what_differs(built: Path, tmp_path: Path, text: str, code: int, told: str) -> None:
    result = CliRunner().invoke(app, ["image", "lock", str(other(tmp_path, text))])
    assert (result.exit_code, result.stdout) == (code, told)


def test_an_image_with_other_packages_is_not_taken_for_the_one_that_is_wanted(built: Path, tmp_path: Path) -> None:
    wanted = package_lock.read(other(tmp_path, OWN.replace("3.18-2", "3.17-1")))
    with pytest.raises(InputError, match=r"iperf3 3\.17-1 → 3\.18-2.*\n.*image remove"):
        image.ensure(lambda _: None, wanted)
    assert image.ensure(lambda _: None, package_lock.read(built)).lock == built


def test_a_mirror_that_has_other_versions_is_said(built: Path, tmp_path: Path) -> None:
    wanted = package_lock.read(other(tmp_path, OWN.replace("3.18-2", "3.17-1")))
    build = f"minigts image build --lock {wanted.file} --day YYYY-MM-DD"
    with pytest.raises(EnvironmentLacks, match=rf"{re.escape(build)}; or a mirror .* in MINIGTS_DEBIAN_MIRROR"):
        wanted.require_built(built)


def test_the_image_can_be_removed(built: Path) -> None:
    result = CliRunner().invoke(app, ["image", "remove"])
    assert result.exit_code == 0, result.output
    assert image.present() is None
