"""What every test may use: the option that makes a missing provider a failure, and the providers there are."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from minigts.providers import registry
from minigts.providers.base import Provider


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=registry.names(),
        metavar="PROVIDER",
        help="fail, instead of skipping, when this machine cannot run PROVIDER",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background or by nohup, tests ignore these, and so would every program that they send them to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name in registry.names():
        config.addinivalue_line("markers", f"{name}: needs hosts of provider {name}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked for a provider that this machine cannot run says why it does not."""
    for name in registry.names():
        if item.get_closest_marker(name) is not None:
            _demand(item.config, name)


def _demand(config: Any, name: str) -> None:
    lacking = _missing(name, config)
    if lacking and name in config.getoption("--require"):
        pytest.fail(f"--require={name}, and {'; '.join(lacking)}", pytrace=False)
    if lacking:
        pytest.skip(f"{name}: {'; '.join(lacking)}")


def _missing(name: str, config: Any) -> list[str]:
    known: dict[str, list[str]] = config.stash.setdefault(_MISSING, {})
    if name not in known:
        provider: Provider = registry.make(name, config.rootpath)
        known[name] = provider.missing()
    return known[name]


_MISSING = pytest.StashKey[dict[str, list[str]]]()
