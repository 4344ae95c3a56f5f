"""`minigts shell`: a shell on a host."""

from __future__ import annotations

import typer

from minigts.cli import console
from minigts.cli.containers import container_entry, is_pod
from minigts.cli.options import Host, Inside, LabName, lab_with, opened_lab
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 190)


@verb.command()
def shell(host: Host, lab: LabName = None, container: Inside = False) -> None:
    """Open a shell on a host, as root; with --container in a container. pod/NAME is a pod, as for `exec`.

    Leave it with exit or ctrl-d.

    Example:  minigts shell ams

    Example:  minigts shell --container web
    """
    from minigts.lab import provisioning

    container = container or is_pod(host)
    opened = opened_lab(lab) if container else lab_with(host, lab)
    if container:
        host, prefixes = container_entry(opened, host)
        argv = (*prefixes[host], "sh", "-i")
    else:
        argv = provisioning.shell_argv(opened, host)
    if opened.time == "virtual":
        console.note("the lab's virtual time keeps pace with real time as long as this shell is open")
    raise typer.Exit(opened.provider.attach(host, argv))
