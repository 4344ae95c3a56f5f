"""Words of a stranger: what they can do, where each door leads, and which modules go through the wide ones."""

from __future__ import annotations

import ast
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from minigts import foreign, paths
from minigts.errors import CommandFailed
from minigts.foreign import Foreign

PACKAGE = Path(__file__).parents[2] / "tools" / "minigts"
PROJECT = PACKAGE.parents[1]

TO_PARSE = {
    "arena/workloads.py": "lines of a few strict forms, whose words are compared with the board's",
    "arena/expectations.py": "complaints: lines of one form, whose words are compared with the plan's, and numbers",
    "api/measured.py": "iperf3's parser: numbers",
    "artifacts/build_errors.py": "a build's log: known lines and the last ones, printable",
    "errors.py": "secrets are taken out of a command's output, which stays Foreign",
    "experiments/guard.py": "tc's JSON: numbers of frames",
    "experiments/provider_comparison.py": "the tools' parsers: numbers",
    "fidelity/shown_settings.py": "ip, tc and ethtool: sentences on differences, for messages",
    "fidelity/rates.py": "ping's and iperf3's parsers: numbers",
    "fidelity/round_trips.py": "ping's and iperf3's parsers: numbers",
    "lab/links.py": "tc's JSON: sentences on differences, for messages",
    "lab/shown_links.py": "tc's JSON: sentences on differences, for messages",
    "lab/routes.py": "ip's routes: sentences on differences, for messages",
    "lab/schedule_player.py": "tc's JSON: sentences on differences, for messages",
    "lab/trees.py": "Open vSwitch's ports: roles and states by the plan's names, and sentences on differences",
    "lab/usage.py": "counters of /proc: numbers, by the plan's names of ports",
    "language/documents.py": "JSON of bounded size, whose caller reads it by a model or as figures",
    "lessons/breaks.py": "the commands that undo a fault: they run on the host that has said them, alone",
    "lessons/evidence.py": "lines NAME=FIGURE: figures, by the names that the lesson declares",
    "overlays/pods.py": "a log of Kubernetes' format: its text, which is Foreign again",
}
"""Every module that makes plain text of a stranger's words for a parser, and what the parser gives."""
TO_USER = {
    "api/labs.py": "results of a user's own program",
    "errors.py": "CommandFailed.stdout and stderr, which mypy refuses inside the package",
    "testing/course.py": "a history that the user's test asked for",
}
CONTENT = {
    "artifacts/build.py": "failed.log",
    "cli/verbs/exec.py": "strings of --json",
    "cli/verbs/logs.py": "a pod's log, --into",
    "experiments/sampler.py": "raw/*.json",
    "explore/attempt.py": "a course's warnings.log",
    "lab/provisioning.py": "run/HOST-N.log",
    "providers/agent/provider.py": "dmesg.log",
    "netlab/labs.py": "none: what a command of netlab's has printed, which netlab reads",
    "suites/performance.py": "what a case has printed: output/TEST/CASE-N.txt",
    "providers/uml/build/image.py": "failed.log",
    "providers/uml/build/package_images.py": "packages.lock and failed-fetch.log",
}
"""Every module that writes a stranger's words as the content of a file, and which file."""
FILE_NAMES = {
    "cli/verbs/logs.py": "DIR/POD/CONTAINER.log",
    "providers/agent/provider.py": "the logs that a host has in /var/log",
    "suites/folder.py": "output/TEST/CASE-N.txt, by the names of a user's directory",
}
"""Every module that names files by a stranger's words. Results folders, explorations and what workers of a cluster send
have names that `results.folder.inside` refuses unless they are plain; of what students hand in no file is named."""


