"""What the documentation's pages tell a reader to type works as it stands, and says what the pages show.

`./minigts test docs` runs these. Each page has its commands run in their order, in one directory. What a page presumes,
such as a lab that is up, and what is not run and why, is in plans.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from documented.pages import PROJECT, Command, Reader, block_that_begins, commands, difference, pages
from documented.plans import PLANS


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_each_command_of_a_page_for_learning_or_doing_is_run_or_has_a_reason(page: Path) -> None:
    """A page that has commands has a plan, and a plan speaks of commands that its page has."""
    there = [command.words for command in commands(page)]
    assert bool(there) == (name_of(page) in PLANS), there
    if there:
        assert PLANS[name_of(page)].known() - set(there) == set()


@pytest.mark.virtual
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name",
    [
        name if name == "docs/imports.md" else pytest.param(name, marks=pytest.mark.nightly)
        for name, plan in PLANS.items()
        if {command.words for command in commands(PROJECT / name)} - plan.not_run.keys()
    ],
)
def test_a_page_works_as_it_is_typed(name: str, tmp_path: Path) -> None:
    plan, reader = PLANS[name], Reader(tmp_path)
    for file, text in plan.files.items():
        (reader.home / file).parent.mkdir(exist_ok=True)
        (reader.home / file).write_text(text)
    for file, first in plan.shown.items():
        (reader.home / file).write_text(block_that_begins(PROJECT / name, first))
    try:
        wrong = [fault for fault in [types(reader, Command(0, plan.first))] if fault]
        for command in commands(PROJECT / name):
            if command.words in plan.not_run:
                continue
            if command.words.startswith("cat "):  # the page shows a file of the reader's
                (reader.home / command.words.removeprefix("cat ")).write_text("\n".join(command.shown).rstrip() + "\n")
            fault = types(reader, Command(command.line, plan.before.get(command.words, ":")))
            fault = fault or types(
                reader, command, code=plan.codes.get(command.words, 0), by_hand=command.words in plan.by_hand
            )
            wrong += [f"{name}:{command.line}: {fault}"] if fault else []
    finally:
        reader.leaves()
    assert not wrong, "\n".join(wrong)


def types(reader: Reader, command: Command, *, code: int = 0, by_hand: bool = False) -> str | None:
    """What is wrong with a command, by its exit code and its output."""
    ended, said = reader.types(command.text, by_hand=by_hand)
    if ended != code:
        return f"{command.text}\n    ended with code {ended}, not {code}:\n{said[-2000:]}"
    if (missing := difference(command.shown, said)) is not None:
        return f"{command.text}\n    does not show {missing!r}:\n{said[-3000:]}"
    return None


@pytest.mark.parametrize(
    ("shown", "output", "missing"),
    [
        (("a", "b"), "a\nb\nc\n", None),
        (("a", "…", "c"), "a\nb\nc\n", None),
        (("…", "c", ""), "a\nb\nc\n", None),
        (("b",), "a\nb\n", "b"),
        (("a", "c"), "a\nb\nc\n", "c"),
        (("…", "b", "a"), "a\nb\n", "a"),
        (("measured in 1.2 s",), "measured in 3 s\n", None),
    ],
)
def test_an_output_is_compared_line_by_line(shown: tuple[str, ...], output: str, missing: str | None) -> None:
    assert difference(shown, output) == missing
