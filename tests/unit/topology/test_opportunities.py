"""Traces of delivery opportunities: how a plan has a file's lines, and the rates that stand for them."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.topology import opportunities
from minigts.topology.link_settings import Shaping
from minigts.topology.read.load import load

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LINES = st.lists(st.integers(0, 3000), min_size=1, max_size=60).map(sorted).filter(lambda lines: lines[-1] > 0)


def expanded(runs: str) -> list[int]:
    """The lines of a trace again."""
    found, at_ms = [], 0
    for word in runs.split():
        run, _, moments = word.partition("*")
        apart_ms, _, count = run.partition("x")
        for _ in range(int(moments or 1)):
            at_ms += int(apart_ms)
            found += [at_ms] * int(count or 1)
    return found


@given(LINES)
def test_runs_are_the_lines_again(lines: list[int]) -> None:
    assert expanded(opportunities.read("".join(f"{line}\n" for line in lines))) == lines


@given(LINES)
def test_intervals_are_equal_and_keep_the_mean(lines: list[int]) -> None:
    runs = opportunities.read("".join(f"{line}\n" for line in lines))
    points, length_s = opportunities.intervals(runs)
    assert length_s == lines[-1] / 1000
    assert length_s / len(points) <= 0.1
    assert [at_s for at_s, _ in points] == pytest.approx([k * length_s / len(points) for k in range(len(points))])
    mean = sum(rate for _, rate in points) / len(points)
    assert mean == pytest.approx(opportunities.mean_mbit(runs)) == pytest.approx(len(lines) * 12 / lines[-1])


def test_an_even_trace_is_one_run() -> None:
    hour = "".join(f"{10 * number}\n" for number in range(1, 360_001))
    assert opportunities.read(hour) == "10*360000"


@pytest.mark.parametrize("wrong", ["0", "0x5", "5x0", "5*0", "x", "5x", "-5", "86400001", "1x4294967296", "5 five"])
def test_what_is_no_trace_is_no_field_of_a_plan(wrong: str) -> None:
    with pytest.raises(ValueError, match="trace"):
        Shaping(trace=wrong)


def test_the_traces_that_are_shipped_are_those_of_their_generator() -> None:
    source = TOPOLOGIES / "traces" / "generate.py"
    found = importlib.util.spec_from_file_location("generate", source)
    assert found is not None and found.loader is not None
    generate = importlib.util.module_from_spec(found)
    found.loader.exec_module(generate)
    for make in (generate.cellular, generate.wireless_lan, generate.satellite):
        name = f"{make.__name__.replace('_', '-')}.trace"
        lines = [str(at) for at in generate.opportunities(make(random.Random(generate.SEED)))]
        assert (TOPOLOGIES / "traces" / name).read_text().split() == lines


def test_the_example_plays_each_of_them() -> None:
    moments = load(TOPOLOGIES / "radio.yaml", best="virtual").schedule
    means = {each.link: opportunities.mean_mbit(str(each.update["trace"])) for each in moments if each.update["trace"]}
    assert {link: round(mean) for link, mean in means.items()} == {
        "phone-server": 8,
        "laptop-server": 16,
        "dish-server": 9,
    }
