"""The verbs of the command line, a file each. Whatever file lies here is a verb: `ssh_config.py` is `ssh-config`, and
`import_.py` is `import`, which Python keeps for itself. A file has a `Verb` of the name `verb`, and a short function
for it, or for each verb below it. What a verb needs is imported inside the function, so that `--help` is quick.

A start with a verb imports that verb's file alone. Nothing else of minigts prints; what a verb does is done elsewhere.
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
    """What a verb's file holds: `panel` and `place` say where `--help` lists it, the lowest place first. With `help` it
    has verbs below it, `@verb.command("apply")`; else it is one function, `@verb.command()`.
    """

    def __init__(self, panel: str, place: int, *, help: str = "") -> None:
        super().__init__(no_args_is_help=bool(help), help=help, add_completion=False)
        self.panel, self.place, self.about = panel, place, help

    def command_named(self, name: str) -> TyperCommand:
        """What parses the verb's words and runs it."""
        made = typer.main.get_group(self) if self.about else typer.main.get_command(self)
        made.name, made.rich_help_panel = name, self.panel  # type: ignore[attr-defined]  # typer's own kinds have it
        return made  # type: ignore[return-value]

    def listed(self, name: str) -> TyperCommand:
        """What help and completion say of it. To read its parameters, too, takes longer than most verbs run."""
        about, hidden = self.about, False
        if not about:
            [function] = self.registered_commands
            about, hidden = inspect.getdoc(function.callback) or "", function.hidden
        return TyperCommand(name, help=about, hidden=hidden, rich_help_panel=self.panel)


class Commands(Mapping[str, TyperCommand]):
    """Of every verb, by its name, what runs it: made when it is asked for."""

    def __getitem__(self, name: str) -> TyperCommand:
        return verb(name).command_named(name)

    def __contains__(self, name: object) -> bool:
        return name in _files()

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(_files())


def names() -> list[str]:
    """Of all verbs, in the order in which they are listed."""
    return sorted(_files(), key=lambda name: verb(name).place)


def verb(name: str) -> Verb:
    """The one of that name. Raises KeyError."""
    found = import_module(f"{__name__}.{_files()[name]}").verb
    assert isinstance(found, Verb)
    return found


@cache
def _files() -> dict[str, str]:
    """The modules that lie here, by the verbs' names."""
    stems = (path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return {stem.rstrip("_").replace("_", "-"): stem for stem in stems}
