"""Which claims can be decided at all: told before a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import scipy

from minigts.experiments import decidable, prepare, replication
from minigts.experiments.prepare import Prepared
from minigts.judge.statistics import clearest_rank, clearest_sign
from minigts.providers import DEFAULT

EXPERIMENTS = sorted((Path(__file__).parents[3] / "experiments").rglob("*.yaml"))


def prepared(file: Path) -> Prepared:
    return prepare.prepare_sweep(file, paper=False, quick=False, only=(), time=None, leaving_out=True)[0]


@pytest.mark.parametrize(
    ("words", "repetitions"),
    [
        (["compared"] * 12, 5),
        (["compared"] * 13, 6),
        (["compared"] * 46, 6),
        (["compared"] * 47, 7),
        (["bounded"], 5),
        (["bounded"] * 2, 6),
        (["compared"] * 5 + ["bounded"] * 2, 6),
        (["level"] * 100, 5),
    ],
)
def test_so_many_repetitions_decide_claims_that_are_tested_together(words: list[str], repetitions: int) -> None:
    assert replication.fewest_samples(words) == repetitions


@pytest.mark.parametrize("samples", [1, 2, 5, 6])
def test_nothing_is_clearer_than_the_clearest(samples: int) -> None:
    low, high = list(range(samples)), list(range(samples, 2 * samples))
    assert clearest_rank(samples) == pytest.approx(
        scipy.stats.mannwhitneyu(low, high, alternative="less", method="exact").pvalue
    )
    assert clearest_sign(samples) == pytest.approx(
        scipy.stats.binomtest(samples, samples, alternative="greater").pvalue
    )


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_each_shipped_experiment_can_decide_its_claims(file: Path) -> None:
    assert decidable.too_few_in_words([prepared(file)], DEFAULT) == ()


def test_repetitions_that_decide_nothing_together_are_said_beforehand(tmp_path: Path) -> None:
    (shipped,) = (file for file in EXPERIMENTS if file.stem == "udp")
    text = shipped.read_text(encoding="utf-8").replace("\nrepetitions: 6", "\nrepetitions: 5")
    text = text.replace("topologies/", f"{shipped.parents[1]}/topologies/")
    (tmp_path / "udp.yaml").write_text(text, encoding="utf-8")
    (line,) = decidable.too_few_in_words([prepared(tmp_path / "udp.yaml")], DEFAULT)
    assert line.startswith("udp: 5 repetitions in real time cannot decide ")
    assert line.endswith("which are tested together (Holm's procedure); 6 can")


def test_so_are_replicates_and_a_single_course_is_no_sample(tmp_path: Path) -> None:
    (shipped,) = (file for file in EXPERIMENTS if file.stem == "fast-links")
    for number, said in ((1, ()), (7, ())):
        assert decidable.too_few_in_words([of_replicates(shipped, number, tmp_path)], DEFAULT) == said
    (line,) = decidable.too_few_in_words([of_replicates(shipped, 5, tmp_path)], DEFAULT)
    assert line.startswith("fast-links: 5 replicates cannot decide 4 of 4 verdicts on claims of documents")
    assert line.endswith("unless they come out all alike; 7 can")


def of_replicates(shipped: Path, number: int, place: Path) -> Prepared:
    text = shipped.read_text(encoding="utf-8").replace("\nreplicates: 7", f"\nreplicates: {number}")
    text = text.replace("../topologies/", f"{shipped.parents[2]}/topologies/")
    (place / shipped.name).write_text(text, encoding="utf-8")
    return prepared(place / shipped.name)
