"""Figures over time of several flows: a panel for each column with a line for each flow, or two columns in a panel."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from minigts.experiment_language.figures import Figure
from minigts.report.over_time import OverTime, draw, figure_of
from minigts.results.tables import SeriesRow
from minigts.tools import flows


def content(**asked: object) -> OverTime:
    rows = [
        SeriesRow("none", "mix", "a", "b", (), f"{flow} {column}", at_s, value + at_s, "s1")
        for column, value in (("sent", 5.0), ("rtt_ms", 20.0), ("cwnd_bytes", 9000.0))
        for flow in ("bbr", "cubic 2")
        for at_s in (0.5, 1.5, 2.5)
    ]
    return figure_of(Figure.model_validate({"of": "mix", "x": "time", **asked}), "mix", rows, flows.TOTAL)


def test_flows_are_lines_of_one_panel_for_each_column() -> None:
    found = content()
    assert found.columns == ("sent", "rtt_ms", "cwnd_bytes")
    for _, lines in found.panels:
        assert [(line.variant, len(line.points)) for line in lines] == [("flow bbr", 3), ("flow cubic 2", 3)]
    assert len(draw(found).axes) == 3


def test_a_column_beside_another_has_its_axis_on_the_right() -> None:
    figure = draw(content(y=["sent", "rtt_ms", "cwnd_bytes"], axes={"rtt_ms": {"beside": "sent", "to": 100}}))
    left, last, right = figure.axes
    assert left.get_shared_x_axes().joined(left, right) and left.bbox.bounds == right.bbox.bounds
    assert right.get_ylabel().endswith("(dotted)") and "RTT" in right.get_ylabel()
    assert (right.get_ylim()[1], right.yaxis.get_label_position()) == (100, "right")
    assert [line.get_linestyle() for line in right.lines] == [":", ":"]
    assert [line.get_color() for line in right.lines] == [line.get_color() for line in left.lines[:2]]
    assert len(last.lines) == 3


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"rtt_ms": {"beside": "rtt_ms"}}, "'rtt_ms' has no panel in which rtt_ms could be drawn"),
        ({"rtt_ms": {"beside": "sent"}, "sent": {"beside": "rtt_ms"}}, "'sent' has no panel"),
        ({"rtt_ms": {"beside": "jain"}}, "'jain' has no panel"),
    ],
)
def test_a_column_stands_beside_one_that_has_a_panel(axes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        content(y=["sent", "rtt_ms"], axes=axes)
    findings = [found for each in refused.value.errors() for found in each["ctx"]["error"].findings]
    assert any(message in said for _, said in findings), findings
