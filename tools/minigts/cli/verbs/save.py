"""`minigts save`: save a lab under a name."""

from __future__ import annotations

import time

from minigts.cli import console
from minigts.cli.options import LabName, SavedName
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 310)


@verb.command()
def save(name: SavedName, lab: LabName = None) -> None:
    """Save a whole lab under a name: disks, topology, settings, overlay and time. The lab goes on afterwards.

    All hosts stand still meanwhile. The saved lab stays until `saved --delete`, whatever becomes of this one.

    Example:  minigts save before-the-upgrade
    """
    from minigts import lab as labs
    from minigts import overlays
    from minigts.lab.snapshots import disk_bytes

    opened = labs.open_lab(lab, also_kept=True)
    joined = overlays.joined_overlay(opened)
    started_s = time.monotonic()
    with console.progress() as say:
        saved = labs.save(opened, name, None if joined is None else joined.name, say)
    console.note(
        f"lab {opened.name} is saved as {name}: {console.megabytes(disk_bytes(saved))} of disks of {len(saved.hosts)} "
        f"hosts, in {time.monotonic() - started_s:.1f} s; try: minigts restore {name} --lab again"
    )
