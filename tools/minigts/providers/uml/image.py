"""The root file system that every kernel boots from: built once by provision/image, kept in the cache by its content.

An image is a directory named for the hash of all that goes into it. It is built beside its place and renamed when it
is complete, so an interrupted build leaves nothing that could be taken for an image.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import causes, sources
from minigts.artifacts.causes import FULL, cause
from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.machine import shell
from minigts.providers import system_packages
from minigts.providers.agent import client, process
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml import demand, guest, kernel
from minigts.providers.uml.kernel import GuestKernel
from minigts.providers.uml.package_lock import Lock
from minigts.providers.uml.supervisor import Launch

NAME = "hosts' image"
BUILD_TIMEOUT_S = 7200.0
UNDO_TIMEOUT_S = 120.0
FINISH_TIMEOUT_S = 180.0
FINISH_MB = 512
"""Memory of the host with Docker that finishes the image."""
UNPACKED_MB, PACKED_MB = 1200, 800
"""Room that the build takes for the unpacked root, and that the image then takes; with what may come to them."""
WORK_DIRECTORY = Path("/var/tmp")
"""Where build.sh unpacks for those who are not root, and compiles the agent before."""
IMAGE_MB = 2500
FAILED_LOG = "failed-build.log"
FULL_BYTES = 1 << 20


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

    @property
    def unproven(self) -> str:
        """The version of its kernel if the recipe was not proven with that; else empty."""
        file = self.directory / "unproven"
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""


@dataclass(frozen=True)
class Room:
    """What a build takes of one file system."""

    directory: Path
    needed_mb: int
    free_mb: int
    what: str = f"the {NAME}"

    @property
    def enough(self) -> bool:
        return self.free_mb >= self.needed_mb

    def __str__(self) -> str:
        return f"building {self.what} takes {self.needed_mb} MB in {self.directory}; {self.free_mb} MB are free"


def recipe() -> tuple[Path, ...]:
    """Every file that the image is made from, in a fixed order; not which kernels it was proven with."""
    directory = paths.project_root() / "provision"
    own = sorted(path for path in folder().iterdir() if path.is_file() and path.name != sources.TABLE)
    agent = directory / "agent"
    named = (agent / name for name in ("build.sh", "compile.sh", "Cargo.toml", "Cargo.lock"))
    shared = (directory / name for name in ("rust.sh", "debian.sh", "lib.sh"))
    return (*own, *named, *sorted((agent / "src").iterdir()), *shared)


def folder() -> Path:
    return paths.project_root() / "provision" / "image"


def key() -> str:
    """The image's name: a hash of the recipe."""
    return paths.content_key(((path.name, path) for path in recipe()), f"{IMAGE_MB}")


def present() -> Image | None:
    """The image for this recipe, if it has been built."""
    directory = paths.cache_root() / "images" / key()
    return Image(directory) if directory.is_dir() else None


def missing() -> list[str]:
    """What this machine lacks to build the image, a sentence each; empty when it is built already."""
    return [] if present() is not None else missing_to_build()


def missing_to_build() -> list[str]:
    """The same of a machine where nothing is built yet; whatever is built in a Debian root takes just that."""
    if shutil.which("apt-get") is None:
        return ["apt is not installed: building the hosts' image takes a Debian or Ubuntu machine"]
    packages = system_packages.of(Path(__file__).parent, root=os.geteuid() == 0)
    return [f"{each.program} is not installed: apt-get install {each.name}" for each in packages if not each.present]


def ensure(
    progress: Callable[[str], None], lock: Lock | None = None, settings: Mapping[str, str] | None = None
) -> Image:
    """The image for this recipe, built now if it must be; with just the packages of `lock`, if there is one.

    `settings` is what more the recipe's environment has. Raises EnvironmentLacks, HostFailed, and InputError where an
    image with other packages is there.
    """
    ready = present()
    if ready is None:
        images = paths.cache_root() / "images"
        images.mkdir(parents=True, exist_ok=True)
        with only_builder(images, progress):
            ready = present() or _build(images, progress, lock, settings or {})
    if lock is not None:
        lock.require(ready.lock)
    return ready


def _build(images: Path, progress: Callable[[str], None], lock: Lock | None, settings: Mapping[str, str]) -> Image:
    clear(images)
    with building(images / key(), progress, lock=lock, settings=settings):
        pass
    return Image(images / key())


def clear(images: Path) -> None:
    """Remove what killed builds have left there. Raises EnvironmentLacks for what this machine has not for another."""
    for left in images.glob("building-*"):
        _undo(left)
    lacking = [*kernel.missing(), *missing(), *(str(each) for each in room() if not each.enough)]
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    demand.require([demand.Kernel("image", FINISH_MB, "whole")], [demand.BARE])


