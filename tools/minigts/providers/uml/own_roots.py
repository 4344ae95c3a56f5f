"""The image with a root of the user's own beside its own: made once of an image's content, and kept by it.

Hosts start from such a layer as others do from the image. It is unpacked on a host, where whatever an archive holds
reaches no file of this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts import container_images
from minigts.errors import EnvironmentLacks, InputError, Problem
from minigts.machine import shell
from minigts.providers.uml import image, layers
from minigts.providers.uml.image import Image
from minigts.topology.plan import Plan
from minigts.topology.software import Root

ON_HOST = PurePosixPath("/var/tmp/minigts-own-root")
RECIPE = ("enter", "root.py", "install.sh")


def roots(plan: Plan, ready: Image, progress: Callable[[str], None]) -> Mapping[str, Path]:
    """The file system that each host with an image of the user's starts from; made now if it must be.

    Raises InputError for what is no image, with its place; EnvironmentLacks, HostFailed.
    """
    made: dict[str, Path] = {}
    found: dict[str, Path] = {}
    for host in plan.hosts:
        if host.software is not None and (root := host.software.root) is not None:
            if root.image not in made:
                made[root.image] = _layer(_taken(root, progress), ready, progress)
            found[host.name] = made[root.image]
    return found


def _taken(root: Root, progress: Callable[[str], None]) -> container_images.Image:
    try:
        return container_images.take(root.image, progress)
    except InputError as error:
        raise InputError([Problem(root.place.file, root.place.line, f"{root.place.path}: {error}")]) from error


def _layer(own: container_images.Image, ready: Image, progress: Callable[[str], None]) -> Path:
    recipe = [paths.project_root() / "provision" / "guests" / name for name in RECIPE]
    key = paths.content_key(((path.name, path) for path in recipe), f"{ready.directory.name} {own.key}")
    made = paths.cache_root() / "layers" / key / layers.ROOT
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    with image.only_builder(made.parents[1], progress):
        if not made.exists():
            _make(made, own, recipe, ready, progress)
    return made


def _make(
    made: Path, own: container_images.Image, recipe: Sequence[Path], ready: Image, progress: Callable[[str], None]
) -> None:
    needed_mb = (ready.root.stat().st_blocks * 512 + 3 * own.path.stat().st_size >> 20) + 1
    if (free_mb := shutil.disk_usage(made.parent).free >> 20) < needed_mb:
        raise EnvironmentLacks(f"hosts of {own.path} take {needed_mb} MB in {made.parent}; {free_mb} MB are free")
    progress(f"making {own.path} a host's root, once")
    with layers.made_beside(made.parent / "made") as place:
        shell.run(["cp", "--sparse=always", "--reflink=auto", str(ready.root), str(place / layers.ROOT)], timeout_s=600)

        def install(put: layers.Put, run: layers.Run) -> str:
            run(["mkdir", "-p", str(ON_HOST)], b"")
            for path in recipe:
                put(path, ON_HOST / path.name)
            put(own.path, ON_HOST / "image.tar")
            return run(["bash", str(ON_HOST / "install.sh"), str(ON_HOST)], b"")

        layers.changed(place, ready.boot, install, f"root of {own.path}")
        (place / layers.ROOT).rename(made)
    shutil.rmtree(made.parent / "made")
