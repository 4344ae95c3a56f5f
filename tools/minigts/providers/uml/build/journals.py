"""First disks of hosts whose disk has a cache: the blocks by which a file system with a journal differs from its image.

The image's file system has no journal, since hosts without a cache lose nothing. A host that boots makes the journal on
a disk of its own, once for each image or layer, and the cache keeps that disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from minigts import paths
from minigts.errors import CommandFailed, MinigtsError
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.agent import lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.build import image, layers
from minigts.providers.uml.run import booting
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch

DISK = "journal.cow"
JOURNAL_MB, MEMORY_MB = 16, 256
TIMEOUT_S = 120.0
MAKE = f"date -s @1000000000; tune2fs -j -J size={JOURNAL_MB} /dev/ubda; sync; mount -o remount,ro /"
"""The journal has the same time on every machine."""
WRITES_MOUNTED = "bdev_allow_write_mounted=1"
"""Lets tune2fs write to the file system's device while it is mounted."""


def equip(launch: Launch, cached: Collection[str], progress: Progress) -> Launch:
    """The launch in which these machines have a disk with a cache; what their disks begin with is made now if
    necessary. Raises HostFailed, MinigtsError."""
    machines = tuple(
        replace(each, first_disk=str(ensure(launch, launch.base_of(each), progress))) if each.name in cached else each
        for each in launch.machines
    )
    return replace(launch, machines=machines)


def ensure(launch: Launch, base: Path, progress: Progress) -> Path:
    """The first disk of hosts that start from the file system `base`, made now if necessary."""
    about = base.stat()
    what = f"journal of {JOURNAL_MB} MB on {base.parent.name}, {about.st_size} bytes of {about.st_mtime_ns}"
    made = paths.cache_entry(layers.store() / paths.content_key((), what) / DISK)
    if not made.exists():
        layers.store().mkdir(parents=True, exist_ok=True)
        with image.only_builder(layers.store(), progress):
            if not made.exists():
                progress("making the journal of hosts whose disk has a cache, once")
                made.parent.mkdir(exist_ok=True)
                _make(made, launch.boot_directory, base)
    return made


def _make(made: Path, boot: Path, base: Path) -> None:
    machine = GuestKernel("image", MEMORY_MB, ())
    with layers.new_directory(made.parent / "made") as place:
        rundir = place / "host"
        rundir.mkdir()
        booting.start(rundir, Launch(boot, base, (machine,), (), arguments=(WRITES_MOUNTED,)), ends_with_caller=True)
        host = AgentProvider(rundir)
        try:
            booting.wait(host, [machine.name], lambda _: None)
            host.run(machine.name, ["sh", "-euc", MAKE], timeout_s=TIMEOUT_S)
        except CommandFailed as error:
            raise MinigtsError(f"no journal could be made for hosts' disks: {error}") from error
        finally:
            lab_processes.end(rundir)
        shell.run(["cp", "--sparse=always", str(rundir / machine.disk), str(place / DISK)], timeout_s=TIMEOUT_S)
        (place / DISK).rename(made)
    shutil.rmtree(made.parent / "made")
