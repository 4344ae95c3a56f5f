"""A program of the user's measures, and traffic crosses a measurement, on the virtual clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.measured import measured, rows
from live.program import PROJECT, Program

pytestmark = pytest.mark.virtual
TWO_ROUND_TRIPS_MS = 2 * 17.7
PAGE_MS = 8 * (10_000 + 7 * 66) / 1e5
"""10 kB in seven segments at 100 Mbit/s, each with its headers."""


def results(program: Program, tmp_path: Path, name: str, *more: str) -> Path:
    file = PROJECT / "experiments" / f"{name}.yaml"
    return measured(program, file, tmp_path / "results", "--quick", *more)


@pytest.mark.nightly
def test_a_web_page_comes_after_two_round_trips(program: Program, tmp_path: Path) -> None:
    """curl prints microseconds; the server sends its header in a packet of its own."""
    directory = results(program, tmp_path, "page-load")
    took_ms = {row["size"]: float(row["value"]) for row in rows(directory / "samples.csv") if row["ok"] == "true"}
    assert sorted(took_ms, key=took_ms.__getitem__) == ["10kB", "100kB", "1MB"]
    assert took_ms["10kB"] == pytest.approx(TWO_ROUND_TRIPS_MS + PAGE_MS, abs=0.1)
    verdicts = {each["verdict"] for each in json.loads((directory / "claims.json").read_text()) if each["overlay"]}
    assert "failed" not in verdicts


@pytest.mark.nightly
def test_an_echo_waits_where_more_crosses_than_the_link_carries(program: Program, tmp_path: Path) -> None:
    directory = results(program, tmp_path, "cross-traffic", "--only", "echoes")
    found = {row["cross"]: row for row in rows(directory / "samples.csv")}
    assert {cross: row["ok"] for cross, row in found.items()} == dict.fromkeys(("20mbit", "80mbit", "110mbit"), "true")
    assert float(found["20mbit"]["cross_mbit"]) == pytest.approx(20, abs=0.1)
    assert float(found["20mbit"]["value"]) == pytest.approx(17.7, abs=0.2)
    assert float(found["110mbit"]["cross_loss_percent"]) > 5
    waited_ms = [float(row["value"]) for row in rows(directory / "series.csv") if row["cross"] == "110mbit"]
    assert max(waited_ms) > 2 * 17.7
    assert (directory / "figures" / "echoes-over-time.png").is_file()
