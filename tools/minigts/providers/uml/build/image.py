"""The image: the root file system that every kernel boots from, built once by the recipe provision/image.

An image is a directory of the cache that is named for the hash of its recipe. It is built beside that directory and
renamed when complete, so that an interrupted build is never taken for an image.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import build_errors, builders, sources
from minigts.artifacts.build_errors import FULL, cause
from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.foreign import Foreign, content
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import system_packages
from minigts.providers.agent import client, lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml import memory
from minigts.providers.uml.build import namespaces
from minigts.providers.uml.build.package_lock import Lock
from minigts.providers.uml.run import booting, command_line
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch

NAME = "hosts' image"
BUILD_TIMEOUT_S = 7200.0
UNDO_TIMEOUT_S = 120.0
FINISH_TIMEOUT_S = 180.0
FINISH_MB = 512
"""Memory of the host with Docker that finishes the image."""
UNPACKED_MB, AGENT_MB, PACKED_MB = 1200, 1200, 800
"""MB that a build needs for the unpacked root and, meanwhile, for compiling the agent; and that the image then needs,
with a reserve."""
WORK_DIRECTORY = Path("/var/tmp")
"""The directory in which build.sh compiles the agent and, for users other than root, unpacks."""
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
        """The version of its kernel if the recipe was not proven with that version; otherwise empty."""
        file = self.directory / "unproven"
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""


@dataclass(frozen=True)
class Room:
    """The room that a build needs in one file system."""

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
    """Every file that the image is made from, in a fixed order, without the table of proven kernels."""
    directory = paths.project_root() / "provision"
    own = sorted(path for path in folder().iterdir() if path.is_file() and path.name != sources.TABLE)
    agent = directory / "agent"
    named = (agent / name for name in ("build.sh", "compile.sh", "packages.lock", "Cargo.toml", "Cargo.lock"))
    shared = (directory / name for name in ("rust.sh", "debian.sh", "lib.sh"))
    return (*own, *named, *sorted((agent / "src").iterdir()), *shared)


def folder() -> Path:
    return paths.project_root() / "provision" / "image"


def key() -> str:
    """The name of the image's directory: a hash of the recipe."""
    return paths.content_key(((path.name, path) for path in recipe()), f"{IMAGE_MB}")


def present() -> Image | None:
    """The image for this recipe, if it has been built."""
    directory = paths.cache_entry(paths.cache_root() / "images" / key())
    return Image(directory) if directory.is_dir() else None


def missing() -> list[str]:
    """What this machine lacks to build the image, one sentence each; empty when the image is built."""
    return [] if present() is not None else missing_to_build()


def missing_to_build() -> list[str]:
    """What this machine lacks for any build in a Debian root, one sentence each, whether or not the image is built."""
    if shutil.which("apt-get") is None:
        return ["apt is not installed: building the hosts' image takes a Debian or Ubuntu machine"]
    packages = system_packages.listed_packages(Path(__file__).parents[1], root=os.geteuid() == 0)
    lacking = [f"{each.program} is not installed: apt-get install {each.name}" for each in packages if not each.present]
    return [*lacking, *namespaces.missing()]


