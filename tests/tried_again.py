"""A failed test is tried once more, and the run ends with a list of those that needed it.

Of five thousand tests on a shared machine, hundreds of them on labs, one may meet what it is not about. A test that
stands in the list has a fault, its own or the program's, that is to be found.
"""

from __future__ import annotations

from typing import Any

import pytest

AGAIN = "rerun"
"""What pytest-rerunfailures calls the outcome of a try that another follows."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all-tests"):
        for item in items:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    missed = terminalreporter.stats.get(AGAIN, [])
    if missed:
        terminalreporter.section("failed at the first try")
    for report in missed:
        terminalreporter.line(f"{report.nodeid} ({report.when})")
        terminalreporter.line(str(report.longrepr).rstrip())
