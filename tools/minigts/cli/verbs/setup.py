"""`minigts setup`: set up a provider."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.verbs import PROJECT, Verb
from minigts.errors import EnvironmentLacks

verb = Verb(PROJECT, 460)


@verb.command()
def setup(
    provider: Annotated[
        str,
        typer.Argument(
            metavar="PROVIDER", help="The provider's name, such as vagrant.", autocompletion=completion.providers
        ),
    ],
) -> None:
    """Set up a provider: install its system packages, build what its hosts start from, check this machine.

    Example:  minigts setup vagrant
    """
    from minigts import paths
    from minigts.providers import DEFAULT, registry, system_packages
    from minigts.providers.base import Prepares

    chosen = registry.make(provider, paths.state_root(), registry.best_time(provider))
    packages = system_packages.lacking((DEFAULT, provider))
    if packages and paths.is_installed():  # a checkout's launcher has done so
        system_packages.install(packages)
    lacking = chosen.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    if isinstance(chosen, Prepares):
        with console.progress() as say:
            chosen.prepare(say)
    console.note(f"provider {provider} can run here")
