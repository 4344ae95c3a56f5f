"""Layers: copies of the image with something added, made once and kept in the cache.

A host with a layer starts from it as others do from the image. What is added is written by a host that boots on the
copy, since this machine's own tools may differ, and a hostile archive cannot reach this machine's files there.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts.build_errors import cause
from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.foreign import Foreign
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.agent import lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.build import image
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.run import booting, transfer
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch

CHANGE_TIMEOUT_S, COPY_TIMEOUT_S = 900.0, 600.0
CHANGING_MB = 512
"""Memory of the host that changes a copy of the image."""
ROOT = "root.ext4"

Put = Callable[[Path, PurePosixPath], None]
"""Copies a file or directory to a host."""
Run = Callable[[Sequence[str], bytes], Foreign]
"""Runs a command with an input on a host; returns its standard output."""


def store() -> Path:
    """The directory that has all layers, each in a directory of its key."""
    return paths.cache_root() / "layers"


def root(key: str) -> Path:
    """The file system of the layer with that key, whether it is made or not."""
    return paths.cache_entry(store() / key / ROOT)


def ensure(
    key: str, ready: Image, change: Callable[[Put, Run], None], what: str, more_mb: int, progress: Progress, said: str
) -> Path:
    """The file system of the layer with that key, made now if necessary, which `said` then says; the rest as `make`."""
    made = root(key)
    if made.exists():
        return made
    store().mkdir(parents=True, exist_ok=True)
    with image.only_builder(store(), progress):
        if not made.exists():
            made.parent.mkdir(exist_ok=True)
            progress(said)
            try:
                make(made, ready, change, what, more_mb)
            except BaseException:
                with contextlib.suppress(OSError):
                    made.parent.rmdir()
                raise
    return made


def make(made: Path, ready: Image, change: Callable[[Put, Run], None], what: str, more_mb: int) -> None:
    """Make the file system `made`: a copy of the image, which is booted and changed by `change`.

    `what` is its name in messages, and `more_mb` what it takes beside the image. Raises EnvironmentLacks, HostFailed,
    MinigtsError; then nothing is left of it.
    """
    needed_mb = (ready.root.stat().st_blocks * 512 >> 20) + more_mb
    if (free_mb := shutil.disk_usage(made.parent).free >> 20) < needed_mb:
        raise EnvironmentLacks(f"hosts with {what} take {needed_mb} MB in {made.parent}; {free_mb} MB are free")
    with new_directory(made.parent / "made") as place:
        argv = ["cp", "--sparse=always", "--reflink=auto", str(ready.root), str(place / ROOT)]
        shell.run(argv, timeout_s=COPY_TIMEOUT_S)
        _changed(place, ready.boot, change, what)
        (place / ROOT).rename(made)
    shutil.rmtree(made.parent / "made")


@contextmanager
def new_directory(ready: Path) -> Iterator[Path]:
    """A context with a directory that is renamed to `ready` at its end. Remains of an earlier one are removed first."""
    place = ready.with_name(f"building-{ready.name}")
    lab_processes.end(place / "host")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        yield place
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    place.rename(ready)


def _changed(place: Path, boot: Path, change: Callable[[Put, Run], None], what: str) -> None:
    """Boot the file system in `place`, and change it."""
    rundir = place / "host"
    rundir.mkdir()
    machine = GuestKernel("image", CHANGING_MB, (), writes_base=True)
    booting.start(rundir, Launch(boot, place / ROOT, (machine,), ()), ends_with_caller=True)
    host = AgentProvider(rundir)

    def run(argv: Sequence[str], stdin: bytes) -> Foreign:
        return host.run(machine.name, argv, timeout_s=CHANGE_TIMEOUT_S, stdin=stdin).stdout

    try:
        booting.wait(host, [machine.name], lambda _: None)
        change(partial(transfer.put, host, machine.name, rundir / "shared" / machine.name), run)
        run(["sh", "-c", "sync; mount -o remount,ro /"], b"")
    except CommandFailed as error:
        why = cause(error.out + error.err, f"room on the host's disk of {image.IMAGE_MB} MB")
        raise MinigtsError(f"{what} could not be installed: {why}") from error
    finally:
        lab_processes.end(rundir)
