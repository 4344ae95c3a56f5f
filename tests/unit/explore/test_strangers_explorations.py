"""An exploration's folder that somebody sent: its test does not run, and its files are written nowhere, unasked."""

from __future__ import annotations

import base64
import json
import random
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tc_hosts
from fuzz_results import broken_at_random, unfit
from typer.testing import CliRunner, Result

from minigts.cli.app import app
from minigts.errors import InputError, MinigtsError
from minigts.explore import bundling, folder, permission, timeline
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program, ProgramFile
from minigts.explore.work import Exploration, Reduced
from minigts.results import gate
from minigts.topology.read.load import parse

PAIR = parse("name: pair\npair: {hosts: [a, b], link: {rtt: 2ms, rate: 100mbit}}\n", "pair.yaml", time="real")
FAULTS = "faults: {partition: {every: 1s, for: 1s}, length: 1min}\n"
SHARE = 100
"""One folder for so many of `--fuzz`, since each is tried by a whole verb."""
VERBS = (
    ("replay", "DIR", "--seed", "1"),
    ("replay", "DIR", "--seed", "2", "--until", "1s"),
    ("replay", "DIR", "--seed", "2", "--shrink"),
    ("replay", "DIR", "--seed", "2", "--shrunk"),
    ("explore", "--resume", "DIR", "--on", "here"),
)


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that exists once the folder's test has run."""
    return tmp_path / "canary"


@pytest.fixture
def place(tmp_path: Path, canary: Path) -> Path:
    """The user's own folder, in which seed 1 passed, seed 2 failed and was shrunk, and seed 3 was not taken."""
    exploration = Exploration(
        minigts="1.2",
        topology="pair",
        plan=PAIR,
        provider=tc_hosts.TcHosts.name,
        test=Program(
            words=("sh", "-c", f"touch {shlex.quote(str(canary))}"),
            files={"check.sh": ProgramFile(content=base64.b64encode(b"exit 0\n").decode(), program=True)},
        ),
        faults=FAULTS,
        first=1,
        last=3,
        longest_s=1,
        started="2026-11-27T00:00:00+00:00",
    )
    made = folder.create(tmp_path / "results", exploration, datetime(2026, 11, 27, tzinfo=UTC))
    folder.keep(made, Outcome(seed=1, verdict="passed"), {})
    line = timeline.text_of([{"at_s": 1.0, "event": "cut", "link": "a-b"}])
    folder.keep(made, Outcome(seed=2, verdict="failed", why="3 are lost"), {timeline.FILE: line, "echoes.txt": "3"})
    folder.keep_shrunk(made, 2, Reduced(faults=(1,), for_s={1: 0.5}))
    return made


def told(words: tuple[str, ...], directory: Path, *more: str) -> Result:
    return CliRunner().invoke(app, [*(str(directory) if word == "DIR" else word for word in words), *more])


def content(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def edited(place: Path) -> None:
    (place / folder.EXPLORATION).write_text((place / folder.EXPLORATION).read_text().replace("check.sh", "check.py"))


def unsigned(place: Path) -> None:
    (place / gate.SIGNATURE).unlink()


def of_another_user(place: Path) -> None:
    (place.parents[1] / "state" / gate.KEY).write_bytes(bytes(gate.KEY_BYTES))


@pytest.mark.parametrize("how", [edited, unsigned, of_another_user])
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_the_test_of_somebody_else_s_folder_is_shown_and_not_run(
    how: Any, words: tuple[str, ...], place: Path, canary: Path
) -> None:
    how(place)
    before = content(place.parents[1])
    said = told(words, place)
    assert said.exit_code == 2, said.output
    shown = " ".join(said.stderr.split())
    assert "no valid signature of yours" in shown
    assert f"run the test `sh -c 'touch {canary}'` as you, with check." in shown
    assert shown.endswith("add --trust")
    assert not canary.exists()
    assert content(place.parents[1]) == before


def test_once_it_is_trusted_it_runs_and_is_not_asked_about_again(place: Path, canary: Path) -> None:
    unsigned(place)
    first = told(VERBS[-1], place, "--trust")
    assert (first.exit_code, canary.exists()) == (1, True), first.output  # seed 2 has failed before
    canary.unlink()
    second = told(VERBS[0], place)
    assert (canary.exists(), "--trust" in second.output) == (True, False), second.output


def test_the_user_s_own_folder_runs_wherever_it_was_moved(place: Path, tmp_path: Path, canary: Path) -> None:
    place.rename(tmp_path / "moved")
    said = told(VERBS[0], tmp_path / "moved")
    assert (canary.exists(), "--trust" in said.output) == (True, False), said.output


NAMES = (
    "../../outside",
    "../outside",
    "/tmp/minigts-outside",
    "a/b",
    "..",
    ".",
    "",
    "a\0",
    "x\ny",
    "\x1b[2J",
    "x" * 300,
)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_a_test_lies_in_the_test_s_folder_or_nowhere(name: str, place: Path, tmp_path: Path) -> None:
    """Also in a folder that is trusted."""
    document = json.loads((place / folder.EXPLORATION).read_text())
    document["test"]["files"][name] = {"content": base64.b64encode(b"evil").decode()}
    (place / folder.EXPLORATION).write_text(json.dumps(document))
    before = content(tmp_path)
    said = told(VERBS[0], place, "--trust")
    assert said.exit_code == 2, said.output
    assert f"{folder.EXPLORATION}:1: test.files" in said.stderr.replace("\n", "")
    assert "is no plain name of a file" in " ".join(said.stderr.split())
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("words", []),
        ("words", ["sh", "a\0b"]),
        ("files", {"x": {"content": "no base64"}}),
        ("files", {f"{number}": {"content": ""} for number in range(201)}),
    ],
)
def test_a_test_that_cannot_be_is_one_clear_error(key: str, value: object, place: Path) -> None:
    document = json.loads((place / folder.EXPLORATION).read_text())
    document["test"][key] = value
    (place / folder.EXPLORATION).write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"explore.json:1: test\.{key}"):
        folder.read(place)


