"""A run in shares, put together: the same bytes as in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Program

pytestmark = [pytest.mark.virtual, pytest.mark.touched("tools/minigts/cluster")]
TABLES = ("samples.csv", "summary.csv", "claims.json")
SHORT = f"""\
name: short
title: Is the delay the declared one?
topology: {TOPOLOGIES / "pair.yaml"}
overlays: [none]
seed: 3
replicates: 5
repetitions: 1
measurements:
  - {{name: latency, tool: ping, paths: [first-to-each], options: {{count: 5}}}}
claims:
  - latency: as-declared
"""


def test_shares_put_together_have_the_bytes_of_one_run(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    shares = []
    for number in (1, 2):
        results = tmp_path / f"share-{number}"
        program.succeeds("run", str(file), "--share", f"{number}/2", "--results", str(results))
        (folder,) = results.iterdir()
        assert not (folder / TABLES[0]).exists(), "a share alone has no tables"
        shares.append(folder)
    program.succeeds("merge", *map(str, shares), "--results", str(tmp_path / "merged"))
    program.succeeds("run", str(file), "--results", str(tmp_path / "whole"))
    (merged,), (whole,) = ([*(tmp_path / name).iterdir()] for name in ("merged", "whole"))
    for name in TABLES:
        assert (merged / name).read_bytes() == (whole / name).read_bytes()
    assert (merged / "report.html").is_file()
    assert program.succeeds("status", "--json").strip() == "[]"
