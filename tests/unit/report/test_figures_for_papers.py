"""`minigts plot`, and what figures say of axes, sizes, letters and distributions; the results are made up."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from minigts.errors import InputError
from minigts.experiment_language import figures as figure_language
from minigts.experiment_language.figures import Axis, Figure, Style
from minigts.experiments.load import parse as experiment
from minigts.report import chart_choice, chart_model, phrasing, style
from minigts.report.axis_places import full_label
from minigts.report.plot import plot
from minigts.report.read import read, together

KINDS = {kind.name: kind for kind in synthetic.KINDS}
PLACES = "where: {path: w1 → w2}"
POINTS_AN_INCH = 72


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of one experiment, to be read only: rates of UDP over four networks and two paths."""
    return synthetic.write(tmp_path_factory.mktemp("one") / "udp-sweep", KINDS["udp-sweep"])


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of another experiment with the same measurement."""
    other = replace(KINDS["udp-sweep"], name="udp-later", overlays=("none", "mesh"))
    return synthetic.write(tmp_path_factory.mktemp("two") / "udp-later", other)


def drawn(tmp_path: Path, results: Sequence[Path], text: str) -> list[str]:
    file = tmp_path / "figures.yaml"
    file.write_text(text, encoding="utf-8")
    return [drawing.name for drawing in plot(results, file, tmp_path / "drawn")]


def chart(results: Path, **said: object) -> chart_model.Chart:
    return chart_choice.chart_of(read(results), Figure.model_validate({"of": "udp", **said}))


def svg_inches(file: Path) -> tuple[float, float]:
    found = re.search(
        r'width="([0-9.]+)pt" height="([0-9.]+)pt"|height="([0-9.]+)pt".*?width="([0-9.]+)pt"', file.read_text()
    )
    assert found is not None
    width, height = (found[1], found[2]) if found[1] else (found[4], found[3])
    return float(width) / POINTS_AN_INCH, float(height) / POINTS_AN_INCH


def test_each_figure_is_three_files_of_its_own_size(tmp_path: Path, sweep: Path) -> None:
    text = f"figures:\n  - {{of: udp, name: narrow, {PLACES}, style: {{width: 8.5cm, height: 60mm}}}}\n"
    assert drawn(tmp_path, [sweep], text) == ["narrow"]
    place = tmp_path / "drawn"
    assert sorted(file.name for file in place.iterdir()) == ["narrow.pdf", "narrow.png", "narrow.svg"]
    assert svg_inches(place / "narrow.svg") == pytest.approx((8.5 / 2.54, 6 / 2.54), abs=0.01)
    across, down = struct.unpack(">II", (place / "narrow.png").read_bytes()[16:24])
    assert (across, down) == (round(style.PNG_DPI * 8.5 / 2.54 - 0.5), round(style.PNG_DPI * 6 / 2.54 - 0.5))
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", (place / "narrow.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) == pytest.approx(POINTS_AN_INCH * 8.5 / 2.54, abs=0.1)


@pytest.mark.nightly
def test_a_pdf_has_the_same_bytes_in_another_process_and_no_date(tmp_path: Path, sweep: Path) -> None:
    text = f"style: {{font: times}}\nfigures:\n  - {{of: udp, {PLACES}}}\n"
    drawn(tmp_path, [sweep], text)
    program = (
        "import sys; from pathlib import Path; from minigts.report.plot import plot; "
        "list(plot([Path(sys.argv[1])], Path(sys.argv[2]), Path(sys.argv[3])))"
    )
    again = [sys.executable, "-c", program, str(sweep), str(tmp_path / "figures.yaml"), str(tmp_path / "again")]
    elsewhere = {**os.environ, "SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "7"}
    subprocess.run(again, check=True, env=elsewhere)
    for end in ("pdf", "svg", "png"):
        first = (tmp_path / "drawn" / f"udp-by-rate.{end}").read_bytes()
        assert first == (tmp_path / "again" / f"udp-by-rate.{end}").read_bytes(), end
    pdf = (tmp_path / "drawn" / "udp-by-rate.pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf
    assert b"STIXGeneral" in pdf


def test_several_experiments_are_series_of_one_figure(tmp_path: Path, sweep: Path, others: Path) -> None:
    text = "figures:\n  - {of: udp, name: both, where: {path: w1 → w2}, overlays: [none]}\n"
    assert drawn(tmp_path, [sweep, others], text) == ["both"]
    named = {"udp-sweep": read(sweep), "udp-later": read(others)}
    made = chart_choice.chart_of(
        together(named),
        Figure.model_validate({"of": "udp", "where": {"path": "w1 → w2"}, "names": {"udp-later": "a later run"}}),
    )
    assert made.variants == ("udp-sweep", "a later run")
    for series in made.panels[0].series:
        name = "udp-sweep" if series.variant == "udp-sweep" else "udp-later"
        own = [row.median for row in named[name].summary if row.overlay == series.overlay and row.source == "w1"]
        assert [point.value for point in series.points] == own


def test_an_experiment_can_be_the_x_axis_and_be_chosen(tmp_path: Path, sweep: Path, others: Path) -> None:
    text = (
        "figures:\n"
        "  - {of: udp, name: bars, x: experiment, where: {path: w1 → w2, rate: 100mbit}}\n"
        "  - {of: udp, name: one, where: {path: w1 → w2, experiment: udp-later}}\n"
    )
    assert drawn(tmp_path, [sweep, others], text) == ["bars", "one"]


def test_an_axis_that_only_some_experiments_have_shows_these(tmp_path: Path, sweep: Path) -> None:
    plain = synthetic.write(tmp_path / "plain", replace(KINDS["cpu"], name="plain"))
    made = chart_choice.chart_of(
        together({"sweep": read(sweep), "plain": read(plain)}), Figure.model_validate({"of": "udp", "x": "rate"})
    )
    assert not made.bars
    assert [at for at, _ in made.ticks] == [1, 10, 100, 1000, 3000]


def test_what_is_held_fixed_is_in_no_label(sweep: Path) -> None:
    made = chart(sweep, x="overlay", where={"path": "w1 → w2", "rate": "100mbit"})
    assert made.variants == ("",)
    assert [len(series.points) for series in made.panels[0].series] == [1, 1, 1, 1]


def test_a_distribution_is_the_share_of_samples_up_to_each_value(sweep: Path) -> None:
    made = chart(sweep, cdf="samples", y=["jitter_ms"], overlays=["none"], where={"path": "w1 → w2", "rate": "1gbit"})
    [series] = made.panels[0].series
    row = next(
        each
        for each in read(sweep).summary
        if (each.overlay, each.source, dict(each.settings)["rate"]) == ("none", "w1", "1gbit")
    )
    assert [point.x for point in series.points] == sorted(row.cell.columns["jitter_ms"])
    assert [point.value for point in series.points] == [20, 40, 60, 80, 100]
    assert made.panels[0].label == "jitter in ms"


def test_the_caption_counts_points_outside_the_axes(sweep: Path) -> None:
    made = chart(sweep, y=["value"], overlays=["none"], where={"path": "w1 → w2"}, axes={"x": {"from": 5, "to": 500}})
    assert made.outside == 3
    zero = chart(
        sweep, y=["loss_percent"], overlays=["none"], where={"path": "w1 → w2"}, axes={"loss_percent": {"scale": "log"}}
    )
    assert zero.outside == sum(point.value == 0 for point in zero.panels[0].series[0].points) > 0


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_axes_have_the_ends_the_scale_and_the_text_that_are_asked_for(sweep: Path, scale: str) -> None:
    from minigts.report.chart import draw  # noqa: PLC0415

    axes = {
        "x": {"from": 1, "to": 2000, "scale": scale},
        "value": {"from": 0.5, "to": 200, "scale": scale, "label": "goodput"},
    }
    figure = draw(chart(sweep, y=["value"], where={"path": "w1 → w2"}, axes=axes))
    [panel] = figure.axes
    assert (panel.get_xlim(), panel.get_ylim()) == ((1, 2000), (0.5, 200))
    assert (panel.get_xscale(), panel.get_yscale(), panel.get_ylabel()) == (scale, scale, "goodput")


def test_numbers_of_a_short_logarithmic_axis_are_plain(sweep: Path) -> None:
    from minigts.report.chart import draw  # noqa: PLC0415

    asked = {"value": {"scale": "log", "from": 10, "to": 90}}
    figure = draw(chart(sweep, y=["value"], where={"path": "w1 → w2"}, axes=asked))
    figure.draw_without_rendering()
    [panel] = figure.axes
    ticks = (*panel.get_yticklabels(), *panel.get_yticklabels(minor=True))
    assert [each.get_text() for each in ticks if each.get_text() and 10 <= each.get_position()[1] <= 90] == [
        "10",
        "20",
        "50",
    ]


def test_bars_on_a_logarithmic_axis_begin_at_a_power_of_ten(sweep: Path) -> None:
    from minigts.report.chart import draw  # noqa: PLC0415

    asked = {"value": {"scale": "log"}}
    figure = draw(chart(sweep, x="overlay", y=["value"], where={"path": "w1 → w2", "rate": "100mbit"}, axes=asked))
    assert figure.axes[0].get_ylim()[0] == 10


def test_fonts_and_their_sizes_reach_every_letter(sweep: Path) -> None:
    from minigts.report.chart import draw  # noqa: PLC0415

    figure = draw(chart(sweep, where={"path": "w1 → w2"}, style={"font": "serif", "font_size": 12}))
    letters = [figure.axes[0].yaxis.label, *figure.axes[-1].get_xticklabels(), *figure.legends[0].get_texts()]
    assert {letter.get_fontfamily()[0] for letter in letters} == {"DejaVu Serif"}
    assert {letter.get_fontsize() for letter in letters} == {12.0, 11.5}


def test_numbers_keep_the_unit_in_which_they_are_written() -> None:
    assert chart_model.numbers_of(["5ms", "20ms"]) == ({"5ms": 5.0, "20ms": 20.0}, "ms")
    assert chart_model.numbers_of(["1gbit", "10gbit"]) == ({"1gbit": 1.0, "10gbit": 10.0}, "Gbit/s")
    assert chart_model.numbers_of(["500ms", "2s"]) == ({"500ms": 0.5, "2s": 2.0}, "s")
    assert chart_model.numbers_of(["9", "on"]) is None


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("chain.link.delay", "delay of chain link"),
        ("links.ams-bra.rtt", "RTT of link ams-bra"),
        ("hosts.ams.mtu", "MTU of host ams"),
        ("chain.hosts", "hosts of chain"),
        ("links.rtt", "RTT of links"),
        ("congestion", "congestion control"),
        ("datagram", "size of a datagram"),
        ("overlay", "network"),
        ("stress", "stress"),
    ],
)
def test_axes_are_named_in_words(place: str, words: str) -> None:
    assert full_label(phrasing.axis(place)) == words


HEAD = "figures:\n  - of: udp\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("udp", "upd"), r"f\.yaml:2: figures\[0\]\.of: no measurement 'upd'; did you mean 'udp'\?"),
        (HEAD + "    x: rat\n", r"f\.yaml:3: figures\[0\]\.x: no axis 'rat'; did you mean 'rate'\?"),
        (HEAD + "    x: measurement\n", r"f\.yaml:3: figures\[0\]\.x: no axis 'measurement'"),
        (HEAD + "    x: time\n", r"f\.yaml:3: figures\[0\]\.x: udp keeps no moments here"),
        (HEAD + "    y: [vaule]\n", r"f\.yaml:3: figures\[0\]\.y\[0\]: no column 'vaule'; did you mean 'value'\?"),
        (HEAD + "    y: [gap_ms]\n", r"f\.yaml:3: figures\[0\]\.y\[0\]: 'gap_ms' was not measured here; there are"),
        (HEAD + "    y: [value, value]\n", r"f\.yaml:3: figures\[0\]\.y\[0\]: 'value' is given twice"),
        (HEAD + "    overlays: [swrm]\n", r"f\.yaml:3: figures\[0\]\.overlays\[0\]: no overlay 'swrm'; did you"),
        (HEAD + "    where: {rat: 1}\n", r"f\.yaml:3: figures\[0\]\.where\.rat: no setting 'rat'; did you mean"),
        (HEAD + "    where: {rate: 2mbit}\n", r"f\.yaml:3: figures\[0\]\.where\.rate: no value '2mbit'"),
        (HEAD + "    where: {path: w9}\n", r"f\.yaml:3: figures\[0\]\.where\.path: no value 'w9'"),
        (HEAD + "    where: {experiment: x}\n", r"f\.yaml:3: figures\[0\]\.where\.experiment: no experiment 'x'"),
        (HEAD + "    cdf: all\n", r"f\.yaml:3: figures\[0\]\.cdf: .*samples or moments"),
        (HEAD + "    cdf: moments\n", r"f\.yaml:3: figures\[0\]\.cdf: udp keeps no moments here"),
        (HEAD + "    cdf: samples\n    x: rate\n", r"f\.yaml:4: figures\[0\]\.x: `cdf` has the columns of `y`"),
        (
            HEAD + "    cdf: samples\n    axes: {x: {from: 1}}\n",
            r"f\.yaml:4: figures\[0\]\.axes\.x: the x axes of `cdf`",
        ),
        (HEAD + "    axes: {vaule: {from: 1}}\n", r"f\.yaml:3: figures\[0\]\.axes\.vaule: no axis 'vaule'; did you"),
        (HEAD + "    axes: {value: {from: 2, to: 1}}\n", r"f\.yaml:3: .*\.to: an axis from 2 to 1 is none"),
        (HEAD + "    axes: {value: {from: low}}\n", r"f\.yaml:3: .*\.from: 'low' is not where the axis begins"),
        (HEAD + "    axes: {value: {scale: log, from: 0}}\n", r"f\.yaml:3: .*\.from: 0 is on no logarithmic axis"),
        (HEAD + "    axes: {value: {beside: loss_percent}}\n", r"f\.yaml:3: .*\.beside: only a figure with `x: time`"),
        (
            HEAD + "    x: time\n    y: [value]\n    axes: {value: {beside: rtt_ms}}\n",
            r"f\.yaml:5: .*\.beside: 'rtt_ms' has no panel in which value could be drawn",
        ),
        (HEAD + "    axes: {value: {scale: ln}}\n", r"f\.yaml:3: .*\.scale: .*linear or log"),
        (HEAD + "    x: path\n    axes: {x: {scale: log}}\n", r"f\.yaml:4: .*axes\.x\.scale: x is path here"),
        (HEAD + "    names: {swrm: Docker}\n", r"f\.yaml:3: figures\[0\]\.names\.swrm: no word 'swrm'; did you"),
        (HEAD + "    style: {width: 8.5}\n", r"f\.yaml:3: .*style\.width: '8\.5' lacks its unit.* 8\.5cm"),
        (HEAD + "    style: {height: 2m}\n", r"f\.yaml:3: .*style\.height: '2m' has an unknown unit 'm'"),
        (HEAD + "    style: {width: 2km}\n", r"f\.yaml:3: .*style\.width"),
        (HEAD + "    style: {width: 1mm}\n", r"f\.yaml:3: .*style\.width: '1mm' is out of range"),
        (
            HEAD + "    style: {font: No Such Font}\n",
            r"f\.yaml:3: .*style\.font: no font 'No Such Font' is installed here; "
            r"these need none: sans, serif, times, mono",
        ),
        (HEAD + "    style: {font_size: 2}\n", r"f\.yaml:3: .*style\.font_size: letters of 2 points: from 4 to 40"),
        (HEAD + "    name: A B\n", r"f\.yaml:3: figures\[0\]\.name"),
        (HEAD + "    lines: [{at: 1, text: t, y: vaule}]\n", r"f\.yaml:3: figures\[0\]\.lines\[0\]\.y: no column"),
        (
            HEAD + "    x: overlay\n    where: {rate: 1gbit}\n    relative_to: swrm\n",
            r"f\.yaml:5: .*relative_to: no value",
        ),
        (HEAD + "    where: {rate: 1gbit}\n    axes: {x: {to: 9}}\n", r"f\.yaml:4: .*axes\.x: x is path here"),
        (HEAD + "    colour: red\n", r"f\.yaml:3: figures\[0\]\.colour: unknown key"),
        ("figure: []\n", r"f\.yaml:1: figure: unknown key; did you mean 'figures'\?"),
        ("figures: []\n", r"f\.yaml:1: figures: an empty list"),
        (HEAD + "    name: a\n  - {of: udp, name: a}\n", r"f\.yaml:4: figures\[1\]\.name: 'a' appears twice"),
        ("", r"f\.yaml: nothing in it; a file of figures starts with `figures:`"),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, sweep: Path, text: str, message: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(plot([sweep], file, tmp_path / "drawn"))
    assert not (tmp_path / "drawn").exists()


def test_everything_wrong_is_told_at_once(tmp_path: Path, sweep: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(
        HEAD + "    x: rat\n    overlays: [swrm]\n  - {of: udp, y: [vaule]}\n  - {of: udp, style: {font: No}}\n"
    )
    with pytest.raises(InputError) as raised:
        list(plot([sweep], file, tmp_path / "drawn"))
    assert [problem.line for problem in raised.value.problems] == [3, 4, 5, 6]


def test_no_results_are_one_error(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(HEAD)
    with pytest.raises(InputError, match="holds no results"):
        list(plot([tmp_path], file, tmp_path / "drawn"))


EXPERIMENT = """\
name: mine
title: Mine
topology: topologies/pair.yaml
overlays: [none]
seed: 7
repetitions: 1
measurements:
  - {name: tcp, tool: iperf3-tcp, paths: [{from: ams, to: bra}], vary: {congestion: [cubic, reno]}}
  - {name: echoes, tool: ping, paths: [{from: ams, to: bra}], series: true}
