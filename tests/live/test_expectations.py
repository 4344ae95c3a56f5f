"""Each entry of chain6.yaml's `expect:` is a test on a lab of it, judged as `minigts check` does."""

from __future__ import annotations

import pytest

from live.conftest import quiet
from live.program import TOPOLOGIES
from minigts import overlays
from minigts.experiments.guard import taints
from minigts.fidelity.expectations import Measurements, judged
from minigts.lab import Lab
from minigts.topology.load import load
from minigts.watch import watching

pytestmark = pytest.mark.uml
EXPECTATIONS = [
    (quantity, word)
    for entry in load(TOPOLOGIES / "chain6.yaml", known_overlays=overlays.known()).expect
    for quantity, word in entry.items()
]


@pytest.fixture(scope="module")
def measured(lab: Lab) -> Measurements:
    """Round trips and TCP of the lab's paths, measured once for all its expectations."""
    return Measurements(lab, quiet)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("quantity", "word"), EXPECTATIONS, ids=[": ".join(each) for each in EXPECTATIONS])
def test_chain6_keeps_what_its_file_expects(lab: Lab, measured: Measurements, quantity: str, word: str) -> None:
    with watching(lab.provider.processes()) as watched:
        judgement = judged(lab.plan, quantity, word, measured)
    assert judgement.word == "held", "; ".join((judgement.detail, *taints(watched.readings)))
