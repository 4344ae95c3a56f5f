"""`minigts serve`: a lab in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Interval, LabName, WhichLab, which
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
) -> None:
    """Show a lab in the browser until ctrl-c: links at work, terminals, sliders, experiments. Prints the address.

    The token in the address is the key: whoever has it is root in the lab's hosts.

    Example:  minigts serve
    """
    import asyncio

    try:
        from minigts.serve.server import Server, bound
    except ModuleNotFoundError as error:
        raise EnvironmentLacks(f"the page needs {error.name}: pip install 'minigts[serve]'") from error
    from minigts import lab as labs
    from minigts.serve.auth import Access, checked_address, is_loopback

    opened = labs.open_lab(which(lab, named))
    address = checked_address(listen)
    with bound(address, port) as listening:
        access = Access(address, listening.getsockname()[1])
        server = Server(opened, access, results, interval_s)
        if not is_loopback(address):
            console.note(
                f"minigts: whoever reaches {address} and has the token is root in the lab's hosts; nothing is encrypted"
            )

        def begun() -> None:
            typer.echo(access.url)
            console.note(f"lab {opened.name} is shown there; ctrl-c ends it")

        asyncio.run(server.serve(listening, begun, lambda text: console.note(f"minigts: {text}")))
