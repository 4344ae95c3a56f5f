"""Layers with an overlay's programs, for hosts that come up with that overlay.

Otherwise each host gets a copy of them on its own disk, and holds in memory of its own what it reads of it. What it
reads of a layer is shared by all hosts (docs/decisions/memory.md).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.machine.progress import Progress
from minigts.providers.uml.build import layers
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.build.layers import Put, Run

LEAST_BYTES = 100 << 20
"""Fewer bytes of programs are not worth a layer, which has a copy of the image."""

DATED = "/usr/lib/os-release"
"""A file of the image; programs get its time, so that none of a layer's files says when the layer was made."""


def layer(programs: Path, place: PurePosixPath, ready: Image, progress: Progress) -> str:
    """The key of the layer on which the directory `programs` is below `place`, made now if necessary; empty when it is
    not worth one. Raises EnvironmentLacks, HostFailed."""
    size = paths.size_bytes(programs)
    if size < LEAST_BYTES:
        return ""
    target = place / programs.name
    key = paths.content_key((), f"{ready.directory.name} {target}")

    def change(put: Put, run: Run) -> None:
        run(["mkdir", "-p", str(place)], b"")
        put(programs, target)
        run(["find", str(target), "-exec", "touch", "-h", "-r", DATED, "{}", "+"], b"")

    said = f"putting programs of {size >> 20} MB into a copy of the image, once"
    layers.ensure(key, ready, change, "an overlay's programs", (size >> 20) + 1, progress, said)
    return key