@cache
def callers(door: str) -> frozenset[str]:
    """The modules that import this door from minigts.foreign, or use it as foreign.DOOR."""
    found = set[str]()
    for module in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            used = set[str]()
            if isinstance(node, ast.ImportFrom) and node.module == "minigts.foreign":
                used = {alias.name for alias in node.names}
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "foreign":
                used = {node.attr}
            if door in used:
                found.add(str(module.relative_to(PACKAGE)))
    return frozenset(found)


@pytest.mark.parametrize(
    ("door", "known"),
    [("parser_text", TO_PARSE), ("user_text", TO_USER), ("content", CONTENT), ("file_name", FILE_NAMES)],
)
def test_every_module_that_goes_through_a_wide_door_is_listed_with_its_reason(
    door: str, known: Mapping[str, str]
) -> None:
    assert callers(door) == known.keys()


def test_nobody_takes_the_text_past_the_doors() -> None:
    assert [
        str(module.relative_to(PACKAGE))
        for module in PACKAGE.rglob("*.py")
        if module.name != "foreign.py" and re.search(r"\b_strange\b", module.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "use",
    [
        str,
        "{}".format,
        lambda word: f"{word}",
        lambda word: f"{word:>9}",
        lambda word: "%s" % word,  # noqa: UP031
        print,
        os.fspath,
        Path,
        Path("/").joinpath,
        "".join,
        int,
        float,
        re.compile,
        lambda word: os.environ.__setitem__("A", word),
        lambda word: subprocess.run(["true", word], check=False),
        lambda word: iter(word).__next__() + b"",
    ],
)
def test_it_is_no_text_at_run_time(use: Callable[[object], object]) -> None:
    with pytest.raises(TypeError):
        use(Foreign("../x"))


def test_it_can_be_looked_at_compared_and_taken_apart() -> None:
    word = Foreign("a=b\nc")
    assert word == "a=b\nc"
    assert word == Foreign("a=b\nc")
    assert word != "a"
    assert len(word) == 5
    assert "=" in word
    assert word.startswith("a")
    assert not Foreign()
    assert {word: 1}["a=b\nc"] == 1  # type: ignore[index]
    parts = [
        *word.splitlines(),
        *word.partition("="),
        *word.split("="),
        word[1:2],
        word.strip("a"),
        word + "x",
        "x" + word,
    ]
    assert all(isinstance(part, Foreign) for part in parts)
    assert word.splitlines() == ["a=b", "c"]
    assert word.match_whole(re.compile(r"(\w)=(\w)\n(\w)(x)?")) == ("a", "b", "c", "")
    assert word.match_whole(re.compile("a")) is None
    assert pickle.loads(pickle.dumps(word)) == word


def test_its_repr_is_a_bounded_line_of_ascii() -> None:
    shown = repr(Foreign("\x1b[2J\u202e\n" * 1000))
    assert len(shown) < 1000
    assert shown.isascii()
    assert shown.isprintable()


def test_in_a_model_it_is_a_string_of_the_document() -> None:
    class Told(BaseModel):
        state: Foreign

    told = Told.model_validate_json('{"state": "a\\u001b"}')
    assert isinstance(told.state, Foreign)
    assert told.model_dump_json() == '{"state":"a\\u001b"}'
    assert Told(state=Foreign("x")).state == "x"
    with pytest.raises(ValueError, match="string"):
        Told.model_validate_json('{"state": 1}')


NAMES = [
    ("web", "web"),
    ("../../x", "%2E.%2F..%2Fx"),
    (".", "%2E"),
    ("..", "%2E."),
    ("", "%"),
    ("/etc/passwd", "%2Fetc%2Fpasswd"),
    ("-rf", "%2Drf"),
    ("a\0b\n", "a%00b%0A"),
    ("a%2Fb", "a%252Fb"),
    ("a~b", "a%7Eb"),
    ("\u202e", "%E2%80%AE"),
    ("\udc80", "%ED%B2%80"),
    ("con tainer", "con%20tainer"),
]


@pytest.mark.parametrize(("word", "name"), NAMES)
def test_a_file_name_is_one_component_of_a_path(word: str, name: str) -> None:
    assert foreign.file_name(Foreign(word)) == name


@given(st.text(max_size=400), st.text(max_size=400))
def test_two_words_never_have_the_same_file_name(one: str, other: str) -> None:
    names = [foreign.file_name(Foreign(word)) for word in (one, other)]
    assert (names[0] == names[1]) == (one == other)
    for name in names:
        assert name not in ("", ".", "..")
        assert name[0] not in "-."
        assert len(name.encode()) <= foreign.LONGEST_FILE_NAME
        assert name.isascii()
        assert name.isprintable()
        assert Path("/a", name).resolve().parent == Path("/a")


def test_what_is_shown_does_not_act_on_a_terminal_and_ends() -> None:
    assert foreign.screen_text(Foreign("\x1b[2Ja\tb\n\u202e")) == "\\x1b[2Ja\tb\n\\u202e"
    assert foreign.screen_text(Foreign("abcdef"), 3) == "abc…"
    assert foreign.one_line(Foreign(" a\n\n b\r\x1b ")) == "a b \\x1b"


def test_variables_are_those_that_are_listed() -> None:
    allowed = {"TOKEN": re.compile("[a-z]{3}")}
    assert foreign.variables([(Foreign("TOKEN"), Foreign("abc"))], allowed) == {"TOKEN": "abc"}
    with pytest.raises(ValueError, match=r"'BASH_ENV' is none of its variables: TOKEN"):
        foreign.variables([(Foreign("BASH_ENV"), Foreign("$(id)"))], allowed)
    with pytest.raises(ValueError, match=r"TOKEN='abc\\n\$\(id\)' is not of the form"):
        foreign.variables([(Foreign("TOKEN"), Foreign("abc\n$(id)"))], allowed)
    with pytest.raises(ValueError, match="TOKEN=… is not of the form"):
        foreign.variables([(Foreign("TOKEN"), Foreign("abcd"))], allowed, re.compile("TOKEN"))


@pytest.mark.parametrize("word", ["", "1e999", "nan", "0x10", "1_000", "9" * 5000, "-1", "٣", "1.5", str(1 << 63)])
def test_a_whole_number_has_bounds(word: str) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        foreign.whole_number(Foreign(word))


def test_numbers_are_read() -> None:
    assert foreign.whole_number(Foreign(" 42\n")) == 42
    assert foreign.whole_number(Foreign("-3"), -5) == -3
    assert foreign.decimal_number(Foreign("1.5e3"), 0, 1e6) == 1500.0
    assert foreign.decimal_number(Foreign(".5"), 0, 1) == 0.5


@pytest.mark.parametrize("word", ["", "1e999", "nan", "inf", "-1", "1e7", "1_0", "9" * 5000])
def test_a_decimal_number_has_bounds(word: str) -> None:
    with pytest.raises(ValueError, match="no number"):
        foreign.decimal_number(Foreign(word), 0, 1e6)


def test_an_identifier_matches_as_a_whole() -> None:
    assert foreign.identifier(Foreign("web-0"), re.compile("[a-z0-9-]+")) == "web-0"
    for word in ("web-0\n", "../x", ""):
        with pytest.raises(ValueError, match="does not match"):
            foreign.identifier(Foreign(word), re.compile("[a-z0-9-]+"))


def test_a_path_there_is_absolute() -> None:
    assert str(foreign.path_there(Foreign("/srv/a"))) == "/srv/a"
    for word in ("a", "", "/a\nb", "/" + "a" * 5000):
        with pytest.raises(ValueError, match="does not match"):
            foreign.path_there(Foreign(word))


def test_the_message_of_a_failed_command_does_not_act_on_a_terminal() -> None:
    error = CommandFailed("h1", ["a"], 1, "\x1b]0;owned\x07", "\u202elive")
    assert str(error) == "on h1: `a` ended with code 1\n    \\x1b]0;owned\\x07\n    \\u202elive"
    assert error.stdout == "\x1b]0;owned\x07"  # a user's program has what was printed


MISUSES = """\
f"{word}"
f"{maybe}"
f"{word:>9}"
"{}".format(word)
"a {}" .format(maybe)
template % word
str(word)
format(word)
print(word)
print("a", word)
typer.echo(word)
json.dumps(word)
log.warning("%s", word)
log.info(word)
Path(word)
PurePosixPath(word)
Path("/") / word
open(word)
os.environ.update(A=word)
shell.run(["cat", word], timeout_s=1)
shell.run(["env"], timeout_s=1, env={"A": word})
provider.run("h", ["cat", word], timeout_s=1)
re.compile(word)
int(word)
float(word)
",".join([word])
{"a": 1}[word]
InputError(word)
Problem("file", 0, word)
no_formula(word)
printable(word)
failed.stdout
failed.stderr
text(result.stdout)
"""
USES = """\
f"{word!r}"
repr(word)
f"{screen_text(word)}"
print(screen_text(word))
Path("/") / file_name(word)
Path("/") / f"{file_name(word)}.log"
text(one_line(word))
text(identifier(word, pattern))
whole_number(word) + 1
decimal_number(word, 0, 1) + 1
shell.run(["env"], timeout_s=1, env=variables([(word, word)], {"A": pattern}))
provider.run("h", ["cat", str(path_there(word))], timeout_s=1)
result.stdout.splitlines()[0].startswith("a")
failed.out + failed.err
text(parser_text(word))
text(content(word))
text(user_text(word))
word == "a"
"""
HEAD = """\
import json, logging, os, re, typer
from pathlib import Path, PurePosixPath
from minigts.errors import CommandFailed, InputError, Problem
from minigts.foreign import *
from minigts.language.spreadsheets import no_formula
from minigts.machine import shell
from minigts.providers.base import Provider, CommandResult
def uses(word: Foreign, maybe: Foreign | None, template: str, log: logging.Logger, provider: Provider,
         result: CommandResult, failed: CommandFailed, pattern: re.Pattern[str]) -> None:
    def text(_text: str) -> None: ...
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy, as it checks the package, says of each of these expressions that it refuses."""
    place = tmp_path_factory.mktemp("mypy")
    lines = [*MISUSES.splitlines(), *USES.splitlines()]
    (place / "uses.py").write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    argv = [sys.executable, "-m", "mypy", "--config-file", str(PROJECT / "pyproject.toml"), "--no-error-summary"]
    done = subprocess.run(
        [*argv, "--hide-error-context", "--no-pretty", str(place / "uses.py")],
        env={**os.environ, "MYPY_CACHE_DIR": str(paths.cache_root() / "mypy-of-foreign")},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^\S*uses\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    first = HEAD.count("\n") + 1
    assert "Traceback" not in done.stderr
    return {lines[int(number) - first]: why for number, why in found if int(number) >= first}


@pytest.mark.parametrize("misuse", MISUSES.splitlines())
def test_mypy_refuses_every_way_past_the_doors(misuse: str, refused: Mapping[str, str]) -> None:
    assert misuse in refused


@pytest.mark.parametrize("use", USES.splitlines())
def test_mypy_accepts_every_door(use: str, refused: Mapping[str, str]) -> None:
    assert refused.get(use) is None


def test_the_percent_format_which_mypy_does_not_tell_the_plugin_is_refused_by_ruff(tmp_path: Path) -> None:
    (tmp_path / "uses.py").write_text('word = "a"\nprint("%s" % word)\n')
    argv = [sys.executable, "-m", "ruff", "check", "--config", str(PROJECT / "pyproject.toml"), "--no-cache", "-q"]
    done = subprocess.run([*argv, str(tmp_path / "uses.py")], capture_output=True, text=True, check=False)
    assert "UP031" in done.stdout
