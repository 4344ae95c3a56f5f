"""`minigts test`: the project's tests, and a user's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from minigts.cli import console
from minigts.cli.verbs import PROJECT, Verb
from minigts.errors import EnvironmentLacks

verb = Verb(PROJECT, 450)

NAMED = {
    "docs": (
        "tests/documented/test_pages_as_typed.py",
        "tests/unit/test_documentation.py",
        "tests/unit/test_documented_commands.py",
    ),
}
"""Tests of the project that have a word of their own."""

_QUIET = "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"
"""For pytest's option `-W`: an installed minigts is a plugin of pytest, whose files pytest would rewrite, and this
process has loaded some of them before. That changes nothing for tests."""


@verb.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def test(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[PYTEST ARGUMENTS…]", show_default=False)] = None,
) -> None:
    """Run the project's tests; sets up what they need. Arguments go to pytest; paths start at the project.

    `docs` stands for the documentation's pages: what they tell a reader to type is run, and their links are followed.
    With --minigts TOPOLOGY it runs your own tests on a lab of yours; paths start at the working directory.

    Example:  minigts test tests/unit -k plan

    Example:  minigts test docs

    Example:  minigts test --minigts my.yaml test_my.py
    """
    from minigts import paths
    from minigts.machine import shell

    if not _of_the_user(arguments or []):
        arguments = [file for word in arguments or [] for file in NAMED.get(word, (word,))]
        if paths.is_installed():
            raise EnvironmentLacks(
                "the project's tests are in a checkout: ./minigts test; an installed package has none"
            )
        os.chdir(paths.project_root())
    os.umask(shell.FOR_OTHERS)  # some of what tests make is for another user
    try:
        import pytest
    except ImportError as error:
        raise EnvironmentLacks("pytest is missing; start the tests with ./minigts test, which fetches it") from error
    if not arguments:
        _prepare()
    codes = {pytest.ExitCode.OK: 0, pytest.ExitCode.USAGE_ERROR: 2}
    own = [] if _of_the_user(arguments or []) else _of_the_program(arguments)
    # The plugin has to be loaded before its options are read, also for the user's own tests.
    always = ["-p", "minigts.testing.plugin", "-W", _QUIET, *own]
    broken_off = _BrokenOff()
    ended = pytest.ExitCode(pytest.main([*always, *(arguments or ["tests"])], plugins=[broken_off]))
    raise typer.Exit(broken_off.code if ended is pytest.ExitCode.INTERRUPTED else codes.get(ended, 1))


class _BrokenOff:
    """Why pytest has not run all tests: `code` is 130 if its user has interrupted it, and 2 if a file of tests could
    not be read. pytest itself has one code for both."""

    code = 1

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        import pytest

        if not excinfo.errisinstance(pytest.Session.Interrupted):
            self.code = 130
        elif "during collection" in str(excinfo.value):
            self.code = 2


def _of_the_program(arguments: Sequence[str] | None) -> list[str]:
    """pytest's options for the project's own tests. Whole folders run in several processes, each file in one of them,
    in the order of the files' names, so that the long ones come first."""
    whole = not any(".py" in argument for argument in arguments or [])
    return ["--all-tests", *(["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"] if whole else [])]


def _of_the_user(arguments: Sequence[str]) -> bool:
    """Whether the arguments name the user's own tests on the user's own lab."""
    return any(argument.partition("=")[0] == "--minigts" for argument in arguments)


def _prepare() -> None:
    """Build what hosts start from, with visible progress. Where that is impossible, a note says which tests will be
    skipped."""
    from minigts.providers.uml.build import build_all, image

    try:
        with console.progress() as say:
            build_all.ensure(say)
    except EnvironmentLacks as lack:
        console.note(f"minigts: tests that need hosts in virtual time will be skipped: {lack}")
    else:
        return
    try:
        with console.progress() as say:
            image.ensure(say)
    except EnvironmentLacks as lack:
        console.note(f"minigts: tests that need hosts will be skipped: {lack}")
