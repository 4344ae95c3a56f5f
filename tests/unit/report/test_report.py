"""The report, rendered from tests/unit/report_sample: a results directory whose numbers are made up."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from minigts.errors import InputError
from minigts.report import phrasing, render
from minigts.report.points import ThroughputPoint
from minigts.tools import TOOLS

SAMPLE = Path(__file__).parents[1] / "report_sample"
FIGURES = ("latency-by-hops", "tcp-by-hops", "udp-by-hops", "topology")
HOSTILE = "<script>alert('x')</script>&\"--><b>"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of the sample that a test may spoil."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "results"))


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, rendered once; to be looked at only."""
    copy = Path(shutil.copytree(SAMPLE, tmp_path_factory.mktemp("rendered") / "results"))
    render(copy)
    return copy


def edit_manifest(results: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = results / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def edit_csv(path: Path, change: Callable[[dict[str, str]], dict[str, str] | None]) -> None:
    with path.open(newline="") as stream:
        rows = [changed for row in csv.DictReader(stream) if (changed := change(row)) is not None]
        fields = list(rows[0])
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fields)
        writer.writeheader()
        writer.writerows(rows)


class Page(HTMLParser):
    """What a browser would see: tags, links, ids, and the text outside style sheets."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"href", "src", "xlink:href"}:
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        if self.lasttag != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_is_drawn_as_svg_png_and_pdf(rendered: Path, name: str) -> None:
    root = ElementTree.parse(rendered / "figures" / f"{name}.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not root.findall(".//{http://www.w3.org/2000/svg}text"), "letters must be paths"
    assert (rendered / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (rendered / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.usefixtures("drawn_anew")
def test_same_results_give_same_bytes(rendered: Path, results: Path) -> None:
    render(results)
    names = ["report.html", *(f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "png", "pdf"))]
    assert [name for name in names if (results / name).read_bytes() != (rendered / name).read_bytes()] == []


def test_page_stands_alone(rendered: Path) -> None:
    page = Page(rendered / "report.html")
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    outside = [link for link in page.links if not link.startswith("#") and not (rendered / link).exists()]
    assert outside == []
    assert page.tags.count("svg") == len(FIGURES)
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= set(page.ids)
    assert len(page.ids) == len(set(page.ids)), "figures must not share ids"


def test_rates_whose_samples_differ_are_told_with_their_interval() -> None:
    """One course over lines that lose ranked networks by chance, and its first paragraph gave medians alone."""

    def point(overlay: str, hops: int, median: float, low: float | None, high: float | None) -> ThroughputPoint:
        return ThroughputPoint(overlay, "tcp", TOOLS["iperf3-tcp"], "a", "b", hops, 5, median, 95.6, low, high)

    steady = [point("none", 1, 94.9, 94.8, 95.0), point("none", 4, 94.5, 94.5, 94.5)]
    assert "brackets" not in (said := "".join(phrasing.throughput(steady)))
    assert "reached 94.9 Mbit/s at 1 hop and 94.5 Mbit/s at 4 hops without an overlay (" in said
    lossy = [*steady[:1], point("none", 4, 5.86, 4.04, 7.29), point("calico", 4, 6.25, 4.0, 8.07)]
    said = "".join(phrasing.throughput(lossy))
    assert "5.9 (4.0 to 7.3) Mbit/s at 4 hops without an overlay" in said
    assert "networks whose intervals overlap are not told apart." in said
    (alone,) = phrasing.throughput([point("none", 1, 20.0, 10.0, 30.0)])
    assert alone.endswith("In brackets is the interval of the median.")
    (single,) = phrasing.throughput([point("none", 1, 20.0, None, None)])
    assert "20.0 Mbit/s" in single


@pytest.mark.parametrize(
    "words",
    [
        "at most 0.81 ms from the sum of the single segments (swarm, 5 hops; the tolerance there is 1.83 ms)",
        "All 8 sums agree within the tolerance.",
        "TCP reached 47.1 Mbit/s at 1 hop and 40.6 Mbit/s at 5 hops without an overlay",
        "(98.5 % and 84.9 % of the ceiling)",
        "191 samples; 1 failed and is not averaged in.",
        "TCP drops sharply after the first hop, then slightly.",
        "failed",
        "undecided",
        "n = 5",
        "Provider: uml, in real time.",
        "minigts run experiments/multihop.yaml --time real",
        "drops sharply after the first hop, then slightly (the study, section 5.2, figure 16",
        "Connection timed out",
        "qdisc netem 10: dev eth1",
        "0123456789abcdef0123456789abcdef01234567",
        "4 min 41 s",
        "with n = 5 it covers 93.75 %",
        "2026-11-21 10:00 UTC",
        "samples.csv",
    ],
)
def test_page_says(rendered: Path, words: str) -> None:
    assert words in Page(rendered / "report.html").text


def test_hostile_names_are_text(results: Path) -> None:
    def rename(row: dict[str, str]) -> dict[str, str]:
        renamed = {key: HOSTILE if value == "prg" else value for key, value in row.items()}
        return renamed | {"overlay": row["overlay"].replace("swarm", HOSTILE + "$x^2$")}

    edit_csv(results / "summary.csv", rename)
    edit_csv(results / "samples.csv", lambda row: rename(row) | {"error": HOSTILE if row["error"] else ""})
    edit_manifest(results, lambda manifest: manifest["experiment"].update(title=HOSTILE, description=HOSTILE))
    edit_manifest(results, lambda manifest: manifest["plan"].update(description=HOSTILE))
    edit_manifest(results, lambda manifest: manifest["plan"]["hosts"][0].update(location=HOSTILE))
    edit_manifest(results, lambda manifest: manifest.update(tools={HOSTILE: HOSTILE}, commit=HOSTILE))
    edit_manifest(results, lambda manifest: manifest.update(readback={HOSTILE: {HOSTILE: [HOSTILE]}}))
    page = Page(render(results))
    assert not {"script", "b"} & set(page.tags)
    assert HOSTILE in page.text
    for figure in (results / "figures").glob("*.svg"):
        ElementTree.parse(figure)


def test_measurement_cannot_choose_a_place_for_its_figure(results: Path) -> None:
    edit_csv(results / "summary.csv", lambda row: row | {"measurement": "../../" + row["measurement"]})
    render(results)
    assert not list(results.parent.glob("*.svg"))
    assert (results / "figures" / "latency-by-hops.svg").exists()


@pytest.mark.parametrize(
    ("file", "gone"),
    [
        ("claims.json", "Claims"),
        ("run.log", "run.log"),
        ("manifest.json", "How far this can be trusted"),
        ("summary.csv", "RTT by hops"),
    ],
)
def test_what_is_absent_is_not_shown(rendered: Path, results: Path, file: str, gone: str) -> None:
    assert gone in Page(rendered / "report.html").text
    (results / file).unlink()
    assert gone not in Page(render(results)).text


def test_no_summary_is_said(results: Path) -> None:
    (results / "summary.csv").unlink()
    assert "There are no medians to draw" in Page(render(results)).text


def test_interrupted_run_says_what_is_missing(results: Path) -> None:
    edit_manifest(results, lambda manifest: manifest.update(samples_planned=200, ended=None))
    text = Page(render(results)).text
    assert "This run is incomplete. 10 samples of 200 missing." in text
    assert "interrupted" in text


def test_complete_run_says_nothing_of_it(rendered: Path) -> None:
    assert "incomplete" not in Page(rendered / "report.html").text


def test_sum_outside_tolerance_is_said(results: Path) -> None:
    def slower(row: dict[str, str]) -> dict[str, str]:
        late = (row["measurement"], row["overlay"], row["target"]) == ("latency", "none", "mil")
        late = late and row["kind"] == "path"
        return row | ({"median": "70", "low": "69.9", "high": "70.1"} if late else {})

    edit_csv(results / "summary.csv", slower)
    text = Page(render(results)).text
    assert "1 of 8 sums disagree by more than the tolerance: no overlay at 3 hops." in text


@pytest.mark.parametrize("kept", ["latency", "tcp", "udp"])
def test_one_measurement_alone_is_enough(results: Path, kept: str) -> None:
    edit_csv(results / "summary.csv", lambda row: row if row["measurement"] == kept else None)
    assert Page(render(results)).tags.count("svg") == 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("samples.csv", None, "holds no samples yet"),
        ("samples.csv", "sample,ok,error\n", "holds no samples yet"),
        ("samples.csv", "sample,ok\na,true\n", "samples.csv:1: no column error"),
        ("samples.csv", "sample,ok,error\na,true\n", "samples.csv:2: more or fewer fields"),
        ("samples.csv", b"\xff\xfe\x00\x01", "samples.csv:1: cannot be read: is not text in UTF-8"),
        ("manifest.json", "{", "manifest.json:1: is not JSON"),
        ("manifest.json", "[]", "manifest.json:1: document: must be a mapping"),
        ("manifest.json", '{"plan":\n {"name": 3}}', "manifest.json:2: plan.name: "),
        ("manifest.json", '{"version":\n 3}', "manifest.json:2: version 3 of results is of another minigts"),
        ("manifest.json", "[" * 100_000, "manifest.json: "),
        ("claims.json", "3", "claims.json:1: document: must be a list"),
        ("claims.json", "[{}]", "claims.json:1: [0].claim: is missing"),
    ],
)
def test_broken_input_is_named(results: Path, file: str, content: str | bytes | None, message: str) -> None:
    path = results / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        render(results)
    assert message in str(caught.value)
    assert not (results / "report.html").exists()


@pytest.mark.parametrize("value", ["fast", "", "nan", "inf"], ids=["word", "empty", "nan", "inf"])
def test_a_median_must_be_a_number(results: Path, value: str) -> None:
    edit_csv(results / "summary.csv", lambda row: row | {"median": value})
    with pytest.raises(InputError, match=re.escape(f"summary.csv:2: median: {value!r} is not a number")):
        render(results)


def test_repeated_samples_are_counted(results: Path) -> None:
    edit_csv(results / "samples.csv", lambda row: row | {"attempts": "2", "ok": "true", "error": ""})
    assert "191 samples, none failed; 191 had to be repeated." in Page(render(results)).text


@pytest.mark.parametrize("bounds", [{"low": "", "high": "", "stdev": ""}, {"low": "1", "high": "1", "stdev": "0"}])
def test_single_samples_have_no_interval(results: Path, bounds: dict[str, str]) -> None:
    edit_csv(results / "summary.csv", lambda row: row | {"n": "1"} | bounds)
    page = Page(render(results))
    assert page.tags.count("svg") == len(FIGURES)
    assert "Markers are single samples" in page.text


SERIES = "sample,overlay,measurement,source,target,repetition,column,at_s,value\n"
MOMENTS = "".join(
    f"x,{overlay},tcp,ams,bra,1,cpu_{end}_inside_percent,{at_s},{value}\n"
    for overlay in ("none", "swarm")
    for end in ("source", "target")
    for at_s, value in ((-0.5, 3), (0.2, 95), (0.5, 100), (1.1, 2))
)


def test_what_was_watched_is_a_figure_over_time(results: Path) -> None:
    (results / "series.csv").write_text(SERIES + MOMENTS)
    page = Page(render(results))
    assert (results / "figures" / "tcp-over-time.png").read_bytes().startswith(b"\x89PNG")
    assert "The measuring client begins at 0" in page.text
    assert "series.csv" in page.links


@pytest.mark.parametrize(
    ("line", "message"),
    [("x,none,tcp,ams,bra,1,cpu_source_percent,soon,3", "at_s: 'soon' is"), ("x,none", "more or fewer fields")],
)
def test_a_broken_series_is_named(results: Path, line: str, message: str) -> None:
    (results / "series.csv").write_text(f"{SERIES}{line}\n")
    with pytest.raises(InputError, match=message):
        render(results)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such results directory"):
        render(tmp_path / "nowhere")


def test_matplotlib_waits_for_the_first_figure() -> None:
    code = "import sys, minigts.report; sys.exit('matplotlib' in sys.modules)"
    package = Path(__file__).parents[3] / "tools"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(package)})
