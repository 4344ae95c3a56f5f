"""Which figure follows from which declaration; the experiments are made up, and the rules those of docs/results.md."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import synthetic

from minigts.report import chart as drawing
from minigts.report import chart_choice, render
from minigts.report.chart_model import Chart
from minigts.report.page import result_tables
from minigts.report.read import read
from minigts.report.render import contents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {kind.name: kind for kind in synthetic.KINDS}
MANY_PATHS = tuple(("h1", f"h{number}", 1) for number in range(2, 12))
BRANCH = (("h1", "h2", 1), ("h1", "h3", 2), ("h1", "h4", 2), ("h2", "h3", 1))


def charts(where: Path, kind: synthetic.Kind, **how: int) -> dict[str, Chart]:
    made = chart_choice.charts(read(synthetic.write(where / kind.name, kind, **how)))
    return {chart.name: chart for chart in made}


@pytest.mark.parametrize(
    ("kind", "name", "axis", "bars", "columns"),
    [
        ("cpu", "tcp-by-overlay", "overlay", True, ["value", "cpu_percent"]),
        ("cpu-stress", "tcp-by-stress", "stress", False, ["value", "cpu_percent"]),
        ("fragmentation", "udp-by-datagram", "datagram", False, ["value", "loss_percent"]),
        ("offload", "tcp-by-offload", "offload", True, ["value"]),
        ("offload", "udp-by-datagram", "datagram", False, ["value"]),
        ("udp-sweep", "udp-by-rate", "rate", False, ["value", "loss_percent", "jitter_ms"]),
        ("udp-sweep", "udp-by-rate-2", "rate", False, ["value"]),
        ("placement", "tcp-by-congestion", "congestion", True, ["value"]),
        ("overlay-ovs", "latency-by-path", "path", True, ["value"]),
        ("star", "udp-by-sessions", "sessions", False, ["jitter_ms"]),
        ("unfair", "tcp-by-congestion", "congestion", True, ["value"]),
        ("healing", "echoes-by-overlay", "overlay", True, ["value", "gap_ms"]),
    ],
)
def test_the_figure_follows_from_the_declaration(
    tmp_path: Path, kind: str, name: str, axis: str, bars: bool, columns: list[str]
) -> None:
    chart = charts(tmp_path, KINDS[kind])[name]
    assert (chart.x, chart.bars, [panel.column for panel in chart.panels]) == (axis, bars, columns)


def test_units_become_numbers_in_one_unit(tmp_path: Path) -> None:
    chart = charts(tmp_path, KINDS["udp-sweep"])["udp-by-rate"]
    assert [at for at, _ in chart.ticks] == [1, 10, 100, 1000, 3000]
    assert chart.x_label == "rate in Mbit/s"


def test_a_point_is_its_summarys(tmp_path: Path) -> None:
    alone = charts(tmp_path, KINDS["fragmentation"])["udp-by-datagram"]
    rows = [row for row in read(tmp_path / "fragmentation").summary if row.overlay == "none"]
    assert [point.value for point in alone.panels[0].series[0].points] == [row.median for row in rows]


def test_paths_that_share_a_place_are_series_and_never_one_figure(tmp_path: Path) -> None:
    """Two flows of 2.5 and 16.2 Mbit/s are no bar of 9.35."""
    chart = charts(tmp_path, KINDS["unfair"])["tcp-by-congestion"]
    assert [(series.path, [round(p.value, 1) for p in series.points]) for series in chart.panels[0].series] == [
        ("h1 → h2", [2.5, 2.5]),
        ("h1 → h3", [16.2, 16.2]),
    ]
    assert all(point.high - point.low < 0.5 for series in chart.panels[0].series for point in series.points)
    assert chart.variants == ("h1 → h2", "h1 → h3")
    (told,) = [words for words in contents(read(tmp_path / "unfair"))[2] if words.startswith("TCP by")]
    assert "h1 → h2 2.5 Mbit/s" in told
    assert "h1 → h3 16.2 Mbit/s" in told


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_point_is_of_one_row(tmp_path: Path, kind: synthetic.Kind) -> None:
    made = chart_choice.charts(read(synthetic.write(tmp_path / "run", kind, repetitions=3)))
    points = [p for chart in made for panel in chart.panels for series in panel.series for p in series.points]
    assert {point.n for point in points} == {3}


def test_more_paths_than_series_can_show_are_markers_of_their_own(tmp_path: Path) -> None:
    chart = charts(tmp_path, replace(KINDS["unfair"], paths=MANY_PATHS))["tcp-by-congestion"]
    assert chart.scattered
    (series,) = chart.panels[0].series
    assert [point.path for point in series.points if point.x == 0] == [f"h1 → h{n}" for n in range(2, 12)]
    text = render(tmp_path / "unfair").read_text()
    assert "Each marker is one path" in text


def test_hosts_equally_far_away_have_a_marker_each(tmp_path: Path) -> None:
    branch = replace(KINDS["unfair"], measurements=[synthetic._tcp()], paths=BRANCH)
    chart = charts(tmp_path, branch)["tcp-by-hops"]
    assert [(point.x, point.path) for point in chart.panels[0].series[0].points] == [
        (1, "h1 → h2"),
        (2, "h1 → h3"),
        (2, "h1 → h4"),
    ]
    assert chart.elsewhere == 1
    assert "1 further path begins at another host" in render(tmp_path / "unfair").read_text()


def test_columns_that_are_asked_for_take_the_place_of_stacked_segments(tmp_path: Path) -> None:
    """A latency by hops would show its median alone."""
    asked = [{"of": "echoes", "x": "hops", "y": ["gap_ms", "value"]}]
    kind = replace(KINDS["healing"], paths=synthetic.FIVE_HOPS, figures=asked)
    chart = charts(tmp_path, kind)["echoes-by-hops"]
    assert [panel.column for panel in chart.panels] == ["gap_ms", "value"]
    render(tmp_path / "healing")
    assert (tmp_path / "healing" / "figures" / "echoes-by-hops.svg").read_text().count('id="axes_') == 2


def test_a_share_is_of_the_same_path(tmp_path: Path) -> None:
    asked = [{"of": "tcp", "x": "congestion", "relative_to": "cubic"}]
    chart = charts(tmp_path, replace(KINDS["unfair"], figures=asked))["tcp-by-congestion"]
    assert [round(p.value, -1) for series in chart.panels[0].series for p in series.points] == [100] * 4


def test_of_several_paths_none_is_taken_for_the_whole(tmp_path: Path) -> None:
    asked = [{"of": "tcp", "x": "hops", "relative_to": "2"}]
    branch = replace(KINDS["unfair"], measurements=[synthetic._tcp()], paths=BRANCH, figures=asked)
    chart = charts(tmp_path, branch)["tcp-by-hops"]
    assert [p.path for p in chart.panels[0].series[0].points] == ["h1 → h3", "h1 → h4"]
    assert [round(p.value) for p in chart.panels[0].series[0].points] == [100, 100]


def test_mtus_are_drawn_in_where_datagrams_vary(tmp_path: Path) -> None:
    chart = charts(tmp_path, KINDS["fragmentation"])["udp-by-datagram"]
    assert [(mark.x, mark.overlays) for mark in chart.marks] == [
        (1382, ("mesh",)),
        (1422, ("swarm", "flannel")),
        (1472, ("none",)),
    ]


def test_a_second_setting_parts_the_lines(tmp_path: Path) -> None:
    chart = charts(tmp_path, KINDS["offload"])["udp-by-datagram"]
    assert chart.variants == ("offload on", "offload off")
    assert len(chart.panels[0].series) == 4


def test_shares_are_of_an_overlay_or_of_a_place_and_so_are_published_ones(tmp_path: Path) -> None:
    overlay = charts(tmp_path, KINDS["overlay-host"])["tcp-by-overlay"].panels[0]
    shares = {series.overlay: series.points[0] for series in overlay.series}
    assert shares["none"].value == pytest.approx(100)
    assert 85 < shares["swarm"].value < 99
    assert shares["swarm"].published == pytest.approx(100 * 715 / 756)
    placed = charts(tmp_path, KINDS["placement"])["tcp-by-congestion-2"].panels[0].series[0].points
    assert [round(point.published or 0) for point in placed] == [100, 100, 100, 253, 85, 223]


def test_several_measurements_share_a_figure(tmp_path: Path) -> None:
    (chart,) = charts(tmp_path, KINDS["places"]).values()
    assert [name for _, name in chart.ticks] == ["host-to-host", "within-own", "within-published"]
    assert [point.value for point in chart.panels[0].series[0].points] == pytest.approx([100, 1875, 83.333333])
    assert chart.panels[0].label == "TCP throughput\nin % of host-to-host"
    (table,) = result_tables(read(tmp_path / "places").summary, [])
    assert table.columns[0] == "measurement"
    assert [row[0] for row in table.rows] == ["host-to-host", "within-own", "within-published"]


def test_two_measurements_stand_beside_each_other_on_the_axis_that_is_asked_for(tmp_path: Path) -> None:
    asked = [{"of": ["host-to-host", "within-own"], "x": "measurement"}]
    chart = charts(tmp_path, replace(KINDS["places"], figures=asked))["host-to-host-by-measurement"]
    assert [name for _, name in chart.ticks] == ["host-to-host", "within-own"]
    assert [point.x for point in chart.panels[0].series[0].points] == [0, 1]


def test_curves_of_several_measurements_start_at_their_own_first_hop(tmp_path: Path) -> None:
    (chart,) = charts(tmp_path, KINDS["window"]).values()
    assert chart.overlays == ("mesh",)
    assert chart.variants == ("tcp, congestion cubic", "tcp, congestion reno", "tcp-window", "tcp-queue", "tcp-gro")
    first = [series.points[0].value for series in chart.panels[0].series]
    assert first == pytest.approx([100] * 5)
    last = {series.variant: series.points[-1].value for series in chart.panels[0].series}
    assert last["tcp-window"] < 25
    assert last["tcp-queue"] > 90
    assert chart.panels[0].label == "TCP throughput\nin % of 1 hop"


def test_tainted_samples_are_shown_and_counted_and_in_no_median(tmp_path: Path) -> None:
    kind = KINDS["cpu-stress"]
    chart = charts(tmp_path, kind, tainted_every=10)["tcp-by-stress"]
    points = [point for series in chart.panels[0].series for point in series.points]
    assert sum(len(point.excluded) for point in points) == 12
    assert sum(point.n for point in points) == 120 - 12
    results = read(tmp_path / kind.name)
    assert results.samples.tainted == 12
    text = render(tmp_path / kind.name).read_text()
    assert "12 were taken while the machine was too busy" in text
    assert "other programs used … processors" in text
    assert "24 attempts thrown away" in text


def test_a_prediction_far_above_is_told_and_not_drawn(tmp_path: Path) -> None:
    run = synthetic.write(tmp_path / "cpu", KINDS["cpu"])
    lines = (run / "summary.csv").read_text().splitlines()
    at = lines[0].split(",").index("predicted")
    rows = [line.split(",") for line in lines[1:]]
    (run / "summary.csv").write_text("\n".join([lines[0], *(",".join([*r[:at], "1000", *r[at + 1 :]]) for r in rows)]))
    chart = chart_choice.charts(read(run))[0]
    assert chart.beyond == 1000
    assert all(point.predicted is None for series in chart.panels[0].series for point in series.points)
    assert "The plan predicts 1000 or more" in render(run).read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_a_reference_line_and_a_title_are_the_files(tmp_path: Path) -> None:
    chart = charts(tmp_path, KINDS["star"])["udp-by-sessions"]
    assert [line.at for line in chart.panels[0].lines] == [30]
    titled = charts(tmp_path, KINDS["udp-sweep"])["udp-by-rate-2"]
    assert titled.title == "The same, normalised"


def test_an_axis_that_was_not_varied_gives_way_to_the_one_that_follows(tmp_path: Path) -> None:
    kind = replace(KINDS["cpu"], name="odd", figures=[{"of": "tcp", "x": "nonsense"}])
    assert "tcp-by-overlay" in charts(tmp_path, kind)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=name, marks=() if name in ("udp-sweep", "healing") else pytest.mark.nightly)
        for name, kind in KINDS.items()
    ],
)
def test_every_kind_is_drawn(tmp_path: Path, kind: synthetic.Kind) -> None:
    page = render(synthetic.write(tmp_path / "run", kind, repetitions=2))
    names = {chart.name for chart in chart_choice.charts(read(tmp_path / "run"))}
    assert {*names, "topology"} == {path.stem for path in (tmp_path / "run" / "figures").glob("*.svg")}
    assert all(f'id="{name}"' in page.read_text() for name in names)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


@pytest.mark.parametrize(
    ("kind", "name", "labels"),
    [
        (
            "offload",
            "udp-by-datagram",
            ["no overlay · offload on", "no overlay · offload off", "swarm · offload on", "swarm · offload off"],
        ),
        (
            "window",
            "tcp-by-hops",
            ["tcp, congestion cubic", "tcp, congestion reno", "tcp-window", "tcp-queue", "tcp-gro"],
        ),
        ("cpu", "tcp-by-overlay", []),
    ],
)
def test_the_legend_names_what_parts_the_series_and_the_axis_does_not(
    tmp_path: Path, kind: str, name: str, labels: list[str]
) -> None:
    assert legend(drawing.draw(charts(tmp_path, KINDS[kind])[name])) == labels


def predicted(chart: Chart) -> Chart:
    """Its first panel, with a prediction for each point, a tenth above it."""
    series = [
        replace(each, points=tuple(replace(point, predicted=1.1 * point.value) for point in each.points))
        for each in chart.panels[0].series
    ]
    return replace(chart, panels=(replace(chart.panels[0], series=tuple(series)),))


def test_predictions_of_overlays_along_the_axis_have_one_name_in_the_legend(tmp_path: Path) -> None:
    """Each overlay has its own ceiling, and its name stands on the axis."""
    figure = drawing.draw(predicted(charts(tmp_path, KINDS["cpu"])["tcp-by-overlay"]))
    assert legend(figure) == ["ceiling by the plan"]


def test_a_prediction_of_one_series_bears_its_name(tmp_path: Path) -> None:
    figure = drawing.draw(predicted(charts(tmp_path, KINDS["offload"])["udp-by-datagram"]))
    assert legend(figure)[4:] == [f"expected by the plan, {label}" for label in legend(figure)[:4]]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (KINDS["offload"], "udp-by-datagram"),
        (KINDS["cpu"], "tcp-by-overlay"),
        (replace(KINDS["unfair"], paths=MANY_PATHS), "tcp-by-congestion"),
    ],
    ids=["lines", "bars", "markers"],
)
def test_a_prediction_is_drawn_no_thicker_than_what_was_measured(
    tmp_path: Path, kind: synthetic.Kind, name: str
) -> None:
    from matplotlib.artist import getp  # noqa: PLC0415
    from matplotlib.container import ErrorbarContainer  # noqa: PLC0415

    made = predicted(charts(tmp_path, kind)[name])
    [panel] = drawing.draw(made).axes
    of_the_plan = {
        float(max(np.ravel(getp(drawn, "linewidth"))))
        for drawn, label in zip(*panel.get_legend_handles_labels(), strict=True)
        if label.startswith(made.tool.prediction.legend)
    }
    measured = [each[0] for each in panel.containers if isinstance(each, ErrorbarContainer) and each[0] is not None]
    [thickness] = {float(getp(drawn, "linewidth")) for drawn in (*measured, *panel.patches)}
    assert 0 < max(of_the_plan) <= thickness


def test_long_names_of_panels_stay_beside_their_panels(tmp_path: Path) -> None:
    made = charts(tmp_path, KINDS["udp-sweep"])["udp-by-rate"]
    long = tuple(replace(panel, label=f"{panel.label}, which takes many more words") for panel in made.panels)
    figure = drawing.draw(replace(made, panels=long))
    figure.canvas.draw()
    boxes = [axes.yaxis.label.get_window_extent() for axes in figure.axes]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
