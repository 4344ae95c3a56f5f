"""What pytest needs before any test: minigts' packages, its plugin, and what all of the project's own tests share.

Of itself pytest collects `lab` alone, which tests the lab that is up; `./minigts test` passes `--all-tests`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import python_packages
from wanted import wanted

LAB = Path(__file__).parent / "lab"
PLUGIN, OURS = "minigts.testing.plugin", ("own_tests", "at_night", "quarantine")
WITH = (("xdist", "side_by_side"), ("xdist", "compiled_meanwhile"))
"""What of ours is for a plugin that may be there."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    lacking = python_packages.find()
    if lacking:
        raise pytest.UsageError(lacking)
    parser.addoption("--all-tests", action="store_true", help="those of the program itself, too: ./minigts test")
    if not pluginmanager.has_plugin("timeout") and python_packages.there("pytest_timeout"):
        pluginmanager.import_plugin("pytest_timeout")
    for plugin in (PLUGIN, *OURS, *(ours for theirs, ours in WITH if pluginmanager.has_plugin(theirs))):
        pluginmanager.import_plugin(plugin)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "timeout(seconds): pytest-timeout's")
    if config.getoption("--all-tests") and not all(place.is_relative_to(LAB) for place in wanted(config)):
        config.option.minigts_fresh = True  # the whole suite leaves the user's labs alone


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What tests the program itself, unless it was named, or all is wanted."""
    if config.getoption("--all-tests") or collection_path.parent != LAB.parent or not collection_path.is_dir():
        return None
    named = any(place.is_relative_to(collection_path) for place in wanted(config))
    return None if named or collection_path == LAB else True
