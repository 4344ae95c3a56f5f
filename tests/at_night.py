"""Which tests run at night only: those marked `nightly`, and those of providers other than uml.

What runs for each change covers each room and each mechanism of an overlay. The rest takes longer than a person waits:
all overlays, most laws of validation, kills, escapes, the package, a plain user, real time, Mininet,
virtual machines, and most of what takes more than twenty seconds. `.ci/run nightly` and `./minigts test --nightly` run
everything. A file that the command line names is run whole. What has just changed is tried for each change, too: an
overlay whose folder has, a law whose file has, and tests marked `touched` with the paths that they are about. Of these
the paths are given from the top of the project; the test's own file is always one of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from minigts.providers import registry
from touched import PROJECT, changed_files, is_touched
from wanted import wanted

NIGHTLY = "nightly"
TOUCHED = "touched"
MARKERS = (NIGHTLY, *(name for name in registry.names() if name != "uml"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the tests that are run at night only, too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{NIGHTLY}: takes too long to run for each change; --nightly runs it")
    config.addinivalue_line("markers", f"{TOUCHED}(path, …): is run for a change of one of these paths, and at night")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        return
    named = {place for place in wanted(config) if place.is_file()}
    left = {item for item in items if item.path not in named and _is_at_night(item)}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def _is_at_night(item: pytest.Item) -> bool:
    if any(item.get_closest_marker(name) for name in MARKERS):
        return True
    about = item.get_closest_marker(TOUCHED)
    return about is not None and not _has_just_changed(item.path, *about.args)


@cache
def _has_just_changed(*places: str | Path) -> bool:
    return is_touched(places, changed_files(PROJECT))
