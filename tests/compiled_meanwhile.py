"""What overlays have compiled when they are first joined is compiled while other tests run. Several tests would wait
for it else, each in a process that does nothing meanwhile, and the compiler would have the processor of one of them.

Tests marked `compiled` come after the other live ones. One that comes too early waits, as a user's second lab does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minigts import paths
from minigts.overlays import catalogue
from minigts.providers import registry
from wanted import wanted

COMPILED = "compiled"
LIVE, UNIT = (Path(__file__).parent / name for name in ("live", "unit"))
COMPILE = """
import sys

from minigts import overlays

for name in sys.argv[1:]:
    overlays.find(name).programs(lambda _: None)
"""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{COMPILED}: takes programs that are compiled when they are first asked for")
    starts_others = config.getoption("numprocesses") and not hasattr(config, "workerinput")
    live = config.getoption("--all-tests") and any(LIVE.is_relative_to(place) for place in wanted(config))
    if starts_others and live and not registry.make("uml", config.rootpath).missing():
        _compile(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    late = {item.path for item in items if item.get_closest_marker(COMPILED) is not None}
    units = {path for path in {item.path for item in items} if path.is_relative_to(UNIT)}
    items.sort(key=lambda item: (item.path in units, item.path in late))


def _overlays(*, at_night: bool) -> list[str]:
    """Those with programs to compile that are tried in this run, one of each folder."""
    from live import of_each_change  # noqa: PLC0415 -- only the process that starts the others asks

    names = sorted(recipe.parent.name for recipe in catalogue.scripts().glob("*/build"))
    return [name for name in names if at_night or of_each_change.has(name)]


def _compile(config: pytest.Config) -> None:
    environment = {**os.environ, "PYTHONPATH": str(paths.project_root() / "tools")}
    compiler = subprocess.Popen(
        [sys.executable, "-P", "-c", COMPILE, *_overlays(at_night=config.getoption("--nightly"))],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        if compiler.poll() is None:
            os.killpg(compiler.pid, signal.SIGTERM)
            compiler.wait()

    config.add_cleanup(end)
