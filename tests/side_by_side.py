"""The project's tests run in several processes at once; those marked `alone` have the machine to themselves.

What a lab in virtual time says does not depend on what runs beside it, nor do most tests of the program. A test that
goes by the machine's own clock is marked `alone`, or has the lab in real time, or virtual machines.

Each process keeps to a processor, and its labs with it: the kernels of one take turns most of the time, and to wake a
process on another processor costs more than two processors gain.

All processes import all test files. Each begins with others, so that one compiles a file, and the others find it done.
Nothing that is collected is garbage before the tests have ended, so that nobody looks for some among it.
"""

from __future__ import annotations

import fcntl
import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from minigts.machine import affinity
from own_tests import what_it_lacks

WORKERS = 4
"""At most: each may hold a chain of six with Docker, of some 2 GB."""
ALONE = "alone"
FIXTURES, MARKERS = {"real_lab"}, {ALONE, "vagrant"}
FIRST, SECOND = "turn", "machine"
PROCESSORS = sorted(os.sched_getaffinity(0))
"""Those of the process that starts the others, or of one of them before it is held to its own."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        affinity.hold_to_one(0, int(config.workerinput["workerid"].removeprefix("gw")))
    config.addinivalue_line("markers", f"{ALONE}: goes by the machine's own clock; no other test runs meanwhile")
    if not hasattr(config, "workerinput") and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        # Tests start the program hundreds of times, which would be compiled as often. Nothing stays of it afterwards.
        compiled = tempfile.TemporaryDirectory(prefix="minigts-compiled-")
        config.add_cleanup(compiled.cleanup)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled.name


def pytest_xdist_auto_num_workers() -> int:
    """Two for each processor, since each waits for its hosts a part of the time."""
    return min(WORKERS, 2 * len(PROCESSORS))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    workers = getattr(collector.config, "workerinput", None)
    if workers is not None and report.passed and any(isinstance(each, pytest.Module) for each in report.result):
        number, count = int(workers["workerid"].removeprefix("gw")), workers["workercount"]
        first = len(report.result) * number // count
        report.result = [*report.result[first:], *report.result[:first]]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """All processes have the same order, whatever file each has begun with. Files with a test that has the machine to
    itself come last, among the short ones: it waits until what runs beside it has ended, and a lab's test may take
    minutes. Virtual machines' tests are skipped where there are none."""
    items.sort(key=lambda item: item.path)
    yield
    last = {item.path for item in items if _is_alone(item) and item.get_closest_marker("vagrant") is None}
    items.sort(key=lambda item: item.path in last)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Waits before the test's time limit begins. For a test that cannot run here nobody has to wait."""
    alone = _is_alone(item) and not any(what_it_lacks(item))
    with _the_machine(_shared_by_workers(item.config), alone=alone):
        return (yield)


def _is_alone(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(fixtures & FIXTURES) or any(item.get_closest_marker(name) for name in MARKERS)


def _shared_by_workers(config: pytest.Config) -> Path | None:
    """A folder that all processes of this test run know; none where there is but one."""
    if not hasattr(config, "workerinput"):
        return None
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.getbasetemp().parent


@contextmanager
def _the_machine(folder: Path | None, *, alone: bool) -> Iterator[None]:
    """Held by many, or by one alone, who keeps the turn while it waits, so that nobody comes in meanwhile."""
    if folder is None:
        yield
        return
    with (folder / SECOND).open("a") as machine:
        with (folder / FIRST).open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        with _every_processor() if alone else nullcontext():
            yield


@contextmanager
def _every_processor() -> Iterator[None]:
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, PROCESSORS)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