@contextmanager
def building(
    ready: Path,
    progress: Callable[[str], None],
    also: Path | None = None,
    lock: Lock | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Path]:
    """The image being built beside its place `ready`, where it comes when the caller's own work on it has succeeded.

    `also` is a recipe of more, as build.sh has it (MINIGTS_ALSO). Raises EnvironmentLacks, HostFailed.
    """
    place = ready.with_name(f"building-{ready.name}")
    place.mkdir()
    try:
        progress(f"building the hosts' {'image' if also is None else also.name} from Debian packages; a minute or two")
        more = {**(settings or {}), **({} if also is None else {"MINIGTS_ALSO": str(also)})}
        said = _run_recipe(place, more | ({} if lock is None else {"MINIGTS_PACKAGE_LOCK": str(lock.file)}))
        for line in causes.sources(said):
            progress(line)
        if lock is not None:
            lock.require_built(Image(place).lock)
        progress("putting the measuring container into the image")
        _say_store(place)
        _run_recipe(place, {}, "--pack")
        yield place
        place.rename(ready)
        (ready.parent / FAILED_LOG).unlink(missing_ok=True)
    except BaseException:
        _undo(place)
        raise


def remove() -> None:
    """Remove the image of this recipe, if it is there. Labs that are up go on reading it."""
    ready = present()
    if ready is not None:
        shutil.rmtree(ready.directory)


def room() -> tuple[Room, ...]:
    """The room that a build needs, one entry for each file system, and what is free there."""
    images = paths.cache_root() / "images"
    needed_mb = {images: UNPACKED_MB + PACKED_MB}
    if existing(images).stat().st_dev != WORK_DIRECTORY.stat().st_dev:
        needed_mb = {images: PACKED_MB + (UNPACKED_MB if os.geteuid() == 0 else 0), WORK_DIRECTORY: UNPACKED_MB}
    return tuple(
        Room(place, needed, shutil.disk_usage(existing(place)).free >> 20) for place, needed in needed_mb.items()
    )


def existing(path: Path) -> Path:
    """The directory that there is, in which `path` is or will be."""
    return path if path.exists() else existing(path.parent)


def _run_recipe(place: Path, more: Mapping[str, str], *options: str) -> str:
    """What it says."""
    try:
        argv = [str(_script()), *options, str(place)]
        made = shell.run_group(argv, timeout_s=BUILD_TIMEOUT_S, env={**_settings(), **more}, umask=shell.FOR_OTHERS)
    except CommandFailed as error:
        raise EnvironmentLacks(_explain(error, place.parent)) from error
    return made.stdout


def _undo(place: Path) -> None:
    """Remove what is left of a build, in whatever state; what of it still runs is ended first."""
    process.end(place / "finish")
    shell.run([str(_script()), "--undo", str(place)], timeout_s=UNDO_TIMEOUT_S, env=_settings())


def _script() -> Path:
    return folder() / "build.sh"


def _settings() -> dict[str, str]:
    return {"MINIGTS_IMAGE_MB": str(IMAGE_MB), "PATH": search_path()}


def search_path() -> str:
    """debugfs lies where a plain user's PATH does not look."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _explain(error: CommandFailed, images: Path) -> str:
    """Why the recipe failed, in its cause's words or its last ones. The whole log is kept for who wants more."""
    log = images / FAILED_LOG
    log.write_text(error.stdout)
    return f"the hosts' image could not be built: {cause(error.stdout, _room_in_words())}\nThe log: {log}"


def _room_in_words() -> str:
    return " and ".join(f"{each.needed_mb} MB in {each.directory}" for each in room())


def _say_store(place: Path) -> None:
    """Boot the new root for what only a running host can do: Docker's store, left in `place` as `store.tar`."""
    rundir = place / "finish"
    rundir.mkdir()
    machine = GuestKernel("image", FINISH_MB, (), writes_base=True)
    guest.start(rundir, Launch(place / "boot", place / "root.ext4", (machine,), ()), ends_with_caller=True)
    try:
        guest.wait(AgentProvider(rundir), ["image"], lambda _: None)
        with (place / "store.tar").open("wb") as store:
            client.run(
                rundir,
                "image",
                ["/usr/lib/minigts/finish"],
                timeout_s=FINISH_TIMEOUT_S,
                check=True,
                stdin=b"",
                on_output=None,
                on_stdout=store.write,
            )
    except MinigtsError as error:
        if shutil.disk_usage(place).free < FULL_BYTES:
            raise EnvironmentLacks(f"the hosts' image could not be built: {cause(FULL, _room_in_words())}") from error
        raise
    finally:
        process.end(rundir)
    shutil.rmtree(rundir)


@contextmanager
def only_builder(images: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """One build at a time; the lock goes with the process that holds it."""
    with (images / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another minigts to finish building the image")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
