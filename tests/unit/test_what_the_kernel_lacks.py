"""The page says what the hosts' kernel lacks, as the recipe has it."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PROJECT)
    return importlib.import_module("bench.kernel_options")


def test_the_page_has_the_table_of_the_recipe(options: ModuleType) -> None:
    """Write it anew by `bench/run kernel_options --write`."""
    table = options.table(options.of_the_recipe())
    assert f"{options.BEGIN}\n{table}\n{options.END}" in options.PAGE.read_text(encoding="utf-8")


def test_each_missing_option_has_a_row_with_its_reason(options: ModuleType) -> None:
    explained = {option for group in options.REASONS for option in group.split()}
    assert explained <= options.LISTED
    assert explained.issuperset(options.of_the_recipe())


def test_an_option_that_comes_or_goes_changes_the_table(options: ModuleType) -> None:
    lacking = options.of_the_recipe()
    on = options.LISTED.difference(lacking)
    assert options.missing(on | {"ATM"}) == [each for each in lacking if each != "ATM"]
    assert "| `VETH` | – | – |" in options.table(options.missing(on - {"VETH"}))


def test_options_are_read_as_kconfig_writes_them(options: ModuleType) -> None:
    assert options.named('# CONFIG_A is not set\nCONFIG_B=y\nC=m\nD=n\nE="y"\n') == {"B", "C"}
