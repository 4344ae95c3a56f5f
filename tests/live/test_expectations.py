"""Each entry of chain6.yaml's `expect:` is a test on a lab of it, judged as `minigts check` does; measured once."""

from __future__ import annotations

import pytest

from live.conftest import quiet
from live.program import TOPOLOGIES
from minigts import overlays
from minigts.fidelity.expectations import Measurements, judged
from minigts.lab import Lab
from minigts.topology.load import load

pytestmark = pytest.mark.virtual
EXPECTATIONS = [
    (quantity, word)
    for entry in load(TOPOLOGIES / "chain6.yaml", known_overlays=overlays.known()).expect
    for quantity, word in entry.items()
]


@pytest.fixture(scope="module")
def measurements(lab: Lab) -> Measurements:
    return Measurements(lab, quiet)


@pytest.mark.parametrize(("quantity", "word"), EXPECTATIONS, ids=[": ".join(each) for each in EXPECTATIONS])
def test_chain6_keeps_what_its_file_expects(lab: Lab, measurements: Measurements, quantity: str, word: str) -> None:
    judgement = judged(lab.plan, quantity, word, measurements)
    assert judgement.word == "held", judgement.detail
