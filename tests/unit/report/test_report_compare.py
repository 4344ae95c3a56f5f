"""Two runs against each other, and campaigns; all numbers are made up."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.report import comparison_page as shown
from minigts.report import render
from minigts.report.compare import Comparison, compare, headline

KIND = next(kind for kind in synthetic.KINDS if kind.name == "udp-sweep")


def scaled(overlay: str, by: float) -> synthetic.Kind:
    """The same experiment, with the throughput over one overlay multiplied."""

    def make(measurement: str, own: str, at: Mapping[str, str], rng: random.Random) -> synthetic.Sample:
        found = dict(KIND.make(measurement, own, at, rng))
        return found | {"value": found["value"] * by} if own == overlay else found

    return replace(KIND, make=make)


def edit(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    change(manifest)
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.write(tmp_path / "a", KIND)


def words_of(found: Comparison) -> dict[tuple[str, str], str]:
    return {(figure.column, figure.overlay): figure.word for figure in found.figures}


def test_a_run_does_not_differ_from_itself(run: Path) -> None:
    found = compare(run, run)
    assert not found.differs
    assert set(words_of(found).values()) == {"identical"}
    assert headline(found) == ["No difference: every sample is the same in both."]
    assert [table.heading for table in shown.tables(found)][1:] == ["Figures, over all paths and settings of a network"]


def test_what_differs_is_found_and_nothing_else(run: Path, tmp_path: Path) -> None:
    found = compare(run, synthetic.write(tmp_path / "b", scaled("swarm", 0.95)))
    assert found.differs
    assert [key for key, word in words_of(found).items() if word == "differs"] == [("value", "swarm")]
    figure = next(each for each in found.figures if each.word == "differs")
    assert figure.difference.ratio is not None
    assert figure.difference.ratio.low < 0.95 < figure.difference.ratio.high
    assert "1 of 12 figures differs by what matters: UDP over swarm" in " ".join(headline(found))


def in_virtual_time(run: Path, replicates: int = 0) -> Path:
    """The same folder, as if it were of virtual time; with replicates each repetition is one of another one."""

    def change(manifest: dict[str, Any]) -> None:
        manifest["plan"]["time"] = "virtual"

    edit(run, change)
    if replicates:
        first, *rows = (run / "samples.csv").read_text().splitlines()
        at = first.split(",").index("repetition")
        numbered = [f"{row},{int(row.split(',')[at]) % replicates + 1}" for row in rows]
        (run / "samples.csv").write_text("\n".join([f"{first},replicate", *numbered]) + "\n")
    return run


def test_repetitions_in_virtual_time_are_one_course_and_nothing_is_tested(run: Path, tmp_path: Path) -> None:
    other = in_virtual_time(synthetic.write(tmp_path / "b", scaled("swarm", 0.95)))
    found = compare(in_virtual_time(run), other)
    changed = next(each for each in found.figures if (each.column, each.overlay) == ("value", "swarm"))
    assert (changed.of_courses, changed.word) == (True, "differs")
    assert changed.difference.n_a == changed.cells
    assert headline(found)[0].startswith("Each figure is of one course of events in virtual time")
    rows = [row for table in shown.tables(found)[1:] for row in table.rows if "differs" in row]
    assert rows and all("one course" in row for row in rows)


def test_replicates_are_the_samples_of_virtual_time(run: Path, tmp_path: Path) -> None:
    other = in_virtual_time(synthetic.write(tmp_path / "b", scaled("swarm", 0.5)), replicates=5)
    found = compare(in_virtual_time(run, replicates=5), other)
    changed = next(each for each in found.figures if (each.column, each.overlay) == ("value", "swarm"))
    assert (changed.of_courses, changed.difference.n_a) == (False, 5 * changed.cells)


@pytest.mark.nightly
def test_a_sure_but_small_change_does_not_matter(run: Path, tmp_path: Path) -> None:
    made = synthetic.write(tmp_path / "b", scaled("swarm", 0.9945), repetitions=40)
    found = compare(synthetic.write(tmp_path / "many", KIND, repetitions=40), made)
    assert not found.differs
    assert words_of(found)["value", "swarm"] in {"differs too little to matter", "same"}


def test_few_repetitions_are_called_what_they_are(tmp_path: Path) -> None:
    kind = next(kind for kind in synthetic.KINDS if kind.name == "cpu")
    other = replace(kind, name="cpu", title="other", make=lambda *_: {"value": 50.0 + random.Random(4).random()})
    one, two = (synthetic.write(tmp_path / name, each, repetitions=2) for name, each in (("a", kind), ("b", other)))
    assert {word for (column, _), word in words_of(compare(one, two)).items() if column == "value"} == {
        "too few samples"
    }


def test_settings_that_differ_are_named(run: Path, tmp_path: Path) -> None:
    other = synthetic.write(tmp_path / "b", KIND)
    edit(other, lambda manifest: manifest["machine"].update(cores=4))
    edit(other, lambda manifest: manifest["experiment"]["measurements"][0].update(options={"duration": "3s"}))
    edit(other, lambda manifest: manifest.update(tools={"iperf3": "3.18"}))
    edit(other, lambda manifest: manifest["overlays"]["mesh"]["endpoints"]["h2"].update(mtu=1400))
    changes = {(c.group, c.what): (c.a, c.b) for c in compare(run, other).pairs[0].changes}
    assert changes == {
        ("machine", "cores"): ("2", "4"),
        ("experiment", "udp.options.duration"): ("", "3s"),
        ("version", "tools.iperf3"): ("", "3.18"),
        ("lab", "MTU of mesh"): ("1410", "1400"),
    }


def test_runs_with_nothing_in_common_are_refused(run: Path, tmp_path: Path) -> None:
    other = synthetic.write(tmp_path / "b", next(kind for kind in synthetic.KINDS if kind.name == "star"))
    with pytest.raises(InputError, match="no experiment in common: the one has udp-sweep, the other star"):
        compare(run, other)
    edit(other, lambda manifest: manifest["experiment"].update(name=KIND.name))
    with pytest.raises(InputError, match="have no measurement in common"):
        compare(run, other)
    with pytest.raises(InputError, match="no such results directory"):
        compare(run, tmp_path / "absent")
    with pytest.raises(InputError, match="holds no results"):
        compare(run, tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")


@pytest.mark.parametrize(("by", "code", "said"), [(1.0, 0, "No difference"), (0.9, 1, "differs by what matters")])
def test_the_command_tells_by_its_exit_code_whether_something_differs(
    run: Path, tmp_path: Path, by: float, code: int, said: str
) -> None:
    other = synthetic.write(tmp_path / "b", scaled("swarm", by))
    done = CliRunner().invoke(app, ["compare", str(run), str(other)])
    assert done.exit_code == code
    assert done.stdout.splitlines()[-1] == str(other / "compared-with-a.html")
    assert said in done.stdout


def test_the_command_refuses_what_is_no_results_folder(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", str(run), str(tmp_path / "absent")])
    assert done.exit_code == 2
    assert "no such results directory" in done.stderr


def test_the_page_says_it_too(run: Path, tmp_path: Path) -> None:
    text = shown.page(
        compare(run, synthetic.write(tmp_path / "b", scaled("swarm", 0.9))), tmp_path / "page.html"
    ).read_text()
    assert "differs by what matters" in text
    assert "corrected by Holm" in text
    assert text.count("<svg") == 1
    assert "<script" not in text


def test_an_interval_is_drawn_from_its_lower_end_to_its_upper_end(run: Path, tmp_path: Path) -> None:
    found = compare(run, synthetic.write(tmp_path / "b", scaled("swarm", 0.9)))
    rates = [figure for figure in found.figures if figure.column == "value"]
    text = shown.page(replace(found, figures=tuple(rates)), tmp_path / "page.html").read_text()
    lines = re.findall(r'LineCollection_\d+">\s*<path d="M ([\d.]+) \S+\s+L ([\d.]+) ', text)
    drawn = [(float(low), float(high)) for low, high in lines]
    ratios = [figure.difference.ratio for figure in rates]
    ends = [(ratio.low, ratio.high) for ratio in ratios if ratio is not None]
    middles = [ratio.value for ratio in ratios if ratio is not None]
    assert len(drawn) == len(ends) == 4
    least, most = min(range(4), key=middles.__getitem__), max(range(4), key=middles.__getitem__)
    points_each = (drawn[most][0] - drawn[least][0]) / (ends[most][0] - ends[least][0])
    for (left, right), (low, high) in zip(drawn, ends, strict=True):
        assert left == pytest.approx(drawn[least][0] + points_each * (low - ends[least][0]), abs=0.01)
        assert right == pytest.approx(left + points_each * (high - low), abs=0.01)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.campaign(tmp_path_factory.mktemp("campaign") / "campaign-1")


@pytest.mark.nightly
def test_a_campaign_has_a_page_of_all_and_a_page_of_each(campaign: Path) -> None:
    text = render(campaign).read_text()
    runs = len(synthetic.CAMPAIGN)
    assert f"Of {3 * runs} verdicts {runs} held" in text.replace("\N{NO-BREAK SPACE}", " ")
    for run in campaign.iterdir():
        if run.is_dir():
            assert (run / "report.html").exists()
            assert f'href="{run.name}/report.html"' in text
    ids = [part.split('"')[0] for part in text.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_a_campaigns_run_without_samples_is_named_and_the_rest_is_shown(run: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign-1"
    shutil.copytree(run, campaign / "udp-sweep-1")
    waiting = campaign / "waiting-1"
    waiting.mkdir()
    shutil.copy(run / "manifest.json", waiting)
    edit(waiting, lambda manifest: manifest["experiment"].update(name="waiting"))
    text = render(campaign).read_text()
    assert "No samples yet: waiting-1." in text
    assert 'href="udp-sweep-1/report.html"' in text


def test_campaigns_are_compared_run_by_run(campaign: Path, tmp_path: Path) -> None:
    other = tmp_path / "campaign-2"
    synthetic.write(other / "udp-sweep-2", scaled("swarm", 0.9), tainted_every=0)
    found = compare(campaign, other)
    assert [pair.experiment for pair in found.pairs] == ["udp-sweep"]
    assert "cpu" in found.alone
    assert found.differs
