"""The room of the measuring tools: what holds for each of them, whoever adds one."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
from experiment_lab import RECORDED, endpoints, recorded

import minigts.tools
from minigts.experiment_language.model import Experiment
from minigts.experiments.commands import command, estimate_s, prediction
from minigts.experiments.load import parse
from minigts.report import phrasing
from minigts.results.tables import SAMPLE_COLUMNS
from minigts.tools import COLUMNS, TOOLS
from minigts.tools.base import Measured, ParseError, PathUnderTest, Tool
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

PACKAGE = Path(minigts.tools.__file__).parents[1]
ELSEWHERE = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name != "tools")
OF_THE_MACHINE = {"ping"}
"""A program that is run for other ends too: to warm paths up, and to find out what the emulator adds."""
OUTPUTS = [path.name for path in sorted(RECORDED.iterdir()) if path.name != "README.md"]
each_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load(Path(__file__).parents[3] / "topologies" / "chain6.yaml")


def readings(tool: Tool) -> list[Measured]:
    """Of every recorded output that is the tool's."""
    found = []
    for name in OUTPUTS:
        try:
            found.append(tool.read(recorded(name), ""))
        except ParseError:
            continue
    return found


def experiment(tool: Tool) -> Experiment:
    return parse(
        f"""\
name: one
title: One tool
topology: topologies/chain6.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {{name: it, tool: {tool.name}, paths: [first-to-each]}}
""",
        "one.yaml",
    )


@each_tool
def test_a_tool_stands_in_the_file_of_its_name(tool: Tool) -> None:
    assert tool.read.__module__ == f"minigts.tools.{tool.name.replace('-', '_')}"


@pytest.mark.parametrize("module", ELSEWHERE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_other_room_knows_a_tool_by_its_name(module: Path) -> None:
    text = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    named = {node.value for node in text if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not named & (TOOLS.keys() - OF_THE_MACHINE)


@each_tool
def test_recorded_outputs_fill_each_column_that_the_tool_declares_and_no_other(tool: Tool) -> None:
    filled = {name for measured in readings(tool) for name in measured.extra}
    assert filled == {column.name for column in tool.columns}


@each_tool
def test_what_is_read_is_a_number_of_the_tools_unit(tool: Tool) -> None:
    assert tool.unit
    for measured in readings(tool):
        assert all(math.isfinite(value) and value >= 0 for value in (measured.value, *measured.extra.values()))


@each_tool
def test_columns_of_one_name_are_one_column_with_a_place_in_the_table(tool: Tool) -> None:
    assert [COLUMNS[column.name] for column in tool.columns] == list(tool.columns)
    assert set(SAMPLE_COLUMNS) >= {column.name for column in tool.columns}


@each_tool
def test_an_experiment_may_ask_for_the_tool_with_its_options_left_out(tool: Tool, plan: Plan) -> None:
    asked = experiment(tool)
    [measurement] = asked.measurements
    assert isinstance(measurement.options, tool.options)
    assert Experiment.model_validate(asked.file_values()) == asked
    ends = endpoints(plan, "none")
    source, target = (host.name for host in plan.hosts[:2])
    way = PathUnderTest(ends[target].address, 1500, 1500, plan.path(source, target))
    assert way.address in command(measurement, ends[source], way, 0.004)
    assert estimate_s(measurement, way.path) > 0
    assert isinstance(measurement.options.lasting(7.0), tool.options)
    promised = prediction(measurement, way)
    assert promised is None or promised > 0


@pytest.mark.parametrize(
    ("column", "heading"),
    [
        ("p99", "p99 in ms"),
        ("loss_percent", "loss in %"),
        ("jitter_ms", "jitter in ms"),
        ("rtt_ms", "RTT in ms"),
        ("cwnd_bytes", "cwnd in bytes"),
        ("cpu_source_inside_percent", "CPU source inside in %"),
        ("stress_s", "stress in s"),
        ("retransmits", "retransmits"),
        ("out_of_order", "out of order"),
        ("of_another_version_ms", "of another version in ms"),
        ("seconds", "seconds in ms"),
    ],
)
def test_a_column_is_called_by_its_label_and_unit(column: str, heading: str) -> None:
    assert phrasing.column(column, "ms") == heading
