"""The language reference keeps up with the model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minigts.topology.load import parse
from minigts.topology.model import Expect, HostSpec, LinkSpec, SwitchSpec, ToleranceSpec, Topology

REFERENCE = (Path(__file__).parents[2] / "docs" / "topology-language.md").read_text()
KEYS = [
    *Topology.model_fields,
    *(f"hosts.*.{key}" for key in HostSpec.model_fields),
    *(f"switches.*.{key}" for key in SwitchSpec.model_fields),
    *(f"links[].{key}" for key in LinkSpec.model_fields),
    *(f"expect[].{key}" for key in Expect.model_fields),
    *(f"tolerances.{key}" for key in ToleranceSpec.model_fields),
]


@pytest.mark.parametrize("key", KEYS)
def test_key_has_its_heading(key: str) -> None:
    assert REFERENCE.count(f"\n### `{key}`\n") == 1


def test_headings_name_keys_that_exist() -> None:
    assert sorted(re.findall(r"^### `(.+)`$", REFERENCE, re.MULTILINE)) == sorted(KEYS)


@pytest.mark.parametrize("example", re.findall(r"`((?:chain|pair|star): \{.*\})`", REFERENCE))
def test_shorthand_example_is_good(example: str) -> None:
    assert parse(f"name: x\n{example}\n", "reference").paths


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", REFERENCE, re.DOTALL))
def test_whole_example_is_good(example: str) -> None:
    assert parse(example, "reference").paths
