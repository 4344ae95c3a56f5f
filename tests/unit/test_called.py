"""Which tests are asked about a fault: those that call its function, and all where it may concern all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from called import Calls, function_at

MODULE = """\
import functools

LIMIT = 3

def at_import():
    return LIMIT

READY = at_import()

def for_all():
    return 1

@functools.wraps(for_all)
def decorated(least=0):
    def inner():
        return least
    return inner()
"""
TESTS = {
    "test_one.py": """\
import pytest
from small import module

@pytest.fixture
def one():
    return module.for_all()

def test_calls():
    assert module.decorated() == 0

def test_has_a_fixture(one):
    assert one == 1
""",
    "test_two.py": """\
from small import module

def test_calls_nothing():
    assert module.LIMIT
""",
}
PROGRAM = """\
import json, sys, pytest
from pathlib import Path
from called import Only, Recorder
recorder = Recorder(Path("small").resolve())
recorder.import_all(["small.module"])
options = ["-q", "-p", "no:cacheprovider", "--noconftest", "-c", "/dev/null", "--rootdir", "."]
assert pytest.main([*options, "test_one.py", "test_two.py"], plugins=[recorder]) == 0
print(json.dumps(recorder.calls.document()))
assert pytest.main([*options, "test_one.py"], plugins=[Only(["test_one.py::test_has_a_fixture"])]) == 0
"""
LINES = dict(enumerate(MODULE.splitlines(), start=1))


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("small")
    (place / "small").mkdir()
    (place / "small" / "module.py").write_text(MODULE)
    for name, text in TESTS.items():
        (place / name).write_text(text)
    helpers = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": f"{place}:{helpers}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        ("LIMIT = 3", ["test_calls", "test_calls_nothing", "test_has_a_fixture"]),
        ("    return LIMIT", ["test_calls", "test_calls_nothing", "test_has_a_fixture"]),
        ("    return 1", ["test_calls", "test_has_a_fixture"]),
        ("def decorated(least=0):", ["test_calls"]),
        ("        return least", ["test_calls"]),
    ],
)
def test_a_fault_is_tried_by_whoever_calls_it(said: list[str], line: str, tests: list[str]) -> None:
    (document,) = [each for each in said if each.startswith("{")]
    number = next(at for at, text in LINES.items() if text == line)
    found = Calls(**json.loads(document)).tests_of(function_at(MODULE.encode(), number, "module.py"))
    assert sorted(test.split("::")[1] for test in found) == tests


def test_one_that_fails_without_a_fault_is_asked_about_none() -> None:
    calls = Calls({"a::1": ["f"], "b::1": ["f"]}, seconds={"a::1": 1.0, "b::1": 1.5})
    calls.forget(["b::1", "c::1"])
    assert calls.tests_of("f") == ["a::1"]


def test_of_the_files_the_quickest_is_first() -> None:
    calls = Calls({"a::1": ["f"], "b::1": ["f"], "a::2": ["f"]}, seconds={"a::1": 1.0, "a::2": 1.0, "b::1": 1.5})
    assert calls.tests_of("f") == ["b::1", "a::1", "a::2"]


def test_only_the_tests_that_are_wanted_are_run(said: list[str]) -> None:
    assert any(each.startswith("1 passed") for each in said), said


def test_a_function_begins_with_its_decorators_and_an_inner_one_is_its_own() -> None:
    source = MODULE.encode()
    assert function_at(source, 3, "m.py") is None
    assert function_at(source, 14, "m.py") == "m.py:13"
    assert function_at(source, 16, "m.py") == "m.py:15"
