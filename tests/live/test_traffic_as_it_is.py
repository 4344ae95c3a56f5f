"""Flows that arrive by chance, and incast, on the virtual clock: how long they take, and the same bytes again."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.measured import measured, rows
from live.program import PROJECT, Program

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]
FILE = f"""\
name: traffic
title: Traffic
topology: {PROJECT / "topologies" / "bottleneck.yaml"}
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - name: web
    tool: traffic
    paths: [{{from: left1, to: right}}]
    options: {{duration: 3s, sizes: web-search, scale: 1%}}
    vary: {{load: [20%, 80%]}}
    series: true
  - name: asked
    tool: traffic
    paths: [{{from: left1, to: right}}]
    options: {{duration: 1s, sizes: 1kB, every: 100ms, arrivals: steady, direction: answer, congestion: reno}}
  - name: incast
    tool: flows
    paths: [{{from: left1, to: right}}]
    options:
      duration: 2s
      flows:
        - name: answers
          tool: traffic
          from: [left1, left2, left3]
          options: {{sizes: 30kB, every: 500ms, arrivals: steady}}
    vary: {{answers.number: [1, 3]}}
"""


def test_flows_come_and_go_and_do_so_again(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "traffic.yaml"
    file.write_text(FILE)
    first, second = (measured(program, file, tmp_path / name) for name in ("first", "second"))
    for name in ("samples.csv", "summary.csv", "flows.csv", "series.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name

    found = rows(first / "samples.csv")
    assert [row["ok"] for row in found] == ["true"] * 5, [row["error"] for row in found]
    web = {row["load"]: row for row in found if row["measurement"] == "web"}
    assert {row["unfinished"] for row in web.values()} == {"0"}
    assert float(web["80%"]["flows"]) > 3 * float(web["20%"]["flows"])
    assert float(web["80%"]["slowdown"]) > float(web["20%"]["slowdown"]) >= 0.9
    assert float(web["80%"]["small_p99_ms"]) > float(web["20%"]["small_p99_ms"])

    [asked] = [row for row in found if row["measurement"] == "asked"]
    # A connection takes a round trip of 20 ms, and so do the question and its answer of 1 kB.
    assert float(asked["value"]) == pytest.approx(41.3, abs=0.5)
    assert float(asked["slowdown"]) == pytest.approx(1.0, abs=0.01)

    incast = {row["answers.number"]: row for row in found if row["measurement"] == "incast"}
    assert float(incast["3"]["answers_p99_ms"]) > 1.2 * float(incast["1"]["answers_p99_ms"])
    assert float(incast["3"]["jain"]) == pytest.approx(1.0, abs=0.01)
