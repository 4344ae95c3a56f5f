"""A failed test of a living lab is tried once more, and the run ends with a list of those that needed it.

Of some hundreds of labs on a shared machine one may meet what the test is not about. A test that stands in the list
has a fault, its own or the program's, that is to be found; a test without a lab is tried once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LIVE = (Path(__file__).parent / "live", Path(__file__).parent / "lab")
AGAIN = "rerun"
"""What pytest-rerunfailures calls the outcome of a try that another follows."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in LIVE):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    missed = terminalreporter.stats.get(AGAIN, [])
    if missed:
        terminalreporter.section("failed at the first try")
    for report in missed:
        terminalreporter.line(f"{report.nodeid} ({report.when})")
        terminalreporter.line(str(report.longrepr).rstrip())
