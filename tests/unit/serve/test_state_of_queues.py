"""What the page is told of a queue that a host has in front of a wire: hosts are not asked, so drops are unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
import wired_hosts

from minigts import lab as labs
from minigts.serve import state
from minigts.topology.read.load import parse

TEXT = """
name: two
time: virtual
hosts: {a: , b: }
links:
  - {ends: [a, b], delay: 1ms, rate: 10mbit, queue: {to: {size: 60kB, discipline: codel}, from: 60kB}}
"""


def test_drops_of_a_queue_in_a_host_are_unknown_and_no_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    wired_hosts.register(monkeypatch)
    lab = labs.up(parse(TEXT, "two.yaml"), wired_hosts.WiredHosts.name, None, lambda _: None)
    first = state.read(lab)
    (link,) = state.now(lab, first, first, state.read(lab))["links"]
    assert [flow["total_dropped"] for flow in link["flows"]] == [None, 0]
