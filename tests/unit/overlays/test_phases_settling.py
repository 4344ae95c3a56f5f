"""Which ends are waited for after a link was cut: by who finds another way, and which ways are left."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from minigts.lab import Record
from minigts.overlays import catalogue
from minigts.overlays.lifecycle import _without_any_way
from minigts.overlays.phases import Joined
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

RING = """\
name: ring
{routing}
defaults: {{link: {{rtt: 10ms, rate: 50mbit}}}}
hosts: {{a: , b: , c: , d: }}
links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [c, d]}}, {{ends: [d, a]}}]
"""


def apart(plan: Plan, overlay: str, *cut: str) -> list[str]:
    record = Record(provider="uml", time="real", created=datetime.now(UTC), cut=frozenset(cut))
    return sorted("-".join(sorted(pair)) for pair in _without_any_way(plan, Joined(name=overlay, programs=""), record))


@pytest.mark.parametrize(
    ("overlay", "routing", "cut", "expected"),
    [
        ("vxlan", "", [], []),
        ("vxlan", "", ["a-b"], ["a-b"]),  # the hosts' routes are fixed
        ("vxlan", "routing: ospf", ["a-b"], []),
        ("mesh", "routing: neighbours", ["a-b"], []),
        ("mesh", "routing: neighbours", ["a-b", "c-d"], ["a-b", "a-c", "b-d", "c-d"]),
        ("mesh", "", ["a-b", "d-a"], ["a-b", "a-c", "a-d"]),
        ("vxlan", "routing: bgp", ["a-b", "c-d"], ["a-b", "a-c", "b-d", "c-d"]),
    ],
)
def test_the_ends_to_which_no_way_is_left_are_not_waited_for(
    overlay: str, routing: str, cut: list[str], expected: list[str]
) -> None:
    plan = parse(RING.format(routing=routing), "ring.yaml")
    found = apart(plan, overlay, *cut)
    assert [pair for pair in found if pair not in ("a-c", "b-d") or pair in expected] == expected


def test_the_overlays_that_route_by_themselves_say_so() -> None:
    """As the experiments on links that fail measure them (docs/evidence/documents.md)."""
    saying = {name.partition("-")[0] for name in catalogue.known_names() if catalogue.find(name).declaration.reroutes}
    assert saying == {"mesh", "romana", "weave"}