def ensure(progress: Progress, lock: Lock | None = None, settings: Mapping[str, str] | None = None) -> Image:
    """The image of this recipe, built now if necessary; with exactly the packages of `lock`, if that is given.

    `settings` are further environment variables for the recipe. Raises EnvironmentLacks, HostFailed, and InputError
    when the image was built with other packages.
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


def _build(images: Path, progress: Progress, lock: Lock | None, settings: Mapping[str, str]) -> Image:
    clear(images)
    with building(images / key(), progress, lock=lock, settings=settings):
        pass
    return Image(images / key())


def clear(images: Path) -> None:
    """Remove what killed builds have left. Raises EnvironmentLacks when this machine cannot build an image."""
    for left in images.glob("building-*"):
        _undo(left)
    lacking = [*command_line.missing(), *missing(), *(str(each) for each in room() if not each.enough)]
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    memory.require_memory([memory.Kernel("image", FINISH_MB, "whole")], [memory.BARE])


@contextmanager
def building(
    ready: Path,
    progress: Progress,
    also: Path | None = None,
    lock: Lock | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Path]:
    """A context with the directory of a new image, which is renamed to `ready` when the context ends without an error.

    `also` is the folder of a further recipe for build.sh (MINIGTS_ALSO). Raises EnvironmentLacks, HostFailed.
    """
    place = ready.with_name(f"building-{ready.name}")
    place.mkdir()
    try:
        progress(f"building the hosts' {'image' if also is None else also.name} from Debian packages; a minute or two")
        more = {**(settings or {}), **({} if also is None else {"MINIGTS_ALSO": str(also)})}
        said = _run_recipe(place, more | ({} if lock is None else {"MINIGTS_PACKAGE_LOCK": str(lock.file)}))
        for line in build_errors.sources(said):
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
    """Remove the image of this recipe from the user's own cache, if it has been built there. Labs that are up can still
    read it."""
    own = paths.cache_root() / "images" / key()
    if own.is_dir():
        shutil.rmtree(own)


def room() -> tuple[Room, ...]:
    """The room that a build needs and that is free, one entry for each file system."""
    images = paths.cache_root() / "images"
    needed_mb = {images: UNPACKED_MB + AGENT_MB + PACKED_MB}
    if existing(images).stat().st_dev != WORK_DIRECTORY.stat().st_dev:
        here, there = (UNPACKED_MB, 0) if os.geteuid() == 0 else (0, UNPACKED_MB)
        needed_mb = {images: PACKED_MB + here, WORK_DIRECTORY: AGENT_MB + there}
    return tuple(
        Room(place, needed, shutil.disk_usage(existing(place)).free >> 20) for place, needed in needed_mb.items()
    )


def existing(path: Path) -> Path:
    """`path`, or the nearest directory above it that exists."""
    return path if path.exists() else existing(path.parent)


def _run_recipe(place: Path, more: Mapping[str, str], *options: str) -> str:
    """Run build.sh; return its output. Raises EnvironmentLacks when it fails."""
    try:
        argv = [str(_script()), *options, str(place)]
        made = shell.run_group(argv, timeout_s=BUILD_TIMEOUT_S, env={**_settings(), **more}, umask=shell.FOR_OTHERS)
    except CommandFailed as error:
        raise EnvironmentLacks(_explain(error, place.parent)) from error
    return made.stdout


def _undo(place: Path) -> None:
    """End what still runs of a build, and remove its directory, whatever state it is in."""
    lab_processes.end(place / "finish")
    shell.run([str(_script()), "--undo", str(place)], timeout_s=UNDO_TIMEOUT_S, env=_settings(), cwd=shell.ANYWHERE)


def _script() -> Path:
    return folder() / "build.sh"


def _settings() -> dict[str, str]:
    return {"MINIGTS_IMAGE_MB": str(IMAGE_MB), "PATH": search_path()}


def search_path() -> str:
    """PATH with the directories of debugfs, which a plain user's PATH lacks."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _explain(error: CommandFailed, images: Path) -> str:
    """The message with the cause of a failed build. The whole log is kept."""
    log = images / FAILED_LOG
    log.write_text(content(error.out))
    return f"the hosts' image could not be built: {cause(error.out, _room_in_words())}\nThe log: {log}"


def _room_in_words() -> str:
    return " and ".join(f"{each.needed_mb} MB in {each.directory}" for each in room())


def _say_store(place: Path) -> None:
    """Boot the new root to fill Docker's store, which needs a running host; save it as `store.tar` in `place`."""
    rundir = place / "finish"
    rundir.mkdir()
    machine = GuestKernel("image", FINISH_MB, (), writes_base=True)
    booting.start(rundir, Launch(place / "boot", place / "root.ext4", (machine,), ()), ends_with_caller=True)
    try:
        booting.wait(AgentProvider(rundir), ["image"], lambda _: None)
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
            why = cause(Foreign(FULL), _room_in_words())
            raise EnvironmentLacks(f"the hosts' image could not be built: {why}") from error
        raise
    finally:
        lab_processes.end(rundir)
    shutil.rmtree(rundir)


def only_builder(images: Path, progress: Progress) -> AbstractContextManager[None]:
    """A context for one build at a time; its lock ends with the process that holds it."""
    return builders.only_builder(images / "lock", "image", progress)
