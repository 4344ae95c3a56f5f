"""An overlay whose programs the user has to bring is left out where they are not there, and everybody is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_lab import recorded

from minigts.experiments import prepare, run_folders
from minigts.experiments.derive import derive
from minigts.experiments.run import finish
from minigts.report import render
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import RawSample

EXPERIMENT = """name: mine
title: Mine
topology: topologies/chain6.yaml
overlays: [none, weave]
seed: 1
repetitions: 1
measurements:
  - {name: udp, tool: iperf3-udp, paths: [{from: ams, to: bra}], options: {rate: 20mbit}}
claims:
  - {throughput: bounded, of: udp, range: over 1 Mbit/s}
  - {throughput: bounded, of: udp, overlay: weave, range: over 1 Mbit/s}
  - {throughput: compared, of: udp, than: {overlay: weave}, range: over 50 %}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MINIGTS_WEAVE", raising=False)
    monkeypatch.setenv("MINIGTS_DATA", str(tmp_path / "data"))
    path = tmp_path / "mine.yaml"
    topology = Path(__file__).parents[3] / "topologies" / "chain6.yaml"
    path.write_text(EXPERIMENT.replace("topologies/chain6.yaml", str(topology)))
    return path


def prepared(file: Path, *only: str) -> prepare.Prepared:
    return prepare.prepare(file, paper=False, quick=False, only=only)


def test_it_is_left_out_and_a_line_says_what_to_bring(file: Path) -> None:
    found = prepared(file)
    assert {sample.overlay for sample in found.samples} == {"none"}
    [line] = prepare.left_out_in_words([found])
    assert line.startswith("without weave: weave needs its own programs weaver, which minigts does not contain: put ")


def test_it_is_measured_where_its_programs_are_said_to_be(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_WEAVE", "/somewhere")
    found = prepared(file)
    assert {sample.overlay for sample in found.samples} == {"none", "weave"}
    assert found.left_out == ()


def test_it_is_not_left_out_where_it_was_asked_for(file: Path) -> None:
    assert {sample.overlay for sample in prepared(file, "weave").samples} == {"weave"}


def both(file: Path, text: str) -> tuple[Path, Path]:
    topology = next(line for line in file.read_text().splitlines() if line.startswith("topology: "))
    other = file.with_name("other.yaml")
    other.write_text(text.replace("topology: topologies/chain6.yaml", topology).replace("name: mine", "name: other"))
    return file, other


def prepared_all(*files: Path) -> tuple[prepare.Prepared, ...]:
    return prepare.prepare_all(files, paper=False, quick=False, only=())


def test_of_several_experiments_what_is_there_is_measured(file: Path) -> None:
    mine, other = prepared_all(*both(file, EXPERIMENT.replace("weave", "swarm")))
    assert {sample.overlay for sample in mine.samples} == {"none"}
    assert {sample.overlay for sample in other.samples} == {"none", "swarm"}


def test_the_run_without_it_is_complete_and_its_report_says_so(file: Path, tmp_path: Path) -> None:
    [directory] = run_folders.begin(tmp_path / "results", [prepared(file)], "uml")
    [sample] = run_folders.reopen(directory)[1][0].samples
    raw = RawSample(
        sample=sample.id,
        host=sample.source,
        argv=(),
        code=0,
        stdout=recorded("iperf3.18-udp.json"),
        stderr="",
        started="1.5",
        seconds=3,
        attempt=1,
    )
    store.save(directory, raw)
    assert finish(directory).failed == ()
    assert [verdict.overlay for verdict in derive(directory)] == ["none"]
    assert manifests.read(directory).skipped == {}
    page = render(directory).read_text()
    assert "Without weave: its programs are the user&#39;s to bring, and were not there." in page
    assert "incomplete" not in page
    assert "Left out in virtual time" not in page
