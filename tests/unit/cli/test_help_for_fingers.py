"""What fingers type that know another program: it does what is meant, or the answer names what does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import typer.main
from typer.testing import CliRunner, Result

from minigts.cli.app import app
from minigts.cli.help_from_source import SPOKEN, answer, verbs
from minigts.machine import interruption

PROJECT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def do(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("word", SPOKEN)
def test_a_verb_of_another_program_names_ours(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also before there is a virtual environment, when help is read from the source."""
    ours = SPOKEN[word].rpartition("minigts ")[2].split()[0]
    program = typer.main.get_command(app)
    assert ours in program.commands  # type: ignore[attr-defined]
    assert word not in program.commands  # type: ignore[attr-defined]
    done = do(word, "ams", "--all")
    assert (done.exit_code, done.stderr) == (2, f"minigts: no verb '{word}': {SPOKEN[word]}\n")
    assert answer([word], verbs()) == 2
    assert f"minigts: no verb '{word}': {SPOKEN[word]}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("ps", "minigts status"),
        ("inspect", "minigts status"),
        ("destroy", "minigts down"),
        ("deploy", "minigts up TOPOLOGY"),
        ("ssh", "minigts shell HOST"),
        ("graph", "minigts plan TOPOLOGY"),
    ],
)
def test_who_knows_docker_containerlab_or_vagrant_is_led_to_our_verb(word: str, ours: str) -> None:
    done = do(word)
    assert (done.exit_code, done.stderr.startswith(f"minigts: no verb '{word}': ")) == (2, True)
    assert ours in done.stderr


GENERATORS = ("generate internet", "generate satellites")


def test_every_verb_on_a_lab_takes_its_name_by_lab() -> None:
    program = typer.main.get_command(app)
    takes = {
        f"{name} {below}".strip(): {option for each in one.params for option in each.opts}
        for name, verb in program.commands.items()  # type: ignore[attr-defined]
        if getattr(verb, "rich_help_panel", None) == "Labs"
        for below, one in getattr(verb, "commands", {"": verb}).items()
    }
    without = {name for name, options in takes.items() if "--lab" not in options}
    # What is no lab that is up: files, the machine, labs that were saved, and netlab, which names its own.
    assert without == {"plan", "init", "limits", "import", "export", "saved", "netlab", *GENERATORS}


@pytest.mark.parametrize("verb", ["down", "calibrate", "top", "events", "serve", "ssh-config", "inventory"])
def test_a_lab_is_named_once(verb: str) -> None:
    done = do(verb, "one", "--lab", "two")
    assert (done.exit_code, done.stderr) == (2, "minigts: one and --lab two are two labs: name one\n")
    for words in ([verb, "one"], [verb, "--lab", "one"], [verb, "one", "--lab", "one"]):
        assert do(*words).stderr == do("check", "--lab", "one").stderr != ""


@pytest.mark.parametrize("verb", ["plan", "up"])
def test_an_experiment_is_run(verb: str, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "experiments" / "multihop.yaml", tmp_path / "multihop.yaml")
    done = do(verb, "multihop.yaml")
    told = "this file is an experiment: minigts run multihop.yaml measures it; the topology that it names is "
    assert (done.exit_code, done.stderr.splitlines()) == (
        2,
        [f"minigts: multihop.yaml:1: {told}topologies/chain6.yaml"],
    )


def test_a_topology_is_brought_up(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "topologies" / "ring6.yaml", tmp_path / "ring6.yaml")
    done = do("run", "ring6.yaml", "--dry-run")
    assert (done.exit_code, done.stderr.splitlines()) == (
        2,
        [
            "minigts: ring6.yaml:1: this file is a topology: minigts up ring6.yaml brings it up; an experiment, which "
            "says what is measured of it, names it by `topology: ring6.yaml`"
        ],
    )


