"""Every parser on broken outputs: it gives a result or its own error, never another one. `--fuzz N` for more."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from experiment_lab import RECORDED, recorded
from mutants import mutated

from minigts.experiments import counters
from minigts.tools import TOOLS
from minigts.tools.base import ParseError

Parser = Callable[[str, str], object]
PARSERS: tuple[Parser, ...] = (
    *(tool.read for tool in TOOLS.values()),
    counters.stress_ng,
    counters.ethtool_features,
    lambda stdout, _stderr: counters.processor_use(stdout),
)
FILES = sorted(path.name for path in RECORDED.iterdir() if path.name != "README.md")


def reads(parser: Parser, text: str) -> bool:
    """Whether it finds a result in an output that nobody broke."""
    try:
        return bool(parser(text, ""))
    except ParseError:
        return False


def finite(value: Any) -> bool:
    """Whether every number in a result is one."""
    if isinstance(value, dict):
        return all(finite(each) for each in value.values())
    if isinstance(value, list | tuple):
        return all(finite(each) for each in value)
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("name", FILES)
def test_broken_output_is_a_result_or_the_parsers_own_error(name: str, request: pytest.FixtureRequest) -> None:
    parsers = [parser for parser in PARSERS if reads(parser, recorded(name))] or PARSERS
    rounds = max(1, request.config.getoption("--fuzz") // len(FILES))
    chance, text = random.Random(name), recorded(name)
    for number in range(rounds):
        parser, broken = parsers[number % len(parsers)], mutated(text, chance)
        stderr = mutated(broken[:500], chance) if number % 3 == 0 else ""
        try:
            found = parser(broken, stderr)
        except ParseError as error:
            assert 0 < len(str(error)) < 400
            assert "\n" not in str(error)
        else:
            assert isinstance(found, dict) or finite(asdict(found)), broken  # type: ignore[call-overload]
            json.dumps(str(found).encode("utf-8", "backslashreplace").decode())
