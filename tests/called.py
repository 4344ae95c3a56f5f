"""Which functions each test calls: a fault in one is tried by the tests that call it, and by no others.

What a fixture or the import of a test's file calls concerns every test of that file; what the package calls while it is
imported concerns every test.
"""

from __future__ import annotations

import ast
import gc
import importlib
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

Function = str
"""`judge/loss.py:30`: the file below the package, and the first line with its decorators."""


@dataclass
class Calls:
    """What was called, by whom. Times are of a test's whole run, with its fixtures."""

    of_tests: dict[str, list[Function]] = field(default_factory=dict)
    of_files: dict[str, list[Function]] = field(default_factory=dict)
    of_import: list[Function] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)

    def early(self, function: Function) -> bool:
        """Whether something that tests have as it was made, a constant of theirs or a fixture's, may come from it."""
        return function in self.of_import or any(function in called for called in self.of_files.values())

    def forget(self, tests: Iterable[str]) -> None:
        """Leave these tests out: they say nothing of a fault."""
        for test in tests:
            self.of_tests.pop(test, None)

    def is_everywhere(self, function: Function | None) -> bool:
        """Whether every test calls it. None is a line of no function."""
        return function is None or function in self.of_import

    def tests_of(self, function: Function | None) -> list[str]:
        """The tests that may notice a fault there, by file, the quickest file first. None is a line of no function."""
        everywhere = self.is_everywhere(function)
        files = {file for file, called in self.of_files.items() if function in called}
        found = [
            test for test, called in self.of_tests.items() if everywhere or function in called or file_of(test) in files
        ]
        price: dict[str, float] = {}
        for test in found:
            price[file_of(test)] = price.get(file_of(test), 0.0) + self.seconds[test]
        return sorted(found, key=lambda test: (price[file_of(test)], file_of(test)))


def in_a_body(source: bytes, line: int) -> bool:
    """Whether a line is in what a function does, and not in its decorators, parameters or defaults."""
    return any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def function_at(source: bytes, line: int, name: str) -> Function | None:
    """The innermost function, with its decorators and defaults, in which a line of the file `name` is."""
    inside = [
        (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    begins = [begin for begin, end in inside if begin <= line <= end]
    return f"{name}:{max(begins)}" if begins else None


class Recorder:
    """A plugin of pytest's that fills `calls`; `package` is the folder of which functions are noted."""

    def __init__(self, package: Path) -> None:
        self.calls = Calls()
        self._package = str(package) + "/"

    def import_all(self, modules: Iterable[str]) -> None:
        with self._noted(self.calls.of_import):
            for name in modules:
                importlib.import_module(name)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        if not isinstance(collector, pytest.Module):
            return (yield)
        with self._noted(self.calls.of_files.setdefault(collector.nodeid, [])):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        begun = time.monotonic()
        result = yield
        self.calls.seconds[item.nodeid] = round(time.monotonic() - begun, 4)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What is wrong with a test, which pytest itself says at the end only."""
        if report.failed:
            sys.stderr.write(f"{report.nodeid}: {report.longreprtext}\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._noted(self.calls.of_files.setdefault(file_of(item.nodeid), [])):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._noted(self.calls.of_tests.setdefault(item.nodeid, [])):
            return (yield)

    @contextmanager
    def _noted(self, into: list[Function]) -> Iterator[None]:
        codes: dict[int, CodeType] = {}

        def note(frame: FrameType, event: str, argument: object) -> None:
            codes[id(frame.f_code)] = frame.f_code

        before = sys.gettrace()
        sys.settrace(note)
        threading.settrace(note)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]
            found = {
                f"{code.co_filename.removeprefix(self._package)}:{code.co_firstlineno}"
                for code in list(codes.values())
                if code.co_filename.startswith(self._package)
            }
            into.extend(sorted(found - set(into)))


class Loop:
    """A plugin of pytest's that does something else with the tests that were collected than to run them once."""

    def __init__(self, body: Callable[[pytest.Session], None]) -> None:
        self._body = body

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None
        self._body(session)
        return True


def all_pass(session: pytest.Session, tests: Iterable[str]) -> bool:
    """Run these of the collected tests, up to the first that fails."""
    by_name = {item.nodeid: item for item in session.items}
    return next(_failing(session, [by_name[test] for test in tests]), None) is None


def failing(session: pytest.Session) -> list[str]:
    """Run all collected tests; the names of those that fail."""
    return list(_failing(session, session.items))


def _failing(session: pytest.Session, items: Sequence[pytest.Item]) -> Iterator[str]:
    for item, following in zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            yield item.nodeid
            session.testsfailed, session.shouldfail = 0, False


def swap(file: Path, source: bytes) -> int:
    """Give the functions of a module that is loaded from `file` the code that they have in `source`, as far as it is
    another one; how many have got it. What is not in a function stays as it is. ValueError when one cannot have it."""
    new = {(code.co_qualname, code.co_firstlineno): code for code in _codes(compile(source, str(file), "exec"))}
    functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    swapped = 0
    for function in functions:
        old = function.__code__
        if old.co_filename != str(file):
            continue
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is not None and code != old:
            function.__code__ = code
            swapped += 1
    return swapped


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


class Only:
    """A plugin of pytest's that leaves out all tests but these, and has them in this order."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._place: Mapping[str, int] = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [each for each in items if each.nodeid in self._place]
        items[:] = sorted(chosen, key=lambda each: self._place[each.nodeid])


def file_of(test: str) -> str:
    return test.split("::", maxsplit=1)[0]
