"""Several flows through one bottleneck, on the virtual clock: their shares, what waits, and the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.measured import measured, rows
from live.program import PROJECT, Program

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]
FILE = f"""\
name: flows
title: Flows
topology: {PROJECT / "topologies" / "bottleneck.yaml"}
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - name: mix
    tool: flows
    paths: [{{from: left1, to: right}}]
    series: true
    options:
      duration: 4s
      omit: 2s
      flows:
        - {{name: bbr, tool: iperf3-tcp, options: {{congestion: bbr}}}}
        - {{name: cubic, tool: iperf3-tcp, from: left2, start: 1s, options: {{congestion: cubic}}}}
        - {{name: echo, tool: ping, from: left3, options: {{interval: 50ms}}}}
  - name: several
    tool: flows
    paths: [{{from: left1, to: right}}]
    options:
      duration: 4s
      flows:
        - {{name: reno, tool: iperf3-tcp, from: [left1, left2, left3], options: {{congestion: reno}}}}
        - {{name: back, tool: iperf3-udp, from: right, to: left1, options: {{rate: 1mbit}}}}
        - {{name: asks, tool: netperf-rr}}
    vary: {{reno.number: [1, 3]}}
claims:
  - {{value: follows, of: several, metric: reno_mbit, formula: rate * mss / (mss + 66), unit: B/s, range: 85 to 101 %}}
  - {{value: ordered, of: several, metric: jain, by: reno.number, order: [1, 3]}}
  - {{value: bounded, of: mix, metric: utilisation_percent, range: over 101 %}}
"""


def test_flows_share_a_bottleneck_and_do_so_again(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "flows.yaml"
    file.write_text(FILE)
    first, second = (measured(program, file, tmp_path / name) for name in ("first", "second"))
    for name in ("samples.csv", "summary.csv", "flows.csv", "series.csv", "claims.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name

    found = rows(first / "samples.csv")
    assert [row["ok"] for row in found] == ["true"] * 3, [row["error"] for row in found]
    mix = next(row for row in found if row["measurement"] == "mix")
    assert 95 <= float(mix["utilisation_percent"]) <= 101
    assert float(mix["bbr_share_percent"]) + float(mix["cubic_share_percent"]) == pytest.approx(100)
    assert 0.5 <= float(mix["jain"]) <= 1
    # The queue of 25 kB takes 20 ms at 10 Mbit/s, and no echo waits longer.
    assert 1 < float(mix["queueing_ms"]) < 22
    idle = {row["flow"]: float(row["idle_ms"]) for row in rows(first / "flows.csv") if row["measurement"] == "mix"}
    assert idle == pytest.approx(dict.fromkeys(("bbr", "cubic", "echo"), 20.2), abs=0.1)

    by_number = {row["reno.number"]: row for row in found if row["measurement"] == "several"}
    assert float(by_number["1"]["jain"]) < 1, "the flow back has another rate"
    assert float(by_number["3"]["reno_mbit"]) == pytest.approx(float(by_number["1"]["reno_mbit"]), rel=0.1)
    assert float(by_number["3"]["back_mbit"]) == pytest.approx(1.0, abs=0.02)
    senders = [
        row["source"] for row in rows(first / "flows.csv") if row["flow"] == "reno" and row["reno.number"] == "3"
    ]
    assert senders == ["left1", "left2", "left3"]

    verdicts = [each["verdict"] for each in json.loads((first / "claims.json").read_text())]
    assert verdicts == ["held", "held", "failed"], (first / "claims.json").read_text()
    columns = {row["column"] for row in rows(first / "series.csv")}
    assert {"bbr cwnd_bytes", "cubic rtt_ms", "echo rtt_ms"} <= columns
    assert (first / "figures" / "mix-over-time.png").is_file()
