"""The root file system that every kernel boots from: built once by provision/image, kept in the cache by its content.

An image is a directory named for the hash of all that goes into it. It is built beside its place and renamed when it
is complete, so an interrupted build leaves nothing that could be taken for an image.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths, shell
from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.providers.uml import client, guest, process, wire
from minigts.providers.uml.kernel import Machine
from minigts.providers.uml.supervisor import Launch

BUILD_TIMEOUT_S = 1800.0
FINISH_TIMEOUT_S = 180.0
NEEDED_FREE_MB = 3000
IMAGE_MB = 2500


@dataclass(frozen=True)
class Image:
    """A complete image: the file system, the kernel that boots it, and the lock of its packages' versions."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / "root.ext4"

    @property
    def boot(self) -> Path:
        return self.directory / "boot"

    @property
    def lock(self) -> Path:
        return self.directory / "packages.lock"


def recipe() -> tuple[Path, ...]:
    """Every file that the image is made from, in a fixed order."""
    directory = paths.project_root() / "provision"
    own = sorted(path for path in (directory / "image").iterdir() if path.is_file())
    return (*own, directory / "lib.sh", Path(wire.__file__))


def key() -> str:
    """The image's name: a hash of the recipe."""
    digest = hashlib.sha256(f"{IMAGE_MB}".encode())
    for path in recipe():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def present() -> Image | None:
    """The image for this recipe, if it has been built."""
    directory = paths.cache_root() / "images" / key()
    return Image(directory) if directory.is_dir() else None


def missing() -> list[str]:
    """What this machine lacks to build the image, a sentence each; empty when it is built already."""
    if present() is not None:
        return []
    found = [
        f"{program} is not installed: apt-get install {package}"
        for program, package in (("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs"))
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None
    ]
    if os.geteuid() != 0 and shutil.which("newuidmap") is None:
        found.append("newuidmap is not installed: apt-get install uidmap")
    return found


def ensure(progress: Callable[[str], None]) -> Image:
    """The image for this recipe, built now if it must be. Raises EnvironmentLacks and CommandFailed."""
    images = paths.cache_root() / "images"
    images.mkdir(parents=True, exist_ok=True)
    ready = present()
    if ready is not None:
        return ready
    with _only_builder(images, progress):
        ready = present()
        return ready or _build(images, progress)


def _build(images: Path, progress: Callable[[str], None]) -> Image:
    lacking = missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    for left in images.glob("building-*"):
        process.end(left / "finish")
        shutil.rmtree(left)
    free_mb = shutil.disk_usage(images).free >> 20
    if free_mb < NEEDED_FREE_MB:
        raise EnvironmentLacks(f"the image needs {NEEDED_FREE_MB} MB of disk in {images}; {free_mb} MB are free")
    place = images / f"building-{key()}"
    place.mkdir()
    try:
        progress("building the hosts' image from Debian packages; once, a minute or two")
        _run_recipe(place)
        progress("importing the measuring container into the image")
        _finish(place)
        place.rename(images / key())
    except BaseException:
        process.end(place / "finish")
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Image(images / key())


def _run_recipe(place: Path) -> None:
    script = paths.project_root() / "provision" / "image" / "build.sh"
    settings = {
        "MINIGTS_WIRE": str(wire.__file__),
        "MINIGTS_IMAGE_MB": str(IMAGE_MB),
        "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
    }
    try:
        shell.run([str(script), str(place)], timeout_s=BUILD_TIMEOUT_S, env=settings)
    except CommandFailed as error:
        raise MinigtsError(f"the image could not be built; nothing of it is kept\n{error}") from error


def _finish(place: Path) -> None:
    """Boot the new root, writing to it, for what only a running host can do."""
    rundir = place / "finish"
    rundir.mkdir()
    machine = Machine("image", 512, (), writes_base=True)
    guest.start(rundir, Launch(place / "boot", place / "root.ext4", (machine,), ()))
    try:
        guest.wait(rundir, ["image"], lambda _: None)
        client.run(
            rundir,
            "image",
            ["/usr/lib/minigts/finish"],
            timeout_s=FINISH_TIMEOUT_S,
            check=True,
            stdin=b"",
            on_output=None,
        )
    finally:
        process.end(rundir)
    shutil.rmtree(rundir)


@contextmanager
def _only_builder(images: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """One build at a time; the lock goes with the process that holds it."""
    with (images / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another minigts to finish building the image")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
