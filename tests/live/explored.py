"""Explorations of tests that run minigts as its user does."""

from __future__ import annotations

from pathlib import Path

from live.program import PROJECT, Program
from minigts.explore import folder
from minigts.explore.outcome import Outcome

EXAMPLES = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 2000.0


def explored(
    program: Program, results: Path, *words: str | Path, faults: Path | None = None, on: str | None = "here"
) -> tuple[Path, dict[int, Outcome]]:
    """Explore; return the results folder, and what came of each seed. `words` are those of `minigts explore`; with `on`
    None they say who takes the seeds."""
    plan = () if faults is None else ("--faults", str(faults))
    by = () if on is None else ("--on", on)
    started = program.start("explore", *map(str, words), *plan, *by, "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    made = Path(said.strip().splitlines()[-1])
    return made, folder.outcomes(made)


def one_seed(
    program: Program, results: Path, topology: Path, test: str, faults: Path | None = None, seed: int = 1
) -> Outcome:
    """What came of one seed of a test, such as `/…/test_mine.py::test_this`."""
    _, found = explored(program, results, topology, test, "--seeds", f"{seed}-{seed}", faults=faults)
    return found[seed]
