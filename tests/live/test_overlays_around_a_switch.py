"""Overlays whose hosts find the ways to each other's containers by themselves, around a switch: there each has several
neighbours by one interface, and hosts of other groups beside them."""

from __future__ import annotations

from itertools import permutations

import pytest

from live.conftest import MakeLab, quiet
from live.measured import echoed
from live.overlay_settings import ROUTED
from minigts import overlays

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched("provision/overlays/bird.sh", *(f"provision/overlays/{name}" for name in ("mesh", "romana"))),
]

AROUND = """\
name: around
defaults: {link: {rtt: 2ms, rate: 1gbit}}
hosts: {a: , b: , c: , d: , e: }
switches: {s: }
groups: {three: [a, b, c], two: [d, e]}
links: [{ends: [a, s]}, {ends: [b, s]}, {ends: [c, s]}, {ends: [d, s]}, {ends: [e, s]}]
"""


@pytest.mark.parametrize("overlay", (*ROUTED, "mesh-sleeve"))
def test_every_container_of_a_group_reaches_every_other(make_lab: MakeLab, overlay: str) -> None:
    lab = make_lab(AROUND)
    ends = overlays.join(lab, overlay, quiet)
    for group in lab.plan.groups:
        for source, target in permutations(group.hosts, 2):
            assert echoed(lab, ends[source], ends[target].address), f"{source} does not reach {target}"
