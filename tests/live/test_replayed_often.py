"""A seed that failed, four times more: beside nothing, beside another exploration, from another state directory,
temporary directory and time zone, and there from a bundle, with the hosts' files gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import PATIENCE_S, explored
from live.program import Program, Traces
from live.test_explored_seeds import FAULTS, RING, TEST

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]

START = ("start.sh", "echo $(date -u +%FT%T.%NZ) this host has started >>/var/log/mine.log\n")
WITH_A_FILE = RING.replace(
    ", link:", ", host: {files: [{source: start.sh, target: /root/start.sh}], run: [sh /root/start.sh]}, link:"
)


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """An exploration's words, but for the verb."""
    for name, text in (("ring.yaml", WITH_A_FILE), ("faults.yaml", FAULTS), ("test_echoes.py", TEST), START):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("ring.yaml", "test_echoes.py")]
    return [*files, "--faults", str(tmp_path / "faults.yaml")]


def replayed(program: Program, made: Path, *words: str) -> str:
    said = program.run("replay", str(made), "--seed", "1", *words)
    assert "byte for byte" in said.stderr, said.stderr
    assert said.returncode == 0
    return said.stdout


def test_a_failure_comes_again_whatever_is_beside_it(
    program: Program, traces: Traces, words: list[str], tmp_path: Path
) -> None:
    made, found = explored(program, tmp_path / "results", *words, "--seeds", "1-1")
    assert [each.verdict for each in found.values()] == ["failed"]

    alone = replayed(program, made)
    others = ("--seeds", "2-3", "--on", "local:2", "--results", str(tmp_path / "results"))
    beside = program.start("explore", *words, *others)
    assert replayed(program, made) == alone
    beside.communicate(timeout=PATIENCE_S)
    (tmp_path / "tmp").mkdir()
    elsewhere = {"TMPDIR": str(tmp_path / "tmp"), "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    assert replayed(Program(tmp_path / "other-state", environment=elsewhere), made) == alone

    program.succeeds("bundle", str(made), "-o", str(tmp_path / "seeds.zip"))
    (tmp_path / "ring.yaml").unlink()
    (tmp_path / "start.sh").unlink()
    (tmp_path / "elsewhere").mkdir()
    other = Program(tmp_path / "other-state", environment=elsewhere, directory=tmp_path / "elsewhere")
    assert replayed(other, tmp_path / "seeds.zip", "--trust") == alone
    assert not traces.left()
