"""The test of an exploration: which files it takes along, how it is started, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Timer

import pytest

from minigts.errors import InputError
from minigts.explore import forked, program
from minigts.explore.program import OUTPUT, WORK
from minigts.machine.proc import stat_fields

pytestmark = pytest.mark.touched("tools/minigts/explore")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_mine.py").write_text("def test_nothing():\n    pass\n")
    (tmp_path / "check.sh").write_text('#!/bin/sh\necho "$MINIGTS_SEED of $1 in $(ls)"\nexit 3\n')
    (tmp_path / "check.sh").chmod(0o755)
    (tmp_path / "words.txt").write_text("a\n")
    return tmp_path


def laid(test: program.Program, place: Path) -> Path:
    place.mkdir()
    test.lay(place)
    return place


def test_a_pytest_file_runs_with_its_conftest_alone(here: Path) -> None:
    (here / "conftest.py").write_text("")
    test = program.read(["test_mine.py::test_nothing", "-k", "nothing"], [])
    assert test.is_pytest
    assert sorted(test.files) == ["conftest.py", "test_mine.py"]
    assert test.pytest_words()[-3:] == ["test_mine.py::test_nothing", "-k", "nothing"]
    work = laid(test, here / "course") / WORK
    assert sorted(path.name for path in work.iterdir()) == ["conftest.py", "pytest.ini", "test_mine.py"]


def test_a_command_runs_in_a_folder_with_its_files(here: Path) -> None:
    test = program.read(["./check.sh", "it"], [here / "words.txt"])
    place = laid(test, here / "course")
    code = program.run(test, place, program.environment(place, "lab", 17), Event())
    assert code == 3
    assert (place / OUTPUT).read_text() == "17 of it in check.sh\nwords.txt\n"


def test_the_program_itself_is_on_the_path(here: Path) -> None:
    test = program.read(["sh", "-c", "command -v minigts && minigts --version"], [])
    place = laid(test, here / "course")
    assert program.run(test, place, program.environment(place, "lab", 1), Event()) == 0
    first, second = (place / OUTPUT).read_text().splitlines()
    assert (first, second.split()[0]) == (str(place / "bin" / "minigts"), "minigts")


def test_one_that_is_stopped_leaves_nothing(here: Path) -> None:
    test = program.read(["sh", "-c", "sleep 600 & echo $!; wait"], [])
    place, stopped = laid(test, here / "course"), Event()
    Timer(0.5, stopped.set).start()
    assert program.run(test, place, program.environment(place, "lab", 1), stopped) is None
    child = int((place / OUTPUT).read_text())
    assert stat_fields(child)[:1] in ([], ["Z"])


PRINTING = """
import json, os, random, sys
from pathlib import Path

def test_it(tmp_path):
    told = {
        "loaded": "minigts.api" in sys.modules, "beside": sorted(os.listdir()), "path": sys.path[0], "hash": hash("a"),
        "seed": os.environ["MINIGTS_SEED"], "changed": hasattr(json, "changed"), "random": random.random(),
        "parent": os.getppid(), "group": os.getpgid(0) == os.getpid(), "left": os.environ.get("LEFT"),
    }
    json.changed = os.environ["LEFT"] = "yes"
    (Path(os.environ["MINIGTS_COURSE"]) / "told.json").write_text(json.dumps(told))
    print("said")
    assert os.environ["MINIGTS_SEED"] != "2"
"""


def test_pytest_is_loaded_once_and_each_test_begins_alike(here: Path) -> None:
    (here / "test_mine.py").write_text(PRINTING)
    test, told = program.read(["test_mine.py"], []), []
    for seed, code in ((1, 0), (2, 1)):
        place = laid(test, here / f"course{seed}")
        assert program.run(test, place, program.environment(place, "lab", seed), Event()) == code
        told.append(json.loads(dict(program.kept_files(place))["told.json"]))
        assert told[-1] == {
            **told[0],
            "seed": str(seed),
            "loaded": True,
            "beside": ["pytest.ini", "test_mine.py"],
            "path": str(place / WORK),
            "changed": False,
            "group": True,
            "left": None,
            "random": told[-1]["random"],
        }
        said = (place / OUTPUT).read_text()
        assert (("1 passed" in said), ("1 failed" in said)) == (seed == 1, seed == 2)
        assert not (place / WORK / "__pycache__").exists()
    assert told[0]["random"] != told[1]["random"]


def test_without_pytest_the_output_says_so(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "other").mkdir()
    (here / "other" / "pytest.py").write_text('raise ImportError("there is none")\n')
    monkeypatch.setattr(forked, "_idle", [])
    monkeypatch.setenv("PYTHONPATH", str(here / "other"))
    test = program.read(["test_mine.py"], [])
    place = laid(test, here / "course")
    assert program.run(test, place, program.environment(place, "lab", 1), Event()) == 1
    assert (place / OUTPUT).read_text().splitlines()[-1] == "ImportError: there is none"


def test_a_pytest_that_is_stopped_leaves_nothing_and_the_next_one_runs(here: Path) -> None:
    hanging = "import os, subprocess\ndef test_it():\n    print(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
    (here / "test_mine.py").write_text(f"{hanging}    os.wait()\n")
    test = program.read(["test_mine.py", "-s"], [])
    place, stopped = laid(test, here / "course"), Event()
    Timer(3.0, stopped.set).start()
    assert program.run(test, place, program.environment(place, "lab", 1), stopped) is None
    assert stat_fields(int((place / OUTPUT).read_text().split()[0]))[:1] in ([], ["Z"])
    (here / "test_mine.py").write_text("def test_it():\n    pass\n")
    again = program.read(["test_mine.py"], [])
    place = laid(again, here / "again")
    assert program.run(again, place, program.environment(place, "lab", 1), Event()) == 0


def test_what_the_test_leaves_in_its_folder_is_kept(here: Path) -> None:
    """But for folders, and for names that would act on a terminal."""
    script = 'cd "$MINIGTS_COURSE"; echo one >history.jsonl; touch "$(printf "a\\033b")"; mkdir other'
    test = program.read(["sh", "-c", script], [])
    place = laid(test, here / "course")
    program.run(test, place, program.environment(place, "lab", 1), Event())
    assert dict(program.kept_files(place)) == {"history.jsonl": b"one\n"}


@pytest.mark.parametrize(
    ("words", "beside", "says"),
    [
        ([], [], "name a test"),
        (["test_yours.py"], [], "test_yours.py: no such file"),
        (["./chekc.sh"], [], "./chekc.sh: no such file"),
        (["nosuchprogram"], [], "no program 'nosuchprogram'"),
        (["words.txt"], [], "words.txt: is no program: chmod +x"),
        (["test_mine.py"], ["nowhere.txt"], "nowhere.txt: cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused(words: list[str], beside: list[str], says: str) -> None:
    with pytest.raises(InputError) as refused:
        program.read(words, [Path(each) for each in beside])
    assert says in str(refused.value)


def test_a_test_that_is_no_python_is_refused_with_its_line(here: Path) -> None:
    (here / "test_mine.py").write_text("def test_nothing():\n    pass pass\n")
    with pytest.raises(InputError, match=r"test_mine\.py:2: is no Python"):
        program.read(["test_mine.py"], [])


def test_two_files_of_one_name_have_no_room(here: Path) -> None:
    (here / "other").mkdir()
    (here / "other" / "words.txt").write_text("b\n")
    with pytest.raises(InputError, match=r"two files are called words\.txt"):
        program.read(["./check.sh"], [here / "words.txt", here / "other" / "words.txt"])
