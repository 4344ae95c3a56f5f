"""Proves the arena's incidents, by default all 360 (tools/minigts/arena/proof.py). What is written is a line of JSON
for each, and a table at the end. A line that is there already is not done again.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from minigts.arena import boards, families, proof
from minigts.arena.families import FAMILIES, Incident
from minigts.arena.proof import IncidentProof
from minigts.cli import console
from minigts.language import documents
from minigts.results.folder import append


def main(
    chosen: Annotated[list[str] | None, typer.Argument(metavar="[FAMILY...]")] = None,
    into: Annotated[Path, typer.Option(metavar="FILE", help="The lines of JSON.")] = Path("arena-proof.jsonl"),
    seeds: Annotated[int, typer.Option(help="So many seeds of each family, from 1 on.")] = families.PROVEN,
) -> None:
    """Prove incidents, by default all of the twelve families."""
    lines = into.read_text(encoding="utf-8").splitlines() if into.exists() else []
    proofs = [documents.model(line, IncidentProof) for line in lines]
    done = {each.incident for each in proofs if not each.problem}
    by_board = defaultdict[str, list[Incident]](list)
    for family in chosen or FAMILIES:
        for seed in range(1, seeds + 1):
            incident = families.draw(family, seed)
            if incident.name not in done:
                by_board[incident.board].append(incident)
    proofs = [each for each in proofs if each.incident in done]
    with console.progress() as say:
        for board in sorted(by_board, key=list(boards.BOARDS).index):
            for each in proof.prove_on(board, by_board[board], say):
                proofs.append(each)
                append(into, each.model_dump_json() + "\n")
                say(f"{len(proofs)}: {each.incident} {each.problem or 'proven'}, {each.real_s:g} s")
    typer.echo("\n".join(proof.table(proofs)))
    sys.exit(1 if any(each.problem for each in proofs) else 0)


if __name__ == "__main__":
    typer.run(main)