def test_every_experiment_and_topology_of_ours_is_what_it_is() -> None:
    for folder, wrong in (("experiments", "up"), ("topologies", "run")):
        for file in sorted((PROJECT / folder).glob("*.yaml")):
            assert "this file is a" in do(wrong, str(file)).stderr, file


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param("def test_it(): pass\n", 0, marks=pytest.mark.nightly),
        pytest.param("def test_it(): assert False\n", 1, marks=pytest.mark.nightly),
        ("import nothing_of_that_name\n", 2),
        pytest.param("def test_it(): raise KeyboardInterrupt\n", 130, marks=pytest.mark.nightly),
    ],
)
def test_tests_that_cannot_be_read_are_no_interruption(content: str, code: int, tmp_path: Path) -> None:
    """In a process of its own, since this one is pytest's."""
    (tmp_path / "test_own.py").write_text(content)
    (tmp_path / "own.yaml").write_text("name: own\npair: {hosts: [a, b]}\n")
    words = ["test", "--minigts", "own.yaml", "-p", "no:cacheprovider", "test_own.py"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tools")}
    done = subprocess.run(
        [sys.executable, "-m", "minigts", *words], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == code, done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["ams-bra", "-w", "a.pcap", "tcp", "port", "80", "--for", "2", "--at", "bra"],
        ["-w", "a.pcap", "ams-bra", "tcp", "--at", "bra", "port", "80", "--for", "2"],
        ["--for", "2", "--at", "bra", "-w", "a.pcap", "ams-bra", "tcp", "port", "80"],
    ],
)
def test_the_options_of_capture_stand_anywhere(words: list[str]) -> None:
    verb = typer.main.get_command(app).commands["capture"]  # type: ignore[attr-defined]
    found = verb.make_context("capture", words).params
    assert found["where"] == "ams-bra"
    assert list(found["expression"]) == ["tcp", "port", "80"]
    assert (found["file"], found["seconds"], list(found["ends"])) == (Path("a.pcap"), 2.0, ["bra"])


@pytest.mark.parametrize("words", [["--", "-w", "x"], ["--", " -e icmp"]])
def test_a_filter_that_begins_with_a_hyphen_is_refused(words: list[str]) -> None:
    done = do("capture", "ams-bra", *words)
    said = "capture: the filter begins with a hyphen, '-"
    assert (done.exit_code, said in done.stderr, "tcpdump's own options are not taken" in done.stderr) == (
        2,
        True,
        True,
    )


def test_an_option_of_tcpdump_is_none_of_capture() -> None:
    done = do("capture", "ams-bra", "-e", "icmp")
    assert (done.exit_code, "No such option: -e" in done.stderr) == (2, True)


@pytest.mark.nightly
def test_an_installed_minigts_does_not_warn_of_its_own_plugin(tmp_path: Path) -> None:
    """Its distribution names the plugin and all of its files, which pytest would rewrite before they are loaded."""
    beside = tmp_path / "site" / "minigts-0.1.0.dist-info"
    beside.mkdir(parents=True)
    (beside / "METADATA").write_text("Metadata-Version: 2.1\nName: minigts\nVersion: 0.1.0\n")
    (beside / "entry_points.txt").write_text("[pytest11]\nminigts.testing.plugin = minigts.testing.plugin\n")
    (beside / "RECORD").write_text("minigts/__init__.py,,\nminigts/testing/plugin.py,,\n")
    (tmp_path / "test_own.py").write_text("def test_it(): pass\n")
    (tmp_path / "own.yaml").write_text("name: own\npair: {hosts: [a, b]}\n")
    words = ["test", "--minigts", "own.yaml", "-p", "no:cacheprovider", "test_own.py"]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT / 'tools'}:{beside.parent}"}
    argv = [sys.executable, "-m", "minigts", *words]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout, "warning" in done.stdout) == (0, True, False), done.stdout


def test_an_interruption_that_a_library_has_hidden_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pydantic raises an error of its own where the signal comes while it builds a model."""

    def hiding(*_: object) -> NoReturn:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal has raised KeyboardInterrupt")

    def library(*_: object) -> NoReturn:
        try:
            hiding()
        except KeyboardInterrupt as error:
            raise ValueError("Error building a validator") from error

    def interrupted(_number: int, _frame: object) -> NoReturn:
        interruption.note()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    monkeypatch.setattr(interruption, "_moments", [])
    monkeypatch.setattr("minigts.lab.all_labs", library)
    try:
        done = CliRunner().invoke(app, ["status"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.exit_code, "interrupted" in done.stderr) == (130, True)
    monkeypatch.setattr(interruption, "_moments", [])
    monkeypatch.setattr("minigts.lab.all_labs", lambda *_: {}["a bug"])
    assert isinstance(CliRunner().invoke(app, ["status"]).exception, KeyError)
