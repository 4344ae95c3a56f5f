"""`minigts serve`: a lab in the browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Interval, LabName, WhichLab, which, write_token
from minigts.cli.verbs import LABS, Verb
from minigts.errors import EnvironmentLacks

verb = Verb(LABS, 260)


@verb.command()
def serve(
    lab: WhichLab = None,
    named: LabName = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="ADDRESS", help="An address of this machine; any but loopback admits other machines."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 is any free one.")] = 0,
    interval_s: Interval = 1.0,
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="The directory for results folders, which the page shows.")
    ] = Path("results"),
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="A file that gets the token, readable to you only, for Prometheus."
        ),
    ] = None,
) -> None:
    """Show a lab in the browser until ctrl-c: links at work, terminals, sliders, experiments. Prints the address.

    The token in the address is the key: whoever has it is root in the lab's hosts. Prometheus reads the lab's metrics
    at /metrics with it.

    Example:  minigts serve

    Example:  minigts serve --port 8137 --token-file token
    """
    import asyncio

    try:
        from minigts.serve.server import Server
    except ModuleNotFoundError as error:
        raise EnvironmentLacks(f"the page needs {error.name}: pip install 'minigts[serve]'") from error
    from minigts import lab as labs
    from minigts.lessons import hidden_figures
    from minigts.serve.auth import Access, checked_address, is_loopback
    from minigts.serve.listening import bind

    opened = labs.open_lab(which(lab, named))
    address = checked_address(listen)
    with bind(address, port) as listening:
        access = Access(address, listening.getsockname()[1])
        write_token(token_file, access.token)
        hides = partial(hidden_figures.why_hidden, opened.plan.name)
        server = Server(opened, access, results, interval_s, lambda: hides() is not None)
        if not is_loopback(address):
            console.note(
                f"minigts: whoever reaches {address} and has the token is root in the lab's hosts; nothing is encrypted"
            )

        def begun() -> None:
            typer.echo(access.url)
            console.note(f"lab {opened.name} is shown there; ctrl-c ends it")

        asyncio.run(server.serve(listening, begun, lambda text: console.note(f"minigts: {text}")))
