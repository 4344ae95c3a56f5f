"""The gate for folders that this user has not made on this machine: signatures, their key, and what is shown."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from minigts.errors import InputError, MinigtsError
from minigts.results import folder, gate

ACTS = b"all that acts"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    made.mkdir()
    gate.sign(made, ACTS)
    return made


def test_a_folder_is_the_user_s_own_as_long_as_what_acts_is_the_same(place: Path, tmp_path: Path) -> None:
    assert gate.is_signed(place, ACTS)
    assert not gate.is_signed(place, ACTS + b"\n")
    assert gate.is_signed(place.rename(tmp_path / "moved"), ACTS)
    assert not gate.is_signed(tmp_path, ACTS)


def test_another_user_s_folder_is_a_stranger_s(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "another"))
    assert not gate.is_signed(place, ACTS), "there is no key yet"
    gate.sign(tmp_path, ACTS)
    assert not gate.is_signed(place, ACTS)
    assert (tmp_path / "another" / gate.KEY).read_bytes() != (state / gate.KEY).read_bytes()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-2]),
    "longer": lambda path: path.write_bytes(path.read_bytes() * 2),
    "changed": lambda path: path.write_bytes(path.read_bytes().translate(bytes.maketrans(b"0123", b"1230"))),
    "of another format": lambda path: path.write_bytes(path.read_bytes().replace(b"-1 ", b"-2 ")),
    "a link": lambda path: path.rename(path.with_name("x")).parent.joinpath(path.name).symlink_to("x"),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "large": lambda path: path.write_bytes(bytes(1 << 20)),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_signature_is_none(how: str, place: Path) -> None:
    DAMAGES[how](place / gate.SIGNATURE)
    assert not gate.is_signed(place, ACTS)


def test_the_key_is_for_its_user_alone_and_is_made_once(place: Path, state: Path) -> None:
    status = (state / gate.KEY).lstat()
    assert (stat.S_IMODE(status.st_mode), status.st_size) == (0o600, gate.KEY_BYTES)
    before = (state / gate.KEY).read_bytes()
    gate.sign(place, b"other")
    assert (state / gate.KEY).read_bytes() == before
    assert [path.name for path in state.iterdir()] == [gate.KEY]


def test_several_that_make_the_key_at_the_same_time_have_the_same_one(tmp_path: Path) -> None:
    places = [tmp_path / f"{number}" for number in range(16)]
    for each in places:
        each.mkdir()
    with ThreadPoolExecutor(len(places)) as pool:
        list(pool.map(lambda each: gate.sign(each, ACTS), places))
    assert [gate.is_signed(each, ACTS) for each in places] == [True] * len(places)


KEYS: dict[str, Callable[[Path], object]] = {
    "others may read": lambda path: path.chmod(0o640),
    "others may read or write": lambda path: path.chmod(0o602),
    "is no key": lambda path: path.write_bytes(b"short"),
    "no key of 32 bytes": lambda path: path.write_bytes(bytes(33)),
    "cannot be read": lambda path: path.rename(path.with_name("x")).parent.joinpath(path.name).symlink_to("x"),
}


@pytest.mark.parametrize("why", KEYS)
def test_a_key_that_is_damaged_or_known_is_one_clear_error(why: str, place: Path, state: Path) -> None:
    """Neither is it used, nor is it replaced in silence, which would make all folders strangers'."""
    KEYS[why](state / gate.KEY)
    for act in (lambda: gate.is_signed(place, ACTS), lambda: gate.sign(place, ACTS)):
        with pytest.raises(InputError, match=f"{gate.KEY}: .*{why[:10]}.*; remove it: a new one is made") as refused:
            act()
        assert str(refused.value).count("\n") == 0


def test_nothing_but_the_gate_says_what_is_trusted() -> None:
    assert gate.own("x").content == "x"
    with pytest.raises(TypeError):
        gate.Trusted("x", object())


def test_what_a_stranger_s_folder_asks_for_is_shown_line_by_line(tmp_path: Path) -> None:
    theirs = gate.examine(tmp_path, "content", ACTS)
    asks = ["run `id\n  nothing else`", "\x1b[8mhidden", "x" * 3000, *(f"{number}" for number in range(300))]
    with pytest.raises(InputError) as refused:
        theirs.allow(asks, trusted=False)
    first, *lines, remedy = str(refused.value).splitlines()
    assert first.startswith(f"{tmp_path}: it has no valid signature of yours: ")
    assert lines[:2] == ["  run `id\\n  nothing else`", "  \\x1b[8mhidden"]
    assert lines[2].endswith("… and 1000 more characters")
    assert (lines[-1], len(lines)) == ("  … and 103 more", gate.MOST_LINES + 1)
    assert remedy.endswith("add --trust")
    assert theirs.allow(asks, trusted=True).content == "content"
    assert theirs.allow([], trusted=False).content == "content"


def test_a_bundle_is_always_a_stranger_s(place: Path) -> None:
    assert gate.examine(place, "content", ACTS).is_own
    with pytest.raises(InputError):
        gate.examine_bundle(place, "content").allow(["run it"], trusted=False)


NO_NAMES = ("", ".", "..", "../x", "../../x", "/etc/x", "a/b", "a\0b", "a\nb", "a\tb", "\x1b[2J", "\u202ex", "é" * 101)


@pytest.mark.parametrize("name", [*NO_NAMES, "\ud800", os.fsdecode(b"\xff")])
def test_what_is_no_plain_name_is_written_nowhere(name: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(InputError, match="is no name of a file"):
        folder.write_new(tmp_path / "a" / "b", name, b"evil")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("target", ["../../outside", "/nonexistent/outside", "there"])
def test_a_file_is_not_written_through_a_link(target: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "name").symlink_to(target)
    with pytest.raises(MinigtsError, match="File exists"):
        folder.write_new(tmp_path / "a" / "b", "name", b"evil")
    assert not (tmp_path / "outside").exists()


def test_a_new_file_has_its_mode(tmp_path: Path) -> None:
    folder.write_new(tmp_path, "run.sh", b"exit 0\n", 0o755)
    assert ((tmp_path / "run.sh").read_bytes(), stat.S_IMODE((tmp_path / "run.sh").stat().st_mode)) == (
        b"exit 0\n",
        0o755,
    )
