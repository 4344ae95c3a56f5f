"""`minigts forward`: a port of a host for programs of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.containers import container_of
from minigts.cli.options import LabName, lab_with
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.forwarding import Destination

verb = Verb(LABS, 270)

HIGHEST_PORT = 65535


@verb.command()
def forward(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT",
            help="A TCP port of a host, on any of its addresses.",
            autocompletion=completion.hosts,
        ),
    ],
    local: Annotated[
        int | None,
        typer.Argument(
            metavar="[LOCAL]", help="The port on 127.0.0.2. Default: any free one.", min=1, max=HIGHEST_PORT
        ),
    ] = None,
    lab: LabName = None,
    container: Annotated[
        bool, typer.Option("--container", "-c", help="Connect to the overlay's measuring container on the host.")
    ] = False,
) -> None:
    """Let programs of this machine connect to a TCP port of a host, until ctrl-c. Prints the address: 127.0.0.2:PORT.

    It listens only there, where every user of this machine may connect; browsers do not send the cookies of 127.0.0.1
    to it. Connections use the host's control line, and cross no link of the lab. In virtual time the lab keeps pace
    with real time as long as a connection is open. With --container the port is that of the overlay's measuring
    container.

    Example:  minigts forward ams:80 8080
    """
    from minigts.lab import forwarding

    host, _, word = destination.rpartition(":")
    if not host or not (word.isascii() and word.isdigit()) or not 1 <= int(word) <= HIGHEST_PORT:
        raise InputError(f"forward: {destination!r} is no HOST:PORT with a port of 1 to {HIGHEST_PORT}, as in ams:80")
    opened = lab_with(host, lab)
    wanted = _destination(opened, host, int(word), container=container)
    with forwarding.listening(local or 0) as listener:
        typer.echo("{}:{}".format(*listener.getsockname()))
        console.note(f"port {word} of {host}, as long as this command runs; end it with ctrl-c")
        forwarding.forward(opened, wanted, listener, lambda text: console.note(f"minigts: {text}"))


def _destination(lab: Lab, host: str, port: int, *, container: bool) -> Destination:
    from minigts.lab.forwarding import LOOPBACK, Destination, addresses_of

    if not container:
        return Destination(host, port, tuple(addresses_of(lab, host)))
    end = container_of(lab, host)
    return Destination(host, port, (LOOPBACK, end.own or end.address), end.network)
