"""Layers for hosts with `image:`: copies of the hosts' image with the user's root file system added, made once.

A layer's key is a hash of the user's image. The image is unpacked on a host, so that a hostile archive cannot reach
files of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts import container_images
from minigts.errors import CommandFailed, InputError, MinigtsError, Problem
from minigts.foreign import one_line
from minigts.machine.progress import Progress
from minigts.providers.uml.build import layers
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.build.layers import Put, Run
from minigts.topology.plan.plan import Plan
from minigts.topology.software import Root

ON_HOST = PurePosixPath("/var/tmp/minigts-own-root")
BROKEN = 65
"""The exit code of root.py for an archive that it cannot unpack."""
RECIPE = ("enter", "root.py", "install.sh")


def roots(plan: Plan, ready: Image, progress: Progress) -> Mapping[str, Path]:
    """The file system of each host with `image:`, by host; made now if necessary.

    Raises InputError, with its place, for a file that is no image; EnvironmentLacks, HostFailed.
    """
    made: dict[str, Path] = {}
    found: dict[str, Path] = {}
    for host in plan.hosts:
        if host.software is not None and (root := host.software.root) is not None:
            if root.image not in made:
                made[root.image] = _made(root, ready, progress)
            found[host.name] = made[root.image]
    return found


def _made(root: Root, ready: Image, progress: Progress) -> Path:
    own = _taken(root, progress)
    try:
        return _layer(own, ready, progress)
    except MinigtsError as error:
        failed = error.__cause__
        if isinstance(failed, CommandFailed) and failed.code == BROKEN:
            said = one_line(failed.err.strip().splitlines()[-1])
            raise _misplaced(root, f"{own.path}: {said}") from error
        raise


def _taken(root: Root, progress: Progress) -> container_images.ContainerImage:
    try:
        return container_images.take(root.image, progress)
    except InputError as error:
        raise _misplaced(root, str(error)) from error


def _misplaced(root: Root, message: str) -> InputError:
    return InputError([Problem(root.place.file, root.place.line, f"{root.place.path}: {message}")])


def _layer(own: container_images.ContainerImage, ready: Image, progress: Progress) -> Path:
    recipe = [paths.project_root() / "provision" / "guests" / name for name in RECIPE]
    key = paths.content_key(((path.name, path) for path in recipe), f"{ready.directory.name} {own.key}")
    more_mb = (3 * own.path.stat().st_size >> 20) + 1

    def install(put: Put, run: Run) -> None:
        run(["mkdir", "-p", str(ON_HOST)], b"")
        for path in recipe:
            put(path, ON_HOST / path.name)
        put(own.path, ON_HOST / "image.tar")
        run(["bash", str(ON_HOST / "install.sh"), str(ON_HOST)], b"")

    return layers.ensure(
        key, ready, install, f"the root of {own.path}", more_mb, progress, f"making {own.path} a host's root, once"
    )
