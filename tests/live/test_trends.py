"""The shape of TCP over one to five hops: level where links are the limit, a step after the first hop where hosts are.
Each is measured once and judged by the words of `expect:` and `claims:`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from live.conftest import MakeLab, quiet
from live.program import TOPOLOGIES
from live.test_throughput import measure, way_of
from minigts import overlays
from minigts.judge.registry import WORDS
from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.tolerances import rate
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.tools import iperf3_tcp
from minigts.tools.iperf3_tcp import TcpOptions

pytestmark = pytest.mark.virtual
LEVEL_OVER, STEP_OVER = ("bra", "mil", "lon"), ("bra", "lju", "lon")
"""Hosts at one, three and five hops from ams; a step after the first hop wants one at two."""
NEAR = "name: near\nchain: {hosts: [ams, bra, lju, mil, ham, lon], link: {rtt: 2ms, rate: 50mbit}}\n"
"""So near that two seconds hold two hundred round trips, of which the recovery from a loss is but a little."""
OPTIONS = TcpOptions(duration="2s", omit="2s")


def throughputs(lab: Lab, endpoints: Mapping[str, Endpoint], targets: Sequence[str]) -> list[PathSamples]:
    """TCP from ams to each of these hosts."""
    return [
        PathSamples(
            source="ams",
            target=target,
            hops=lab.plan.path("ams", target).hops,
            unit="Mbit/s",
            estimate=measured_once(measure(lab, endpoints, "ams", target, OPTIONS).value, rate(lab.plan)),
            predicted=iperf3_tcp.TOOL.predicted(OPTIONS, way_of(lab, endpoints, "ams", target)),
        )
        for target in targets
    ]


@pytest.mark.nightly
def test_where_links_are_the_limit_tcp_is_level_over_every_number_of_hops(make_lab: MakeLab) -> None:
    """An overlay in user space; plain hosts and one in the kernel are tested in tests/lab. It packs several packets
    behind one header, and so passes the ceiling by a little."""
    lab = make_lab(NEAR)
    cells = throughputs(lab, overlays.join(lab, "mesh-sleeve", quiet), LEVEL_OVER)
    level = WORDS["level"](cells, lab.plan)
    assert level.word == "held", level.detail
    step = WORDS["step-after-first-hop"](cells, lab.plan)
    assert step.word == "failed", step.detail


@pytest.mark.parametrize("overlay", ["none", "swarm"])
@pytest.mark.nightly
def test_where_hosts_are_the_limit_tcp_steps_down_after_the_first_hop(make_lab: MakeLab, overlay: str) -> None:
    """A host in the middle takes each frame twice: report 001's figure 16 has that shape."""
    lab = make_lab(TOPOLOGIES / "chain6-processors.yaml")
    cells = throughputs(lab, overlays.join(lab, overlay, quiet), STEP_OVER)
    judgement = WORDS["step-after-first-hop"](cells, lab.plan)
    assert judgement.word == "held", judgement.detail
