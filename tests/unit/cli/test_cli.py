"""The command line: exit codes, messages, and what goes to which stream. Real files, no hosts."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from minigts.cli import console, help_from_source, verbs
from minigts.cli.app import app, main
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.providers import DEFAULT, registry

PROJECT = Path(__file__).parents[3]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
VERBS = sorted(
    f"{name} {each}".rstrip()
    for name, command in COMMANDS.items()
    for each, own in getattr(command, "commands", {"": command}).items()
    if not own.hidden
)
"""Each that the program has, those of groups with their group's name: `link` and `policy apply`."""
SHOWN_BY = {"examples": "up"}
"""What it lists is given to another verb."""
GOOD = "name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n"

runner = CliRunner()


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "two.yaml"
    file.write_text(GOOD)
    return file


def program(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, for what only such a one shows."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "minigts", *arguments],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tools"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_verb() -> None:
    done = runner.invoke(app, ["--help"])
    assert done.exit_code == 0
    for name, command in COMMANDS.items():
        shown = re.search(rf"^\W*{name}\b", done.stdout, re.MULTILINE) is not None
        assert shown is not command.hidden, name


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_teaches_by_an_example(verb: str) -> None:
    done = runner.invoke(app, [*verb.split(), "--help"])
    assert done.exit_code == 0
    assert re.search(rf"Example:  .*minigts {SHOWN_BY.get(verb, verb)}\b", done.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_help_breaks_a_line_only_where_the_window_ends(verb: str) -> None:
    shown = runner.invoke(app, [*verb.split(), "--help"], env={"COLUMNS": "80"}).stdout
    prose = shown.partition("╭")[0].splitlines()
    assert len(prose) > 4
    for line, below in pairwise(prose):
        if line.strip() and below.strip():
            assert len(f"{line.rstrip()} {below.split()[0]}") > 79, line


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_from_the_source_fits_the_window(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert help_from_source.answer([*verb.split(), "--help"], help_from_source.verbs()) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "matplotlib", "ruamel", "pydantic", "jinja2", "lark", "asyncio")
    rooms = ("api", "experiments", "fidelity", "lab", "lessons", "overlays", "report", "results")
    parts = ("providers.base", "topology.fields", "language.tree")
    assert not loaded_by("--help") & {*heavy, *(f"minigts.{name}" for name in (*rooms, *parts))}


def test_a_plan_is_made_without_what_it_does_not_need(tmp_path: Path) -> None:
    unneeded = ("lark", "minigts.lab", "minigts.overlays", "minigts.lessons.model", "minigts.experiments")
    file = tmp_path / "row.yaml"
    file.write_text("name: row\nchain: {hosts: 67}\n")
    assert not loaded_by("plan", str(file)) & {*unneeded}


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a start of the program with these arguments has loaded at its end."""
    end = "atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    code = f"import atexit, sys; {end}; sys.argv[1:] = {[*arguments]!r}; from minigts.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tools")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_a_verb_starts_without_the_other_verbs() -> None:
    loaded = {name for name in loaded_by("examples") if name.startswith("minigts.cli.verbs.")}
    assert loaded == {"minigts.cli.verbs.examples"}


def test_a_verb_is_a_file_in_their_folder() -> None:
    files = (PROJECT / "tools" / "minigts" / "cli" / "verbs").glob("*.py")
    names = {file.stem.rstrip("_").replace("_", "-") for file in files if file.stem != "__init__"}
    assert {*COMMANDS} == names
    assert all(command.name == name for name, command in COMMANDS.items())


def test_each_verb_has_a_place_of_its_own_in_the_list() -> None:
    places = [verbs.verb(name).place for name in verbs.names()]
    assert places == sorted({*places})


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_builds_no_verb(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.delattr(verbs.Verb, "command_named")
    assert runner.invoke(app, words).exit_code == 0


def test_a_verb_is_listed_as_it_is() -> None:
    """To list it, its parameters are not read; what is said of it is the same."""
    said = ("name", "help", "hidden", "rich_help_panel", "rich_markup_mode")
    for name, command in COMMANDS.items():
        listed = verbs.verb(name).help_entry(name)
        assert [getattr(listed, each) for each in said] == [getattr(command, each) for each in said]


@pytest.mark.parametrize("arguments", [["no-such-verb"], ["up"], ["plan", "--no-such-option", "x"], ["exec", "h1"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stdout == ""


@pytest.mark.parametrize("words", [["ams"], ["ams", "bra"], ["ams", "bra", "off"]])
def test_link_wants_to_know_what_becomes_of_it(words: list[str]) -> None:
    done = runner.invoke(app, ["link", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "up" in done.stderr and "down" in done.stderr


def test_what_link_may_be_given_is_not_said_to_be_required() -> None:
    first, second, _ = COMMANDS["link"].params[:3]
    assert (first.required, second.required, second.metavar) == (True, False, "[HOST]")


def test_plan_prints_the_same_bytes_each_time(topology: Path) -> None:
    first, second = (program("plan", "--json", str(topology), PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert [host["name"] for host in json.loads(first.stdout)["hosts"]] == ["ams", "bra"]


def test_plan_shows_groups() -> None:
    done = runner.invoke(app, ["plan", str(PROJECT / "topologies" / "fourpairs.yaml")])
    assert "groups, each with an overlay network of its own" in done.stdout
    assert re.search(r"^b\tb1, b2$", done.stdout, re.MULTILINE)


def test_plan_shows_tables(topology: Path) -> None:
    done = runner.invoke(app, ["plan", str(topology)])
    assert done.exit_code == 0
    assert "ams – bra" in done.stdout
    assert "10.00 ms" in done.stdout


def test_a_plan_in_a_time_that_the_provider_has_not_is_shown_all_the_same(topology: Path) -> None:
    done = runner.invoke(app, ["plan", str(topology), "--provider", "vagrant", "--time", "virtual"])
    assert (done.exit_code, done.stderr) == (0, "")


def test_each_problem_of_a_file_is_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: two\npair: {hosts: [a, b], link: {rtt: 10, rate: 50}}\n")
    done = runner.invoke(app, ["plan", str(file)])
    assert done.exit_code == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"minigts: {file}:2: ") for line in lines)


def test_an_unknown_overlay_names_the_known_ones(topology: Path) -> None:
    done = runner.invoke(app, ["up", str(topology), "--overlay", "swam"])
    assert done.exit_code == 2
    assert "did you mean 'swarm'?" in done.stderr


def test_a_bad_experiment_is_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: x\nrepetitions: many\n")
    done = runner.invoke(app, ["run", "--dry-run", str(file)])
    assert done.exit_code == 2
    assert "bad.yaml" in done.stderr


def test_a_dry_run_refuses_a_provider_without_the_files_time() -> None:
    file = Path(__file__).parents[3] / "experiments" / "validation" / "marks.yaml"
    done = runner.invoke(app, ["run", "--dry-run", "--provider", "mininet", str(file)])
    assert done.exit_code == 2
    assert "provider mininet has no virtual time: say --time real" in done.stderr


def test_a_report_of_nothing_is_exit_code_2(tmp_path: Path) -> None:
    done = runner.invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert f"minigts: {tmp_path}: " in done.stderr


def test_figures_that_results_cannot_give_are_exit_code_2_and_leave_nothing(tmp_path: Path) -> None:
    file, to = tmp_path / "figures.yaml", tmp_path / "drawn"
    file.write_text("figures:\n  - {of: rtt}\n")
    results = Path(__file__).parents[1] / "report_sample"
    done = runner.invoke(app, ["plot", str(results), str(file), "--to", str(to)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"minigts: {file}:2: figures[0].of: no measurement 'rtt'; ")
    assert not to.exists()


def test_a_dry_run_tells_real_time_beside_the_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    file = tmp_path / "rest.yaml"
    text = (
        "name: rest\ntitle: r\ntopology: topologies/pair.yaml\noverlays: [none]\nseed: 1\nrepetitions: 9\n"
        "measurements:\n  - {name: echoes, tool: ping, paths: [first-to-last], rest: 400s}\n"
    )
    file.write_text(text)
    done = runner.invoke(app, ["run", "--dry-run", "--time", "virtual", str(file)])
    assert "of measuring in virtual time, about 33 s here in all" in " ".join(done.stdout.split())
    done = runner.invoke(app, ["run", "--dry-run", "--time", "real", str(file)])
    assert "of measuring in real time, about 1 h 00 min here in all" in " ".join(done.stdout.split())


def test_schema_is_json() -> None:
    done = runner.invoke(app, ["schema"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["type"] == "object"


def test_doctor_speaks_to_programs() -> None:
    done = runner.invoke(app, ["doctor", "--json"])
    providers = {entry["provider"]: entry for entry in json.loads(done.stdout)}
    assert tuple(providers) == registry.names()
    assert done.exit_code == (0 if providers[DEFAULT]["verdict"].startswith("runs") else 3)


def test_status_without_a_lab_is_an_empty_list(tmp_path: Path) -> None:
    done = runner.invoke(app, ["status", "--json"], env=own_state(tmp_path))
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])


@pytest.mark.parametrize(
    "verb", [["down"], ["check"], ["exec", "h1", "--", "true"], ["shell", "h1"], ["link", "a", "b", "down"]]
)
def test_without_a_lab_the_error_says_so(tmp_path: Path, verb: list[str]) -> None:
    done = runner.invoke(app, verb, env=own_state(tmp_path))
    assert done.exit_code == 2
    assert done.stderr.startswith("minigts: ")
    assert "Traceback" not in done.stderr


def test_a_lab_that_was_never_complete_is_shown_and_can_be_taken_down(tmp_path: Path) -> None:
    (tmp_path / "labs" / "half").mkdir(parents=True)
    (shown,) = json.loads(runner.invoke(app, ["status", "--json"], env=own_state(tmp_path)).stdout)
    assert shown["name"] == "half"
    assert "minigts down half" in shown["problem"]
    assert "minigts down half" in runner.invoke(app, ["status"], env=own_state(tmp_path)).stdout
    assert runner.invoke(app, ["down", "half"], env=own_state(tmp_path)).exit_code == 0
    assert json.loads(runner.invoke(app, ["status", "--json"], env=own_state(tmp_path)).stdout) == []


def test_down_all_without_a_lab_does_nothing(tmp_path: Path) -> None:
    assert runner.invoke(app, ["down", "--all"], env=own_state(tmp_path)).exit_code == 0


def test_a_reader_that_leaves_is_no_error(topology: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "minigts", "plan", topology],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tools")},
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_traceback_is_shown_on_request_only(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    assert "Traceback" not in runner.invoke(app, ["plan", missing], env={"MINIGTS_DEBUG": ""}).stderr
    assert "Traceback" in runner.invoke(app, ["plan", missing], env={"MINIGTS_DEBUG": "1"}).stderr
    assert "Traceback" in runner.invoke(app, ["-v", "plan", missing]).stderr


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (MinigtsError("too slow"), 1, ["minigts: too slow"]),
        (InputError([Problem("a", 2, "x"), Problem("a", 1, "y")]), 2, ["minigts: a:1: y", "minigts: a:2: x"]),
        (EnvironmentLacks("no tun"), 3, ["minigts: no tun"]),
        (CommandFailed("h1", ["false"], 1, "", ""), 1, ["minigts: on h1: `false` ended with code 1"]),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "base.ext4"),
            3,
            ["minigts: base.ext4: No space left on device"],
        ),
        (KeyboardInterrupt(), 130, ["minigts: interrupted"]),
        (ExceptionGroup("down", [MinigtsError("a"), EnvironmentLacks("b")]), 3, ["minigts: a", "minigts: b"]),
    ],
)
def test_errors_are_explained(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, lines: list[str]
) -> None:
    assert console.is_expected(error)
    assert console.explain(error, debug=False) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.splitlines()) == ("", lines)


@pytest.mark.parametrize("error", [ValueError("a bug"), ExceptionGroup("", [MinigtsError("a"), TypeError("a bug")])])
def test_a_bug_is_not_explained_away(error: BaseException) -> None:
    assert not console.is_expected(error)


def own_state(folder: Path) -> dict[str, str]:
    """An environment in which no lab of the person who runs the tests is seen."""
    return {"MINIGTS_STATE": str(folder), "MINIGTS_CACHE": str(folder)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: str(number.name))
def test_interrupted_while_it_is_being_loaded_it_ends_without_a_word(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{PROJECT / 'tools'}"}
    argv = [sys.executable, "-P", "-m", "minigts", "status"]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "loading\n"
        started.send_signal(number)
        _, stderr = started.communicate(timeout=60)
    assert (started.returncode, stderr) == (-number, "")


def test_interrupted_before_its_verb_begins_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("minigts.cli.app.app", interrupted)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    umask = os.umask(0o022)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        os.umask(umask)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (ended.value.code, capsys.readouterr().err) == (130, "minigts: interrupted\n")


@pytest.mark.parametrize(
    "argv", [["plan", "\x1b[31mred"], ["run", "\x1b[31mred"], ["run", "--only", "\x1b[31mred", "FILE"]]
)
def test_what_a_terminal_would_obey_is_shown_as_its_escape(argv: list[str]) -> None:
    multihop = str(Path(__file__).parents[3] / "experiments" / "multihop.yaml")
    done = runner.invoke(app, [word.replace("FILE", multihop) for word in argv])
    assert done.exit_code == 2
    assert "\\x1b[31mred" in done.output
    assert "\x1b[31mred" not in done.output


@pytest.mark.parametrize("language", ["topology", "experiment", "policy"])
def test_each_language_has_a_schema(language: str) -> None:
    done = runner.invoke(app, ["schema", language])
    assert json.loads(done.output)["properties"]["name"]


def test_a_lesson_whose_step_comes_before_its_number_is_told_the_order() -> None:
    done = runner.invoke(app, ["lesson", "start", "1"])
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())
    assert done.exit_code == 2
    assert "start is no number of a lesson: the number comes first, as in lesson 1 start" in said


@pytest.mark.parametrize(
    ("words", "one_word"),
    [(["delay", "38ms"], "delay=38ms"), (["loss"], "loss=VALUE"), (["rate", "loss=1%"], "rate=VALUE")],
)
def test_a_setting_without_its_equals_sign_is_told_how_to_write_it(words: list[str], one_word: str) -> None:
    done = runner.invoke(app, ["set", "bra-lju", *words])
    assert (done.exit_code, f"a setting and its value are one word: {one_word}" in done.output) == (2, True)
