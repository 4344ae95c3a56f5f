"""The verbs of the command line, one file each. Every file of this folder is a verb: `ssh_config.py` is `ssh-config`,
and `import_.py` is `import`, a keyword of Python. A file has a `Verb` named `verb`, and a short function for it, or for
each of its subverbs. A function imports what it needs when it is called, so that `--help` is quick.

A start with a verb imports only that verb's file. Nothing else of minigts prints; the work of a verb is done in other
packages.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import typer
import typer.main
from typer.core import TyperCommand

LABS, EXPERIMENTS, CLASSROOM, PROJECT = "Labs", "Experiments", "Lessons", "The machine and the project"
"""The panels of `--help`."""


class Verb(typer.Typer):
    """The verb in a file. `panel` and `place` say where `--help` lists it, the lowest place first. With `help` it has
    subverbs, `@verb.command("apply")`; without, it is one function, `@verb.command()`."""

    def __init__(self, panel: str, place: int, *, help: str = "") -> None:
        super().__init__(no_args_is_help=bool(help), help=help, add_completion=False)
        self.panel, self.place, self.about = panel, place, help

    def command_named(self, name: str) -> TyperCommand:
        """The command that parses the verb's arguments and runs it."""
        made = typer.main.get_group(self) if self.about else typer.main.get_command(self)
        made.name, made.rich_help_panel = name, self.panel  # type: ignore[attr-defined]  # typer's own kinds have it
        for each in (made, *getattr(made, "commands", {}).values()):
            each.help = _unbroken(each.help or "")
        return made  # type: ignore[return-value]

    def help_entry(self, name: str) -> TyperCommand:
        """The verb for help and completion, without its parameters: to read those takes longer than most verbs run."""
        about, hidden = self.about, False
        if not about:
            [function] = self.registered_commands
            about, hidden = inspect.getdoc(function.callback) or "", function.hidden
        return TyperCommand(name, help=_unbroken(about), hidden=hidden, rich_help_panel=self.panel)


def _unbroken(text: str) -> str:
    """A help text with each paragraph on one line. typer would keep the breaks of the source's lines in a window."""
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in text.split("\n\n"))


class Commands(Mapping[str, TyperCommand]):
    """The command of each verb, by the verb's name; made when it is looked up."""

    def __getitem__(self, name: str) -> TyperCommand:
        return verb(name).command_named(name)

    def __contains__(self, name: object) -> bool:
        return name in _files()

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(_files())


def names() -> list[str]:
    """The names of all verbs, in the order of the list."""
    return sorted(_files(), key=lambda name: verb(name).place)


def verb(name: str) -> Verb:
    """The verb of that name. Raises KeyError."""
    found = import_module(f"{__name__}.{_files()[name]}").verb
    assert isinstance(found, Verb)
    return found


@cache
def _files() -> dict[str, str]:
    """The modules of this folder, by the verbs' names."""
    stems = (path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return {stem.rstrip("_").replace("_", "-"): stem for stem in stems}
