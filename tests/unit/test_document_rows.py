"""docs/evidence/documents.md has a row for each claim of a document in an experiment, with a known verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from minigts.experiments import load
from minigts.judge.verdicts import SHOWN

PROJECT = Path(__file__).parents[2]
COLUMNS = ("the document says", "primary data say", "settings here", "came out", "verdict", "why")
VERDICTS = {*SHOWN.values(), "not applicable"}
LONGEST_CELL = 330
"""Characters: what takes more stands below the tables, behind a link."""


@dataclass(frozen=True)
class Row:
    says: str
    settings: str
    verdict: str
    cells: tuple[str, ...]


def rows() -> list[Row]:
    found: list[Row] = []
    within = False
    for line in (PROJECT / "docs" / "evidence" / "documents.md").read_text().splitlines():
        cells = tuple(map(str.strip, line[1:-1].split("|"))) if line.startswith("|") else ()
        if cells == COLUMNS:
            within = True
        elif within and not cells:
            within = False
        elif within and not set(line) <= set("|-"):
            assert len(cells) == len(COLUMNS), line
            found.append(Row(cells[0], cells[2], cells[4], cells))
    return found


ROWS = rows()
EXPERIMENTS = sorted((PROJECT / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_each_claim_of_a_document_has_its_row(file: Path) -> None:
    """In italics, beside the name of the experiment that makes it."""
    named = [row.says for row in ROWS if f"`{file.stem}`" in row.settings]
    claims = [claim.text for claim in load.load(file).claims if claim.source]
    assert [text for text in claims if not any(f"*{text}*" in says for says in named)] == []


@pytest.mark.parametrize("row", ROWS, ids=[str(number) for number in range(len(ROWS))])
def test_each_row_has_a_verdict(row: Row) -> None:
    """One word for all, or more, each of the experiments that it names: `failed; `gts`: held`."""
    for part in row.verdict.split("; "):
        of, _, word = part.rpartition(": ")
        assert word in VERDICTS, row.says
        assert not of or of in row.settings, row.says
    assert row.cells[5], row.says
    assert max(map(len, row.cells)) <= LONGEST_CELL, row.says
