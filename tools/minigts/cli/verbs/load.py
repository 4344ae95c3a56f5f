"""`minigts load`: load an image into hosts' engines. Containers belong to the topology, and come with `up`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName, one_of
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 340)


@verb.command()
def load(
    image: Annotated[
        Path,
        typer.Argument(metavar="IMAGE.tar", help="A file of docker save, an OCI archive, or a root file system."),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="HOST", help="The host; may be repeated. Default: all hosts."),
    ] = None,
    lab: LabName = None,
) -> None:
    """Load an image into the engines of a lab's hosts, under its own name; a root file system under the file's.

    `up` loads the images that a topology names under `containers:`. An engine that has the image is left alone.

    Example:  minigts load web.tar --on ams --on bra
    """
    from minigts import lab as labs
    from minigts import overlays
    from minigts.artifacts import container_images
    from minigts.overlays import containers

    opened = labs.open_lab(lab)
    known = [host.name for host in opened.plan.hosts]
    chosen = {one_of("host", name, known) for name in on or known}
    run = overlays.run_on(opened)
    begun = time.monotonic()
    with console.progress() as say:
        say(f"reading {image}")
        found = container_images.look(image.absolute())
        say(f"loading {image} on {len(chosen)} hosts")
        given = containers.load(opened, found, [host for host in opened.plan.hosts if host.name in chosen], run)
    amount = console.amount(found.path.stat().st_size * len(given), time.monotonic() - begun)
    names = ", ".join(containers.names_in_engine(found))
    console.note(f"{names}: on {', '.join(given)}: {amount}" if given else f"{names}: every host had it already")
