"""What a measurement's `links:` make of a port as the topology declares it."""

from __future__ import annotations

import pytest
from experiment_lab import chain

from minigts.cli.stage import changed
from minigts.experiments.options import Links
from minigts.shaping import script
from minigts.topology.plan import Port, Shaping

PORT = chain().hosts[0].ports[0].model_copy(update={"outgoing": Shaping(delay_ms=5, rate_mbit=50, queue_bytes=262_500)})


@pytest.mark.parametrize(
    ("links", "rate_mbit", "queue_bytes"),
    [
        (Links(), 50, 262_500),
        (Links(queue="30kB"), 50, 30_000),
        (Links(rate="unlimited"), None, None),
        (Links(rate="unlimited", queue="30kB"), None, None),
        (Links(gro="on"), 50, 262_500),
    ],
)
def test_what_links_leave_out_is_as_declared(links: Links, rate_mbit: float | None, queue_bytes: int | None) -> None:
    found: Port = changed(PORT, links)
    assert (found.outgoing.rate_mbit, found.outgoing.queue_bytes) == (rate_mbit, queue_bytes)
    assert found.outgoing.delay_ms == 5
    assert found.model_copy(update={"outgoing": PORT.outgoing}) == PORT
    assert ("tbf" in script([found])) == (rate_mbit is not None)
