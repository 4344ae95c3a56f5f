"""`minigts ssh-config`: what OpenSSH needs to reach hosts."""

from __future__ import annotations

import typer

from minigts.cli.options import LabName, WhichLab, opened_lab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 280)


@verb.command()
def ssh_config(lab: WhichLab = None, named: LabName = None) -> None:
    """Print what ssh, scp, sftp and rsync need to reach the hosts of a lab: a file for their option -F.

    Nothing listens for it: a connection goes over its host's control line, by keys that are the lab's own, and takes no
    link of the lab. In virtual time the lab keeps pace with yours as long as a connection is open.

    Example:  minigts ssh-config > lab.ssh; ssh -F lab.ssh ams
    """
    from minigts.lab import ssh

    typer.echo(ssh.write_config(opened_lab(which(lab, named))), nl=False)
