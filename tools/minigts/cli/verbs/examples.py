"""`minigts examples`: files that minigts brings."""

from __future__ import annotations

import typer

from minigts.cli import files
from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 470)


@verb.command()
def examples() -> None:
    """List the topologies and experiments that minigts brings, with their paths: use them by name, or copy them.

    Example:  minigts up topologies/pair.yaml
    """
    from minigts import paths

    for folder in (files.TOPOLOGIES, files.EXPERIMENTS):
        for file in sorted((paths.project_root() / folder).rglob("*.yaml"), key=lambda path: (len(path.parts), path)):
            typer.echo(file)