SEEDS = [(key, value) for key in ("first", "last") for value in ("-1", "1000000000000", "1e14", "1e999", "null", '"x"')]


@pytest.mark.parametrize(("key", "value"), [*SEEDS, *(("longest_s", value) for value in ("-1", "0", "1e999", "null"))])
def test_seeds_and_times_without_end_are_refused(key: str, value: str, place: Path) -> None:
    """A list of all seeds would take all memory."""
    document = json.loads((place / folder.EXPLORATION).read_text())
    document[key] = "VALUE"
    (place / folder.EXPLORATION).write_text(json.dumps(document).replace('"VALUE"', value))
    with pytest.raises(InputError, match=r"explore\.json"):
        folder.read(place)


def mutants(place: Path, into: Path, number: int) -> Iterator[tuple[Path, str]]:
    """Copies of the folder that were damaged at random, each in place of the last."""
    chance = random.Random(2017)
    for count in range(number):
        mutant = into / f"mutant-{count}"
        shutil.copytree(place, mutant)
        yield mutant, "; ".join(broken_at_random(mutant, chance) for _ in range(chance.choice((1, 1, 2))))
        shutil.rmtree(mutant)


@pytest.mark.timeout(3600)
def test_damaged_folders_of_somebody_else_are_refused_and_nothing_of_them_acts(
    place: Path, tmp_path: Path, canary: Path, pytestconfig: pytest.Config
) -> None:
    """`--fuzz 100000` for a thousand. Each verb refuses each; where the user would trust one, its files stay within
    the test's folder; and what is packed is refused, too."""
    number = max(60, pytestconfig.getoption("fuzz") // SHARE)
    unsigned(place)
    (tmp_path / "mutants").mkdir()
    chance, taken = random.Random(57), 0
    for mutant, done in mutants(place, tmp_path / "mutants", number):
        before = sorted(path.name for path in tmp_path.iterdir())
        said = told(chance.choice(VERBS), mutant)
        assert said.exit_code == 2, (done, said.output)
        assert said.exception is None or isinstance(said.exception, SystemExit), (done, said.exc_info)
        assert "Traceback" not in said.output, done
        wrong = []
        for step in (
            partial(laid, mutant, tmp_path / "work"),
            partial(read, mutant),
            partial(packed, mutant, tmp_path),
        ):
            try:
                taken += step() is not None
            except MinigtsError as error:
                wrong += unfit(error)
        assert wrong == [], done
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        (tmp_path / "a.zip").unlink(missing_ok=True)
        assert sorted(path.name for path in tmp_path.iterdir()) == before, done
        assert not canary.exists(), done
    assert taken


def laid(mutant: Path, work: Path) -> Exploration:
    """The files of a test as a course lays them, if the user trusted the folder."""
    found = folder.read(mutant)
    assert permission.asks(found)
    work.mkdir()
    found.test.lay(work)
    inside = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert {f"work/{name}" for name in found.test.files} <= inside
    return found


def read(mutant: Path) -> object:
    found = folder.read(mutant)
    folder.missing(mutant, found)
    found.draw_faults(2)
    folder.recorded_files(mutant, 2)
    return folder.shrunk(mutant, 2)


def packed(mutant: Path, into: Path) -> object:
    bundling.write(mutant, into / "a.zip")
    with pytest.raises(InputError):
        bundling.unpack(into / "a.zip", into, trusted=False)
    return into
