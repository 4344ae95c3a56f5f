"""`minigts docs`: the documentation on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 475)


@verb.command()
def docs(
    man: Annotated[
        str | None,
        typer.Option(metavar="VERB", help="Print the path of that verb's man page instead; `minigts` has the list."),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the site is, and open no browser.")] = False,
) -> None:
    """Open the documentation that this minigts brings, in a browser; without a screen print where it is.

    It needs no network. A checkout builds it by `docs/site/build`.

    Example:  minigts docs

    Example:  man "$(minigts docs --man up)"
    """
    import os
    import webbrowser

    from minigts import paths
    from minigts.errors import EnvironmentLacks, InputError

    site = paths.project_root() / paths.SITE
    page = site / "index.html"
    if not page.is_file():
        raise EnvironmentLacks(
            f"docs: no site is built in {site.parent}; docs/site/build in a checkout builds one, and an installation "
            "has the one that its checkout had. The pages themselves are in the checkout's docs/"
        )
    if man is not None:
        page = site / "man" / ("minigts.1" if man == "minigts" else f"minigts-{man}.1")
        if not page.is_file():
            raise InputError(f"docs: there is no man page of {man!r}; minigts --help lists the verbs")
    typer.echo(page)
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if man is None and not path and screen and not webbrowser.open(page.as_uri()):
        console.note("no browser could be started; open that file in one")
