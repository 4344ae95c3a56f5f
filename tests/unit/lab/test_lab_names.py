"""Names of labs are only names, and nothing is removed but what minigts made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab
from minigts.topology.read.load import parse

PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n", "two.yaml")
TWO = "name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n"
NO_NAMES = (
    *("", ".", "..", "/", "a/b", "../../x", "/tmp/v", "labs/..", ".hidden", "-f", "a b", "a\n", "a\0b", "a\x1b[31m"),
    *("é", "x" * 65, "a\\b", "~", "*"),
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, beside something precious."""
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("years of work")
    tc_hosts.register(monkeypatch)
    return tmp_path / "state"


def everything(directory: Path) -> dict[str, str]:
    return {str(path): path.read_text() if path.is_file() else "" for path in directory.rglob("*")}


def up(name: str | None = None) -> Lab:
    return labs.up(PLAN, tc_hosts.TcHosts.name, name, lambda _: None)


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_is_refused_and_nothing_is_touched(tmp_path: Path, name: str) -> None:
    """Before, this removed the directory that the path led to."""
    before = everything(tmp_path)
    with pytest.raises(InputError, match="is no name of a lab: write at most 64 letters"):
        up(name)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("path", ["../../precious", "ABSOLUTE"])
def test_a_path_to_something_else_is_left_alone(tmp_path: Path, path: str) -> None:
    precious = tmp_path / "precious"
    with pytest.raises(InputError, match="is no name of a lab"):
        up(path.replace("ABSOLUTE", str(precious)))
    assert everything(precious) == {str(precious / "thesis.tex"): "years of work"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["up", "FILE", "--lab", "NAME"],
        ["down", "NAME"],
        ["exec", "--lab", "NAME", "ams", "--", "true"],
        ["shell", "--lab", "NAME", "ams"],
        ["restart", "--lab", "NAME", "ams"],
        ["link", "--lab", "NAME", "ams", "bra", "down"],
        ["check", "--lab", "NAME"],
        ["calibrate", "NAME"],
        ["logs", "--lab", "NAME"],
        ["policy", "remove", "--lab", "NAME"],
        ["run", "experiments/multihop.yaml", "--lab", "NAME"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_verb_judges_a_labs_name(tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    project = Path(__file__).parents[3]
    words = {
        "FILE": str(file),
        "NAME": "../../precious",
        "experiments/multihop.yaml": f"{project}/experiments/multihop.yaml",
    }
    done = CliRunner().invoke(app, [words.get(word, word) for word in arguments])
    assert done.exit_code == 2
    assert "is no name of a lab" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "two.yaml"]


def test_a_run_directory_too_deep_for_hosts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of User-Mode Linux made directories elsewhere, where the path was cut off."""
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    monkeypatch.setenv("MINIGTS_STATE", str(deep))
    with pytest.raises(InputError, match=r"bytes longer than the 200 that hosts allow: choose a shorter name"):
        up()
    assert not deep.exists()


@pytest.mark.parametrize("name", ["a", "two", "pair-2", "live_1", "v1.2", "_x", "X" * 64, "a..b"])
def test_a_plain_name_is_one(name: str) -> None:
    lab = up(name)
    assert [each.name for each in labs.all_labs()] == [name]
    labs.down(lab)
    assert labs.all_labs() == []


def test_a_lab_is_gone_with_its_lock_when_it_is_down(state: Path) -> None:
    labs.down(up())
    assert list((state / "labs").iterdir()) == []


def link_to_precious(place: Path) -> None:
    place.symlink_to(place.parents[2] / "precious")


def directory_of_another(place: Path) -> None:
    place.mkdir()
    (place / "thesis.tex").write_text("years of work")


def file_of_another(place: Path) -> None:
    place.write_text("years of work")


FOREIGN = [link_to_precious, directory_of_another, file_of_another]


@pytest.mark.parametrize("make", FOREIGN)
def test_what_is_no_lab_is_left_alone_in_a_labs_place(
    tmp_path: Path, state: Path, make: Callable[[Path], None]
) -> None:
    (state / "labs").mkdir(parents=True)
    make(state / "labs" / "two")
    before = everything(tmp_path)
    for act in (up, lambda: labs.open_lab("two"), lambda: labs.down(Lab(state / "labs" / "two"))):
        with pytest.raises(InputError, match=r"labs/two is .* and no lab of minigts: it is left alone"):
            act()
    assert labs.all_labs() == []
    assert everything(tmp_path) == before


def test_a_run_directory_elsewhere_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "precious"
    (elsewhere / "lab.json").write_text("{}")
    with pytest.raises(InputError, match="does not lie in"):
        labs.down(Lab(elsewhere))
    assert (elsewhere / "thesis.tex").exists()


@pytest.mark.parametrize("content", [(), ("minigts-lab",), ("lab.json",), ("minigts-lab", ".lab.json.x1")], ids=str)
def test_a_lab_that_was_broken_off_at_any_step_can_be_taken_down(state: Path, content: tuple[str, ...]) -> None:
    rundir = state / "labs" / "two"
    rundir.mkdir(parents=True)
    for name in content:
        (rundir / name).touch()
    assert [lab.name for lab in labs.all_labs()] == ["two"]
    labs.down(labs.open_lab("two"))
    assert not rundir.exists()


@pytest.mark.parametrize("make", [None, *FOREIGN])
def test_consoles_of_a_failed_start_replace_those_of_the_last_and_nothing_else(
    state: Path, make: Callable[[Path], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tc_hosts.TcHosts, "missing", lambda _: ["no such machine"])
    kept = state / "failed" / "two"
    if make is not None:
        kept.parent.mkdir(parents=True)
        make(kept)
    before = everything(state.parent)
    for _ in range(2):
        with pytest.raises(EnvironmentLacks):
            up()
    if make is None:
        assert [path.name for path in kept.iterdir()] == ["minigts-lab"]
    else:
        assert {path: text for path, text in everything(state.parent).items() if "/labs" not in path} == before
