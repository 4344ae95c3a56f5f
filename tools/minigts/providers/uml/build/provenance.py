"""The image, kernel and clock that a lab's hosts are started from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minigts import paths
from minigts.artifacts import kernels
from minigts.providers.uml.build import clock_build, image, kernel_build
from minigts.providers.uml.run.supervisor import Launch

IMAGE, KERNEL, CLOCK = "image", "kernel", "clock"


def lab_parts(rundir: Path) -> Mapping[str, Path]:
    """The directories of the parts that the lab in this run directory was started from; none if it was not started."""
    path = rundir / paths.LAUNCH
    if not path.exists():
        return {}
    launch = Launch.read(path)
    found = {IMAGE: launch.base.parent}
    if not launch.machines or any(not each.kernel for each in launch.machines):
        found[KERNEL] = launch.boot_directory
    # A name may have got another kernel since: what hosts have been started from is what the launch says.
    for each in launch.machines:
        if each.kernel:
            found[kernels.part(each.kernel_name)] = Path(each.kernel)
    return found if launch.clock is None else found | {CLOCK: Path(launch.clock.program).parent}


def new_lab_parts(*, virtual: bool) -> Mapping[str, Path]:
    """The directories of the parts that a new lab would be started from, without those that are not built yet."""
    ready, full, ticking = image.present(), kernel_build.present(), clock_build.present()
    found = {} if ready is None else {IMAGE: ready.directory}
    if full is not None:
        found[KERNEL] = full.directory
    elif ready is not None and not virtual:
        found[KERNEL] = ready.boot
    return found if ticking is None or not virtual else found | {CLOCK: ticking.directory}


def named_kernels() -> Mapping[str, Path]:
    """The directory of every kernel by name, for which a new lab's plan may ask."""
    return {kernels.part(each.manifest.name): each.directory for each in kernels.every()}
