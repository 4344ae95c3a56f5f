"""Each entry of chain6.yaml's `expect:` is a test on a lab of it, judged as `minigts check` does."""

from __future__ import annotations

import time

import pytest

from live.conftest import quiet
from live.patience import patiently
from live.program import TOPOLOGIES
from minigts import overlays
from minigts.fidelity.expectations import Measurements, judged
from minigts.fidelity.host_load import recording, taints
from minigts.lab import Lab
from minigts.topology.load import load

pytestmark = pytest.mark.uml
EXPECTATIONS = [
    (quantity, word)
    for entry in load(TOPOLOGIES / "chain6.yaml", known_overlays=overlays.known()).expect
    for quantity, word in entry.items()
]


PATIENCE_S = 240.0


@pytest.mark.timeout(420)
@pytest.mark.parametrize(("quantity", "word"), EXPECTATIONS, ids=[": ".join(each) for each in EXPECTATIONS])
def test_chain6_keeps_what_its_file_expects(lab: Lab, quantity: str, word: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    for _ in patiently(lab, lambda: None):
        with recording(lab.provider.processes()) as machine:
            judgement = judged(lab.plan, quantity, word, Measurements(lab, quiet))
        if judgement.word == "held" or time.monotonic() > deadline:
            break
    assert judgement.word == "held", "; ".join((judgement.detail, *taints(machine.load)))
