"""Runs the cells of a notebook, and writes what they print into it. In virtual time that is the same each time, which
tests/live/test_arena.py holds it to; no program of Jupyter's is needed.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from minigts.language import documents


def run_cells(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the output of each of its cells, run one after the other in one space of names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count, cells = 0, []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        count += 1
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("".join(cell["source"]), f"cell {count}", "exec"), names)
        lines = said.getvalue().splitlines(keepends=True)
        outputs = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


def text_of(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main(file: Annotated[Path, typer.Argument(help="A notebook, *.ipynb.")]) -> None:
    """Run a notebook's cells, and write their output into it."""
    file.write_text(text_of(run_cells(documents.document(file.read_text(encoding="utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
