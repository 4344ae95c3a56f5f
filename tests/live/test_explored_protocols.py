"""Further examples of docs/explore.md: routers of OSPF and BGP whose links flap, leases of flannel, and Docker Swarm's
comparisons of tables that cross."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import EXAMPLES, explored
from live.program import Program, Traces
from minigts.explore.outcome import Outcome

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(2400)]


def of_example(program: Program, results: Path, topology: str, seeds: str) -> tuple[Path, list[Outcome]]:
    """The folder of an exploration, and what came of its seeds."""
    example = EXAMPLES / topology.partition("/")[0]
    test = example / f"test_{example.name}.py"
    words = (EXAMPLES / topology, test, "--seeds", seeds)
    made, found = explored(program, results, *words, faults=example / "faults.yaml")
    return made, [*found.values()]


@pytest.mark.parametrize("topology", ["routing/square-ospf.yaml", "routing/square-bgp.yaml", "flannel/flannel.yaml"])
def test_what_is_promised_holds(program: Program, traces: Traces, tmp_path: Path, topology: str) -> None:
    _, found = of_example(program, tmp_path, topology, "1")
    assert [(each.verdict, each.detail) for each in found] == [("passed", "")]
    assert not traces.left()


def test_two_hosts_that_compare_tables_with_each_other_wait_in_vain(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    made, found = of_example(program, tmp_path, "swarm/swarm.yaml", "2")
    failed = [each for each in found if each.verdict == "failed"]
    assert failed, "of seeds 1 and 2 at least one has two that cross"
    for each in failed:
        assert "joins took longer than" in each.detail
        syncs = (made / "failed" / f"{each.seed:06}" / "syncs.txt").read_text()
        assert " timed out " in syncs
    assert not traces.left()
