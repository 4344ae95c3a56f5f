"""Where chance has a part in what is measured, replicates are the default, and nothing is called exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.experiments import derive, prepare, replication
from minigts.experiments.claims import evaluate
from minigts.experiments.decidable import _made_up
from minigts.experiments.run_folders import manifest_of
from minigts.results.chance import random_links

TOPOLOGY = """\
name: three
time: virtual
hosts: {ams: , bra: , lju: }
links:
  - {ends: [ams, bra], delay: 5ms, rate: 20mbit, queue: 100kBNEAR}
  - {ends: [bra, lju], delay: 5ms, rate: 20mbit, queue: 100kBFAR}
"""
RUN = """\
name: some
title: Some
topology: three.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: rtt, tool: ping, paths: [first-to-last], options: {count: 3}SCHEDULE}
claims:
  - {latency: bounded, range: under 30 ms, text: It is short., source: "a document"}
  - {latency: bounded, range: over 10 ms, text: It is long., source: "a document"}
"""


def prepared(
    directory: Path,
    *,
    near: str = "",
    far: str = "",
    schedule: str = "",
    more: str = "",
    quick: bool = False,
    replicates: int | None = None,
) -> prepare.Prepared:
    (directory / "three.yaml").write_text(TOPOLOGY.replace("NEAR", near).replace("FAR", far))
    file = directory / "some.yaml"
    file.write_text(RUN.replace("SCHEDULE", schedule).replace("three.yaml", str(directory / "three.yaml")) + more)
    return prepare.prepare(file, paper=False, quick=quick, only=(), replicates=replicates)


def test_a_lab_without_chance_is_one_course(tmp_path: Path) -> None:
    found = prepared(tmp_path)
    assert (found.random_links, found.experiment.replicates, found.chance) == ((), 1, None)


@pytest.mark.parametrize("setting", ["loss: 1%", "jitter: 1ms", "corrupt: 1%", "duplicate: 1%"])
def test_where_a_link_draws_there_are_as_many_replicates_as_the_claims_need(tmp_path: Path, setting: str) -> None:
    found = prepared(tmp_path, far=f", {setting}")
    assert found.random_links == ("bra-lju",)
    assert found.experiment.replicates == 6 == replication.fewest_samples(["bounded", "bounded"])
    assert found.chance is not None
    assert "on bra-lju: 6 replicates, each with another draw; --replicates 1" in found.chance


@pytest.mark.parametrize("link", ["ams-bra", "bra-ams"])
def test_so_it_is_where_a_schedule_makes_a_link_draw(tmp_path: Path, link: str) -> None:
    found = prepared(tmp_path, schedule=f", schedule: [{{at: 0s, link: {link}, set: {{loss: 1%}}}}]")
    assert (found.random_links, found.experiment.replicates) == (("ams-bra",), 6)
    assert prepared(tmp_path, schedule=f", schedule: [{{at: 0s, link: {link}, cut: 1s}}]").random_links == ()


def test_quick_measures_replicates_too(tmp_path: Path) -> None:
    found = prepared(tmp_path, near=", loss: 1%", more="quick: {repetitions: 1}\n", quick=True)
    assert found.experiment.replicates == 6
    own = prepared(tmp_path, near=", loss: 1%", more="quick: {repetitions: 1, replicates: 5}\n", quick=True)
    assert own.experiment.replicates == 5
    file = prepared(tmp_path, near=", loss: 1%", more="replicates: 7\nquick: {repetitions: 1}\n", quick=True)
    assert file.experiment.replicates == 1


@pytest.mark.parametrize(("more", "asked", "number"), [("replicates: 1\n", None, 1), ("", 1, 1), ("", 9, 9)])
def test_who_says_a_number_gets_it(tmp_path: Path, more: str, asked: int | None, number: int) -> None:
    found = prepared(tmp_path, near=", loss: 1%", more=more, replicates=asked)
    assert found.experiment.replicates == number
    if number == 1:
        assert found.chance is not None
        assert found.chance.endswith("one course of events is measured: --replicates 6 shows how far courses differ")


def test_a_sweep_has_replicates_in_every_lab_where_one_of_them_draws(tmp_path: Path) -> None:
    prepared(tmp_path, near=", loss: 0%")
    text = (tmp_path / "some.yaml").read_text()
    (tmp_path / "some.yaml").write_text(text.replace("overlays:", 'vary: {links.loss: ["0%", "4%"]}\noverlays:'))
    (tmp_path / "three.yaml").write_text(TOPOLOGY.replace("NEAR", ", loss: 0%").replace("FAR", ", loss: 0%"))
    found = prepare.prepare_sweep(tmp_path / "some.yaml", paper=False, quick=False, only=())
    assert [len(each.random_links) for each in found] == [0, 2]
    assert [each.experiment.replicates for each in found] == [6, 6]


@pytest.mark.parametrize(
    ("near", "words"), [("", "exact, one course"), (", loss: 1%", "one course, and chance decides")]
)
def test_a_verdict_on_one_course_says_whether_another_would_be_alike(tmp_path: Path, near: str, words: str) -> None:
    found = prepared(tmp_path, near=near, replicates=1)
    manifest = manifest_of(found, "uml")
    cells = derive.summarise(manifest, [_made_up(found, index) for index in range(len(found.samples))])
    verdicts = evaluate(found.experiment.claims, cells, found.plan, found.experiment)
    assert {verdict.detail.rpartition("; ")[2] for verdict in verdicts} == {words}
    assert all(cell.exact == (words == "exact, one course") for cell in cells)


def test_links_are_named_in_the_topologys_order(tmp_path: Path) -> None:
    found = prepared(tmp_path, near=", loss: 1%", far=", loss: 1%")
    assert random_links(found.plan, ()) == ("ams-bra", "bra-lju")
