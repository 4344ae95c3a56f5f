"""`minigts mcp`: a lab for assistants, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName, WhichLab, which, write_token
from minigts.cli.verbs import LABS, Verb
from minigts.errors import EnvironmentLacks, InputError

verb = Verb(LABS, 265)


@verb.command()
def mcp(
    lab: WhichLab = None,
    named: LabName = None,
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="`read` looks and measures; `repair` runs commands on hosts as root, too; `full` also changes links "
            "and restarts hosts.",
        ),
    ] = "read",
    http: Annotated[
        bool, typer.Option("--http", help="On a port of loopback, with a token, instead of standard input.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="With --http: the port; 0 is any free one.")
    ] = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="With --http: a file that gets the token, readable to you only."
        ),
    ] = None,
) -> None:
    """Give an assistant a lab by the Model Context Protocol: it looks, measures, and repairs what it may.

    The assistant's program starts this command and speaks with it by standard input. In virtual time the lab stands
    still while the assistant thinks. Nothing that it does reaches this machine: commands run in hosts, and files are
    theirs.

    In a lab with an incident (minigts arena start) each call is counted and noted, and the assistant answers, too.

    Example:  minigts mcp --role repair

    Example:  minigts mcp pair --http --port 8138 --token-file token
    """
    from minigts.agents.roles import parse_role

    allowed = parse_role(role)
    if not http and (port or token_file is not None):
        raise InputError("--port and --token-file are for --http")
    try:
        from minigts.agents import server
    except ModuleNotFoundError as error:
        raise EnvironmentLacks(f"`mcp` needs {error.name}: pip install 'minigts[agents]'") from error
    from minigts import lab as labs
    from minigts.arena import served, stage
    from minigts.arena.play import Play
    from minigts.serve.auth import Access
    from minigts.serve.listening import bind

    opened = labs.open_lab(which(lab, named))
    calls = server.RunningCalls()
    if stage.read(opened) is None:
        made = server.server(opened.name, allowed, calls=calls)
    else:
        made = served.server_of(Play(opened), allowed)
    if not http:
        made.run("stdio")
        return
    with bind("127.0.0.1", port) as listening:
        access = Access("127.0.0.1", listening.getsockname()[1])
        write_token(token_file, access.token)
        typer.echo(f"http://127.0.0.1:{access.port}{server.PATH}")
        console.note(f"lab {opened.name} is there, role {role}; ctrl-c ends it. Each request needs the header")
        console.note(f"Authorization: Bearer {access.token}")
        server.serve_http(made, access, listening, calls)
