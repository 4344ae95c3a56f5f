"""The providers under test, and labs that are taken down whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from contract.chain import Make, MakeLab, chain
from fake_provider import FakeProvider
from minigts.providers import registry
from minigts.providers.base import Provider


def _registered(name: str) -> Make:
    return lambda rundir: registry.make(name, rundir)


def _in_virtual_time(name: str) -> Make:
    return lambda rundir: registry.make(name, rundir, "virtual")


PROVIDERS = [
    pytest.param(FakeProvider, id="fake"),
    *(
        pytest.param(_registered(name), id=name, marks=(getattr(pytest.mark, name), pytest.mark.nightly))
        for name in registry.names()
    ),
    *(
        pytest.param(_in_virtual_time(name), id=f"{name}-virtual", marks=pytest.mark.virtual)
        for name in registry.names()
        if registry.has_virtual_time(name)
    ),
]


@pytest.fixture(scope="module", params=PROVIDERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Makes a provider for a run directory; nothing is up."""
    made: Make = request.param
    return made


@pytest.fixture(scope="module")
def make_lab(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLab]:
    """Brings a chain of so many hosts up, and takes every one down again."""
    with ExitStack() as made:

        def bring_up(hosts: int) -> Provider:
            provider = make(tmp_path_factory.mktemp("lab"))
            made.callback(provider.down)
            provider.up(chain(hosts), lambda _: None)
            return provider

        yield bring_up


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Provider:
    """Three hosts that the tests of a module share; a test must leave them as it found them."""
    return make_lab(3)
