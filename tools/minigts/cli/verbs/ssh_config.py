"""`minigts ssh-config`: a configuration with which OpenSSH reaches hosts."""

from __future__ import annotations

import typer

from minigts.cli.options import LabName, WhichLab, opened_lab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 280)


@verb.command()
def ssh_config(lab: WhichLab = None, named: LabName = None) -> None:
    """Print the file with which ssh, scp, sftp and rsync reach the hosts of a lab: give it to their option -F.

    No port is opened: a connection uses its host's control line and keys of the lab's own, and crosses no link of the
    lab. In virtual time the lab keeps pace with real time as long as a connection is open.

    Example:  minigts ssh-config > lab.ssh; ssh -F lab.ssh ams
    """
    from minigts.lab import ssh

    typer.echo(ssh.write_config(opened_lab(which(lab, named))), nl=False)
