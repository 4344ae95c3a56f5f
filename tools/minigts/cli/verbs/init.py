"""`minigts init`: a user's first files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 130)

TEMPLATES = "provision/first"

TEST_FILE = "TEST_FILE"
"""Stands in a template for the name of the test's file, as NAME stands for the topology's."""


@verb.command()
def init(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The name of the topology, and so of the files.")
    ] = "first",
) -> None:
    """Write a first topology, an experiment on it and a test of it, with comments, into the current directory.

    All three work as they are. An existing file is never overwritten.

    Example:  minigts init
    """
    from minigts import paths
    from minigts.language.problems import quote
    from minigts.topology.fields import NAME, NAME_HINT

    if not NAME.fullmatch(name) or not name[0].isalpha():  # an experiment's name begins with a letter
        raise InputError(f"init: {quote(name)} is not {NAME_HINT}, and a letter first")
    test = f"test_{name.replace('-', '_')}.py"
    places = {"topology.yaml": f"{name}.yaml", "experiment.yaml": f"{name}-experiment.yaml", "test.py": test}
    if there := [file for file in places.values() if Path(file).exists() or Path(file).is_symlink()]:
        raise InputError(f"init: {', '.join(there)}: here already, and left alone; so nothing is written")
    for template, file in places.items():
        text = (paths.project_root() / TEMPLATES / template).read_text(encoding="utf-8")
        with Path(file).open("x", encoding="utf-8") as written:
            paths.users_file(written)
            written.write(text.replace(TEST_FILE, test).replace("NAME", name))
    console.note(f"{', '.join(places.values())}: read them, then try")
    for line in (f"plan {name}.yaml", f"run {name}-experiment.yaml", f"test --minigts {name}.yaml {test}"):
        console.note(f"  minigts {line}")
