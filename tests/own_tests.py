"""What every test of the project may use: the option that makes a missing provider a failure, and the providers there
are."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator

import pytest

import python_packages
from crates import CARGO
from crates import lacking as lacking_of_cargo
from minigts.providers import registry
from minigts.providers.base import Provider
from minigts.providers.uml.build import clock_build, kernel_build

BROWSER = "browser"
FULL_KERNEL = "full_kernel"
VIRTUAL = "virtual"


def _browser() -> str | None:
    found = (shutil.which(name) for name in ("chromium-headless-shell", "chromium", "google-chrome"))
    return next(filter(None, found), None)


@pytest.fixture(scope="session")
def browser_program() -> str:
    """The browser that pages are looked at with; for tests that are marked `browser`."""
    found = _browser()
    assert found is not None
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=(*registry.names(), BROWSER, CARGO, FULL_KERNEL, VIRTUAL),
        metavar="WHAT",
        help="fail, instead of skipping, when this machine cannot run the provider WHAT, or has no such thing",
    )
    parser.addoption(
        "--fuzz",
        type=int,
        default=500,
        metavar="N",
        help="how many broken outputs the parsers are given in all, and a tenth of it the reader of each language",
    )


def pytest_configure(config: pytest.Config) -> None:
    if python_packages.there("hypothesis"):  # tests of a user's lab do without
        _take_examples_of_any_length()
    # Started in the background or by nohup, tests ignore these, and so would every program that they send them to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # Ended by its id, a test run takes its labs down before it goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in registry.names():
        config.addinivalue_line("markers", f"{name}: needs hosts of provider {name}")
    config.addinivalue_line(
        "markers", f"{FULL_KERNEL}: needs hosts with the full kernel, which `minigts kernel build` makes"
    )
    config.addinivalue_line(
        "markers", f"{VIRTUAL}: needs labs in virtual time; `minigts kernel build` makes their kernel and their clock"
    )
    config.addinivalue_line("markers", f"{BROWSER}: needs a browser, Debian's chromium or chromium-headless-shell")


def _take_examples_of_any_length() -> None:
    """How long an example takes says nothing where other programs share the processors."""
    from hypothesis import HealthCheck, settings  # noqa: PLC0415

    settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("shared")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked for a provider that this machine cannot run, or for a browser, says why it does not run."""
    for name, lacking in what_it_lacks(item):
        if name in item.config.getoption("--require"):
            pytest.fail(f"--require={name}, and {'; '.join(lacking)}", pytrace=False)
        pytest.skip(f"{name}: {'; '.join(lacking)}")


def what_it_lacks(item: pytest.Item) -> Iterator[tuple[str, list[str]]]:
    """What a test is marked for and this machine has not, each with what is missing."""
    for name in (*registry.names(), BROWSER, FULL_KERNEL, VIRTUAL):
        if item.get_closest_marker(name) is not None and (lacking := _missing(name, item.config)):
            yield name, lacking
    if CARGO in getattr(item, "fixturenames", ()) and (without := lacking_of_cargo()):
        yield CARGO, [*without]


def _missing(name: str, config: pytest.Config) -> list[str]:
    known: dict[str, list[str]] = config.stash.setdefault(_MISSING, {})
    if name == BROWSER:
        return [] if _browser() else ["needs chromium-headless-shell or chromium; apt-get install one of them"]
    if name == FULL_KERNEL:
        return [] if kernel_build.present() else ["the full kernel is not built; minigts kernel build"]
    if name == VIRTUAL:
        unbuilt = kernel_build.present() is None or clock_build.present() is None
        return [*_missing("uml", config), *(["its kernel or its clock is not built; minigts kernel build"] * unbuilt)]
    if name not in known:
        provider: Provider = registry.make(name, config.rootpath)
        known[name] = provider.missing()
    return known[name]


_MISSING = pytest.StashKey[dict[str, list[str]]]()
