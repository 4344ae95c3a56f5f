"""`minigts ssh-line`: one connection of OpenSSH's."""

from __future__ import annotations

import typer

from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 300)


@verb.command(hidden=True)
def ssh_line(host: Host, lab: LabName = None) -> None:
    """Carry one SSH connection between standard input and output and a host; OpenSSH starts this by `ssh-config`."""
    from minigts.lab import ssh

    raise typer.Exit(ssh.carry(lab_with(host, lab), host, source=0, target=1))
