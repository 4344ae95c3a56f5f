"""`minigts status`: labs that are up, and those that are kept."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import AsJson
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import labs as shown_labs

verb = Verb(LABS, 40)


@verb.command()
def status(
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="NAME", help="Only this lab. Default: all labs.", autocompletion=completion.labs),
    ] = None,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Repeat until ctrl-c.")] = False,
    interval_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, max=3600, help="The interval of --watch.")
    ] = 2.0,
) -> None:
    """List the labs that are up, with the states of their hosts, and the kept ones, with the size of their disks.

    Example:  minigts status --json

    Example:  minigts status --watch
    """
    if not watch:
        _show_status(lab, as_json)
        return
    with suppress(KeyboardInterrupt):
        while True:
            if not as_json and sys.stdout.isatty():
                console.out().clear()
            _show_status(lab, as_json, in_a_line=True)
            time.sleep(interval_s)


def _show_status(lab: str | None, as_json: bool, *, in_a_line: bool = False) -> None:
    from minigts import lab as labs

    found = labs.all_labs() if lab is None else [labs.open_lab(lab, also_kept=True)]
    if as_json and in_a_line:
        typer.echo(json.dumps([shown_labs.lab_facts(each) for each in found]))
    elif as_json:
        console.print_json([shown_labs.lab_facts(each) for each in found])
    elif not found:
        console.note("no lab is up; try: minigts up topologies/pair.yaml")
    else:
        shown_labs.show_labs(found)
