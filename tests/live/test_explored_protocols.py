"""Further examples of docs/explore.md: routers of OSPF and BGP whose links flap, leases of flannel, and Docker Swarm's
comparisons of tables that cross."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from minigts.explore import folder
from minigts.explore.outcome import Outcome

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(2400)]
EXAMPLES = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 2000.0


def explored(program: Program, results: Path, topology: str, seeds: str) -> tuple[Path, list[Outcome]]:
    """The folder of an exploration, and what came of its seeds."""
    example = EXAMPLES / topology.partition("/")[0]
    test, faults = example / f"test_{example.name}.py", example / "faults.yaml"
    words = (str(EXAMPLES / topology), str(test), "--faults", str(faults), "--seeds", seeds, "--on", "here")
    started = program.start("explore", *words, "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    made = Path(said.strip().splitlines()[-1])
    return made, list(folder.outcomes(made).values())


@pytest.mark.parametrize("topology", ["routing/square-ospf.yaml", "routing/square-bgp.yaml", "flannel/flannel.yaml"])
def test_what_is_promised_holds(program: Program, traces: Traces, tmp_path: Path, topology: str) -> None:
    _, found = explored(program, tmp_path, topology, "1")
    assert [(each.verdict, each.detail) for each in found] == [("passed", "")]
    assert not traces.left()


def test_two_hosts_that_compare_tables_with_each_other_wait_in_vain(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    made, found = explored(program, tmp_path, "swarm/swarm.yaml", "2")
    failed = [each for each in found if each.verdict == "failed"]
    assert failed, "of seeds 1 and 2 at least one has two that cross"
    for each in failed:
        assert "joins took longer than" in each.detail
        syncs = (made / "failed" / f"{each.seed:06}" / "syncs.txt").read_text()
        assert " timed out " in syncs
    assert not traces.left()
