"""`minigts netlab`: netlab's labs on hosts of minigts."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli.options import TimeOption
from minigts.cli.verbs import LABS, Verb
from minigts.errors import EnvironmentLacks

verb = Verb(LABS, 352)


@verb.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def netlab(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD…", help="What netlab is told: up, connect r1, validate, down, …."),
    ] = None,
    time: TimeOption = None,
) -> None:
    """Run netlab with minigts in place of containerlab: its topologies, modules and validation, without root or Docker.

    netlab itself is yours: pip install networklab. Nodes of its devices `linux`, `frr`, `bird` and `dnsmasq` are hosts
    here, with Debian's programs. In virtual time, the default, the lab follows this machine's clock from command to
    command.

    Example:  minigts netlab up topology.yml
    """
    import shutil

    from minigts.cli import called_by_netlab
    from minigts.machine import shell
    from minigts.netlab import programs

    found = shutil.which("netlab")
    if found is None:
        raise EnvironmentLacks("netlab is not on this machine: pip install networklab")
    told = [*(words or ["help"])]
    if told[0] in ("up", "create") and not {"-p", "--provider"} & {*told}:
        told[1:1] = ["-p", "clab"]
    with programs.stand_ins() as (place, standby):
        variables = programs.environment(place, time or "virtual")
        process = shell.start([found, *told], output=1, errors=2, stdin=0, env=variables, new_session=False)
        try:
            code = standby.serve(process, called_by_netlab.main)
        except KeyboardInterrupt:  # netlab was interrupted, too, and ends by itself
            code = process.wait()
    raise typer.Exit(code if code >= 0 else 128 - code)
