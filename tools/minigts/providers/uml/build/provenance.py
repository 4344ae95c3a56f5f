"""The image, kernel and clock that a lab's hosts are started from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minigts import paths
from minigts.providers.uml.build import clock_build, image, kernel_build
from minigts.providers.uml.run.supervisor import Launch

IMAGE, KERNEL, CLOCK = "image", "kernel", "clock"


def of_lab(rundir: Path) -> Mapping[str, Path]:
    """The directories of the parts that the lab in this run directory was started from; none if it was not started."""
    path = rundir / paths.LAUNCH
    if not path.exists():
        return {}
    launch = Launch.read(path)
    found = {IMAGE: launch.base.parent, KERNEL: launch.boot_directory}
    return found if launch.clock is None else found | {CLOCK: Path(launch.clock.program).parent}


def of_a_new_lab(*, virtual: bool) -> Mapping[str, Path]:
    """The directories of the parts that a new lab would be started from, without those that are not built yet."""
    ready, full, ticking = image.present(), kernel_build.present(), clock_build.present()
    found = {} if ready is None else {IMAGE: ready.directory}
    if full is not None:
        found[KERNEL] = full.directory
    elif ready is not None and not virtual:
        found[KERNEL] = ready.boot
    return found if ticking is None or not virtual else found | {CLOCK: ticking.directory}
