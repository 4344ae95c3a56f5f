"""The page on safety says of every verb what it reads from elsewhere, what of it acts, and which gate is before it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from minigts.cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "safety.md"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
VERBS = sorted(
    f"{name} {each}".rstrip()
    for name, command in COMMANDS.items()
    for each in getattr(command, "commands", {"": command})
)
GATED = {"replay", "explore", "run", "reproduce"}


def rows() -> list[list[str]]:
    """The table's rows, with the verbs of each."""
    section = PAGE.read_text(encoding="utf-8").partition("## Whose folder it is\n")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", cell) for cell in first_cells]


def test_every_verb_is_in_one_row_of_the_table() -> None:
    """A new verb has to say which gate is before what it reads."""
    assert sorted(verb for row in rows() for verb in row) == VERBS


def test_the_first_row_has_the_verbs_that_trust_is_said_to() -> None:
    assert set(rows()[0]) == GATED


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_told_of_trust_if_it_is_gated(verb: str) -> None:
    name, _, own = verb.partition(" ")
    command = COMMANDS[name].commands[own] if own else COMMANDS[name]
    options = {option for parameter in command.params for option in getattr(parameter, "opts", ())}
    assert ("--trust" in options) is (verb in GATED)