figures:
"""


@pytest.mark.parametrize(
    "figure",
    [
        "{of: tcp, x: congestion, y: [value, retransmits], names: {cubic: CUBIC}}",
        "{of: tcp, x: overlay, where: {congestion: cubic}, axes: {value: {scale: log}}}",
        "{of: echoes, x: time, axes: {value: {from: 0}}}",
        "{of: echoes, cdf: moments, style: {width: 8cm, font: mono, font_size: 7}}",
    ],
)
def test_an_experiment_declares_the_same_figures(figure: str) -> None:
    [found] = experiment(f"{EXPERIMENT}  - {figure}\n", "mine.yaml").figures
    again = Figure.model_validate(found.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert again == found


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (
            "{of: tcp, x: congstion}",
            r"mine\.yaml:11: figures\[0\]\.x: no axis 'congstion'; did you mean 'congestion'\?",
        ),
        ("{of: tcp, x: experiment}", r"figures\[0\]\.x: an experiment's figures show it alone; `minigts plot`"),
        ("{of: tcp, where: {experiment: a}}", r"figures\[0\]\.where\.experiment: an experiment's figures"),
        ("{of: tcp, y: [valeu]}", r"figures\[0\]\.y\[0\]: no column 'valeu'; did you mean 'value'\?"),
        ("{of: tcp, overlays: [swarm]}", r"figures\[0\]\.overlays\[0\]: no overlay 'swarm'"),
        ("{of: tcp, cdf: moments}", r"figures\[0\]\.cdf: moments are kept of measurements with `series: true`"),
        ("{of: tcp, x: time}", r"figures\[0\]\.x: a figure over time is of a measurement with `series: true`"),
        ("{of: [tcp, echoes]}", r"figures\[0\]\.of: measurements in Mbit/s and ms have no axis in common"),
    ],
)
def test_words_that_mean_nothing_in_an_experiment_are_refused(figure: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(f"{EXPERIMENT}  - {figure}\n", "mine.yaml")


def test_a_figure_that_says_nothing_new_is_stored_as_before() -> None:
    """Manifests of runs whose files have no such keys keep their bytes."""
    stored = Figure.model_validate({"of": "tcp"}).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert stored == {"of": "tcp", "title": "", "y": [], "overlays": [], "lines": []}


def test_a_style_fills_in_what_a_figure_leaves_open() -> None:
    assert Style(width="8cm").merge(Style(width="9cm", font="mono")) == Style(width="8cm", font="mono")
    assert Axis.model_validate({"scale": "log"}).beyond(0)


def test_the_file_of_the_documentation_is_read() -> None:
    page = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```yaml\n(# paper\.yaml\n.*?)```", page, re.DOTALL)
    file, _ = figure_language.parse(text, "paper.yaml")
    assert [figure.name for figure in file.figures] == ["goodput", "round-trips"]
