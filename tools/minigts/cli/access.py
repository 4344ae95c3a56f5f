"""The verbs by which other programs of this machine reach a lab's hosts. Imports are inside: `--help` is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import known, screen
from minigts.cli.app import app
from minigts.cli.hosts import Inside
from minigts.cli.labs import LABS, Host, LabName, WhichLab, lab_with, which
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.forwarding import Destination

HIGHEST_PORT = 65535


@app.command(rich_help_panel=LABS)
def forward(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT", help="A TCP port of a host, whatever address it is on.", autocompletion=known.hosts
        ),
    ],
    local: Annotated[
        int | None,
        typer.Argument(metavar="[LOCAL]", help="A port of 127.0.0.2; else any that is free.", min=1, max=HIGHEST_PORT),
    ] = None,
    lab: LabName = None,
    container: Inside = False,
) -> None:
    """Let programs of this machine connect to a TCP port of a host, until ctrl-c. Prints where: 127.0.0.2:PORT.

    It listens there alone, where every user of this machine may connect; a browser sends it no cookie that a program at
    127.0.0.1 has set. What is carried goes over the host's control line and takes no link of the lab. In virtual time
    the lab keeps pace with yours as long as a connection is open. With --container the port is the overlay's measuring
    container's.

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
        screen.note(f"port {word} of {host}, as long as this command runs; end it with ctrl-c")
        forwarding.forward(opened, wanted, listener, lambda text: screen.note(f"minigts: {text}"))


@app.command("ssh-config", rich_help_panel=LABS)
def ssh_config(lab: WhichLab = None, named: LabName = None) -> None:
    """Print what ssh, scp, sftp and rsync need to reach the hosts of a lab: a file for their option -F.

    Nothing listens for it: a connection goes over its host's control line, by keys that are the lab's own, and takes no
    link of the lab. In virtual time the lab keeps pace with yours as long as a connection is open.

    Example:  minigts ssh-config > lab.ssh; ssh -F lab.ssh ams
    """
    from minigts.cli.hosts import opened_lab
    from minigts.lab import ssh

    typer.echo(ssh.write_config(opened_lab(which(lab, named))), nl=False)


@app.command(rich_help_panel=LABS)
def inventory(lab: WhichLab = None, named: LabName = None) -> None:
    """Print a lab's hosts as an inventory for Ansible, which reaches them as `ssh-config` says.

    The groups of the lab's overlay are groups of the inventory.

    Example:  minigts inventory > lab.yaml; ansible -i lab.yaml all -m ping
    """
    from minigts.cli.hosts import opened_lab
    from minigts.lab import ssh

    typer.echo(ssh.inventory(opened_lab(which(lab, named))), nl=False)


@app.command("ssh-line", hidden=True)
def ssh_line(host: Host, lab: LabName = None) -> None:
    """Carry one SSH connection between standard input and output and a host; what `ssh-config` has OpenSSH start."""
    from minigts.lab import ssh

    raise typer.Exit(ssh.carry(lab_with(host, lab), host, source=0, target=1))


def _destination(lab: Lab, host: str, port: int, *, container: bool) -> Destination:
    from minigts.cli.hosts import container_of
    from minigts.lab.forwarding import LOOPBACK, Destination, addresses_of

    if not container:
        return Destination(host, port, tuple(addresses_of(lab, host)))
    end = container_of(lab, host)
    return Destination(host, port, (LOOPBACK, end.own or end.address), end.network)
