"""Every table that a verb prints, found in the code: it fits 80 and 120 columns, and no figure in it breaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from minigts.cli import console
from minigts.cli.views import tables

CLI = Path(__file__).parents[3] / "tools" / "minigts" / "cli"
WINDOWS = (80, 120)
FIGURE, NAME = "94123.45 ms", "amsterdam-bratislava"
SENTENCE = "the furthest path, from ams to lon, lies 0.01 ms below what the plan has for it"


def calls() -> Iterator[tuple[str, ast.Call, ast.Module]]:
    """Every call of `show_table` or `fitted`, with its file and line."""
    for file in sorted(CLI.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text if "show_table" in text or "fitted" in text else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("show_table", "fitted"):
                yield f"{file.relative_to(CLI)}:{node.lineno}", node, tree


def words_in(node: ast.expr, tree: ast.Module) -> list[str]:
    """The words of a tuple of columns, as far as they stand in the code; those of names that it is made of, too."""
    named = {
        target.id: each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.append(each.value)
        elif isinstance(each, ast.Name) and each.id in named and named[each.id] is not node:
            found += words_in(named[each.id], ast.Module([], [])) if isinstance(named[each.id], ast.Tuple) else []
    return found


SCREENS = {
    place: words
    for place, call, tree in calls()
    if "tables.py" not in place and (words := words_in(call.args[min(1, len(call.args) - 1)], tree))
}


def test_the_search_finds_the_tables_of_the_verbs() -> None:
    files = {place.partition(":")[0] for place in SCREENS}
    assert {"views/plan.py", "views/findings.py", "views/labs.py"} <= files
    assert len(SCREENS) > 10


def test_no_other_module_makes_tables_of_its_own() -> None:
    """So that each of them goes through `views/tables.py`."""
    others = [file for file in CLI.rglob("*.py") if "rich.table" in file.read_text() and file.name != "tables.py"]
    assert others == []


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("screen", SCREENS)
def test_each_fits_the_window_with_long_names_and_wide_figures(
    screen: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = SCREENS[screen]
    row = [FIGURE if each.startswith(">") else NAME for each in columns]
    if not columns[-1].startswith(">"):
        row[-1] = SENTENCE
    monkeypatch.setattr(console, "window", lambda: width)
    tables.show_table("a title", columns, [row, row])
    shown = capsys.readouterr().out
    assert max(map(cell_len, shown.splitlines())) <= width, shown
    assert len(re.findall(re.escape(FIGURE), shown)) == 2 * row.count(FIGURE)
    assert len(re.findall(rf"\b{NAME}\b", shown)) == 2 * row.count(NAME)
    capsys.readouterr()
    monkeypatch.setattr(console, "has_window", lambda: False)
    tables.show_table("a title", columns, [row, row])
    piped = capsys.readouterr().out.splitlines()
    assert "\t".join(row) in piped
    assert [line for line in piped if line != line.strip(" ")] == []
