"""`minigts inventory`: a lab's hosts for Ansible."""

from __future__ import annotations

import typer

from minigts.cli.options import LabName, WhichLab, opened_lab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 290)


@verb.command()
def inventory(lab: WhichLab = None, named: LabName = None) -> None:
    """Print a lab's hosts as an inventory for Ansible, which connects to them as `ssh-config` describes.

    The groups of the lab's overlay are groups of the inventory.

    Example:  minigts inventory > lab.yaml; ansible -i lab.yaml all -m ping
    """
    from minigts.lab import ssh

    typer.echo(ssh.inventory(opened_lab(which(lab, named))), nl=False)
