"""Every table at 80 and at 120 columns: no line is wider than the window, and no figure is cut apart."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from minigts.cli import console
from minigts.cli.app import app
from minigts.cli.verbs.top import FLOWS, WITHOUT
from minigts.cli.views import tables
from minigts.cli.views.findings import show_claims, show_comparison
from minigts.report import comparison_page
from minigts.report.page import Table
from minigts.results.schema import ClaimVerdict
from minigts.topology import draw
from minigts.topology.read.load import load, parse

FOLDER = Path(__file__).parents[3] / "topologies"
NAMES = ("pair", "chain6", "ring6", "mesh6", "switched", "vlans", "ipv6", "star")
TOPOLOGIES = [FOLDER / f"{name}.yaml" for name in NAMES]
WINDOWS = (80, 120)
runner = CliRunner()


def printed(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, optional: Sequence[str] = ()) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(tables.table_of_width(columns, rows, width, optional=optional))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def seen(words: Sequence[str], width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(console, "window", lambda: width)
    ended = runner.invoke(app, list(words))
    assert ended.exit_code == 0, ended.output
    return ended.stdout


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("file", TOPOLOGIES, ids=lambda file: file.stem)
def test_a_plan_fits_the_window(file: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = seen(["plan", str(file)], width, monkeypatch)
    assert [line for line in shown.splitlines() if len(line) > width] == []
    for link in load(file).links[:66]:
        assert f"{link.rtt_ms:.2f} ms" in shown
        assert link.name in shown.split()


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("count", [3, 6, 12, 24])
def test_a_ring_fits_the_window(count: int, width: int) -> None:
    names = [f"host{number}" for number in range(count)]
    links = ", ".join(
        f"{{ends: [{a}, {b}], delay: 10.25ms}}" for a, b in zip(names, [*names[1:], names[0]], strict=True)
    )
    plan = parse(f"name: r\nhosts: {{{', '.join(f'{name}: {{}}' for name in names)}}}\nlinks: [{links}]\n", "r.yaml")
    lines = draw.draw(plan, width=width)
    assert [line for line in lines if len(line) > width] == []
    assert sum(line.count("20.5 ms") for line in lines) == count
    assert {len(line) for line in lines if line.endswith(("┐", "┘"))} == {len(lines[-1])}


@pytest.mark.parametrize("width", WINDOWS)
def test_what_top_shows(width: int) -> None:
    row = ("amsterdam-bratislava", "amsterdam", "bratislava", "9412.25", "94%", "812345", "762.5 kB", "12345", "17")
    shown = printed(FLOWS, [(*row, "120.50 ms", "down")] * 3, width, WITHOUT)
    assert max(map(len, shown.splitlines())) <= width
    for figure in ("amsterdam-bratislava", "9412.25", "12345", "down"):
        assert len(re.findall(rf"\b{figure}\b", shown)) == 3
    assert "no room for: frames/s" in shown


@pytest.mark.parametrize("width", WINDOWS)
def test_a_comparison(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    row = ("multihop-overlays: tcp", "mesh-sleeve-encrypted", "ams → lon, rate 100mbit", "5", "94.12", "47.06")
    row = (*row, "−50.0 %", "−50.3 to −49.8 %", "−1.00", "0.008", "differs too little to matter")
    monkeypatch.setattr(console, "window", lambda: width)
    show_comparison(["one differs"], [Table("Figures", comparison_page.COLUMNS, (row, row))], [])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    for figure in ("94.12", "47.06", "−50.0 %"):
        assert shown.count(figure) == 2, shown


@pytest.mark.parametrize("width", WINDOWS)
def test_verdicts(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    detail = "all 5 paths lie within 85% to 102% of the ceiling; the furthest, ams to lon, reaches 47.0 of 47.8 Mbit/s"
    claims = [
        ClaimVerdict(claim="throughput: within-ceiling of tcp-window", overlay="mesh", verdict="held", detail=detail)
    ]
    monkeypatch.setattr(console, "window", lambda: width)
    show_claims(claims)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    assert "47.0 of 47.8" in " ".join(shown.split())


def test_of_a_dry_run_the_tools_are_left_out_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "echoes.yaml"
    file.write_text(
        f"name: echoes\ntitle: Echoes\ntopology: {FOLDER / 'pair.yaml'}\noverlays: [mesh-sleeve-encrypted]\nseed: 1\n"
        "repetitions: 3\nmeasurements:\n  - {name: transactions, tool: netperf-rr, paths: [first-to-last]}\n"
    )
    wide, narrow = (seen(["run", "--dry-run", str(file)], width, monkeypatch) for width in (80, 60))
    assert re.search(r"^ *mesh-sleeve-encrypted +transactions +netperf-rr +3 *$", wide, re.MULTILINE)
    assert re.search(r"^ *mesh-sleeve-encrypted +transactions +3 *$", narrow, re.MULTILINE)
    assert "no room for: tool;" in narrow


def test_what_has_no_room_at_all_stands_below_each_other() -> None:
    columns = ("link", *(f">figure {number}" for number in range(12)))
    shown = printed(columns, [("ams-bra", *(f"{number}123.45 Mbit/s" for number in range(12)))], 80)
    assert re.search(r"figure 11\s+11123\.45 Mbit/s", shown)
    assert max(map(len, shown.splitlines())) <= 80


def test_a_program_gets_a_line_a_row_with_tabs_and_no_padding() -> None:
    shown = runner.invoke(app, ["plan", str(FOLDER / "pair.yaml")]).stdout
    lines = shown.splitlines()
    at = lines.index("links")
    assert lines[at + 1].split("\t")[:3] == ["link", "subnet", "RTT"]
    assert lines[at + 2].split("\t")[0] == "ams-bra"
    assert [line for line in lines if line != line.rstrip(" ")] == []


def test_a_cell_holds_no_tab() -> None:
    assert tables.tab_separated_lines(("a", ">b"), [("x\ty", "1\n2")]) == ["a\tb", "x y\t1 2"]


def test_a_lessons_plan_shows_delays_and_no_round_trip_until_its_student_has_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert runner.invoke(app, ["lesson", "1", "start"]).exit_code == 0
    before = runner.invoke(app, ["plan", "lesson-1/topology.yaml"]).stdout
    assert ("17.5" in before, "8.75 ms" in before, "RTT" in before) == (False, True, False)
    assert runner.invoke(app, ["lesson", "1", "predict", "50ms", "--folder", "lesson-1"]).exit_code == 0
    after = runner.invoke(app, ["plan", "lesson-1/topology.yaml"]).stdout
    assert ("17.5 ms" in after, "RTT" in after) == (True, True)
