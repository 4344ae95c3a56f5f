"""What `minigts top` shows is what passed, to the frame."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import MakeLab
from live.program import TOPOLOGIES
from minigts import lab as labs
from minigts.lab import Lab, activity
from minigts.lab.activity import Flow

COUNT, FRAME_BYTES = 100, 1014
LIMIT_S = 60.0


@pytest.fixture(
    params=[pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("real", marks=pytest.mark.uml)]
)
def pair(make_lab: MakeLab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    lab = make_lab(TOPOLOGIES / "pair.yaml", time=request.param)
    echoes(lab, 1)  # ARP
    yield lab


def echoes(lab: Lab, count: int) -> None:
    argv = ["ping", "-q", "-i", "0.01", "-W", "1", "-s", str(FRAME_BYTES - 42), "-c", str(count)]
    lab.provider.run("ams", [*argv, lab.plan.host("bra").address], timeout_s=LIMIT_S, check=False)


def passed(lab: Lab, count: int) -> tuple[float, tuple[Flow, ...]]:
    """While so many echoes are sent from ams: the lab's seconds, and what each direction of its link carried."""
    before = activity.read(lab)
    echoes(lab, count)
    found = activity.between(lab, before, activity.read(lab))
    return found.seconds, found.flows


def test_each_direction_has_carried_what_was_sent(pair: Lab) -> None:
    seconds, flows = passed(pair, COUNT)
    assert [(flow.source, flow.target, flow.dropped, flow.lost) for flow in flows] == [
        ("ams", "bra", 0, 0),
        ("bra", "ams", 0, 0),
    ]
    for flow in flows:
        assert flow.frames * seconds == pytest.approx(
            COUNT, abs=4
        )  # ARP may ask again; hosts count by clocks of their own
        assert flow.mbit * seconds * 1e6 / 8 == pytest.approx(COUNT * FRAME_BYTES, rel=0.02)


def test_what_a_link_loses_and_that_it_is_down_is_seen(pair: Lab) -> None:
    labs.set_link(pair, "ams", "bra", up=False)
    _, (there, back) = passed(pair, 5)
    assert (there.up, back.up) == (False, False)
    assert there.lost >= 5
    assert back.frames == 0
